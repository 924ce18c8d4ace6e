/* Kinds of channel: raw TCP, raw UDP, RC, UC, UD, RD and their variants behind one small
 * table of functions, so that the loops that measure are the same for all of them.
 *
 * A channel is one open connection (or pair of datagram endpoints) of a kind between
 * the client and the server process. Channels stay open for the whole run; only one
 * is in use at a time. Functions return 0 or -errno unless they say otherwise.
 */
#ifndef WEFT_BENCH_KIND_H
#define WEFT_BENCH_KIND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench_ctl.h"

enum bench_role { BENCH_CLIENT, BENCH_SERVER };

/* What both processes must agree on; the client sends it with HELLO. */
struct bench_conf {
	uint64_t max_size;     /* the largest message that will be asked for */
	uint64_t ud_max;       /* the largest UD payload; 0: the port's active MTU */
	uint64_t depth;        /* send requests in flight */
	uint64_t signal_every; /* one signalled request in so many */
	uint64_t ud_window;    /* bytes of UD that may be in flight in a stream */
	uint64_t step_ms;      /* the longest that one step may take */
};

struct bench_dev;

struct bench_env {
	enum bench_role role;
	struct bench_ctl ctl;
	struct bench_conf conf;
	struct bench_dev *dev; /* opened with the first verbs channel */
	bool no_dev;           /* that failed: do not try again */
	const char *dev_name;  /* NULL: the first device */
	int ib_port, gid_index;
};

/* One step: some messages of one size on one channel. */
struct bench_step {
	size_t size;
	uint64_t count;    /* messages */
	uint32_t seq0;     /* latency: the sequence number of the first message */
	uint64_t deadline; /* bench_now() at which to give up */
	uint64_t budget;   /* latency, client: nanoseconds after which to stop early */
	uint64_t enough;   /* the same as a point of time */
	uint64_t done;     /* latency, client: round trips made */
	double *sample;    /* latency, client: nanoseconds of each round trip */
	uint64_t lost;     /* latency: messages that had to be sent again */
	uint64_t rx_msgs, rx_bytes, rx_ns; /* stream, receiver: what arrived, how fast */
};

struct bench_kind;

struct bench_chan {
	const struct bench_kind *kind;
	struct bench_env *env;
};

enum { BENCH_LAT = 1, BENCH_BW = 2 };

struct bench_kind {
	const char *name;
	const char *help;
	const char *base[4]; /* kinds to compare with, most important first */
	unsigned tests;      /* BENCH_LAT | BENCH_BW */
	bool verbs;          /* needs a device */
	bool lossy;          /* messages may vanish: the client repeats, the server lingers */
	bool full_trip;      /* a latency is a round trip and not half of one */
	int variant;         /* private to the kind's file */

	/* Both sides call this at the same time and may talk through env->ctl. */
	int (*open)(struct bench_env *env, const struct bench_kind *kind, struct bench_chan **out);
	void (*close)(struct bench_chan *chan);
	size_t (*max_size)(const struct bench_env *env, const struct bench_kind *kind);

	/* Before each step, on both sides, before the first message can be on its way. */
	int (*prepare)(struct bench_chan *chan, const struct bench_step *step);

	/* Latency: the whole step, client and server side. Most kinds use bench_ping and
	 * bench_pong (bench_pingpong.h), which call send and try_recv. */
	int (*ping)(struct bench_chan *chan, struct bench_step *step);
	int (*pong)(struct bench_chan *chan, struct bench_step *step);
	int (*send)(struct bench_chan *chan, uint32_t seq);
	/* 1: a message came and *seq is its number; 0: nothing yet; or -errno. */
	int (*try_recv)(struct bench_chan *chan, uint32_t *seq);

	/* Stream: the client sends, the server receives. tx returns when the channel
	 * takes no more care of it, rx when all has arrived or the client says that it
	 * has finished and nothing more comes. */
	int (*tx)(struct bench_chan *chan, struct bench_step *step);
	int (*rx)(struct bench_chan *chan, struct bench_step *step);
};

int bench_dev_get(struct bench_env *env); /* opens env->dev if it is not open */

/* All kinds; ends with a NULL. */
extern const struct bench_kind *const bench_kinds[];
const struct bench_kind *bench_kind_find(const char *name);
/* The largest message of this kind that both sides can carry. */
size_t bench_kind_limit(const struct bench_env *env, const struct bench_kind *kind);

extern const struct bench_kind bench_kind_tcp, bench_kind_tcp_block;
extern const struct bench_kind bench_kind_udp, bench_kind_udp_conn, bench_kind_udp_gso;
extern const struct bench_kind bench_kind_rc, bench_kind_rc_write, bench_kind_rc_write_spin;
extern const struct bench_kind bench_kind_rc_read, bench_kind_rc_read_passive;
extern const struct bench_kind bench_kind_uc, bench_kind_uc_write;
extern const struct bench_kind bench_kind_ud;
extern const struct bench_kind bench_kind_rd, bench_kind_rd_write, bench_kind_rd_read;
extern const struct bench_kind bench_kind_memcpy;

#endif
