/* A communicator, as collectives see it: who is where, what memory there is, which call this is.
 *
 * Made in one of its first calls, together with everybody else in it, and kept as an attribute
 * of the MPI's communicator, with which it ends. Only the thread that is in a call of the
 * communicator uses it; what arrives meanwhile is counted by whatever thread makes progress.
 *
 *	coll_comm.c   arrivals, writes, the table of communicators
 *	coll_attr.c   the attribute
 *	coll_boot.c   how one comes about and ends
 *	coll_agree.c  what its ranks agree on
 *	coll_wait.c   waiting, and whether those who are waited for are still there
 *
 * Anything that decides between this library and the MPI's own collective, or between variants,
 * must be the same on every rank: numbers in struct coll_comm that are marked "agreed", the bytes
 * of an operation where MPI says that they match, never the layout of a datatype or a failure.
 */
#ifndef WEFT_COLL_COMM_H
#define WEFT_COLL_COMM_H

#include <mpi.h>
#include <sys/types.h>

#include "coll_bank.h"
#include "coll_kinds.h"
#include "coll_net.h"
#include "coll_shm.h"
#include "coll_watch.h"
#include "coll_world.h"

struct coll_peer {
	fi_addr_t addr;
	struct coll_key mem; /* its banks and advertisements; see coll_remote_... below */
	struct coll_key shm; /* the data in its host's shared memory, by way of this rank */
	struct coll_key ping;
	uint32_t comm;        /* its own number of this communicator */
	uint32_t host, local; /* agreed */
	pid_t pid;            /* of one of this host, if fetch */
	int world;            /* its number in coll_world */
	atomic_bool dead;
	atomic_bool asked; /* whether it is there, and the answer has not come */
	/* The guard's (coll_guard.h): when it has asked, and from when on the peer counts as lost.
	 * 0: not. */
	_Atomic uint64_t watched, lost_at;
	atomic_bool needed; /* of MPI_COMM_WORLD: it is of the other one that is guarded */
};

/* Whether somebody is inside an operation of the MPI's own; see coll_guard.h. */
struct coll_inside {
	_Atomic uint32_t turn, op;
	struct coll_watch watch; /* the guard's alone */
};

/* Where a peer's data shall go. addr is for fi_writedata; key 0 and len 0: MPI shall carry it. */
struct coll_advert {
	uint64_t addr, key, len;
	uint32_t carried; /* by MPI: the memory could not be registered */
	uint32_t pad;
};

struct coll_stats {
	uint64_t calls, bytes, ns;
	uint64_t passed; /* to the MPI without a look at the clock; not in the others */
};

struct coll_comm {
	uint32_t id;     /* in words that peers send to us */
	uint64_t serial; /* no two of a process have the same */
	bool place;      /* it has one, see coll_comm_room() */
	int tag;         /* the first of those of its messages in coll_world; -1: none; agreed */
	bool met;        /* all ranks know of each other: they can be looked after */
	bool vote[2];    /* coll_agree() */
	uint32_t size, rank;
	uint32_t call;                       /* the number of the last call; agreed */
	uint32_t parts;                      /* of broadcasts so far (coll_window.h); agreed */
	atomic_uint sending[2];              /* parts on their way, by bank of their half */
	bool net;                            /* the network can be used; agreed */
	enum coll_variant variant[COLL_OPS]; /* of WEFT_COLL; agreed */
	atomic_int err;                      /* -errno: broken for good */

	uint32_t hosts, host; /* how many, and ours; agreed but for ours */
	uint32_t *first;   /* [hosts + 1]: ranks of host h are by_host[first[h]] up to first[h + 1];
			      agreed */
	uint32_t *by_host; /* [size]; the first of a host is its master; agreed */
	struct coll_peer *peer;
	struct coll_shm shm;
	size_t vector;   /* bytes of a vector in shared memory; agreed */
	size_t shm_slot; /* bytes of a pair in shared memory; agreed */
	bool same_sums;  /* of floating-point numbers are added in one order; agreed */
	bool fetch;      /* ranks of a host can copy from each other's memory; agreed */
	uint64_t secret; /* that peers look for in ours to see whether they can */

	uint8_t *memory; /* two banks of `size` slots, advertisements to us, and by us, an end */
	size_t memory_len;
	size_t slot;     /* bytes; agreed */
	size_t copy_max; /* of a host: longer blocks of MPI_Alltoall are not copied; agreed */
	size_t copy_far; /* the same, of different hosts; agreed */
	struct coll_mem mem, shm_mem;

