/* Weft direct verbs: what the software RNIC has and <infiniband/verbs.h> has no words for.
 *
 * Reliable datagram (RD) queue pairs. One queue pair speaks to every peer, reliably, without
 * connections: each work request names its peer by an address handle and a queue pair number
 * (ibv_wr_set_ud_addr), and may be a Send, an RDMA Write, a Write with immediate, an RDMA Read
 * or an atomic. The precedent is EFA's SRD (efadv_create_driver_qp); Weft's are more:
 *
 *  - Messages from one source are delivered exactly once and in the order of posting. Writes
 *    are placed as they arrive; a Read or an atomic is executed after everything before it.
 *  - Completions of one queue pair may come in any order: a work request completes when *its*
 *    peer has executed it, so those to one peer complete in the order of posting; but a Read when
 *    its data is there, and a Write that has data and no immediate when that is placed. A failed
 *    request fails alone: the queue pair stays in RTS, and other requests, also to the same peer,
 *    go on.
 *  - A receive has no GRH in front. wc.src_qp and wc.slid say who sent it.
 *
 * A queue pair is made by weftdv_create_qp and goes to INIT (IBV_QP_PKEY_INDEX, PORT, QKEY),
 * RTR (nothing; IBV_QP_MIN_RNR_TIMER if wanted) and RTS (IBV_QP_SQ_PSN; IBV_QP_RNR_RETRY,
 * IBV_QP_TIMEOUT and IBV_QP_RETRY_CNT if wanted) with ibv_modify_qp. Without RNR_RETRY it waits for
 * receives for ever (7); without TIMEOUT a silent peer is given up after WEFT_RD_TIMEOUT.
 *
 * Statuses of failed requests: IBV_WC_RETRY_EXC_ERR the peer is gone, or was never there;
 * IBV_WC_RNR_RETRY_EXC_ERR it posts no receive; IBV_WC_REM_ACCESS_ERR no key allows it;
 * IBV_WC_REM_INV_REQ_ERR longer than the receive, or wrong Q_Key; IBV_WC_REM_OP_ERR the peer's
 * memory is gone; IBV_WC_REM_ABORT_ERR the peer's queue pair was reset or destroyed.
 *
 * Paths. An address handle names a path: one of the peer's addresses (the GID), one of our own
 * (sgid_index), and a flow (grh.flow_label). Each flow label sends from a UDP port of its own,
 * so that ECMP and LAG spread flows; label 0 is the queue pair's own port. Paths to the same peer
 * share the order of messages, and have windows and round-trip times of their own. When a path
 * falls silent, what is on it goes over another one, if the peer has one.
 *
 * Every function works in programs that do not run on Weft, too: they find no such device.
 * Link with -lweftdv (pkg-config weftdv).
 */
#ifndef WEFT_WEFTDV_H
#define WEFT_WEFTDV_H

#include <stdbool.h>
#include <stdint.h>
#include <infiniband/verbs.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Whether the device is Weft's, and the functions below can be used on it. */
bool weftdv_is_supported(struct ibv_device *device);

enum weftdv_qp_type { WEFTDV_QPT_RD = 1 };

struct weftdv_qp_init_attr {
	uint64_t comp_mask; /* 0 */
	enum weftdv_qp_type type;
};

/* attr: qp_type IBV_QPT_DRIVER, and IBV_QP_INIT_ATTR_SEND_OPS_FLAGS with the operations that
 * will be used. NULL with errno: EOPNOTSUPP for another device. */
struct ibv_qp *weftdv_create_qp(struct ibv_context *context, struct ibv_qp_init_attr_ex *attr,
				const struct weftdv_qp_init_attr *weft_attr);

#define WEFTDV_MAX_PATHS 64 /* flow labels of one queue pair, and paths to one peer */

enum weftdv_path_state {
	WEFTDV_PATH_NEW,    /* the peer has not answered yet */
	WEFTDV_PATH_ACTIVE, /* the peer answers */
	WEFTDV_PATH_SILENT, /* two timeouts in a row or more */
	WEFTDV_PATH_LOCAL,  /* the peer is on this host: shared memory */
};

/* What the device knows of a path. Times in nanoseconds, since the path was first used. */
struct weftdv_path {
	uint32_t state;          /* enum weftdv_path_state */
	uint32_t mtu;            /* payload bytes of a packet */
	uint64_t rtt, rtt_min;   /* smoothed, least; 0: not known */
	uint64_t window, flight; /* bytes that may be, that are on the way */
	uint64_t completion;     /* smoothed time from first transmission to completion of a work
				  * request, in nanoseconds for each KB of it, short ones counting
				  * as one */
	uint64_t completions;    /* work requests completed */
	uint64_t bytes;          /* of payload in them */
	uint64_t sent, lost;     /* packets sent, and of these found lost */
	uint64_t timeouts;
};

/* The path that this address handle names, from qp to the peer's queue pair. 0 or errno:
 * ENOENT nothing was sent over it. */
int weftdv_query_path(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn,
		      struct weftdv_path *path);

/* Of a queue pair, since it was made. */
struct weftdv_rd_stats {
	uint64_t peers, paths;       /* now */
	uint64_t sent, received;     /* packets */
	uint64_t resent, duplicates; /* packets sent again; received again */
	uint64_t out_of_order;       /* packets that came before their turn */
	uint64_t damaged, foreign,
		stale;    /* dropped: wrong CRC, not RD, of no pair (an earlier life) */
	uint64_t refused; /* requests of peers that no key or receive allowed */
	uint64_t rnr_sent, rnr_received;
	uint64_t deaths;         /* peers given up */
	uint64_t local_messages; /* through shared memory */
	uint64_t link;           /* bytes per second that the own interface takes, if things wait
				  * there; 0: they do not */
};
int weftdv_query_rd(struct ibv_qp *qp, struct weftdv_rd_stats *stats);

#ifdef __cplusplus
}
#endif

#endif
