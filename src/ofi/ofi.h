/* The libfabric provider `weft`: reliable datagram endpoints (FI_EP_RDM) on the messages of msg.h.
 *
 * Only libfabric's public headers are used: a plugin sees no others. One file per object of the
 * API; each object begins with the fid that the application holds.
 *
 * An operation (struct ofi_op) is made for each call, given to the engine, and comes back through
 * `done`. If it is to be reported it becomes the entry of the completion queue itself, and is free
 * again when the application has read it: a completion queue can not overflow, and needs no memory
 * of its own.
 *
 * Addresses: an fi_addr_t is an index into the address vector, for FI_AV_MAP as for FI_AV_TABLE.
 * Peers of the engine belong to an endpoint, and are made when an address is first used.
 *
 * All of it may be called from any thread. Locks, outermost first: the endpoints of a watch, the
 * operations of an endpoint, the engine's (held in `done`), events, address vector, completion
 * queue.
 */
#ifndef WEFT_OFI_H
#define WEFT_OFI_H

#include <stdatomic.h>
#include <stdbool.h>
#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_ext.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include "util_list.h"
#include "util_lock.h"
#include "msg.h"
#include "ofi_wait.h"

#define OFI_NAME "weft"

extern struct fi_provider ofi_provider;

#define OFI_INFO(subsys, ...) FI_INFO(&ofi_provider, FI_LOG_##subsys, __VA_ARGS__)
#define OFI_WARN(subsys, ...) FI_WARN(&ofi_provider, FI_LOG_##subsys, __VA_ARGS__)

/* ---- limits and capabilities, see ofi_info.c ------------------------------------------------- */

#define OFI_MAX_MSG    UINT32_MAX /* what one segment of a rendezvous can name */
#define OFI_ATOMIC_MAX 4096       /* bytes of an operand; more is refused */

#define OFI_CAPS_MSG                                                                               \
	(FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV)
#define OFI_CAPS_RMA    (FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)
#define OFI_CAPS_DOMAIN (FI_LOCAL_COMM | FI_REMOTE_COMM)
#define OFI_CAPS        (OFI_CAPS_MSG | OFI_CAPS_RMA | OFI_CAPS_DOMAIN)

#define OFI_TX_FLAGS                                                                               \
	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE |                   \
	 FI_DELIVERY_COMPLETE)
#define OFI_RX_FLAGS (FI_COMPLETION | FI_MULTI_RECV)

/* ---- tunables, read once when the provider is loaded ----------------------------------------- */

/* In the order of the choices of FI_WEFT_STATS. */
enum ofi_stats { OFI_STATS_NO, OFI_STATS_YES, OFI_STATS_USR1, OFI_STATS_USR2 };

struct ofi_conf {
	struct msg_dev_conf dev;
	uint32_t eager_max, eager_far, rx_buffers, depth;
	bool write, speculate;
	enum msg_reusing reuse;
	uint32_t reuse_part;
	unsigned int stats; /* enum ofi_stats */
	uint32_t usage;
	uint64_t linger; /* ns */
	struct stripe_conf stripe;
	bool stripe_auto;
	uint64_t stripe_min;
	bool live;
	uint64_t alive; /* ns */
	struct ofi_wait_conf wait;
};
extern struct ofi_conf ofi_conf;

/* ---- things that are waited for -------------------------------------------------------------- */

struct ofi_ep;

/* Endpoints that somebody waits for: those of a completion queue, of a counter, of the process. */
struct ofi_watch {
	struct util_lock lock;
	struct ofi_ep **ep;
	uint32_t n, cap;
	int epoll, event;  /* -1: nobody has slept here yet */
	atomic_bool armed; /* somebody sleeps, or is about to */
};

void ofi_watch_init(struct ofi_watch *w);
void ofi_watch_fini(struct ofi_watch *w);
/* The same endpoint may be added twice; removing it removes it once. 0 or -FI_E*. */
int ofi_watch_add(struct ofi_watch *w, struct ofi_ep *ep);
void ofi_watch_remove(struct ofi_watch *w, struct ofi_ep *ep);
/* Handles what has come to these endpoints, unless another thread is doing so. */
int ofi_watch_progress(struct ofi_watch *w);
/* A descriptor to sleep on, or -FI_E*. */
int ofi_watch_fd(struct ofi_watch *w);
/* To be called before every sleep. False: something has come meanwhile. */
bool ofi_watch_arm(struct ofi_watch *w);
/* Sleeps, if armed, for a second at most. True: woken. */
bool ofi_watch_sleep(struct ofi_watch *w, uint64_t ns);
/* Wakes the sleeper without anything having come. */
void ofi_watch_wake(struct ofi_watch *w);

/* Something came for those that sleep on w, by the work of another thread. */
static inline void ofi_watch_notify(struct ofi_watch *w)
{
	if (atomic_load(&w->armed))
		ofi_watch_wake(w);
}

