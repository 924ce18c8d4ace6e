#define _GNU_SOURCE /* dlvsym */

#include "verbs_real.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/auxv.h>

#include "util_log.h"
#include "verbs_nosys.h"
#include "verbs_tune.h"

/* Present in every copy of this library and in no other libibverbs. */
extern const char weft_verbs_library[];
VERBS_EXPORT const char weft_verbs_library[] = "weft";

struct entry {
	const char *name;
	const char *version; /* NULL: not in the library that we were built for */
	void *without;
};

#define ENTRY(i, n, v, kind)                                                                       \
	[i] = {.name = #n, .version = (v), .without = (void *)verbs_nosys_##kind},
#define VERBS_FORWARD(i, n, v, kind) ENTRY(i, n, #v, kind)
#define VERBS_COMPAT(i, n, v, kind)  ENTRY(i, n, #v, kind)
#define VERBS_REAL(i, n, v, kind)    ENTRY(i, n, #v, kind)
#define VERBS_ABSENT(i, n, v, kind)  ENTRY(i, n, NULL, kind)
#define VERBS_OBJECT(n, v, size)
static const struct entry entries[] = {
#include "verbs_real.def"
};
#undef VERBS_FORWARD
#undef VERBS_COMPAT
#undef VERBS_REAL
#undef VERBS_ABSENT
#undef VERBS_OBJECT

/* Where the trampolines jump to (verbs_tramp.S). */
extern VERBS_HIDDEN void *_Atomic verbs_real_slot[];

/* Where libraries are, should the real one have moved since we were built. */
static const char *const places[] = {
	VERBS_REAL_PATH,
#ifdef VERBS_MULTIARCH
	"/usr/lib/" VERBS_MULTIARCH "/libibverbs.so.1",
	"/lib/" VERBS_MULTIARCH "/libibverbs.so.1",
#endif
	"/usr/lib64/libibverbs.so.1",
	"/usr/lib/libibverbs.so.1",
	"/lib64/libibverbs.so.1",
	"/lib/libibverbs.so.1",
};

/* By path, never by name: the name is ours. Not RTLD_DEEPBIND, though it would keep
 * the real library's calls to itself away from us: it would also tie that library to
 * libc's malloc, and providers free with the program's what the library allocated. */
static void *open_real(const char *path)
{
	void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	if (!handle) {
		util_log(UTIL_LOG_DEBUG, "no libibverbs for hardware: %s", dlerror());
		return NULL;
	}
	/* LD_LIBRARY_PATH, a symbolic link or an installed copy may lead back to us. */
	if (dlsym(handle, "weft_verbs_library")) {
		util_log(UTIL_LOG_DEBUG, "%s is Weft's own libibverbs", path);
		dlclose(handle);
		return NULL;
	}
	util_log(UTIL_LOG_DEBUG, "hardware is served by %s", path);
	return handle;
}

static void *find_real(void)
{
	const char *told = NULL;
	void *handle = NULL;

	/* Who starts a set-user-ID program does not choose its libraries. */
	if (!getauxval(AT_SECURE))
		told = util_tune_str(&verbs_tunables[VERBS_TUNE_REAL]);
	if (told)
		return open_real(told);
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && !handle; i++)
		handle = open_real(places[i]);
	return handle;
}

/* NULL when there is none. Two threads may both search: dlopen counts references and
 * gives both the same handle. A lock (or pthread_once) around dlopen could deadlock
 * with a constructor that calls verbs while its thread holds the loader's lock. */
static void *real_handle(void)
{
	static char missing;
	static void *_Atomic found;
	static atomic_bool told;
	void *handle = atomic_load_explicit(&found, memory_order_acquire);

	if (handle)
		return handle == &missing ? NULL : handle;
	handle = find_real();
	if (!handle)
		util_log_once(&told, UTIL_LOG_WARN,
			      "the system's libibverbs was not found: no RDMA hardware can be used "
			      "(%s=PATH names one)",
			      verbs_tunables[VERBS_TUNE_REAL].name);
	/* Release: whoever sees the handle sees the loaded library. */
	atomic_store_explicit(&found, handle ? handle : &missing, memory_order_release);
	return handle;
}

void *verbs_real_resolve(unsigned int index)
{
	const struct entry *e = &entries[index];
	int saved = errno;
	void *handle = real_handle();
	void *target = NULL;

	if (handle && e->version) {
		target = dlvsym(handle, e->name, e->version);
		if (!target)
			util_log(UTIL_LOG_WARN,
				 "the system's libibverbs has no %s@%s, which the one that Weft "
				 "was built with had",
				 e->name, e->version);
	}
	if (!target)
		target = e->without;
	/* Relaxed: code, not data, is behind the pointer, and the loader has published it. */
	atomic_store_explicit(&verbs_real_slot[index], target, memory_order_relaxed);
	errno = saved;
	return target;
}

struct object {
	const char *name;
	const char *version;
	void *ours;
	size_t size;
};

#define VERBS_FORWARD(i, n, v, kind)
#define VERBS_COMPAT(i, n, v, kind)
#define VERBS_REAL(i, n, v, kind)
#define VERBS_ABSENT(i, n, v, kind)
#define VERBS_OBJECT(n, v, sz)                                                                     \
	extern char(n)[sz];                                                                        \
	VERBS_EXPORT _Alignas(max_align_t) char(n)[sz];
#include "verbs_real.def"
#undef VERBS_OBJECT
#define VERBS_OBJECT(n, v, sz) {#n, #v, (n), (sz)},
static const struct object objects[] = {
#include "verbs_real.def"
	{0},
};

static bool all_zero(const char *p, size_t len)
{
	while (len && !*p)
		p++, len--;
	return !len;
}

/* Providers read our copy. The real library writes ours as well when we are in the
 * global scope, else its own: so its own counts only if something was written there. */
void verbs_real_sync_objects(void)
{
	int saved = errno;
	void *handle = real_handle();

	for (const struct object *o = objects; handle && o->name; o++) {
		const void *theirs = dlvsym(handle, o->name, o->version);

		if (theirs && !all_zero(theirs, o->size) && memcmp(o->ours, theirs, o->size) != 0)
			memcpy(o->ours, theirs, o->size);
	}
	errno = saved;
}
