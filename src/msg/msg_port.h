/* What carries work requests to peers, below the endpoint.
 *
 * Either one queue pair reaches them all (RD, msg_port_rd.c), or each peer has one of its own, or
 * several, connected when the first message goes to it or comes from it (RC, msg_port_rc.c). Either
 * way the endpoint posts ordinary work requests and polls one completion queue. Its address names
 * ep->qp: the RD queue pair, or the UD queue pair over which RC queue pairs get to know each other
 * (msg_call.c). Everything needs the endpoint's lock.
 */
#ifndef WEFT_MSG_PORT_H
#define WEFT_MSG_PORT_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

struct msg_ep;
struct msg_paths;
struct msg_pkt;
struct msg_stats;

/* A connection, of those to one peer. */
struct msg_via {
	uint8_t path;
	uint16_t epoch; /* so many were there before it */
};

struct msg_port {
	/* Makes ep->cq, ep->qp and what belongs to them; sets ep->max_inline. 0 or -errno. */
	int (*open)(struct msg_ep *ep);
	/* Also after an open that has failed. */
	void (*close)(struct msg_ep *ep);

	/* One work request, wr->next is not looked at. Only what is signalled is sure to complete.
	 * way: one of those that ways() has made; NULL: the first. 0; -EAGAIN: not to this peer
	 * now; -ENOBUFS: to nobody now; or it can not be done. */
	int (*post)(struct msg_ep *ep, uint32_t peer, void *way, struct ibv_send_wr *wr);
	/* A send from memory that is the caller's again afterwards: what may be needed later is
	 * copied to `keep`, part of a buffer of the endpoint, while it is under way. NULL, or
	 * -EOPNOTSUPP: it can not. */
	int (*post_keep)(struct msg_ep *ep, uint32_t peer, struct ibv_send_wr *wr, void *keep);
	int (*post_recv)(struct msg_ep *ep, struct ibv_recv_wr *wr);

	/* Fills in paths->way for paths->conf.paths ways to a peer, or fewer, which the conf then
	 * says. 0 or -errno, and ways_free() is called either way; -EAGAIN: not yet; -EOPNOTSUPP:
	 * there will never be more than one. NULL: the same. */
	int (*ways)(struct msg_ep *ep, uint32_t peer, struct msg_paths *paths);
	void (*ways_free)(struct msg_paths *paths);
	/* Whether nothing comes back over a way, as the device sees it, which then goes around it
	 * by itself. NULL: it does not know. */
	bool (*way_silent)(struct msg_ep *ep, uint32_t peer, void *way);
	/* A message is about to be divided. True: ways() would make better ones than last time.
	 * NULL: never. */
	bool (*ways_news)(struct msg_ep *ep, uint32_t peer);
	/* Where ways are connections, which come up, fail and come up again (msg_path_up(),
	 * msg_path_down()): post() to one that is not up is -ENOTCONN. */
	bool (*way_up)(const void *way);
	/* What the peer calls it, ... */
	uint32_t (*way_name)(const void *way);
	/* ... and what is to be done if it says that one of ours, so called, has failed. False:
	 * there is none (any more). */
	bool (*way_lost)(struct msg_ep *ep, uint32_t peer, uint32_t name, struct msg_via *via);
	/* Over which something has come that has a source(). */
	struct msg_via (*via)(const struct msg_ep *ep, const struct ibv_wc *wc);

	/* Sees each completion first. True: it was nobody else's business. NULL: no need. */
	bool (*completed)(struct msg_ep *ep, const struct ibv_wc *wc);
	/* What time brings: how many peers it has changed. NULL: nothing. */
	int (*tick)(struct msg_ep *ep);

	/* Whether peers have acknowledged all that was posted; those of which that is not known
	 * are asked, and it will be true in the end. */
	bool (*settled)(struct msg_ep *ep);

	/* Whose packet that is, UINT32_MAX: nobody's. */
	uint32_t (*source)(struct msg_ep *ep, const struct ibv_wc *wc, const struct msg_pkt *p);
	/* Whether that comes from this peer. */
	bool (*is_from)(const struct msg_ep *ep, const struct ibv_wc *wc, uint32_t peer);

	/* What it knows of packets. NULL: nothing. */
	void (*stats)(const struct msg_ep *ep, struct msg_stats *out);

	/* Whatever fails, the connection is gone, and with the last one the peer; completed() sees
	 * to that. Packets are numbered (msg_flow.h). */
	bool connected;
};

extern const struct msg_port msg_port_rd, msg_port_rc;

#endif
