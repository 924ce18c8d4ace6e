/* Queue pairs that keep the order: RC and UC, which are connected, and RD, which is not. Send,
 * RDMA write, RDMA read.
 *
 * Both sides poll their CQ, with two exceptions that show what the device does when the
 * program does not: rc-write-spin watches memory and polls only for its own completions
 * (as ib_write_lat does), and the target of rc-read-passive sleeps.
 */
#include <errno.h>
#include <poll.h>

#include "bench_pingpong.h"
#include "bench_time.h"
#include "bench_verbs.h"

enum { OP_SEND, OP_WRITE, OP_READ, OP_MASK = 3, ON_UC = 4, NO_POLL = 8, ON_RD = 16 };

static struct bench_qp *to_qp(struct bench_chan *chan)
{
	return (struct bench_qp *)chan;
}

static enum ibv_wr_opcode opcode(const struct bench_qp *q)
{
	static const enum ibv_wr_opcode code[] = {
		[OP_SEND] = IBV_WR_SEND,
		[OP_WRITE] = IBV_WR_RDMA_WRITE,
		[OP_READ] = IBV_WR_RDMA_READ,
	};

	return code[q->chan.kind->variant & OP_MASK];
}

enum ibv_qp_type bench_qp_type(const struct bench_kind *kind)
{
	if (kind == &bench_kind_ud)
		return IBV_QPT_UD;
	if (kind->variant & ON_RD)
		return BENCH_QPT_RD;
	return kind->variant & ON_UC ? IBV_QPT_UC : IBV_QPT_RC;
}

/* What a write leaves in the last byte for message seq. */
static char write_mark(uint32_t seq)
{
	return (char)(seq == BENCH_LAST ? 0xff : seq % 0xff);
}

static int write_prepare(struct bench_chan *chan, const struct bench_step *step)
{
	struct bench_qp *q = to_qp(chan);

	/* Neither the first message's mark nor the last one's. */
	q->seq = step->seq0;
	q->rx[step->size - 1] = write_mark(step->seq0 + 0x7f);
	return bench_qp_prepare(chan, step);
}

static int write_send(struct bench_chan *chan, uint32_t seq)
{
	struct bench_qp *q = to_qp(chan);
	bool spin = chan->kind->variant & NO_POLL;
	int ret = bench_qp_drain(q, (unsigned int)chan->env->conf.depth - 1);

	if (ret)
		return ret;
	q->tx[q->size - 1] = write_mark(seq);
	ret = bench_qp_post(q, IBV_WR_RDMA_WRITE, q->size, spin);
	if (ret)
		return ret;
	return spin ? bench_qp_drain(q, 0) : 0;
}

static int write_try_recv(struct bench_chan *chan, uint32_t *seq)
{
	struct bench_qp *q = to_qp(chan);
	char mark;

	if (!(chan->kind->variant & NO_POLL)) {
		int n = bench_qp_reap(q);

		if (n < 0)
			return n;
	}
	/* Acquire: the rest of the message was placed before its last byte. */
	mark = __atomic_load_n(&q->rx[q->size - 1], __ATOMIC_ACQUIRE);
	if (mark == write_mark(BENCH_LAST))
		*seq = BENCH_LAST;
	else if (mark == write_mark(q->seq))
		*seq = q->seq++;
	else
		return 0;
	return 1;
}

/* A write that the target need not look for: it takes a receive. */
static int imm_send(struct bench_chan *chan, uint32_t seq)
{
	return bench_qp_send_as(to_qp(chan), IBV_WR_RDMA_WRITE_WITH_IMM, seq);
}

/* Tells a polling target that one-sided traffic has ended: in order behind it. */
static int send_marker(struct bench_qp *q)
{
	int ret = bench_qp_post(q, IBV_WR_SEND, 1, true);

	return ret ? ret : bench_qp_drain(q, 0);
}

