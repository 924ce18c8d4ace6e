#include <errno.h>

#include "bench_pingpong.h"
#include "bench_time.h"

/* Long against any scheduling delay of the peer, so that a repeat means a loss. */
#define RESEND_NS (200 * BENCH_MS)

static bool is_answer(const struct bench_step *step, uint32_t got, uint32_t seq)
{
	if (seq == BENCH_LAST || got == BENCH_LAST)
		return seq == got;
	return got == seq % bench_seq_mask(step->size);
}

/* One answer to message seq. Answers to an earlier repeat of a message are dropped. */
static int await(struct bench_chan *chan, struct bench_step *step, uint32_t seq)
{
	const struct bench_kind *kind = chan->kind;
	uint32_t got, spins = 0;
	uint64_t resend = 0;
	int ret;

	for (;;) {
		ret = kind->try_recv(chan, &got);
		if (ret < 0)
			return ret;
		if (ret && (!kind->lossy || is_answer(step, got, seq)))
			return 0;
		if (ret || (++spins & 1023))
			continue;

		uint64_t now = bench_now();

		if (now > step->deadline)
			return -ETIMEDOUT;
		if (!resend)
			resend = now + RESEND_NS;
		if (!kind->lossy || now < resend)
			continue;
		ret = kind->send(chan, seq);
		if (ret)
			return ret;
		step->lost++;
		resend = now + RESEND_NS;
	}
}

int bench_ping(struct bench_chan *chan, struct bench_step *step)
{
	uint64_t t1 = bench_now();
	bool last = false;

	for (uint64_t i = 0; !last; i++) {
		uint64_t t0 = t1;
		uint32_t seq = step->seq0 + (uint32_t)i;
		int ret;

		last = i + 1 >= step->count || t0 > step->enough;
		if (last)
			seq = BENCH_LAST;
		ret = chan->kind->send(chan, seq);
		if (!ret)
			ret = await(chan, step, seq);
		if (ret)
			return ret;
		t1 = bench_now();
		step->sample[step->done++] = (double)(t1 - t0);
	}
	return 0;
}

/* The client repeats a message whose answer was lost, the last one too: answer until
 * it says on the control connection that it has finished. */
static int linger(struct bench_chan *chan, struct bench_step *step)
{
	uint32_t seq;

	while (!bench_ctl_readable(&chan->env->ctl)) {
		int ret = chan->kind->try_recv(chan, &seq);

		if (ret > 0)
			ret = chan->kind->send(chan, seq);
		if (ret < 0)
			return ret;
		if (bench_now() > step->deadline)
			return -ETIMEDOUT;
	}
	return 0;
}

int bench_pong(struct bench_chan *chan, struct bench_step *step)
{
	const struct bench_kind *kind = chan->kind;
	uint32_t seq = 0, spins = 0;
	int ret;

	while (seq != BENCH_LAST) {
		ret = kind->try_recv(chan, &seq);
		if (ret > 0)
			ret = kind->send(chan, seq);
		else if (!ret && bench_expired(&spins, step->deadline))
			ret = -ETIMEDOUT;
		if (ret < 0)
			return ret;
	}
	return kind->lossy ? linger(chan, step) : 0;
}
