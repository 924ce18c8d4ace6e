#include "cli_paths.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"

/* From the directory of the binary: installed, then build tree. In an installed
 * prefix the second is lib/ itself, where a libibverbs.so.1 that is not ours may
 * live; a directory counts only when the probe library is beside it. */
static const char *const places[] = {WEFT_LIBDIR_FROM_BIN, "../lib"};

static int bin_dir(char *dir, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", dir, len - 1);
	char *slash;

	if (n < 0)
		return -errno;
	dir[n] = '\0';
	slash = strrchr(dir, '/');
	if (!slash)
		return -ENOENT;
	*slash = '\0';
	return 0;
}

static int try_place(struct cli_paths *paths, const char *bin, const char *place)
{
	char candidate[2 * PATH_MAX];

	snprintf(candidate, sizeof(candidate), "%s/%s", bin, place);
	if (!realpath(candidate, paths->dir))
		return -errno;
	snprintf(paths->verbs, sizeof(paths->verbs), "%s/" CLI_LIB_VERBS, paths->dir);
	snprintf(paths->probe, sizeof(paths->probe), "%s/" CLI_LIB_PROBE, paths->dir);
	snprintf(paths->ofi, sizeof(paths->ofi), "%s/" CLI_LIB_OFI, paths->dir);
	if (access(paths->verbs, R_OK) || access(paths->probe, R_OK))
		return -errno;
	if (access(paths->ofi, R_OK))
		paths->ofi[0] = '\0';
	return 0;
}

int cli_paths_find(struct cli_paths *paths)
{
	char bin[PATH_MAX];
	int ret = bin_dir(bin, sizeof(bin));

	for (size_t i = 0; !ret && i < sizeof(places) / sizeof(places[0]); i++) {
		if (!try_place(paths, bin, places[i]))
			return 0;
	}
	return ret ? ret : -ENOENT;
}

int cli_paths_complain(int err)
{
	char bin[PATH_MAX] = "?";

	if (err != -ENOENT)
		return cli_error("cannot find its own place in the file system: %s",
				 strerror(-err));
	bin_dir(bin, sizeof(bin));
	return cli_error("%s and %s are neither in %s/%s nor in %s/%s; "
			 "run 'make build' or 'make install' again",
			 CLI_LIB_VERBS, CLI_LIB_PROBE, bin, places[0], bin, places[1]);
}
