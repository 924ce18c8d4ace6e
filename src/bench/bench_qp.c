/* A verbs channel's queue pair: set-up, posting, completions. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "bench_pingpong.h"
#include "bench_time.h"
#include "bench_verbs.h"

#define POLL_BATCH  16
#define INLINE_WANT 220 /* perftest's default for latency */
#define ROOM_MIN    64  /* credits and markers must fit */
#define WR_RECV     (1ull << 63)

/* UD may be longer than the MTU only where the device allows it and the user says so. */
static size_t message_room(const struct bench_env *env, const struct bench_kind *kind)
{
	size_t limit = bench_kind_limit(env, kind);

	if (limit > env->conf.max_size)
		limit = env->conf.max_size;
	return limit < ROOM_MIN ? ROOM_MIN : limit;
}

static int make_buffer(struct bench_qp *q, size_t room)
{
	size_t half = (room + BENCH_GRH + 4095) / 4096 * 4096;

	q->buf_len = 2 * half;
	q->buf = aligned_alloc(4096, q->buf_len);
	if (!q->buf)
		return -ENOMEM;
	memset(q->buf, 0x5a, q->buf_len);
	q->tx = q->buf;
	q->rx = q->buf + half;
	q->rx_room = room;
	if (q->qp->qp_type == IBV_QPT_UD) {
		q->rx += BENCH_GRH;
		q->rx_room += BENCH_GRH;
	}
	q->mr = ibv_reg_mr(q->dev->pd, q->buf, q->buf_len,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	return q->mr ? 0 : -errno;
}

static int make_qp(struct bench_qp *q)
{
	unsigned int depth = (unsigned int)q->chan.env->conf.depth;
	enum ibv_qp_type type = bench_qp_type(q->chan.kind);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;

	q->cq = ibv_create_cq(q->dev->ctx, (int)(depth + BENCH_RECVS + 16), NULL, NULL, 0);
	if (!q->cq)
		return -errno;
	q->qp = bench_qp_create(q->dev, q->cq, type, depth + 1, BENCH_RECVS, INLINE_WANT);
	if (!q->qp) /* without inline data, then */
		q->qp = bench_qp_create(q->dev, q->cq, type, depth + 1, BENCH_RECVS, 0);
	if (!q->qp)
		return -errno;
	if (!ibv_query_qp(q->qp, &attr, IBV_QP_CAP, &init))
		q->inline_max = init.cap.max_inline_data;
	return 0;
}

static int exchange(struct bench_qp *q, int ret)
{
	struct bench_addr mine = {0};

	/* A side that failed says so with QPN 0, or the other would wait in vain. */
	if (!ret) {
		mine.lid = q->dev->port.lid;
		mine.qpn = q->qp->qp_num;
		mine.gid = q->dev->gid;
		mine.rkey = q->mr->rkey;
		mine.vaddr = (uintptr_t)q->buf;
		if (getrandom(&mine.psn, sizeof(mine.psn), 0) < 0 ||
		    getrandom(&mine.qkey, sizeof(mine.qkey), 0) < 0)
			ret = -errno;
		mine.psn &= 0xffffff;
		mine.qkey &= 0x7fffffff; /* the top bit has a meaning of its own */
	}
	if (!ret)
		ret = bench_qp_init(q->chan.env, q->qp, mine.qkey);

	uint32_t psn = mine.psn;

	if (ret)
		mine.qpn = 0;
	bench_addr_swab(&mine);

	int err = bench_ctl_swap(&q->chan.env->ctl, &mine, &q->peer, sizeof(mine));

	if (ret || err)
		return ret ? ret : err;
	bench_addr_swab(&q->peer);
	if (!q->peer.qpn)
		return -ENODEV;
	q->unposted = BENCH_RECVS;
	ret = bench_qp_repost(q);
	return ret ? ret : bench_qp_connect(q->chan.env, q->qp, psn, &q->peer);
}

/* Nobody may send before both ends are ready. */
static int both_ready(struct bench_qp *q, int ret)
{
	int32_t mine = ret, theirs;
	int err = bench_ctl_swap(&q->chan.env->ctl, &mine, &theirs, sizeof(mine));

	if (ret || err)
		return ret ? ret : err;
	return theirs ? -ECONNABORTED : 0;
}

int bench_qp_open(struct bench_env *env, const struct bench_kind *kind, struct bench_chan **out)
{
	struct bench_qp *q = calloc(1, sizeof(*q));
	int ret = bench_dev_get(env);

	if (!q)
		return -ENOMEM;
	q->chan.kind = kind;
	q->chan.env = env;
	q->dev = env->dev;
	if (!ret)
		ret = make_qp(q);
	if (!ret)
		ret = make_buffer(q, message_room(env, kind));
	ret = exchange(q, ret);
	if (!ret && bench_is_datagram(q->qp)) {
		q->ah = bench_ah_create(env, &q->peer);
		ret = q->ah ? 0 : -errno;
	}
	ret = both_ready(q, ret);
	if (ret) {
		bench_qp_close(&q->chan);
		return ret;
	}
	*out = &q->chan;
	return 0;
}

void bench_qp_close(struct bench_chan *chan)
{
	struct bench_qp *q = (struct bench_qp *)chan;

	if (q->qp)
		ibv_destroy_qp(q->qp);
	if (q->ah)
		ibv_destroy_ah(q->ah);
	if (q->mr)
		ibv_dereg_mr(q->mr);
	if (q->cq)
		ibv_destroy_cq(q->cq);
	free(q->buf);
	free(q);
}

int bench_qp_post(struct bench_qp *q, enum ibv_wr_opcode opcode, size_t len, bool signal)
{
	struct ibv_sge sge = {.length = (uint32_t)len, .lkey = q->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = opcode}, *bad;
	int ret;

	q->unsignalled++;
	sge.addr = (uintptr_t)(opcode == IBV_WR_RDMA_READ ? q->rx : q->tx);
	if (signal || q->unsignalled >= q->chan.env->conf.signal_every) {
		/* One completion retires all that were posted since the last; nearly always of RD,
		 * too. */
		wr.send_flags = IBV_SEND_SIGNALED;
		wr.wr_id = q->unsignalled;
		q->unsignalled = 0;
	}
	if (opcode != IBV_WR_RDMA_READ && len <= q->inline_max)
		wr.send_flags |= IBV_SEND_INLINE;
	if (opcode != IBV_WR_SEND) {
		/* Both sides have the same layout: read the peer's tx, write to its rx. */
		wr.wr.rdma.remote_addr =
			q->peer.vaddr +
			(opcode == IBV_WR_RDMA_READ ? 0 : (uint64_t)(q->rx - q->buf));
		wr.wr.rdma.rkey = q->peer.rkey;
	} else if (q->ah) {
		wr.wr.ud.ah = q->ah;
		wr.wr.ud.remote_qpn = q->peer.qpn;
		wr.wr.ud.remote_qkey = q->peer.qkey;
	}
	for (;;) {
		int n;

		ret = q->qp->qp_type == BENCH_QPT_RD ? bench_rd_post(q->qp, &wr, q->ah, &q->peer)
						     : ibv_post_send(q->qp, &wr, &bad);
		if (ret != ENOMEM)
			break;
		/* RD completes out of order after a loss: an earlier one still has its place. */
		n = bench_qp_reap(q);
		if (n < 0)
			return n;
		if (!n && bench_expired(&q->spins, q->deadline))
			return -ETIMEDOUT;
	}
	if (!ret)
		q->outstanding++;
	return -ret;
}

int bench_qp_repost(struct bench_qp *q)
{
	struct ibv_sge sge = {.lkey = q->mr->lkey, .length = (uint32_t)q->rx_room};
	struct ibv_recv_wr wr[POLL_BATCH], *bad;

	sge.addr = (uintptr_t)(q->qp->qp_type == IBV_QPT_UD ? q->rx - BENCH_GRH : q->rx);
	while (q->unposted) {
		unsigned int n = q->unposted < POLL_BATCH ? q->unposted : POLL_BATCH;

		for (unsigned int i = 0; i < n; i++)
			wr[i] = (struct ibv_recv_wr){.wr_id = WR_RECV,
						     .next = i + 1 < n ? &wr[i + 1] : NULL,
						     .sg_list = &sge,
						     .num_sge = 1};

		int ret = ibv_post_recv(q->qp, wr, &bad);

		if (ret)
			return -ret;
		q->unposted -= n;
	}
	return 0;
}

int bench_qp_reap(struct bench_qp *q)
{
	struct ibv_wc wc[POLL_BATCH];
	int n = ibv_poll_cq(q->cq, POLL_BATCH, wc);

	if (n < 0)
		return -EIO;
	for (int i = 0; i < n; i++) {
		if (wc[i].status != IBV_WC_SUCCESS) {
			fprintf(stderr, "weft-perf: %s: completion with error: %s\n",
				q->chan.kind->name, ibv_wc_status_str(wc[i].status));
			return -EIO;
		}
		if (!(wc[i].wr_id & WR_RECV)) {
			q->outstanding -= (unsigned int)wc[i].wr_id;
			continue;
		}
		q->arrived++;
	}
	return n;
}

int bench_qp_drain(struct bench_qp *q, unsigned int left)
{
	while (q->outstanding > left) {
		int n = bench_qp_reap(q);

		if (n < 0)
			return n;
		if (!n && bench_expired(&q->spins, q->deadline))
			return -ETIMEDOUT;
	}
	return 0;
}

int bench_qp_send_as(struct bench_qp *q, enum ibv_wr_opcode opcode, uint32_t seq)
{
	int ret = bench_qp_drain(q, (unsigned int)q->chan.env->conf.depth - 1);

	if (ret)
		return ret;
	bench_seq_put(q->tx, q->size, seq);
	ret = bench_qp_post(q, opcode, q->size, false);
	/* The answer goes out first; posting the receive again can wait until it has. */
	return ret ? ret : bench_qp_repost(q);
}

int bench_qp_send(struct bench_chan *chan, uint32_t seq)
{
	return bench_qp_send_as((struct bench_qp *)chan, IBV_WR_SEND, seq);
}

int bench_qp_try_recv(struct bench_chan *chan, uint32_t *seq)
{
	struct bench_qp *q = (struct bench_qp *)chan;

	if (!q->arrived) {
		int n = bench_qp_reap(q);

		if (n < 0)
			return n;
		if (!q->arrived)
			return 0;
	}
	q->arrived--;
	q->unposted++;
	*seq = bench_seq_get(q->rx, q->size);
	return 1;
}

/* Leaves nothing of an earlier step behind, and every receive posted. */
int bench_qp_prepare(struct bench_chan *chan, const struct bench_step *step)
{
	struct bench_qp *q = (struct bench_qp *)chan;
	int n;

	q->size = step->size;
	q->deadline = step->deadline;
	do
		n = bench_qp_reap(q);
	while (n > 0);
	if (n < 0)
		return n;
	q->unposted += q->arrived;
	q->arrived = 0;
	return bench_qp_repost(q);
}
