/* The two messages by which processes meet: a hello with the shared memory and a
 * doorbell, and an answer with a doorbell. One packet each, on a SOCK_SEQPACKET socket.
 *
 * Descriptors that come with a message exist in this process from the moment that it is
 * received, wanted or not. shm_msg_recv closes all of them unless they are exactly those
 * that were asked for.
 */
#ifndef WEFT_SHM_MSG_H
#define WEFT_SHM_MSG_H

#include <stdint.h>

#define SHM_MSG_MAGIC   UINT32_C(0x4d485357) /* "WSHM" */
#define SHM_MSG_VERSION 2                    /* of the records, too */
#define SHM_MSG_FDS     2                    /* at most */

enum shm_msg_kind {
	SHM_MSG_HELLO = 1,  /* memory, doorbell */
	SHM_MSG_ANSWER = 2, /* doorbell */
};

/* Host byte order: it never leaves the host. */
struct shm_msg {
	uint32_t magic;
	uint16_t version;
	uint16_t kind;
	uint64_t from, to; /* names of the ports */
	uint64_t ring;     /* bytes */
};

/* Never blocks. 0 or -errno; fds stay the caller's. */
int shm_msg_send(int sock, const struct shm_msg *m, const int *fds, int n_fds);

/* Never blocks. 0 with the message and exactly n_fds descriptors, of which magic, version,
 * kind and `to` are as in `want`; or -EAGAIN, -ECONNRESET (closed), -EMFILE (no room for
 * the descriptors), -EPROTO (anything else), all without any descriptor. */
int shm_msg_recv(int sock, const struct shm_msg *want, struct shm_msg *m, int *fds, int n_fds);

#endif