static int await_marker(struct bench_qp *q)
{
	while (!q->arrived) {
		int n = bench_qp_reap(q);

		if (n < 0)
			return n;
		if (!n && bench_expired(&q->spins, q->deadline))
			return -ETIMEDOUT;
	}
	q->arrived--;
	q->unposted++;
	return bench_qp_repost(q);
}

/* Sleeps until the client says that it has finished: the device works alone. */
static int await_control(struct bench_chan *chan, const struct bench_step *step)
{
	struct pollfd pfd = {.fd = chan->env->ctl.fd, .events = POLLIN};

	while (bench_now() < step->deadline)
		if (poll(&pfd, 1, 100) > 0)
			return 0;
	return -ETIMEDOUT;
}

static int read_ping(struct bench_chan *chan, struct bench_step *step)
{
	struct bench_qp *q = to_qp(chan);

	uint64_t t0, t1 = bench_now();

	while (step->done < step->count && t1 <= step->enough) {
		int ret = bench_qp_post(q, IBV_WR_RDMA_READ, q->size, true);

		if (!ret)
			ret = bench_qp_drain(q, 0);
		if (ret)
			return ret;
		t0 = t1;
		t1 = bench_now();
		step->sample[step->done++] = (double)(t1 - t0);
	}
	return chan->kind->variant & NO_POLL ? 0 : send_marker(q);
}

static int read_pong(struct bench_chan *chan, struct bench_step *step)
{
	if (chan->kind->variant & NO_POLL)
		return await_control(chan, step);
	return await_marker(to_qp(chan));
}

static int rc_tx(struct bench_chan *chan, struct bench_step *step)
{
	struct bench_qp *q = to_qp(chan);
	unsigned int depth = (unsigned int)chan->env->conf.depth;
	int ret;

	for (uint64_t i = 0; i < step->count; i++) {
		ret = bench_qp_drain(q, depth - 1);
		if (!ret)
			ret = bench_qp_post(q, opcode(q), step->size, i + 1 == step->count);
		if (ret)
			return ret;
	}
	ret = bench_qp_drain(q, 0);
	if (ret || opcode(q) == IBV_WR_SEND)
		return ret;
	return send_marker(q);
}

static int rc_rx(struct bench_chan *chan, struct bench_step *step)
{
	struct bench_qp *q = to_qp(chan);
	uint64_t t0 = bench_now();

	while (step->rx_msgs < step->count) {
		int n = bench_qp_reap(q);

		if (n < 0)
			return n;
		if (!n) {
			if (bench_expired(&q->spins, q->deadline))
				return -ETIMEDOUT;
			continue;
		}
		step->rx_msgs += q->arrived;
		q->unposted += q->arrived;
		q->arrived = 0;
		n = bench_qp_repost(q);
		if (n)
			return n;
	}
	step->rx_bytes = step->rx_msgs * step->size;
	step->rx_ns = bench_now() - t0;
	return 0;
}

static int one_sided_rx(struct bench_chan *chan, struct bench_step *step)
{
	uint64_t t0 = bench_now();
	int ret = await_marker(to_qp(chan));

	step->rx_msgs = step->count;
	step->rx_bytes = step->count * step->size;
	step->rx_ns = bench_now() - t0;
	return ret;
}

static size_t message_limit(const struct bench_env *env, const struct bench_kind *kind)
{
	(void)kind;
	return env->dev ? env->dev->port.max_msg_sz : SIZE_MAX;
}

#define QP_COMMON                                                                                  \
	.verbs = true, .open = bench_qp_open, .close = bench_qp_close, .max_size = message_limit
#define SEND_FUNCS                                                                                 \
	.prepare = bench_qp_prepare, .ping = bench_ping, .pong = bench_pong,                       \
	.send = bench_qp_send, .try_recv = bench_qp_try_recv
#define WRITE_FUNCS                                                                                \
	.prepare = write_prepare, .ping = bench_ping, .pong = bench_pong, .send = write_send,      \
	.try_recv = write_try_recv, .tx = rc_tx, .rx = one_sided_rx
