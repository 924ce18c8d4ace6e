/* A host on which there is no room for shared memory of collectives. To be preloaded. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

int shm_open(const char *name, int flags, mode_t mode)
{
	int (*real)(const char *, int, mode_t) = NULL;

	if (!strncmp(name, "/weft-coll-", 11)) {
		errno = ENOSPC;
		return -1;
	}
	*(void **)&real = dlsym(RTLD_NEXT, "shm_open");
	return real(name, flags, mode);
}
