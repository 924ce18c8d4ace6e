/* What endpoints that divide messages show to other processes while they run, which nobody has to
 * ask them for: a small file each, in a directory that only the user can enter.
 *
 *	head | peer 0 | peer 1 | ...
 *
 * The endpoint has it mapped and writes into it when something is done, so there is no thread, no
 * timer and no system call. Who reads it copies a peer and looks at its sequence number before and
 * after: an odd one, or two that differ, is one that was being written.
 *
 * Its owner holds a POSIX lock on it for as long as it lives, so that others, in whatever PID
 * namespace, see when it is gone, and remove the file. Not flock(2): a child of fork would have the
 * lock, too, and outlive its parent with it.
 *
 * A mapped file that is made shorter ends its owner by a signal, and a write(2) instead of a store
 * takes sixty times as long. So nobody can open it for writing, not even the user, who would have
 *to change its mode first; root can.
 *
 * The bytes are in the order of this machine, on which everybody is who can read them. A reader
 * takes nothing for granted.
 */
#ifndef WEFT_MSG_LIVE_H
#define WEFT_MSG_LIVE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include "stripe.h"

/* ---- the format: pure ---- */

#define MSG_LIVE_MAGIC    UINT64_C(0x316576694c746657) /* "WftLive1" */
#define MSG_LIVE_TEXT_MAX 64
#define MSG_LIVE_PEERS    16384 /* more are not shown */

struct msg_live_head {
	uint64_t magic;
	uint64_t began; /* by the clock on the wall, ns */
	uint32_t pid;   /* as its owner has it */
	uint32_t peers; /* so many follow */
	char host[MSG_LIVE_TEXT_MAX], program[MSG_LIVE_TEXT_MAX];
	uint8_t zero[104];
};
_Static_assert(sizeof(struct msg_live_head) == 256, "it is written as it is");

struct msg_live_path {
	double weight;   /* as the policy has it: shares, or bytes per ns */
	uint64_t bytes;  /* that have arrived */
	uint64_t pieces; /* in so many */
	uint64_t busy;   /* ns in which something was under way on it */
};

struct msg_live_peer {
	uint32_t seq;
	uint32_t ip; /* in network order */
	uint32_t paths;
	uint32_t down;                /* those that are, as bits */
	char policy[STRIPE_NAME_MAX]; /* as stripe_print() has it */
	struct msg_live_path path[STRIPE_PATHS_MAX];
	uint8_t zero[48];
};
_Static_assert(sizeof(struct msg_live_peer) == 704, "it is written as it is");

static inline size_t msg_live_at(uint32_t peer)
{
	return sizeof(struct msg_live_head) + peer * sizeof(struct msg_live_peer);
}

/* What was read, which can be anything, made good: texts end and have only characters that can be
 * shown, numbers are numbers. 0, or -EPROTO: it is none of ours. */
int msg_live_check_head(struct msg_live_head *h);
int msg_live_check_peer(struct msg_live_peer *p);

/* ---- the directories (msg_live.c) ---- */

/* That of WEFT_LIVE_DIR, or else the first and the second that are looked at: below /run/user,
 * where it is memory, then that of util_dir. A descriptor, or -errno: -ENOENT also beyond the last.
 * The path is for complaints. */
int msg_live_dir(unsigned int which, bool make, char path[PATH_MAX]);

/* "PID-RANDOM": whose file it is says nothing for sure, only that others' are not a process' own.
 */
#define MSG_LIVE_NAME_MAX 32
bool msg_live_is_name(const char *name);

/* ---- the owner (msg_live_write.c) ---- */

struct msg_live;

/* NULL, after a word in the log: nothing is shown. */
struct msg_live *msg_live_open(void);
void msg_live_close(struct msg_live *l);
/* The number of a new peer; UINT32_MAX: it is not shown. */
uint32_t msg_live_add(struct msg_live *l, uint32_t ip, const struct stripe_conf *conf);
/* Its paths, and which are down; does nothing in a child of fork. */
void msg_live_write(struct msg_live *l, uint32_t peer, const struct msg_live_path *path,
		    uint32_t down);

/* It is shown no more. */
void msg_live_drop(struct msg_live *l, uint32_t peer);

/* ---- the reader (msg_live_read.c) ---- */

struct msg_live_proc {
	struct msg_live_head head;
	char name[MSG_LIVE_NAME_MAX]; /* of the file: the same one has the same */
	pid_t pid;                    /* as seen from here; the owner's where that can not be */
	struct msg_live_peer *peer;   /* head.peers; those with 0 paths are gone, or unread */
};

/* All that there is, in no order; what the dead have left is removed. 0 or -errno, with the path
 * that it was about. */
int msg_live_read(struct msg_live_proc **procs, size_t *n, char path[PATH_MAX]);
void msg_live_free(struct msg_live_proc *procs, size_t n);

#endif