#define READ_FUNCS                                                                                 \
	.full_trip = true, .prepare = bench_qp_prepare, .ping = read_ping, .pong = read_pong,      \
	.tx = rc_tx, .rx = one_sided_rx

const struct bench_kind bench_kind_rc = {
	.name = "rc",
	.help = "RC send and receive",
	.base = {"tcp"},
	.tests = BENCH_LAT | BENCH_BW,
	.variant = OP_SEND,
	QP_COMMON,
	SEND_FUNCS,
	.tx = rc_tx,
	.rx = rc_rx,
};

const struct bench_kind bench_kind_rc_write = {
	.name = "rc-write",
	.help = "RC RDMA write, both sides poll",
	.base = {"tcp"},
	.tests = BENCH_LAT | BENCH_BW,
	.variant = OP_WRITE,
	QP_COMMON,
	WRITE_FUNCS,
};

const struct bench_kind bench_kind_rc_write_spin = {
	.name = "rc-write-spin",
	.help = "RC RDMA write, the target only watches its memory (latency only)",
	.base = {"tcp"},
	.tests = BENCH_LAT,
	.variant = OP_WRITE | NO_POLL,
	QP_COMMON,
	WRITE_FUNCS,
};

const struct bench_kind bench_kind_rc_read = {
	.name = "rc-read",
	.help = "RC RDMA read, the target polls; latency is the full round trip",
	.base = {"tcp"},
	.tests = BENCH_LAT | BENCH_BW,
	.variant = OP_READ,
	QP_COMMON,
	READ_FUNCS,
};

const struct bench_kind bench_kind_rc_read_passive = {
	.name = "rc-read-passive",
	.help = "RC RDMA read from a process that sleeps (latency only, full round trip)",
	.base = {"tcp"},
	.tests = BENCH_LAT,
	.variant = OP_READ | NO_POLL,
	QP_COMMON,
	READ_FUNCS,
};

const struct bench_kind bench_kind_uc = {
	.name = "uc",
	.help = "UC send and receive; streams are paced by credits",
	.base = {"tcp"},
	.tests = BENCH_LAT | BENCH_BW,
	.variant = OP_SEND | ON_UC,
	.lossy = true,
	QP_COMMON,
	SEND_FUNCS,
	.tx = bench_credit_tx,
	.rx = bench_credit_rx,
};

const struct bench_kind bench_kind_uc_write = {
	.name = "uc-write",
	.help = "UC RDMA write, both sides poll",
	.base = {"tcp"},
	.tests = BENCH_LAT | BENCH_BW,
	.variant = OP_WRITE | ON_UC,
	QP_COMMON,
	WRITE_FUNCS,
};

const struct bench_kind bench_kind_rd = {
	.name = "rd",
	.help = "RD (Weft only) send and receive",
	.base = {"rc", "udp", "udp-gso"},
	.tests = BENCH_LAT | BENCH_BW,
	.variant = OP_SEND | ON_RD,
	QP_COMMON,
	SEND_FUNCS,
	.tx = rc_tx,
	.rx = rc_rx,
};

const struct bench_kind bench_kind_rd_write = {
	.name = "rd-write",
	.help = "RD (Weft only) RDMA write; latency with immediate data",
	.base = {"rc-write", "rc", "udp-gso"},
	.tests = BENCH_LAT | BENCH_BW,
	.variant = OP_WRITE | ON_RD,
	QP_COMMON,
	.prepare = bench_qp_prepare,
	.ping = bench_ping,
	.pong = bench_pong,
	.send = imm_send,
	.try_recv = bench_qp_try_recv,
	.tx = rc_tx,
	.rx = one_sided_rx,
};

const struct bench_kind bench_kind_rd_read = {
	.name = "rd-read",
	.help = "RD (Weft only) RDMA read, the target polls; latency is the full round trip",
	.base = {"rc-read", "rc", "udp-gso"},
	.tests = BENCH_LAT | BENCH_BW,
	.variant = OP_READ | ON_RD,
	QP_COMMON,
	READ_FUNCS,
};
