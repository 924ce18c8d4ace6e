/* The engine: what moves bytes. One per process, shared by all contexts.
 *
 * It owns an epoll set, a heap of timers and one lock. Whoever holds the lock may
 * run a *pass*: look at the sockets, run due timers, send what is owed. Passes are
 * run by application threads inside ibv_poll_cq, and by the progress thread when no
 * application thread polls.
 *
 * The hand-over between the two is the point of this file. A thread that wakes for
 * every packet steals the core of the poller that would have taken that packet
 * anyway, so while somebody polls, the thread is *parked*: it does not watch the
 * sockets, it only looks from time to time (park interval) whether the polling has
 * stopped. A poller that has lost its core has not stopped: where there are more processes than
 * cores it comes back, after those that it waits for. When it has stopped, the thread *watches*: it
 * blocks on the epoll set without any timeout of its own and costs nothing.
 *
 * Lock order: engine, then receive queue, then completion queue, then channel.
 */
#ifndef WEFT_RNIC_ENGINE_H
#define WEFT_RNIC_ENGINE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include "util_list.h"
#include "util_lock.h"

struct rnic_engine;

/* A descriptor in the epoll set. `ready` runs with the lock held; it returns whether
 * it found something to do. */
struct rnic_io {
	struct rnic_engine *e;
	int fd;
	uint32_t events;
	bool (*ready)(struct rnic_io *io, uint32_t events);
	void (*release)(struct rnic_io *io); /* frees the object around it, after close */
	bool data;                           /* carries traffic: worth polling directly */
	struct list_head link;               /* on e->ios, or on e->dead */
};

/* A timer is armed at most once; `fire` runs with the lock held, disarmed. */
struct rnic_timer {
	uint64_t at;
	int slot; /* position in the heap, -1 when not armed */
	void (*fire)(struct rnic_timer *t, uint64_t now);
};

/* Work that is owed to somebody but held back for a moment: acknowledgements that may
 * ride on data, or stand for more than one message. It is done when nothing was added
 * to it for a while and nothing is about to be, or when it has waited long enough. */
struct rnic_due {
	struct list_head link; /* on e->due */
	uint64_t first, last;  /* when it was owed for the first, for the last time */
	bool busy;             /* more will be owed soon: a message is half here */
	uint8_t vain;          /* how often it was held back for nothing since it rode */
	void (*run)(struct rnic_due *d);
};

/* Memory that another process writes into: a pass looks at it. Before the thread blocks it
 * says so by sleep(true), which makes the other side ring the engine's bell; it returns whether
 * there is something after all. Both run with the lock held. */
struct rnic_ring {
	struct list_head link; /* on e->rings */
	bool (*look)(struct rnic_ring *r);
	bool (*sleep)(struct rnic_ring *r, bool asleep);
	void (*revoke)(struct rnic_ring *r, uint32_t key); /* memory of this key is taken back */
};

#define RNIC_HOT 2 /* sockets that a poller tries before it asks epoll */

/* Incoming segments are staged here; one recv takes at most this much. */
#define RNIC_RXBUF (256 * 1024)
/* Outgoing frames are built here and handed to the kernel in one call. */
#define RNIC_TXBUF (160 * 1024)

/* What went by, for `weft info`-like tools, tests and the log at the end. */
struct rnic_stats {
	uint64_t foreign_streams, foreign_dgrams, bad_crc, bad_qkey, ud_dropped, rnr_sent, rnr_got,
		terminates_sent, terminates_got;
};

struct rnic_engine {
	struct util_lock lock;
	int refs;         /* open contexts; protected by the global lock */
	atomic_bool dead; /* inherited through a fork, or robbed; read without the lock */
	int epfd, wakefd;
	struct list_head ios, graveyard;
	struct list_head rings;
	bool rings_asleep;
	atomic_bool has_rings; /* a hint */
	atomic_uint ring_polls;
	unsigned int ring_run;  /* passes in a row that found something in a ring */
	struct rnic_io bell_io; /* rung by those who write into rings */
	int n_data, n_blocked;  /* data sockets; those that wait to become writable */

	/* Polling. Traffic that goes back and forth on one socket is served by reading
	 * it directly; epoll, which costs as much as a read, is then asked rarely. When
	 * epoll keeps finding other sockets, it is asked every time. */
	struct {
		struct rnic_io *io;
		unsigned int idle; /* passes since it last had something */
	} hot[RNIC_HOT];
	struct rnic_io *last_active;
	uint64_t ask_at, ask_gap; /* epoll, for what is not hot */
	unsigned int ask_misses;
	bool in_pass;

	struct rnic_timer **heap;
	int n_timers, heap_cap;

	struct list_head due;
	struct list_head after; /* to be run when the pass, or the call, is over */
	uint64_t now;           /* of the current pass */

