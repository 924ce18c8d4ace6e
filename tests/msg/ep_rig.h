/* Two processes with an endpoint each, which run the same program. */
#ifndef WEFT_TEST_EP_RIG_H
#define WEFT_TEST_EP_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <cmocka.h>
#include "msg.h"

#define EAGER_MAX 8192
#define LONGEST   (4u << 20)

struct side {
	int me; /* 0: the parent */
	int sock;
	pid_t child;
	struct msg_dev *dev;
	struct msg_ep *ep;
	uint32_t peer;
	uint8_t *tx, *rx;
	/* What was told of the peer's writes. */
	uint64_t written, written_len, written_data;
	/* Messages of receives of many; how often one of those was done. */
	uint64_t parts, part_len, part_tag, wholes;
	void *part_at;
	int part_err, whole_err;
	uint64_t atomics; /* done */
};

struct op {
	struct msg_op msg;
	bool done;
};

void check(bool ok, const char *what, const char *file, int line);
#define CHECK(cond) check(cond, #cond, __FILE__, __LINE__)

/* mode: of the endpoints; only speculate, usage, write and reuse count, and eager_max, which is the
 * child's if it is not 0. */
void side_open(struct side *s, const struct msg_ep_conf *mode);
/* With devices that have these addresses, the parent's first (WEFT_ADDR). Only where the process
 * has not had a device yet. */
void side_open_at(struct side *s, const struct msg_ep_conf *mode, const char *const addrs[2]);
void side_close(struct side *s);
/* Only this one, whose other one is gone. */
void side_free(struct side *s);
/* The device, as the environment wants it: TEST_MSG_TRANSPORT is rd or rc, TEST_MSG_CACHE is on or
 * off, TEST_MSG_LOCAL is pieces where no registration covers all memory. Endpoints divide messages
 * by the policy TEST_MSG_STRIPE. */
struct msg_dev *open_dev(void);
/* The first message has been answered: there is a connection, where one is needed. */
void warm_up(struct side *s);
/* Serves the other until it says that it has come here, too. */
void meet(struct side *s);
void finish(struct side *s, struct op *op);
/* Exchanges a piece of memory with the other one, which goes without saying. */
void swap(struct side *s, const void *own, void *other, size_t len);
/* The same; serves it until it comes to that, too. */
void swap_served(struct side *s, const void *own, void *other, size_t len);

void start_send(struct side *s, struct op *op, const void *buf, uint64_t tag, size_t len,
		uint8_t flags);
/* Also to somebody who may be gone: then it is done. */
void try_send(struct side *s, struct op *op, const void *buf, uint64_t tag, size_t len,
	      uint8_t flags);
void start_recv(struct side *s, struct op *op, void *buf, uint32_t src, uint64_t tag,
		uint64_t ignore, size_t room);
void fill(uint8_t *buf, size_t len, uint64_t seed);
void check_filled(const uint8_t *buf, size_t len, uint64_t seed);

#endif