/* Of the process: what a read that finds nothing does (ofi_idle.c). */
int ofi_idle_add(struct ofi_ep *ep);
void ofi_idle_remove(struct ofi_ep *ep);
/* No endpoint is there any more. */
void ofi_idle_fini(void);
void ofi_idle_notify(void);
/* A queue was found empty; `may_sleep`: nobody polls anything else meanwhile. True: something may
 * have come, look again. */
bool ofi_idle_empty(bool may_sleep);
void ofi_idle_busy(void);
void ofi_idle_stats(uint64_t *yields, uint64_t *sleeps);
void ofi_idle_tell(void);

/* ofi_stats.c */
void ofi_stats_init(void);
bool ofi_stats_asked(void);
void ofi_stats_print(struct ofi_ep *ep);

/* ---- objects --------------------------------------------------------------------------------- */

struct ofi_fabric {
	struct fid_fabric fid;
	atomic_int users;
};

struct ofi_domain {
	struct fid_domain fid;
	struct ofi_fabric *fabric;
	struct msg_dev *dev;
	atomic_int users;
};

struct ofi_mr {
	struct fid_mr fid;
	struct ofi_domain *domain;
	struct msg_mem *mem; /* NULL: no peer may use it */
};

#define OFI_AV_CHUNK  1024
#define OFI_AV_CHUNKS 1024

struct ofi_av_entry {
	struct msg_addr addr;
	uint32_t chain; /* the next of the same hash; UINT32_MAX: none */
	bool used;
};

struct ofi_av {
	struct fid_av fid;
	struct ofi_domain *domain;
	enum fi_av_type type;
	struct util_lock lock;
	struct ofi_av_entry *chunk[OFI_AV_CHUNKS];
	uint32_t n;     /* the first that was never used */
	uint32_t holes; /* that are free below */
	uint32_t *buckets;
	uint32_t n_buckets;
	struct list_head eps;
	atomic_int users;
};

/* 0 or -FI_EINVAL: nobody is there. */
int ofi_av_get(struct ofi_av *av, fi_addr_t fi, struct msg_addr *addr);
/* FI_ADDR_NOTAVAIL: not there. */
fi_addr_t ofi_av_find(struct ofi_av *av, const struct msg_addr *addr);
/* "fi_weft://[::ffff:10.0.0.1]:a0b1c2:1234abcd:0": GID, number and key of the queue pair, LID. */
int ofi_addr_str(const struct msg_addr *addr, char *buf, size_t len);
int ofi_addr_parse(const char *text, struct msg_addr *addr);

struct ofi_op {
	union {
		struct msg_op op;
		struct msg_multi multi;
		struct msg_atomic atomic;
	};
	struct ofi_ep *ep;
	struct ofi_op *next; /* free, or in a completion queue */
	void *context;
	uint64_t flags; /* of the completion */
	struct ofi_cq *cq;
	struct ofi_cntr *cntr;
	void *bounce;     /* what was injected and must be kept */
	bool report;      /* also if it succeeds */
	bool event;       /* comes from the pool of events */
	bool discard;     /* receives what is thrown away */
	atomic_bool busy; /* a receive that may be cancelled */
};

#define OFI_POOL_CHUNK 64

/* Operations that are free. Any thread gives back without a lock. */
struct ofi_pool {
	struct util_lock lock;
	struct ofi_op *free;
	struct ofi_op *_Atomic returned;
	struct ofi_op **chunk;
	uint32_t n_chunks;
};

/* NULL: no memory. */
struct ofi_op *ofi_pool_get(struct ofi_pool *p);
void ofi_pool_put(struct ofi_pool *p, struct ofi_op *op);
void ofi_pool_fini(struct ofi_pool *p);

struct ofi_cq {
	struct fid_cq fid;
	struct ofi_domain *domain;
	struct ofi_watch watch;
	enum fi_cq_format format;
	enum fi_wait_obj wait_obj;
	atomic_bool may_sleep; /* an endpoint for messages: nothing else is polled beside it */
	atomic_bool signalled;
	atomic_bool drained; /* the last read had room for more than there was */
	struct util_lock lock;
	struct ofi_op *head, **tail;
	atomic_uint count;
	atomic_int reading; /* threads that have taken entries, and are not done with them */
	atomic_int users;
};

/* Called with the engine's lock held, and without. */
void ofi_cq_push(struct ofi_cq *cq, struct ofi_op *op);
/* Forgets what is of this endpoint, also those that are reading it. */
void ofi_cq_forget(struct ofi_cq *cq, struct ofi_ep *ep);

struct ofi_cntr {
	struct fid_cntr fid;
	struct ofi_domain *domain;
	struct ofi_watch watch;
	enum fi_wait_obj wait_obj;
	atomic_ullong value, errors;
	atomic_int users;
};

void ofi_cntr_count(struct ofi_cntr *c, bool failed);

struct ofi_eq {
	struct fid_eq fid;
	struct ofi_fabric *fabric;
	struct util_lock lock;
	struct list_head events;
	int event; /* descriptor, readable while there are events */
	enum fi_wait_obj wait_obj;
};

bool ofi_eq_empty(struct ofi_eq *eq);

/* Counters by the kind of operation. */
enum { OFI_SEND, OFI_RECV, OFI_READ, OFI_WRITE, OFI_KINDS };

