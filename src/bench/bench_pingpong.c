#include <errno.h>

#include "bench_pingpong.h"
#include "bench_time.h"

/* Long against any scheduling delay of the peer, so that a repeat means a loss. */
#define RESEND_NS (200 * BENCH_MS)

/* One answer to message seq. Answers to an earlier repeat of a message are dropped. */
static int await(struct bench_chan *chan, struct bench_step *step, uint32_t seq)
{
	const struct bench_kind *kind = chan->kind;
	uint32_t mask = bench_seq_mask(step->size), got, spins = 0;
	uint64_t resend = 0;
	int ret;

	for (;;) {
		ret = kind->try_recv(chan, &got);
		if (ret < 0)
			return ret;
		if (ret && (!kind->lossy || ((got ^ seq) & mask) == 0))
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
	for (uint64_t i = 0; i < step->count; i++) {
		uint32_t seq = step->seq0 + (uint32_t)i;
		uint64_t t0 = bench_now();
		int ret = chan->kind->send(chan, seq);

		if (!ret)
			ret = await(chan, step, seq);
		if (ret)
			return ret;
		step->sample[i] = (double)(bench_now() - t0);
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
	uint32_t last = step->seq0 + (uint32_t)step->count - 1, mask = bench_seq_mask(step->size);
	uint32_t seq, spins = 0;
	uint64_t n = 0;
	int ret;

	for (;;) {
		ret = kind->try_recv(chan, &seq);
		if (ret < 0)
			return ret;
		if (!ret) {
			if (bench_expired(&spins, step->deadline))
				return -ETIMEDOUT;
			continue;
		}
		ret = kind->send(chan, seq);
		if (ret)
			return ret;
		n++;
		/* With losses, n may be more than count when the last one comes; short
		 * messages cannot carry a whole number, so n must have got near it too. */
		if (kind->lossy ? n >= step->count && ((seq ^ last) & mask) == 0 : n == step->count)
			break;
	}
	return kind->lossy ? linger(chan, step) : 0;
}
