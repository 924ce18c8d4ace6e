/* Directories of Weft's own, for what processes leave for each other while they live.
 *
 * They are found without asking anybody, also from inside of a lab, whose user namespace may call
 * its user root: below /run/weft for root of the machine, else below /tmp/weft-UID.
 */
#ifndef WEFT_UTIL_DIR_H
#define WEFT_UTIL_DIR_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/* Who we are on the machine: root of a user namespace is somebody there. */
uintmax_t util_dir_uid(void);

/* "/run/weft/NAME" or "/tmp/weft-UID/NAME". */
void util_dir_default(const char *name, char path[PATH_MAX]);

/* Ours, no link, and nobody else may put anything into it. */
bool util_dir_is_ours(const char *path);
/* The same of the one above it: nobody may swap what is there for something else. */
bool util_dir_above_is_ours(const char *path);

/* Makes it, with this mode, and those above it; it may be there. The path is changed meanwhile.
 * 0 or -errno. */
int util_dir_make(char *path, mode_t mode);

/* ---- files that a process holds a POSIX lock on for as long as it needs them ---- */

/* Removes one, of this directory and open as fd, that nobody holds; true: nobody does. */
bool util_dir_remove_unheld(int dir, const char *name, int fd);

/* Removes those that nobody holds and that have names like this, are this user's, and were written
 * to `age` seconds ago or longer. Looks at a few thousand files at most. None that this process
 * itself holds may be among them: to open and close it would end the lock. */
void util_dir_sweep(int dir, bool (*is_one)(const char *name), time_t age);

#endif