struct ofi_ep {
	struct fid_ep fid;
	struct ofi_domain *domain;
	struct ofi_av *av;
	struct ofi_cq *tx_cq, *rx_cq;
	struct ofi_cntr *cntr[OFI_KINDS];
	struct msg_ep *msg; /* NULL: not enabled */
	bool closing;
	uint64_t caps;
	uint64_t tx_flags, rx_flags; /* the defaults of operations */
	bool tx_selective, rx_selective;
	size_t min_multi_recv;
	size_t inject_max;
	struct ofi_pool ops, events;
	struct list_head av_link, open_link;
	/* Peers of the engine by address, plus one; 0: not known yet. */
	atomic_uint *_Atomic peer[OFI_AV_CHUNKS];
};

/* The process ends: peers get what was sent, also by endpoints that nobody has closed. */
void ofi_ep_fini(void);
int ofi_ep_peer(struct ofi_ep *ep, fi_addr_t fi, uint32_t *peer);
/* The address of a peer of the engine; not with the engine's lock. */
fi_addr_t ofi_ep_source(struct ofi_ep *ep, uint32_t peer);
/* The engine's callbacks (ofi_done.c). */
void ofi_done(void *arg, struct msg_op *op);
void ofi_written(void *arg, uint32_t src, uint64_t data, uint64_t len);

/* ---- making operations (ofi_op.c) ------------------------------------------------------------ */

/* The flags of a call that has none, and of one that brings its own. */
static inline uint64_t ofi_tx_flags(const struct ofi_ep *ep)
{
	return ep->tx_flags | (ep->tx_selective ? 0 : FI_COMPLETION);
}

static inline uint64_t ofi_tx_msg_flags(const struct ofi_ep *ep, uint64_t flags)
{
	return flags | (ep->tx_selective ? 0 : FI_COMPLETION);
}

static inline uint64_t ofi_rx_flags(const struct ofi_ep *ep)
{
	return ep->rx_flags | (ep->rx_selective ? 0 : FI_COMPLETION);
}

static inline uint64_t ofi_rx_msg_flags(const struct ofi_ep *ep, uint64_t flags)
{
	return flags | (ep->rx_selective ? 0 : FI_COMPLETION);
}

struct ofi_call {
	const struct iovec *iov;
	size_t n_iov;
	fi_addr_t addr;
	uint64_t tag, ignore, data;
	void *context;
	uint64_t flags; /* FI_COMPLETION, FI_INJECT, FI_REMOTE_CQ_DATA, FI_TAGGED, ... */
};

ssize_t ofi_send(struct ofi_ep *ep, const struct ofi_call *c);
ssize_t ofi_recv(struct ofi_ep *ep, const struct ofi_call *c);

/* An operation for this call, filled but for what is particular. NULL: *err says why. */
struct ofi_op *ofi_op_new(struct ofi_ep *ep, enum msg_op_kind kind, const struct ofi_call *c,
			  ssize_t *err);
/* The engine refused it. */
ssize_t ofi_op_refused(struct ofi_op *op, int err);
void ofi_op_free(struct ofi_op *op);
/* Copies what is to be injected, if the engine does not. */
int ofi_op_bounce(struct ofi_op *op);

static inline struct ofi_ep *ofi_ep_of(struct fid_ep *fid)
{
	return container_of(fid, struct ofi_ep, fid);
}

/* ---- entry points ---------------------------------------------------------------------------- */

int ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info);
int ofi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
int ofi_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		    void *context);
int ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **eq,
		void *context);
int ofi_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
		void *context);
int ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **cq,
		void *context);
int ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		  void *context);
int ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep, void *context);
int ofi_query_atomic(struct fid_domain *domain, enum fi_datatype type, enum fi_op op,
		     struct fi_atomic_attr *attr, uint64_t flags);
int ofi_check_info(uint32_t version, const struct fi_info *hints);
/* 0: it is safe to sleep on it; else -FI_EAGAIN. */
int ofi_cq_trywait(struct ofi_cq *cq);
int ofi_cntr_trywait(struct ofi_cntr *cntr);

extern struct fi_ops_mr ofi_mr_ops;
extern struct fi_ops_msg ofi_msg_ops;
extern struct fi_ops_tagged ofi_tagged_ops;
extern struct fi_ops_rma ofi_rma_ops;
extern struct fi_ops_atomic ofi_atomic_ops;
extern struct fi_ops_cm ofi_cm_ops;
extern struct fi_ops_ep ofi_ep_ops;

/* What is not there (ofi_nosys.c). */
/* In words, and into buf, if there is one. */
const char *ofi_strerror(int prov_errno, char *buf, size_t len);
/* When a wait of so many milliseconds is over; UINT64_MAX: never. */
uint64_t ofi_deadline(int timeout);
int ofi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int ofi_no_control(struct fid *fid, int command, void *arg);
int ofi_no_ops_open(struct fid *fid, const char *name, uint64_t flags, void **ops, void *context);

/* -errno of the engine, as libfabric names it. */
int ofi_errno(int err);

#endif
