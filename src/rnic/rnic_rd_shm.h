/* RD between processes of one host: messages through shared memory.
 *
 * When two queue pairs have found each other over UDP and their addresses are of one machine,
 * the one with the lower life tries to reach the other's port (shm_link.h). If that works they
 * are in one network namespace, and from then on everything goes through the link's two rings:
 * what is small is copied through them; what is large is fetched by the receiver straight from
 * the sender's memory, if the kernel allows it, else it goes through the rings in pieces.
 *
 * Requests are numbered, executed in order, and acknowledged by number, as RC's are. A Send that
 * finds no receive is refused, and so is everything behind it, until it comes again: the rings
 * never wait for an application, so responses are never stuck behind a request.
 *
 * The rings do not lose anything: there is no window, no timer and no CRC here. The socket of
 * the link tells when the other process is gone.
 *
 * Everything here needs the engine's lock.
 */
#ifndef WEFT_RNIC_RD_SHM_H
#define WEFT_RNIC_RD_SHM_H

#include "shm_copy.h"
#include "shm_link.h"
#include "rnic_rd.h"

struct rnic_rd_shm {
	struct rnic_io io; /* first; the link's socket */
	struct rnic_ring ring;
	struct shm_link link;
	struct rnic_rd *rd;
	struct rnic_rd_peer *peer; /* NULL: who it is has not been said yet */
	struct list_head all;      /* on rd->links */
	uint64_t since;

	/* Sending. */
	struct list_head requests, responses; /* to be sent */
	struct list_head sent;                /* requests that are not acknowledged */
	uint64_t copies; /* no copy that is needed is at an earlier place of the ring */
	uint32_t n_responses;
	struct rnic_rd_msg *granted[SHM_GRANTS]; /* what the peer may copy; a response is kept */
	uint32_t seq;                            /* of the next request */
	bool open;                               /* everything that went over UDP is done */
	bool reachable;                          /* the peer can fetch from our memory */
	bool can_fetch;                          /* we can from its */
	bool rnr;
	uint32_t rnr_seq;
	uint64_t rnr_deadline;
	bool committed; /* something since the last ring of the bell */
	void *room;     /* where the record in `stage` belongs */
	uint64_t stage[72];

	/* Receiving. */
	bool broken;   /* the peer breaks the rules */
	bool later;    /* there is no memory for this record now: it stays in the ring */
	bool bye;      /* it has said good-bye */
	uint32_t done; /* requests executed */
	bool waiting;  /* request done + 1 was told to wait; others are discarded */
	bool owe;      /* an acknowledgement */
	bool owe_rnr, owe_ready, owe_found;
	uint64_t owe_copied; /* grants of the peer that we do not need any more */
	uint8_t op;          /* of the request that is half here, ... */
	uint32_t len;        /* ... and its length */
	struct {
		uint32_t seq;
		uint8_t reason;
	} * naks; /* refusals to be told */
	uint32_t n_naks, naks_cap;
	bool active;      /* a request is half here */
	bool has_wqe;     /* wqe holds a receive */
	uint64_t got;     /* bytes of it */
	uint64_t fetched; /* bytes in this look, from the peer's memory */
	uint64_t word;    /* for the probe */
	struct rnic_rwqe *wqe;
};

/* Where a queue pair can be reached. */
struct rnic_rd_port {
	struct rnic_io io; /* first */
	struct shm_port port;
	struct rnic_timer again; /* looks for connections again, after a while without */
	struct rnic_rd *rd;
};

/* The port of a queue pair. Without one there is no shared memory, which is no error. */
void rnic_rd_shm_open(struct rnic_rd *rd);
void rnic_rd_shm_shut(struct rnic_rd *rd);
/* Frees memory only; the descriptors are closed. */
void rnic_rd_shm_discard(struct rnic_rd *rd);
/* The peer is known: see whether it is on this host. */
void rnic_rd_shm_try(struct rnic_rd_peer *peer, struct in_addr addr);
bool rnic_rd_shm_up(const struct rnic_rd_peer *peer);
/* Nothing of this peer is on the way over UDP, or owed there. */
static inline bool rnic_rd_shm_open_only(const struct rnic_rd_peer *peer)
{
	return peer->shm && peer->shm->open && !peer->owe[0] && !peer->owe[1] &&
	       (!peer->lane ||
		(list_empty(&peer->lane[0].msgs) && list_empty(&peer->lane[1].msgs)));
}
/* Something that the peer must hear through the ring. */
static inline bool rnic_rd_shm_owes(const struct rnic_rd_peer *peer)
{
	const struct rnic_rd_shm *s = peer->shm;

	return s &&
	       (s->owe || s->n_naks || s->owe_rnr || s->owe_ready || s->owe_found || s->owe_copied);
}
void rnic_rd_shm_send(struct rnic_rd_peer *peer, struct rnic_rd_msg *m);
void rnic_rd_shm_pump(struct rnic_rd_shm *s);
/* The message will be sent again, or the ring is about to be written over: its copy moves. */
void rnic_rd_shm_rescue(struct rnic_rd_shm *s, struct rnic_rd_msg *m);
/* The peer may not copy what this message names any more. */
void rnic_rd_shm_ungrant(struct rnic_rd_shm *s, struct rnic_rd_msg *m);
void rnic_rd_shm_ack(struct rnic_rd_shm *s);
void rnic_rd_shm_bye(struct rnic_rd_shm *s);
/* A receive was posted. */
void rnic_rd_shm_wake(struct rnic_rd *rd);
void rnic_rd_shm_expire(struct rnic_rd_shm *s, uint64_t now);
/* The peer goes: its requests are failed, the link closed. */
void rnic_rd_shm_fail(struct rnic_rd_shm *s, enum ibv_wc_status status);

#endif