	_Atomic uint8_t *got; /* [bank][kind][rank] */
	struct coll_tx *tx;
	uint32_t n_tx, next_tx;
	atomic_uint pending; /* writes on their way */

	struct coll_scratch {
		uint8_t *at;
		size_t len;
		struct coll_mem mem;
		bool registered;
	} scratch[3]; /* of what is sent, of what is received, of what is still being sent */
	struct coll_stats stats[COLL_OPS][COLL_VARIANTS];
	struct coll_inside inside;
	struct coll_inside others; /* of MPI_COMM_WORLD: in another communicator */
	atomic_bool for_others;
	uint32_t watched;       /* how far round; the guard's alone */
	uint64_t asks;          /* how often others were asked whether they are there */
	uint64_t carried;       /* messages that the MPI carried */
	struct coll_plan *plan; /* of operations that need one; NULL: none did yet */
};

/* ---- coll_attr.c ---- */

/* The state of an MPI communicator, made if need be, which is collective; NULL: the MPI's own
 * collectives are to be used. It is not made for a call that is wrong, which the MPI says without
 * the others; `wrong` is not asked where it is there already. */
struct coll_comm *coll_comm_of(MPI_Comm comm, bool (*wrong)(const void *args, int size),
			       const void *args);
/* The same, but NULL if it is not there yet. */
struct coll_comm *coll_comm_known(MPI_Comm comm);
/* Where coll_comm_of has returned NULL because the communicator's first calls are the MPI's: does
 * it by that, while somebody looks whether its ranks are there. Returns whether it is done. */
bool coll_comm_early(MPI_Comm comm, int (*mpi)(const void *arg), const void *arg, int *ret);
/* An error of a collective, by which the communicator is broken: tells the others, and returns what
 * the MPI call is to return. */
int coll_comm_error(MPI_Comm comm, int err);
/* Whether an earlier call has failed, here or elsewhere: nothing can be done any more, by the MPI
 * neither, which might wait for ever for who is gone. */
bool coll_comm_broken(struct coll_comm *c);
/* In MPI_Init, where all ranks are, and before the program can do anything that ends with it. */
void coll_comm_init(void);
/* At the beginning of MPI's end. */
void coll_comm_end_all(void);
/* After it, when all ranks have come there. Until then who still waits for somebody may ask whether
 * we are there. */
void coll_comm_close(void);

/* ---- coll_comm.c ---- */

static inline uint32_t coll_host_size(const struct coll_comm *c, uint32_t host)
{
	return c->first[host + 1] - c->first[host];
}

static inline uint32_t coll_master(const struct coll_comm *c, uint32_t host)
{
	return c->by_host[c->first[host]];
}

static inline bool coll_is_master(const struct coll_comm *c)
{
	return coll_master(c, c->host) == c->rank;
}

/* Where in a host's shared memory vectors (coll_here.h) begin: behind what MPI_Alltoall has. */
static inline uint64_t coll_vectors_at(const struct coll_comm *c, uint32_t host)
{
	uint64_t ranks = coll_host_size(c, host);

	return 2 * c->shm_slot * (2 * c->size - ranks) * ranks;
}

/* Where in everybody's memory a word is that says nothing: whoever writes there is heard only if
 * the communicator is still the same. */
static inline uint64_t coll_end_at(const struct coll_comm *c)
{
	return 2 * (uint64_t)c->size * (c->slot + sizeof(struct coll_advert));
}

/* A new call: its number. Never 0, which flags are before they are ever set; two calls that follow
 * each other are in different banks. */
static inline uint32_t coll_begin(struct coll_comm *c)
{
	if (!++c->call)
		c->call = 2;
	return c->call;
}

/* Our slot for what `src` sends in this call. */
static inline uint8_t *coll_slot(const struct coll_comm *c, uint32_t call, uint32_t src)
{
	return c->memory + ((size_t)coll_bank(call) * c->size + src) * c->slot;
}

static inline struct coll_advert *coll_advert(const struct coll_comm *c, uint32_t src)
{
	return (struct coll_advert *)(c->memory + 2 * (size_t)c->size * c->slot) + src;
}

/* Ours to a peer, before it is sent. */
static inline struct coll_advert *coll_advert_out(const struct coll_comm *c, uint32_t peer)
{
	return coll_advert(c, c->size + peer);
}

static inline _Atomic uint8_t *coll_got(const struct coll_comm *c, uint32_t call, uint32_t kind,
					uint32_t src)
{
	return &c->got[(coll_bank(call) * COLL_KINDS + kind) * c->size + src];
}

