/* The control connection between the two processes of a measurement: one TCP stream
 * of fixed-size messages, apart from everything that is measured. The client leads,
 * the server answers. Calls return 0 or -errno; every wait is bounded, whatever the
 * other side sends, or does not read.
 */
#ifndef WEFT_BENCH_CTL_H
#define WEFT_BENCH_CTL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum bench_op {
	BENCH_OP_HELLO = 1, /* arg: version, then the fields of struct bench_conf */
	BENCH_OP_OPEN,      /* kind */
	BENCH_OP_CLOSE,     /* kind */
	BENCH_OP_LAT,       /* kind; arg: size, most messages, first sequence number */
	BENCH_OP_BW,        /* kind; arg: size, count */
	BENCH_OP_PEERS,     /* arg: how many QPs to have in all, at most, whether RD */
	BENCH_OP_TOUCH,     /* one message on each QP, both ways */
	BENCH_OP_SNAP,      /* the server's memory and sockets follow as a block */
	BENCH_OP_IDLE,      /* arg: seconds */
	BENCH_OP_BYE,
	BENCH_OP_READY,
	BENCH_OP_DONE,
	BENCH_OP_RESULT, /* arg: received messages, bytes, nanoseconds */
};

#define BENCH_KIND_NAME 16
#define BENCH_ARGS      8

struct bench_msg {
	uint32_t op;
	int32_t status; /* 0 or -errno of the sender's side */
	char kind[BENCH_KIND_NAME];
	uint64_t arg[BENCH_ARGS];
};

struct bench_ctl {
	int fd;
	struct sockaddr_in local, peer; /* data connections follow the same route */
};

/* Both retry or wait until timeout_ms has passed. */
int bench_ctl_connect(struct bench_ctl *ctl, const char *host, int port, int timeout_ms);
int bench_ctl_listen(const char *host, int port); /* a listening fd, or -errno */
int bench_ctl_accept(struct bench_ctl *ctl, int listener, int timeout_ms);
void bench_ctl_close(struct bench_ctl *ctl);

int bench_ctl_send(struct bench_ctl *ctl, const struct bench_msg *msg);
int bench_ctl_recv(struct bench_ctl *ctl, struct bench_msg *msg, int timeout_ms);
/* Receives and insists on op; a peer's status that is not 0 is returned as it came. */
int bench_ctl_expect(struct bench_ctl *ctl, uint32_t op, struct bench_msg *msg, int timeout_ms);
int bench_ctl_write(struct bench_ctl *ctl, const void *buf, size_t len);
int bench_ctl_read(struct bench_ctl *ctl, void *buf, size_t len, int timeout_ms);
/* Both sides send len bytes and get the other's. */
int bench_ctl_swap(struct bench_ctl *ctl, const void *mine, void *theirs, size_t len);
bool bench_ctl_readable(struct bench_ctl *ctl);

#endif
