/* Where labs are written down: a directory, and one in it for each lab.
 *
 *	WEFT_LAB_DIR, or for root /run/weft/lab, or /tmp/weft-UID/lab
 *	    NAME/lock        locked (flock) by the holder for as long as the lab lives; says its
 *	                     process id and which addresses it has
 *	    NAME/lab.json    what the lab is like; there once it is up
 *	    NAME/hosts       what its hosts see as /etc/hosts
 *	    NAME/topology.conf  where they are in the tree, by their host names, as Slurm has it
 *
 * The lock is the truth: a kill -9 or a crash can leave the files, never the lock. The
 * directory itself is locked while names and addresses are handed out.
 */
#ifndef WEFT_LAB_STATE_H
#define WEFT_LAB_STATE_H

#include <limits.h>

#include "lab.h"

#define LAB_TOPOLOGY "topology.conf"

struct lab_dir {
	char path[PATH_MAX];
	int fd; /* locked; -1: there is none */
};

/* Opens, and locks, the directory of all labs; makes it if so told. */
int lab_dir_open(struct lab_dir *dir, bool make, struct lab_error *e);
/* The one that a lab is in: for whoever has become somebody else meanwhile, by entering it. */
int lab_dir_open_of(struct lab_dir *dir, const struct lab *lab, struct lab_error *e);
/* Also removes it, if it is empty. */
void lab_dir_close(struct lab_dir *dir);

/* What the lock of a lab says, the directory being locked. */
enum lab_claim {
	LAB_NONE,  /* no lab of this name */
	LAB_STALE, /* files of one that is dead */
	LAB_ALIVE, /* up, or coming up */
};
struct lab_holder {
	pid_t pid; /* in the holder's PID namespace; 0: not known yet */
	uint32_t net, prefix;
};
enum lab_claim lab_claim(const struct lab_dir *dir, const char *name, struct lab_holder *holder);

/* Makes NAME/ with its lock, held by the descriptor that is returned, or -errno. */
int lab_state_create(const struct lab_dir *dir, const char *name, struct lab_error *e);
int lab_state_set_holder(int lock, const struct lab_holder *holder, struct lab_error *e);
/* The descriptor that the holder has the lock file open as. */
#define LAB_LOCK_FD 3
/* The holder's process id as seen from here, or 0; the hint is what it calls itself. */
pid_t lab_find_holder(const struct lab_dir *dir, const char *name, pid_t hint);
/* The holder of a lab (NULL: of any) of this directory whose files were removed, or 0. */
pid_t lab_find_orphan(const struct lab_dir *dir, const char *name);
bool lab_is_orphan(const struct lab_dir *dir, const char *name, pid_t pid);
/* Is NAME/ still that of the lock that we hold? Somebody else may have removed it, and made
 * another. */
bool lab_state_is_ours(const struct lab_dir *dir, const char *name, int lock);

int lab_state_write(const struct lab *lab, const char *dir, struct lab_error *e);
/* Reads lab.json: 0, or -ENOENT while there is none. */
int lab_state_read(const struct lab_dir *dir, const char *name, struct lab *lab,
		   struct lab_error *e);
/* Removes NAME/. */
int lab_state_remove(const struct lab_dir *dir, const char *name, struct lab_error *e);

/* Names of all labs that are written down, alive or not. Freed by lab_names_free. */
int lab_names(const struct lab_dir *dir, char ***names, size_t *n, struct lab_error *e);
void lab_names_free(char **names, size_t n);

#endif