/* Whether something of this kind has arrived in this call; with it, all its data. */
static inline bool coll_arrived(const struct coll_comm *c, uint32_t call, uint32_t kind,
				uint32_t src)
{
	return atomic_load_explicit(coll_got(c, call, kind, src), memory_order_acquire);
}

/* Takes note of it: it has not arrived any more. To be done for everything that arrives. */
static inline void coll_consume(struct coll_comm *c, uint32_t call, uint32_t kind, uint32_t src)
{
	atomic_fetch_sub_explicit(coll_got(c, call, kind, src), 1, memory_order_relaxed);
}

/* A write to a peer: from memory that stays as it is until coll_flush, to its memory at `remote`
 * (from a struct coll_key, with the offset added). It arrives there as `kind` of this call, from
 * us. desc: of registered memory, or NULL. Makes progress until the network takes it. Returns 0 or
 * -errno. */
struct coll_put {
	const void *buf;
	size_t len;
	void *desc;
	uint32_t peer, kind, call;
	bool silent; /* it arrives as nothing: whoever wants to know looks there */
	struct coll_key to;
	atomic_uint *group; /* counts those on their way that belong together; or NULL */
};

int coll_put(struct coll_comm *c, const struct coll_put *p);
/* Puts into the slot that a peer has for us; len at most c->slot. */
int coll_put_slot(struct coll_comm *c, uint32_t call, uint32_t peer, uint32_t kind, const void *buf,
		  size_t len, void *desc);
/* Waits until all puts are done and their memory may be changed. */
int coll_flush(struct coll_comm *c);
/* The end of a call, for whose puts nobody here has to wait: their memory is not touched before the
 * call after the next one, and whoever comes to that has received them. Others do wait for them,
 * though, and some providers move them only while we are here. */
int coll_leave(struct coll_comm *c);

/* Memory of at least len bytes that stays with the communicator, for what is packed (0), to be
 * unpacked (1), or sent after the call (2); registered if that works. NULL: no memory. */
struct coll_scratch *coll_scratch(struct coll_comm *c, int which, size_t len);
void coll_scratch_end(struct coll_scratch *s);

void coll_comm_arrived(uint32_t word);
/* A peer is not there any more: the communicator is broken. */
void coll_comm_lost(struct coll_comm *c, uint32_t peer, int err);
/* Takes a place for one more communicator, of WEFT_COLL_COMMS; and gives it back. */
bool coll_comm_room(void);
void coll_comm_no_room(void);
int coll_comm_add(struct coll_comm *c); /* to the table; gives it its id; 0 or -EDQUOT */
void coll_comm_remove(struct coll_comm *c);
struct coll_comm *coll_comm_next(uint32_t *at); /* NULL after the last */
/* Whether c, which had this id and serial number, has not ended. */
bool coll_comm_is(const struct coll_comm *c, uint32_t id, uint64_t serial);

/* ---- coll_wait.c ---- */

enum coll_wait_for {
	COLL_FOR_NET = 1, /* for what arrives, or for writes to finish */
	COLL_FOR_SHM = 2, /* for flags of shared memory */
	COLL_FOR_FAR = 4, /* for what another process receives there, and may not tell us of */
	COLL_FOR_MPI = 8, /* for a request of the MPI's */
};

struct coll_wait {
	int what;
	uint32_t turns, idle;
	uint64_t since; /* when nothing began to happen; 0: something has */
	bool wanted;    /* the core that we have given up, by others */
	uint64_t nap;   /* ns of the next one, while the MPI is waited for */
	uint32_t seen;  /* events of shared memory before what is waited for was looked at */
	uint64_t check;
	uint32_t checks;
	/* Whether this rank, of another host, is waited for; NULL: any may be. Set by whoever
	 * knows, after coll_wait_begin. */
	bool (*missing)(const void *arg, uint32_t rank);
	const void *arg;
};

void coll_wait_begin(struct coll_comm *c, struct coll_wait *w, int what);
/* The same, for writes of ours to be done. */
void coll_wait_for_writes(struct coll_comm *c, struct coll_wait *w);
/* While what is waited for is not there: makes progress, yields, sleeps. Returns 0, or -errno if
 * the communicator is broken. */
int coll_wait(struct coll_comm *c, struct coll_wait *w);
/* Waits for a message of the MPI, unless somebody dies. */
int coll_wait_mpi(struct coll_comm *c, MPI_Request *req);

#endif
