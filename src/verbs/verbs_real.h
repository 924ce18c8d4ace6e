/* The real libibverbs: how this library reaches the one that it stands in for.
 *
 * Every symbol@version of the installed library is exported from here. Those that
 * this layer does not define are trampolines: on the first call the real library is
 * loaded, the same symbol@version looked up and remembered; from then on a call costs
 * one indirect jump. A symbol `ibv_x` that this layer does define has its trampoline
 * too, as verbs_real_ibv_x, for objects of hardware devices.
 *
 * The symbols are listed in the generated verbs_real.def, one line each:
 *
 *	VERBS_FORWARD(index, name, version, without)  exported, only forwarded
 *	VERBS_COMPAT(index, name, version, without)   the same for an old version, name@version
 *	VERBS_REAL(index, name, version, without)     exported by us, verbs_real_name forwards
 *	VERBS_ABSENT(index, name, -, without)         ours, unknown to the installed library
 *	VERBS_OBJECT(name, version, size)             data
 *
 * Providers of the real library (libmlx5, ...) need "libibverbs.so.1" and thereby bind
 * to us, as do the real library's calls to its own exports when we are in the global
 * scope. Both arrive back in the real library, so that its state exists once.
 *
 * No lock is held across dlopen, and nothing happens before the first call: a process
 * into which this library is preloaded and that never calls verbs does not notice.
 */
#ifndef WEFT_VERBS_REAL_H
#define WEFT_VERBS_REAL_H

#define VERBS_EXPORT __attribute__((visibility("default")))
#define VERBS_HIDDEN __attribute__((visibility("hidden")))

/* The real library's function of that name, as a callable. */
#define REAL(name)               verbs_real_##name
#define VERBS_DECLARE_REAL(name) extern VERBS_HIDDEN __typeof__(name) REAL(name)

/* The trampolines' slow path: finds the target of entry `index`, or a function that
 * refuses as the verbs man pages say (verbs_nosys.h). Never NULL; keeps errno. */
void *verbs_real_resolve(unsigned int index);

/* Brings data that the real library exports up to date in our copy of it, which is
 * what providers see. Call after anything that may have initialised the library. */
void verbs_real_sync_objects(void);

#endif
