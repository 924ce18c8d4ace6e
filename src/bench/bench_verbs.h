/* Verbs channels: opening a device, and one queue pair to the peer process with its
 * buffer, on nothing but the public API, so that the same program measures hardware.
 *
 * Every channel owns a CQ and a registered buffer: one message to send, behind it room
 * for one to receive (after 40 bytes for a UD message's GRH). All receives share that
 * room, as they do in perftest: the contents do not matter, and a program that cycled
 * through megabytes would measure the cache. One thread uses a channel.
 */
#ifndef WEFT_BENCH_VERBS_H
#define WEFT_BENCH_VERBS_H

#include <infiniband/verbs.h>

#include "bench_kind.h"

#define BENCH_QPT_RD IBV_QPT_DRIVER /* Weft's: no other device has a driver type that we make */

#define BENCH_GRH   40
#define BENCH_RECVS 256 /* receives that are always posted; more than any window */

struct bench_dev {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;
	union ibv_gid gid;
};

/* How to reach a queue pair; also what goes over the control connection, where the
 * numbers are big-endian. */
struct bench_addr {
	uint32_t lid, qpn, psn, qkey, rkey, pad;
	uint64_t vaddr;
	union ibv_gid gid;
};

struct bench_qp {
	struct bench_chan chan; /* first */
	struct bench_dev *dev;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
	struct ibv_mr *mr;
	struct ibv_ah *ah; /* UD, RD */
	struct bench_addr peer;
	char *buf, *tx, *rx; /* rx: where a message's first byte lands */
	size_t buf_len, rx_room, inline_max, size;
	unsigned int outstanding; /* send requests without a completion yet */
	unsigned int unsignalled; /* of these, posted since the last signalled one */
	unsigned int arrived;     /* receives completed and not yet taken */
	unsigned int unposted;    /* receives taken and not yet posted again */
	uint64_t deadline;
	uint32_t spins;
	uint32_t seq; /* one-sided latency: the number that is awaited */
};

/* Whether each request names its peer, and not the queue pair. */
static inline bool bench_is_datagram(const struct ibv_qp *qp)
{
	return qp->qp_type == IBV_QPT_UD || qp->qp_type == BENCH_QPT_RD;
}

struct bench_dev *bench_dev_open(struct bench_env *env); /* NULL: said why on stderr */
void bench_dev_close(struct bench_dev *dev);

struct ibv_qp *bench_qp_create(struct bench_dev *dev, struct ibv_cq *cq, enum ibv_qp_type type,
			       unsigned int sends, unsigned int recvs, unsigned int inline_max);
int bench_qp_init(struct bench_env *env, struct ibv_qp *qp, uint32_t qkey);
int bench_qp_connect(struct bench_env *env, struct ibv_qp *qp, uint32_t psn,
		     const struct bench_addr *peer);
struct ibv_ah_attr bench_ah_attr(const struct bench_env *env, const struct bench_addr *peer);
struct ibv_ah *bench_ah_create(const struct bench_env *env, const struct bench_addr *peer);
void bench_addr_swab(struct bench_addr *addr); /* host order to wire and back */

/* bench_rd.c. NULL with EOPNOTSUPP where the device has no such queue pairs. */
struct ibv_qp *bench_rd_create(struct bench_dev *dev, struct ibv_cq *cq,
			       const struct ibv_qp_cap *cap);
/* wr has one element; for RDMA wr->wr.rdma says where. 0 or a positive errno. */
int bench_rd_post(struct ibv_qp *qp, const struct ibv_send_wr *wr, struct ibv_ah *ah,
		  const struct bench_addr *peer);

/* The channel functions that all verbs kinds share. */
int bench_qp_open(struct bench_env *env, const struct bench_kind *kind, struct bench_chan **out);
void bench_qp_close(struct bench_chan *chan);
int bench_qp_prepare(struct bench_chan *chan, const struct bench_step *step);

/* Posts one request for len bytes of tx. Signals every signal_every-th, or this one. */
int bench_qp_post(struct bench_qp *q, enum ibv_wr_opcode opcode, size_t len, bool signal);
/* Posts again what was taken, as one list. */
int bench_qp_repost(struct bench_qp *q);
/* Takes what the CQ has, up to 16; returns how many, or -errno. */
int bench_qp_reap(struct bench_qp *q);

/* Polls until at most `left` send requests are outstanding; bounded by the step. */
int bench_qp_drain(struct bench_qp *q, unsigned int left);

/* Two-sided ping-pong, as bench_kind wants it. */
int bench_qp_send(struct bench_chan *chan, uint32_t seq);
int bench_qp_send_as(struct bench_qp *q, enum ibv_wr_opcode opcode, uint32_t seq);
int bench_qp_try_recv(struct bench_chan *chan, uint32_t *seq);

/* A stream of sends paced by credits, for types that may drop (bench_credit.c). */
int bench_credit_tx(struct bench_chan *chan, struct bench_step *step);
int bench_credit_rx(struct bench_chan *chan, struct bench_step *step);

/* The types behind the variants of rc, uc, ud and rd. */
enum ibv_qp_type bench_qp_type(const struct bench_kind *kind);

#endif
