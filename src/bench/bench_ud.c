/* UD: datagrams behind verbs.
 *
 * A stream is paced by credits, so that its goodput is not that of a flood: the receiver
 * returns the number of messages that have arrived in a datagram of its own, four times in
 * each window, and the sender keeps within a window of messages and bytes. A sender that
 * hears nothing for STALL_NS takes what is in flight for lost.
 */
#include <errno.h>
#include <string.h>

#include "bench_pingpong.h"
#include "bench_time.h"
#include "bench_verbs.h"

#define STALL_NS   (50 * BENCH_MS)
#define QUIET_NS   (20 * BENCH_MS)
#define WINDOW_MIN 4 /* messages, however long */

struct ud_window {
	uint64_t sent, arrived, written_off, limit;
	uint64_t stall; /* when to write off; 0: the clock does not run */
};

static struct bench_qp *to_qp(struct bench_chan *chan)
{
	return (struct bench_qp *)chan;
}

/* Messages in flight; both sides work it out alike. */
static uint64_t window_limit(const struct bench_conf *conf, size_t size)
{
	uint64_t limit = conf->ud_window / size;

	if (limit > conf->depth)
		limit = conf->depth;
	return limit < WINDOW_MIN ? WINDOW_MIN : limit;
}

/* Takes the credits that have come. They are cumulative and all land in the same room,
 * so that the last one is the one to read. */
static int take_credits(struct bench_qp *q, struct ud_window *w)
{
	uint64_t arrived;
	int n = bench_qp_reap(q);

	if (n < 0)
		return n;
	if (!q->arrived)
		return 0;
	q->unposted += q->arrived;
	q->arrived = 0;
	memcpy(&arrived, q->rx, sizeof(arrived));
	if (arrived > w->arrived) {
		w->arrived = arrived;
		w->stall = 0;
	}
	/* What was written off may arrive late. */
	if (w->written_off > w->sent - w->arrived)
		w->written_off = w->sent - w->arrived;
	return bench_qp_repost(q);
}

/* Waits until one more message fits into the window. */
static int window_wait(struct bench_qp *q, struct ud_window *w)
{
	uint32_t spins = 0;

	while (w->sent - w->arrived - w->written_off >= w->limit) {
		int ret = take_credits(q, w);

		if (ret)
			return ret;
		if (++spins & 255)
			continue;

		uint64_t now = bench_now();

		if (now > q->deadline)
			return -ETIMEDOUT;
		if (!w->stall)
			w->stall = now + STALL_NS;
		if (now > w->stall) {
			w->written_off = w->sent - w->arrived;
			w->stall = 0;
		}
	}
	return 0;
}

static int ud_tx(struct bench_chan *chan, struct bench_step *step)
{
	const struct bench_conf *conf = &chan->env->conf;
	struct bench_qp *q = to_qp(chan);
	struct ud_window w = {.limit = window_limit(conf, step->size)};
	int ret = 0;

	while (w.sent < step->count) {
		ret = window_wait(q, &w);
		if (!ret)
			ret = bench_qp_drain(q, (unsigned int)conf->depth - 1);
		if (!ret)
			ret = bench_qp_post(q, IBV_WR_SEND, step->size, w.sent + 1 == step->count);
		if (ret)
			return ret;
		w.sent++;
	}
	return bench_qp_drain(q, 0);
}

static int give_credit(struct bench_qp *q, uint64_t arrived)
{
	int ret = bench_qp_drain(q, (unsigned int)q->chan.env->conf.depth - 1);

	if (ret)
		return ret;
	memcpy(q->tx, &arrived, sizeof(arrived));
	return bench_qp_post(q, IBV_WR_SEND, sizeof(arrived), false);
}

/* The client has finished, and since then nothing came for a while. */
static bool over(struct bench_qp *q, uint64_t last)
{
	return bench_now() > last + QUIET_NS && bench_ctl_readable(&q->chan.env->ctl);
}

static int ud_rx(struct bench_chan *chan, struct bench_step *step)
{
	struct bench_qp *q = to_qp(chan);
	uint64_t every = window_limit(&chan->env->conf, step->size) / 4;
	uint64_t t0 = 0, last = 0, credit = every;
	uint32_t spins = 0;

	while (step->rx_msgs < step->count) {
		int n = bench_qp_reap(q);

		if (n < 0)
			return n;
		if (!q->arrived) {
			if (++spins & 1023)
				continue;
			if (bench_now() > q->deadline)
				return -ETIMEDOUT;
			if (over(q, last))
				break;
			continue;
		}
		last = bench_now();
		if (!t0)
			t0 = last;
		step->rx_msgs += q->arrived;
		q->unposted += q->arrived;
		q->arrived = 0;
		n = bench_qp_repost(q);
		if (!n && step->rx_msgs >= credit) {
			credit = step->rx_msgs + every;
			n = give_credit(q, step->rx_msgs);
		}
		if (n)
			return n;
	}
	step->rx_bytes = step->rx_msgs * step->size;
	step->rx_ns = last - t0;
	return 0;
}

static size_t ud_limit(const struct bench_env *env, const struct bench_kind *kind)
{
	(void)kind;
	if (env->conf.ud_max)
		return env->conf.ud_max;
	/* enum ibv_mtu: 1 is 256 bytes, and each step doubles it. */
	return env->dev ? 128u << env->dev->port.active_mtu : SIZE_MAX;
}

const struct bench_kind bench_kind_ud = {
	.name = "ud",
	.help = "UD send and receive; streams are paced by credits",
	.base = {"udp", "udp-conn", "udp-gso"},
	.tests = BENCH_LAT | BENCH_BW,
	.verbs = true,
	.lossy = true,
	.open = bench_qp_open,
	.close = bench_qp_close,
	.max_size = ud_limit,
	.prepare = bench_qp_prepare,
	.ping = bench_ping,
	.pong = bench_pong,
	.send = bench_qp_send,
	.try_recv = bench_qp_try_recv,
	.tx = ud_tx,
	.rx = ud_rx,
};
