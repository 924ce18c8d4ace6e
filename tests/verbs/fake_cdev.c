/* Preloaded into tests: /dev/infiniband/uverbs99 is a character device, so that the
 * real libibverbs accepts a device from a made-up sysfs. */
#define _GNU_SOURCE

#include <dlfcn.h>
#include <string.h>
#include <sys/stat.h>

#define EXPORT __attribute__((visibility("default")))

EXPORT int stat(const char *path, struct stat *st)
{
	int (*next)(const char *, struct stat *) =
		(int (*)(const char *, struct stat *))dlsym(RTLD_NEXT, "stat");

	if (strcmp(path, "/dev/infiniband/uverbs99") != 0)
		return next(path, st);
	memset(st, 0, sizeof(*st));
	st->st_mode = S_IFCHR | 0666;
	return 0;
}

EXPORT int stat64(const char *path, struct stat64 *st)
{
	_Static_assert(sizeof(struct stat) == sizeof(struct stat64), "64 bits");
	return stat(path, (struct stat *)st);
}