	/* The progress thread. */
	bool use_thread;
	bool has_thread;
	atomic_bool stop;
	pthread_t thread;
	atomic_uint_fast64_t last_poll;      /* when an application thread last ran a pass */
	atomic_uintptr_t poller;             /* who it was, ... */
	atomic_int poller_clock;             /* ... and the clock of its CPU time */
	atomic_uint_fast64_t poller_changed; /* when it last was another than before */
	atomic_uint polls; /* since the application was about to sleep; up to a limit */
	struct {
		uint64_t last, at, cpu;
		clockid_t clock;
		bool again; /* soon */
	} look;             /* of the thread at a poller that has stayed away */
	atomic_uint parked; /* futex: 1 while the thread is parked */
	/* When the watching thread wakes by itself; 0 while it does not watch. Written
	 * under the lock, or by the thread when it stops watching. */
	atomic_uint_fast64_t watch_until;
	/* Completion queues whose owner is to be called while nobody polls, whether there are any,
	 * and the one for which that is under way. */
	struct list_head serve;
	atomic_bool to_serve;
	atomic_uintptr_t serving;
	/* The current park interval and its limit; both adapt, only the thread writes. */
	uint64_t park_ns;
	atomic_uint_fast64_t park_max_ns;

	atomic_uint empty_polls; /* in a row, by any thread */
	atomic_uint yield_after; /* this many of them, give others the core */
	atomic_uint_fast64_t crowded_until;

	uint32_t fpdu_payload; /* largest payload of one frame */
	uint8_t *rxbuf, *txbuf;
	uint8_t *scratch; /* one ULPDU without its markers */

	/* Objects by number. */
	struct rnic_table *mrs, *qps;
	struct list_head contexts, channels, conns, listeners, groups;
	/* Connections without a queue pair, and how many there may be. */
	int n_strangers, max_strangers;
	struct rnic_stats stats;
};

/* The engine of this process, made on first use; NULL with errno. */
struct rnic_engine *rnic_engine_get(void);
void rnic_engine_put(struct rnic_engine *e);

static inline void rnic_lock(struct rnic_engine *e)
{
	util_lock(&e->lock);
}

static inline void rnic_unlock(struct rnic_engine *e)
{
	util_unlock(&e->lock);
}

/* As lock and unlock, for calls that may close connections: objects that go are not
 * freed before the end, so that callers up the stack need not ask at every step. */
void rnic_enter(struct rnic_engine *e);
void rnic_leave(struct rnic_engine *e);

/* One pass by an application thread. Returns false when another thread is at it. */
bool rnic_engine_poll(struct rnic_engine *e);

/* ---- rnic_offer.c ---- */
void rnic_offer_init(struct rnic_engine *e);
/* A poll has found nothing: others may have the core, now and then. Needs no lock. until: when the
 * engine has something to do by itself, 0 if that cannot be slept for. */
void rnic_offer_core(struct rnic_engine *e, uint64_t until);

/* ---- rnic_thread.c ---- */
/* The application is about to sleep: the progress thread takes over at once. Needs
 * no lock. */
void rnic_engine_unpark(struct rnic_engine *e);
/* Whether the thread has found work waiting lately: the program does other things between two
 * calls, and what takes long is better left to the thread. */
bool rnic_engine_computes(const struct rnic_engine *e);
int rnic_thread_start(struct rnic_engine *e);
bool rnic_is_thread(const struct rnic_engine *e);
/* The thread calls owners of completion queues. True: it has, or could not now. */
bool rnic_serve(struct rnic_engine *e);
/* The calling thread polls: the progress thread looks at its clock. */
void rnic_poller_is(struct rnic_engine *e, uint64_t now);
/* A pass of the progress thread, which has the lock and loses it. Returns when it next has to be
 * there, 0 for at once. *found: there was something to do, or something owed. */
uint64_t rnic_engine_turn(struct rnic_engine *e, uint64_t now, bool *found);

/* Starts the progress thread if it is wanted and not there yet. 0 or -errno. */
int rnic_engine_start(struct rnic_engine *e);

/* All of these need the lock. */
void rnic_engine_kick(struct rnic_engine *e); /* wakes the watching thread */
/* A watching thread that would sleep longer than until then must hear of it. */
void rnic_engine_wake(struct rnic_engine *e, uint64_t at);
/* Until the thread is not calling the owner of this queue, or of any (NULL). */
struct rnic_cq;
void rnic_serve_wait(struct rnic_engine *e, const struct rnic_cq *cq);
void rnic_due_add(struct rnic_engine *e, struct rnic_due *d, uint64_t now);
/* It goes with data, and is owed no more. */
void rnic_due_rides(struct rnic_due *d);
/* A ring to be looked at from now on. */
void rnic_engine_ring(struct rnic_engine *e, struct rnic_ring *r);
/* The descriptor that wakes the thread for rings, made on first use. 0 or -errno. */
int rnic_engine_bell(struct rnic_engine *e);
/* Runs d->run once, when all that is going on is done. */
static inline void rnic_after(struct rnic_engine *e, struct rnic_due *d)
{
	if (list_empty(&d->link))
		list_add_tail(&d->link, &e->after);
}
int rnic_io_add(struct rnic_engine *e, struct rnic_io *io, uint32_t events);
void rnic_io_want(struct rnic_io *io, uint32_t events);
/* Closes the descriptor at once; the object is released when no pass can touch it. */
void rnic_io_close(struct rnic_io *io);

void rnic_timer_init(struct rnic_timer *t, void (*fire)(struct rnic_timer *t, uint64_t now));
int rnic_timer_arm(struct rnic_engine *e, struct rnic_timer *t, uint64_t at);
void rnic_timer_cancel(struct rnic_engine *e, struct rnic_timer *t);
uint64_t rnic_timer_next(const struct rnic_engine *e); /* UINT64_MAX: none */
void rnic_timer_run(struct rnic_engine *e, uint64_t now);

#endif
