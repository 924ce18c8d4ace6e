/* The server's side: does what the client's control messages say. */
#include <errno.h>
#include <string.h>

#include "bench_idle.h"
#include "bench_peers.h"
#include "bench_step.h"
#include "bench_time.h"

#define MAX_CHANS      32
#define CLIENT_GONE_MS (600 * 1000)

struct server {
	struct bench_env *env;
	struct bench_watch *watch;
	struct bench_peers *peers;
	struct bench_chan *chan[MAX_CHANS];
};

static struct bench_chan **slot(struct server *s, const char *kind)
{
	for (int i = 0; i < MAX_CHANS; i++)
		if (s->chan[i] && !strcmp(s->chan[i]->kind->name, kind))
			return &s->chan[i];
	return NULL;
}

static int reply(struct server *s, uint32_t op, int status)
{
	struct bench_msg msg = {.op = op, .status = status};

	return bench_ctl_send(&s->env->ctl, &msg);
}

static int on_open(struct server *s, const struct bench_msg *msg)
{
	const struct bench_kind *kind = bench_kind_find(msg->kind);
	struct bench_chan **free_slot = NULL;
	int ret = kind ? 0 : -EINVAL, err;

	for (int i = 0; i < MAX_CHANS && !free_slot; i++)
		if (!s->chan[i])
			free_slot = &s->chan[i];
	if (!ret && !free_slot)
		ret = -EMFILE;
	if (!ret && kind->verbs)
		ret = bench_dev_get(s->env);
	err = reply(s, BENCH_OP_READY, ret);
	if (err || ret || msg->status)
		return err;
	ret = kind->open(s->env, kind, free_slot);
	if (ret)
		*free_slot = NULL;
	return reply(s, BENCH_OP_RESULT, ret);
}

static int on_close(struct server *s, const struct bench_msg *msg)
{
	struct bench_chan **chan = slot(s, msg->kind);

	if (chan) {
		(*chan)->kind->close(*chan);
		*chan = NULL;
	}
	return reply(s, BENCH_OP_RESULT, 0);
}

/* A step, as bench_step.c leads it: READY, the traffic, then DONE and RESULT. In a
 * stream the result goes out first: the client's clock runs until it has it. */
static int on_step(struct server *s, const struct bench_msg *msg)
{
	struct bench_chan **slotp = slot(s, msg->kind), *chan = slotp ? *slotp : NULL;
	struct bench_msg result = {.op = BENCH_OP_RESULT}, done;
	struct bench_step step = {.size = msg->arg[0],
				  .count = msg->arg[1],
				  .seq0 = (uint32_t)msg->arg[2],
				  .deadline = bench_now() + s->env->conf.step_ms * BENCH_MS};
	int wait_ms = (int)s->env->conf.step_ms + 5000;
	int ret = chan ? chan->kind->prepare(chan, &step) : -ENOENT, err;

	err = reply(s, BENCH_OP_READY, ret);
	if (err)
		return err;
	if (!ret)
		ret = msg->op == BENCH_OP_LAT ? chan->kind->pong(chan, &step)
					      : chan->kind->rx(chan, &step);
	result.status = ret;
	result.arg[0] = step.rx_msgs;
	result.arg[1] = step.rx_bytes;
	result.arg[2] = step.rx_ns;
	if (msg->op == BENCH_OP_BW) {
		err = bench_ctl_send(&s->env->ctl, &result);
		return err ? err : bench_ctl_recv(&s->env->ctl, &done, wait_ms);
	}
	err = bench_ctl_recv(&s->env->ctl, &done, wait_ms);
	return err ? err : bench_ctl_send(&s->env->ctl, &result);
}

static int dispatch(struct server *s, const struct bench_msg *msg)
{
	switch (msg->op) {
	case BENCH_OP_OPEN:
		return on_open(s, msg);
	case BENCH_OP_CLOSE:
		return on_close(s, msg);
	case BENCH_OP_LAT:
	case BENCH_OP_BW:
		return on_step(s, msg);
	case BENCH_OP_PEERS:
	case BENCH_OP_TOUCH:
	case BENCH_OP_SNAP:
		return bench_peers_serve(s->env, &s->peers, msg);
	case BENCH_OP_IDLE:
		return bench_idle_serve(s->env, s->watch, msg);
	default:
		return -EPROTO;
	}
}

static int hello(struct bench_env *env)
{
	struct bench_msg msg;
	int ret = bench_ctl_expect(&env->ctl, BENCH_OP_HELLO, &msg, 10000);

	if (ret)
		return ret;
	memcpy(&env->conf, msg.arg, sizeof(env->conf));
	return bench_ctl_send(&env->ctl, &msg);
}

int bench_serve(struct bench_env *env, struct bench_watch *watch)
{
	struct server s = {.env = env, .watch = watch};
	struct bench_msg msg;
	int ret = hello(env);

	while (!ret) {
		ret = bench_ctl_recv(&env->ctl, &msg, CLIENT_GONE_MS);
		if (ret || msg.op == BENCH_OP_BYE)
			break;
		ret = dispatch(&s, &msg);
	}
	for (int i = 0; i < MAX_CHANS; i++)
		if (s.chan[i])
			s.chan[i]->kind->close(s.chan[i]);
	bench_peers_free(s.peers);
	return ret;
}
