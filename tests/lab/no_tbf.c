/* To be preloaded: a kernel without the queue that labs need. Whoever asks for a tbf asks
 * for something that no kernel has; the refusal is the kernel's own. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

ssize_t send(int fd, const void *buf, size_t len, int flags)
{
	ssize_t (*next)(int, const void *, size_t, int) = dlsym(RTLD_NEXT, "send");
	char *copy = malloc(len + 1), *at = copy;
	ssize_t ret;

	memcpy(copy, buf, len);
	while ((at = memmem(at, len - (size_t)(at - copy), "tbf", 4)))
		*at = 'x';
	ret = next(fd, copy, len, flags);
	free(copy);
	return ret;
}
