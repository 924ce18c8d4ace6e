/* memcpy as a kind of its own: the limit of any stack that copies a message once. It runs
 * in the client alone and in the same rounds as the others, so that the figure belongs to
 * the same moments of the same machine. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench_kind.h"
#include "bench_time.h"

struct copy_chan {
	struct bench_chan chan; /* first */
	char *src, *dst;
};

static void copy_close(struct bench_chan *chan)
{
	struct copy_chan *c = (struct copy_chan *)chan;

	free(c->src);
	free(c->dst);
	free(c);
}

static int copy_open(struct bench_env *env, const struct bench_kind *kind, struct bench_chan **out)
{
	size_t len = (env->conf.max_size + 4095) / 4096 * 4096;
	struct copy_chan *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->chan.kind = kind;
	c->chan.env = env;
	c->src = aligned_alloc(4096, len);
	c->dst = aligned_alloc(4096, len);
	if (!c->src || !c->dst) {
		copy_close(&c->chan);
		return -ENOMEM;
	}
	memset(c->src, 0x5a, len);
	memset(c->dst, 0x5a, len);
	*out = &c->chan;
	return 0;
}

static int copy_prepare(struct bench_chan *chan, const struct bench_step *step)
{
	(void)chan;
	(void)step;
	return 0;
}

static int copy_tx(struct bench_chan *chan, struct bench_step *step)
{
	struct copy_chan *c = (struct copy_chan *)chan;
	uint32_t spins = 0;

	for (uint64_t i = 0; i < step->count; i++) {
		memcpy(c->dst, c->src, step->size);
		/* Or the compiler may find out that nobody reads it. */
		__asm__ volatile("" : : "r"(c->dst) : "memory");
		if (bench_expired(&spins, step->deadline))
			return -ETIMEDOUT;
	}
	return 0;
}

static int copy_rx(struct bench_chan *chan, struct bench_step *step)
{
	(void)chan;
	step->rx_msgs = step->count;
	step->rx_bytes = step->count * step->size;
	return 0;
}

const struct bench_kind bench_kind_memcpy = {
	.name = "memcpy",
	.help = "no transport at all: copies each message once (streams only)",
	.tests = BENCH_BW,
	.open = copy_open,
	.close = copy_close,
	.prepare = copy_prepare,
	.tx = copy_tx,
	.rx = copy_rx,
};
