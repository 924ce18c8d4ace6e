/* A link: two processes of one host, two rings, two doorbells, and a socket that tells
 * when the other one is gone.
 *
 * A *port* is a listening socket in the abstract namespace, named by a number. Abstract
 * names belong to the network namespace, which is exactly the reach of a port: processes
 * that share a network share ports, whatever their file systems look like. One process
 * connects to the port of another; it brings the shared memory and its doorbell, the other
 * answers with its own. From then on the socket carries nothing. It stays open as long as
 * the process lives, however it dies.
 *
 * Who connects to whom is the callers' agreement; two that connect to each other at the
 * same time have two links.
 *
 * **Who may link.** Only processes of one effective user id, as the kernel reports it;
 * anybody else gets -EACCES, root included. `peer` is what the other says that its name
 * is, `pid` what the kernel says: of the process that called connect or listen, in our pid
 * namespace, 0 if it has no number there.
 *
 * **What a peer can do to us.** Its memory is sealed (shm_area.h) and the rings check
 * everything (shm_ring.h). Its doorbell is an eventfd, which is verified. It could fill it
 * and make it blocking, and so stop the thread that rings it; but a process of the same
 * user can stop us with a signal. A stranger that connects and says nothing costs one
 * struct shm_link and a descriptor; the caller limits number and age of links that are
 * not up.
 *
 * **Sleeping.** Doorbells are system calls, so they are rung only for a peer that sleeps.
 * Each side has an `asleep` flag. To go to sleep:
 *
 *	shm_link_sleep(link, true);
 *	if peek finds something, or a reserve that failed now succeeds: do not block
 *	block until own doorbell or socket is readable
 *	shm_link_sleep(link, false);
 *	read the doorbell, then look at the rings
 *
 * and after commit: shm_link_ring(link). What must not happen is that the ringer sees no
 * sleeper and the sleeper no record. Store-then-load on both sides is the one pattern that
 * release and acquire do not order, so each side makes its middle step a read-modify-write
 * of the flag, acquire and release. Those of one variable have one order, in which each
 * sees what went before the earlier ones: if the ringer comes first, the sleeper's flag
 * operation has synchronised with it and the peek behind it finds the record; if the
 * sleeper comes first, the ringer reads the flag. It costs what a full fence costs,
 * 5 to 20 ns when both sides poll, so several commits should share one ring. The ringer
 * clears the flag: a sleeper that takes long to wake up is rung for once. A sleeper may be
 * woken for nothing, by a ring for a record that it has found by itself.
 *
 * **Grants.** Whoever copies straight from the other's memory (shm_copy.h) does so without its
 *help, and so without its knowledge: when the owner has taken the memory back, and its program uses
 * it for something else, a copy may still be under way. So each such copy has a grant, a word in
 * shared memory that the owner changes before it takes the memory back. The copier looks at it
 * again when it has copied, and throws away what it got if the word has changed. It must only
 * ever copy into memory of its own.
 *
 * One doorbell, an eventfd with EFD_NONBLOCK, serves all links of a process. The caller
 * makes it, reads it, and closes it after the last link.
 *
 * **Fork.** The child inherits the socket, which keeps it open when the parent dies.
 * shm_link_close in the child drops the copies and does not disturb the parent's link.
 *
 * Not locked: one thread at a time for each link and port. Nothing blocks.
 */
#ifndef WEFT_SHM_LINK_H
#define WEFT_SHM_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "shm_area.h"
#include "shm_ring.h"

struct shm_port {
	int fd;
	uint64_t name;
};

enum shm_link_state {
	SHM_LINK_NONE,     /* never made, or closed; all zero is one */
	SHM_LINK_DEAD,     /* err says why */
	SHM_LINK_ACCEPTED, /* waits for the hello */
	SHM_LINK_SENT,     /* waits for the answer */
	SHM_LINK_UP,
};

/* Read by the caller, written only by the functions below; lives in the caller's object. */
struct shm_link {
	enum shm_link_state state;
	int err;
	int fd;        /* watch it for input */
	int bell;      /* own doorbell; the caller's */
	int peer_bell; /* -1 until up */
	uint64_t name; /* own port */
	uint64_t peer; /* the other's port; known when up */
	pid_t pid;     /* of the other, or 0 */
	uid_t uid;
	struct shm_area area;
	_Atomic(uint32_t) *asleep, *peer_asleep;
	_Atomic(uint32_t) *grants, *peer_grants;
	uint64_t granted;      /* which of ours are given */
	struct shm_ring_tx tx; /* usable when up, and readable to the end after that */
	struct shm_ring_rx rx;
	uint64_t room_told; /* rx.pos, when we last looked whether the peer waits for room */
};

/* 0 or -errno; -EADDRINUSE when the name is taken in this network namespace. */
int shm_port_open(struct shm_port *port, uint64_t name, int backlog);
void shm_port_close(struct shm_port *port);

/* Takes one waiting connection. 0 with a link in state ACCEPTED; -EAGAIN: none waits;
 * -EACCES or -ECONNABORTED: one was refused or gone, try the next; -EMFILE, -ENFILE,
 * -ENOMEM: one waits and stays, so the caller should not watch the port for a while;
 * -EINVAL: bell is not an eventfd with EFD_NONBLOCK. */
int shm_port_accept(struct shm_port *port, int bell, struct shm_link *link);

/* Makes a link in state SENT to the port `peer`. `ring` is the size of each of the two
 * rings. 0; -ECONNREFUSED: no such port; -EAGAIN: it is there but does not accept right
 * now; -EACCES: it is another user's; -EINVAL: bad size or bell; or another -errno. */
int shm_link_connect(struct shm_link *link, uint64_t peer, uint64_t name, uint32_t ring, int bell);

/* To be called when the socket is readable, and harmless at other times. 0: not up yet;
 * 1: up, and both rings can be used; -errno: dead, now and for ever: -ECONNRESET when the
 * peer has gone or has refused us, -EPROTO when it has sent nonsense, -EMFILE when there was
 * no descriptor left. Records that a peer has committed before it went can still be read. */
int shm_link_input(struct shm_link *link);

/* Unmaps, so no record may be in use. Harmless in state NONE. */
void shm_link_close(struct shm_link *link);

/* After one or more commits: wakes the peer if it sleeps. */
void shm_link_ring(struct shm_link *link);

/* After one or more releases, if nothing was committed since: wakes the peer if it sleeps,
 * waits for room, and a quarter of the ring was read since it was last asked. */
void shm_link_ring_room(struct shm_link *link);

/* A permission to copy from our memory: which one, and its word; -ENOSPC: all are given. */
int shm_grant_give(struct shm_link *link, uint32_t *word);
/* Takes effect before it returns. The grant stays given. */
void shm_grant_revoke(struct shm_link *link, int grant);
/* It is not needed any more, and may be given again. */
void shm_grant_end(struct shm_link *link, int grant);
/* To be asked after a copy: whether the other's grant was good all the time. */
bool shm_grant_good(const struct shm_link *link, uint32_t grant, uint32_t word);

/* Sets or clears our flag; see above. If the last reserve found the ring full, the peer
 * is asked to ring for room, too. */
void shm_link_sleep(struct shm_link *link, bool asleep);

#endif
