/* A paced stream, for types that may drop messages.
 *
 * UD and UC drop what finds no receive, so a stream at full speed would measure a flood.
 * It is paced by credits instead: the receiver returns the number of messages that have
 * arrived in a message of its own, four times in each window, and the sender keeps within
 * the window. A sender that hears nothing for STALL_NS takes what is in flight for lost.
 */
#include <errno.h>
#include <string.h>

#include "bench_time.h"
#include "bench_verbs.h"

#define STALL_NS   (50 * BENCH_MS)
#define QUIET_NS   (100 * BENCH_MS)
#define WINDOW_MIN 4 /* messages, however long */

struct window {
	uint64_t sent, arrived, written_off, limit;
	uint64_t stall; /* when to write off; 0: the clock does not run */
};

static struct bench_qp *to_qp(struct bench_chan *chan)
{
	return (struct bench_qp *)chan;
}

/* Messages in flight; both sides work it out alike. Bytes are limited only where they
 * would pile up in the socket buffer of a datagram socket. */
static uint64_t window_limit(const struct bench_qp *q, size_t size)
{
	const struct bench_conf *conf = &q->chan.env->conf;
	uint64_t limit = q->ah ? conf->ud_window / size : conf->depth;

	if (limit > conf->depth)
		limit = conf->depth;
	return limit < WINDOW_MIN ? WINDOW_MIN : limit;
}

/* Takes the credits that have come. They are cumulative and all land in the same room,
 * so that the last one is the one to read. */
static int take_credits(struct bench_qp *q, struct window *w)
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
	/* A credit of an earlier stream may come late and name more than was sent. */
	if (arrived > w->arrived && arrived <= w->sent) {
		w->arrived = arrived;
		w->stall = 0;
	}
	/* What was written off may arrive late. */
	if (w->written_off > w->sent - w->arrived)
		w->written_off = w->sent - w->arrived;
	return bench_qp_repost(q);
}

/* Waits until one more message fits into the window. */
static int window_wait(struct bench_qp *q, struct window *w)
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

int bench_credit_tx(struct bench_chan *chan, struct bench_step *step)
{
	unsigned int depth = (unsigned int)chan->env->conf.depth;
	struct bench_qp *q = to_qp(chan);
	struct window w = {.limit = window_limit(q, step->size)};
	int ret = 0;

	while (w.sent < step->count) {
		ret = window_wait(q, &w);
		if (!ret)
			ret = bench_qp_drain(q, depth - 1);
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
static bool over(struct bench_qp *q, uint64_t last, uint64_t *done)
{
	uint64_t now = bench_now();

	if (!*done && bench_ctl_readable(&q->chan.env->ctl))
		*done = now;
	return *done && now > *done + QUIET_NS && now > last + QUIET_NS;
}

int bench_credit_rx(struct bench_chan *chan, struct bench_step *step)
{
	struct bench_qp *q = to_qp(chan);
	uint64_t every = window_limit(q, step->size) / 4;
	uint64_t t0 = bench_now(), last = t0, done = 0, credit = every;
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
			if (over(q, last, &done))
				break;
			continue;
		}
		last = bench_now();
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
