/* Where Weft's own libraries are: relative to the running binary, so that a build
 * tree, an installed prefix and a copied prefix all work without configuration.
 */
#ifndef WEFT_CLI_PATHS_H
#define WEFT_CLI_PATHS_H

#include <limits.h>

#define CLI_LIB_VERBS "libibverbs.so.1"
#define CLI_LIB_PROBE "libweft-probe.so"
#define CLI_LIB_OFI   "libweft-fi.so"
#define CLI_LIB_COLL  "libweft-coll.%s.so" /* of openmpi, mpich */

struct cli_paths {
	char dir[PATH_MAX]; /* absolute, no symbolic links */
	char verbs[PATH_MAX + sizeof("/" CLI_LIB_VERBS)];
	char probe[PATH_MAX + sizeof("/" CLI_LIB_PROBE)];
	char ofi[PATH_MAX + sizeof("/" CLI_LIB_OFI)]; /* empty: Weft was built without it */
};

/* 0, or -errno: -ENOENT when the libraries are in none of the places. */
int cli_paths_find(struct cli_paths *paths);

/* Says on standard error that they are missing, and where they were expected.
 * Returns CLI_USAGE. */
int cli_paths_complain(int err);

#endif
