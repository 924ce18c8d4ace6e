/* libweft-probe.so: files that a device of the kernel has, and Weft's has not.
 *
 * Some programs look for files before they ask libibverbs:
 *
 *	UCX          stat and access of /dev/infiniband/<dev_name>, which must be a
 *	             character device that may be read and written
 *	Open MPI     (openib) stat of /sys/class/infiniband, which must be a directory
 *
 * This library, preloaded, answers for exactly these paths, and only if they do not
 * exist. Every other question goes to the next library and comes back unchanged. It
 * says only that something is there: nothing can be opened or listed.
 *
 * The functions here are called by everything, anywhere, also in signal handlers and
 * between fork and exec: they allocate nothing, take no lock and keep errno.
 */
#define _GNU_SOURCE /* RTLD_NEXT, stat64 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

static const struct file {
	const char *path;
	mode_t mode;
} files[] = {
	{"/sys/class/infiniband", S_IFDIR | 0555},
	{"/sys/class/infiniband/weft0", S_IFDIR | 0555},
	{"/sys/class/infiniband_verbs", S_IFDIR | 0555},
	{"/sys/class/infiniband_verbs/uverbs-weft0", S_IFDIR | 0555},
	{"/dev/infiniband/uverbs-weft0", S_IFCHR | 0666},
};

/* NULL for all paths that are not ours. */
static const struct file *find(const char *path)
{
	/* Most calls end here. */
	if (!path || path[0] != '/' || (path[1] != 's' && path[1] != 'd'))
		return NULL;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		size_t len = strlen(files[i].path);

		if (strncmp(path, files[i].path, len) != 0)
			continue;
		if (!path[len] || (path[len] == '/' && !path[len + 1]))
			return &files[i];
	}
	return NULL;
}

/* The file to pretend, after the next library has answered `ret` for path. */
static const struct file *pretend(const char *path, int ret)
{
	return ret < 0 && errno == ENOENT ? find(path) : NULL;
}

/* The next library's functions. Looked up when this one is loaded, because dlsym may
 * take a lock; and at the first call if that is earlier, in a constructor of another. */
#define NEXT(name)                                                                                 \
	static __typeof__(name) *next_##name;                                                      \
	static __typeof__(name) *get_##name(void)                                                  \
	{                                                                                          \
		if (!next_##name)                                                                  \
			next_##name = (__typeof__(name) *)dlsym(RTLD_NEXT, #name);                 \
		return next_##name;                                                                \
	}

/* Programs built with glibc before 2.33 call these, and no header declares them. */
int __xstat(int ver, const char *path, struct stat *st);
int __xstat64(int ver, const char *path, struct stat64 *st);
int __lxstat(int ver, const char *path, struct stat *st);
int __lxstat64(int ver, const char *path, struct stat64 *st);

NEXT(access)
NEXT(faccessat)
NEXT(stat)
NEXT(stat64)
NEXT(lstat)
NEXT(lstat64)
NEXT(__xstat)
NEXT(__xstat64)
NEXT(__lxstat)
NEXT(__lxstat64)

__attribute__((constructor)) static void look_up(void)
{
	get_access();
	get_faccessat();
	get_stat();
	get_stat64();
	get_lstat();
	get_lstat64();
	get___xstat();
	get___xstat64();
	get___lxstat();
	get___lxstat64();
}

static int may_access(const struct file *file, int mode)
{
	mode_t others = file->mode & 07;

	if (((mode & R_OK) && !(others & 04)) || ((mode & W_OK) && !(others & 02)) ||
	    ((mode & X_OK) && !(others & 01))) {
		errno = EACCES;
		return -1;
	}
	return 0;
}

EXPORT int access(const char *path, int mode)
{
	int saved = errno;
	int ret = get_access()(path, mode);
	const struct file *file = pretend(path, ret);

	if (!file)
		return ret;
	errno = saved;
	return may_access(file, mode);
}

EXPORT int faccessat(int dir, const char *path, int mode, int flags)
{
	int saved = errno;
	int ret = get_faccessat()(dir, path, mode, flags);
	const struct file *file = pretend(path, ret);

	if (!file)
		return ret;
	errno = saved;
	return may_access(file, mode);
}

/* st_rdev stays 0: no device of the kernel has that number. */
#define ANSWER_STAT(st, path, call)                                                                \
	do {                                                                                       \
		int saved = errno;                                                                 \
		int ret = (call);                                                                  \
		const struct file *file = pretend(path, ret);                                      \
                                                                                                   \
		if (!file)                                                                         \
			return ret;                                                                \
		errno = saved;                                                                     \
		memset(st, 0, sizeof(*(st)));                                                      \
		(st)->st_mode = file->mode;                                                        \
		(st)->st_nlink = 1;                                                                \
		return 0;                                                                          \
	} while (0)

EXPORT int stat(const char *path, struct stat *st)
{
	ANSWER_STAT(st, path, get_stat()(path, st));
}

EXPORT int stat64(const char *path, struct stat64 *st)
{
	ANSWER_STAT(st, path, get_stat64()(path, st));
}

EXPORT int lstat(const char *path, struct stat *st)
{
	ANSWER_STAT(st, path, get_lstat()(path, st));
}

EXPORT int lstat64(const char *path, struct stat64 *st)
{
	ANSWER_STAT(st, path, get_lstat64()(path, st));
}

EXPORT int __xstat(int ver, const char *path, struct stat *st)
{
	ANSWER_STAT(st, path, get___xstat()(ver, path, st));
}

EXPORT int __xstat64(int ver, const char *path, struct stat64 *st)
{
	ANSWER_STAT(st, path, get___xstat64()(ver, path, st));
}

EXPORT int __lxstat(int ver, const char *path, struct stat *st)
{
	ANSWER_STAT(st, path, get___lxstat()(ver, path, st));
}

EXPORT int __lxstat64(int ver, const char *path, struct stat64 *st)
{
	ANSWER_STAT(st, path, get___lxstat64()(ver, path, st));
}
