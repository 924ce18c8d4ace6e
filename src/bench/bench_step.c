#include <stdio.h>
#include <string.h>

#include "bench_step.h"
#include "bench_time.h"

/* The other side has the same deadline; it may take a moment to say that it gave up. */
static int patience(const struct bench_env *env)
{
	return (int)env->conf.step_ms + 5000;
}

static struct bench_msg message(uint32_t op, const struct bench_kind *kind)
{
	struct bench_msg msg = {.op = op};

	snprintf(msg.kind, sizeof(msg.kind), "%s", kind->name);
	return msg;
}

int bench_chan_open(struct bench_env *env, const struct bench_kind *kind, struct bench_chan **out)
{
	struct bench_msg msg = message(BENCH_OP_OPEN, kind);
	int ret, theirs;

	*out = NULL;
	/* A side without a device must not leave the other in the middle of the exchange,
	 * so both say first whether they have one. */
	msg.status = kind->verbs && !env->dev ? bench_dev_get(env) : 0;
	ret = bench_ctl_send(&env->ctl, &msg);
	if (ret)
		return ret;
	theirs = bench_ctl_expect(&env->ctl, BENCH_OP_READY, NULL, 30000);
	if (msg.status || theirs)
		return msg.status ? msg.status : theirs;
	ret = kind->open(env, kind, out);
	theirs = bench_ctl_expect(&env->ctl, BENCH_OP_RESULT, NULL, 30000);
	if (!ret && theirs) {
		kind->close(*out);
		*out = NULL;
	}
	return ret ? ret : theirs;
}

void bench_chan_close(struct bench_chan *chan)
{
	struct bench_env *env = chan->env;
	struct bench_msg msg = message(BENCH_OP_CLOSE, chan->kind);

	chan->kind->close(chan);
	if (!bench_ctl_send(&env->ctl, &msg))
		bench_ctl_expect(&env->ctl, BENCH_OP_RESULT, NULL, 30000);
}

/* Announces a step and waits until the server's side is prepared too. */
static int begin(struct bench_chan *chan, uint32_t op, struct bench_step *step)
{
	struct bench_env *env = chan->env;
	struct bench_msg msg = message(op, chan->kind);
	int ret, theirs;

	step->deadline = bench_now() + env->conf.step_ms * BENCH_MS;
	msg.arg[0] = step->size;
	msg.arg[1] = step->count;
	msg.arg[2] = step->seq0;
	ret = bench_ctl_send(&env->ctl, &msg);
	if (ret)
		return ret;
	ret = chan->kind->prepare(chan, step);
	theirs = bench_ctl_expect(&env->ctl, BENCH_OP_READY, NULL, patience(env));
	return ret ? ret : theirs;
}

/* Tells how it went here and hears how it went there. */
static int finish(struct bench_chan *chan, struct bench_step *step, int ret)
{
	struct bench_env *env = chan->env;
	struct bench_msg msg = message(BENCH_OP_DONE, chan->kind);
	int err;

	msg.status = ret;
	err = bench_ctl_send(&env->ctl, &msg);
	if (!err)
		err = bench_ctl_expect(&env->ctl, BENCH_OP_RESULT, &msg, patience(env));
	step->rx_msgs = msg.arg[0];
	step->rx_bytes = msg.arg[1];
	step->rx_ns = msg.arg[2];
	return ret ? ret : err;
}

int bench_step_lat(struct bench_chan *chan, struct bench_step *step)
{
	int ret = begin(chan, BENCH_OP_LAT, step);

	step->enough = bench_now() + step->budget;
	if (!ret)
		ret = chan->kind->ping(chan, step);
	return finish(chan, step, ret);
}

int bench_step_bw(struct bench_chan *chan, struct bench_step *step, uint64_t *ns)
{
	int ret = begin(chan, BENCH_OP_BW, step);
	uint64_t t0 = bench_now();

	if (!ret)
		ret = chan->kind->tx(chan, step);
	ret = finish(chan, step, ret);
	/* Where messages may vanish, the sender's time is that of a flood, and the wait for
	 * those that do not come: what counts is the receiver's, until the last arrival. */
	*ns = chan->kind->lossy ? step->rx_ns : bench_now() - t0;
	return ret;
}
