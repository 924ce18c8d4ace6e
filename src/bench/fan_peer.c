/* The peers' side: does what the root's control messages say, until it says goodbye or is gone.
 * What comes over the control connection is checked: anybody may connect to a server. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench_time.h"
#include "fan.h"

#define HELLO_MS     10000
#define ROOT_GONE_MS (600 * 1000)
#define STEP_MS      120000
#define CHECK_EVERY  1024         /* empty polls between two looks at the control connection */
#define SPIN_NS      (100 * 1000) /* sleepy peers: how long one waits before it sleeps */
#define NAP_US       20

struct peer {
	struct bench_env *env;
	struct fan_node node;
	bool open;
	uint64_t *time; /* stage 2: [round * active + end] */
	uint64_t rounds;
};

static int reply(struct peer *p, int status, uint64_t a, uint64_t b)
{
	struct bench_msg msg = {.op = BENCH_OP_RESULT, .status = status, .arg = {a, b}};

	return bench_ctl_send(&p->env->ctl, &msg);
}

static int on_open(struct peer *p, const struct bench_msg *msg)
{
	const struct fan_type *type = fan_type_find(msg->kind);
	uint64_t n = msg->arg[0], first = msg->arg[1], stride = msg->arg[2], room = msg->arg[3];
	struct bench_msg ready = {.op = BENCH_OP_READY};
	int ret = 0, err;

	if (!type || type->why || p->open || !n || n > FAN_MAX_N || first > FAN_MAX_N ||
	    stride > FAN_MAX_N || first + (n - 1) * stride >= FAN_MAX_N || !room ||
	    room > FAN_MAX_SIZE)
		ret = -EINVAL;
	if (!ret) {
		p->node = (struct fan_node){.first = (unsigned int)first,
					    .stride = (unsigned int)stride,
					    .sleepy = msg->arg[4]};
		p->node.mgid.raw[10] = p->node.mgid.raw[11] = 0xff;
		p->node.mgid.raw[12] = 239;
		for (int i = 0; i < 3; i++)
			p->node.mgid.raw[13 + i] = (uint8_t)(msg->arg[5] >> (8 * i));
		ret = fan_node_make(&p->node, p->env, type, (unsigned int)n, room);
	}
	if (ret)
		fan_node_free(&p->node);
	ready.status = ret;
	err = bench_ctl_send(&p->env->ctl, &ready);
	if (err || ret)
		return err;
	p->node.deadline = bench_now() + STEP_MS * BENCH_MS;
	err = fan_node_join(&p->node, &p->env->ctl, 0, 1, (unsigned int)n);
	p->open = !err;
	if (err)
		fan_node_free(&p->node);
	return 0;
}

/* ---- answers ---- */

static unsigned int number(const struct fan_node *node, unsigned int k)
{
	return node->first + k * node->stride;
}

/* So that a root with one queue pair knows who has sent this. */
static void stamp(const struct fan_node *node, unsigned int k, char *msg)
{
	uint16_t who = htole16((uint16_t)number(node, k));

	memcpy(msg, &who, node->size < sizeof(who) ? node->size : sizeof(who));
}

static int answer(struct fan_node *node, unsigned int k)
{
	char *msg = fan_msg(node, 1 + k);
	struct fan_req req = {.opcode = IBV_WR_SEND, .local = msg, .len = node->size};

	if (node->mode == FAN_STAGE2 || node->type->func == FAN_WRITE)
		return fan_write(node, k, msg, number(node, k));
	if (fan_is_datagram(node->type))
		stamp(node, k, msg);
	return fan_post(node, k, &req);
}

/* Stage 2: the root has said go. */
static int read_root(struct fan_node *node, unsigned int k)
{
	struct fan_end *end = &node->end[k];
	struct fan_req req = {
		.opcode = IBV_WR_RDMA_READ,
		.local = fan_msg(node, 1 + k),
		.len = node->size,
		/* The root's slot 0, seen from the one of this peer. */
		.remote = end->addr.vaddr - (1ull + number(node, k)) * node->slot,
		.signal = true,
		.id = k,
	};

	end->since = bench_now();
	return fan_post(node, k, &req);
}

static int was_read(struct peer *p, unsigned int k)
{
	struct fan_end *end = &p->node.end[k];

	if (end->done < p->rounds)
		p->time[end->done * p->node.active + k] = bench_now() - end->since;
	end->done++;
	return answer(&p->node, k);
}

/* A message for end k is there. */
static int arrived(struct fan_node *node, unsigned int k)
{
	return node->mode == FAN_STAGE2 ? read_root(node, k) : answer(node, k);
}

static int completed(struct peer *p, const struct ibv_wc *wc)
{
	struct fan_node *node = &p->node;
	unsigned int i = FAN_OF(wc->wr_id);
	int ret = 0;

	if (wc->wr_id & FAN_RECV) {
		if (i - 1 < node->active)
			ret = arrived(node, i - 1);
		/* The answer goes out first. */
		return ret ? ret : fan_refill(node, i);
	}
	if (wc->opcode == IBV_WC_RDMA_READ && node->mode == FAN_STAGE2)
		ret = was_read(p, i);
	return ret;
}

/* How many marks have changed, or -errno. */
static int look_at_memory(struct fan_node *node)
{
	int n = 0;

	for (unsigned int k = 0; k < node->active; k++) {
		/* Acquire: the rest of the message was placed before its last byte. */
		char mark = __atomic_load_n(fan_mark(node, fan_msg(node, 1 + k)), __ATOMIC_ACQUIRE);

		if (mark == node->end[k].mark)
			continue;
		node->end[k].mark = mark;
		int ret = arrived(node, k);

		if (ret)
			return ret;
		n++;
	}
	return n;
}

static int turn(struct peer *p)
{
	struct ibv_wc wc;
	int n = 0, ret;

	if (p->node.notice == FAN_BY_MEMORY) {
		n = look_at_memory(&p->node);
		if (n < 0)
			return n;
	}
	while ((ret = fan_take(&p->node, &wc)) > 0) {
		ret = completed(p, &wc);
		if (ret)
			return ret;
		n++;
	}
	return ret < 0 ? ret : n;
}

/* ---- waiting ---- */

/* Others need the core: sleeps until something completes, or the root speaks. */
static int doze(struct peer *p)
{
	struct pollfd fd[2] = {{.fd = p->env->ctl.fd, .events = POLLIN}, {.events = POLLIN}};
	struct ibv_cq *cq;
	void *ctx;
	int n;

	if (p->node.notice != FAN_BY_RECV) {
		/* Nothing completes here; memory has to be looked at. */
		usleep(NAP_US);
		return 0;
	}
	fd[1].fd = p->node.channel->fd;
	if (ibv_req_notify_cq(p->node.cq, 0))
		return -EIO;
	n = turn(p);
	if (n)
		return n < 0 ? n : 0;
	poll(fd, 2, 100);
	if (!(fd[1].revents & POLLIN))
		return 0;
	if (ibv_get_cq_event(p->node.channel, &cq, &ctx))
		return -EIO;
	ibv_ack_cq_events(cq, 1);
	return 0;
}

/* Until the root says that the step is over. */
static int echo(struct peer *p)
{
	uint64_t quiet = bench_now();
	uint32_t empty = 0;

	for (;;) {
		int n = turn(p);

		if (n < 0)
			return n;
		if (n) {
			quiet = p->node.sleepy ? bench_now() : 0;
			continue;
		}
		bench_yield(&empty);
		if (p->node.sleepy && bench_now() - quiet > SPIN_NS) {
			n = doze(p);
			if (n < 0)
				return n;
		} else if (empty % CHECK_EVERY) {
			continue;
		}
		if (bench_ctl_readable(&p->env->ctl))
			return 0;
		if (bench_now() > p->node.deadline)
			return -ETIMEDOUT;
	}
}

/* ---- steps ---- */

static int check_step(const struct peer *p, const struct bench_msg *msg)
{
	if (!p->open)
		return -ENOENT;
	if (msg->arg[0] >= FAN_MODES || !msg->arg[1] || msg->arg[1] > p->node.room ||
	    msg->arg[2] > p->node.n || msg->arg[3] > FAN_MAX_TIMES / p->node.n)
		return -EINVAL;
	if (msg->arg[0] == FAN_STAGE2 && p->node.type->func != FAN_READ)
		return -EINVAL;
	return msg->arg[4] > STEP_MS * BENCH_MS ? -EINVAL : 0;
}

static int send_times(struct peer *p)
{
	size_t n = (size_t)(p->rounds * p->node.active);

	for (size_t i = 0; i < n; i++)
		p->time[i] = htobe64(p->time[i]);
	return bench_ctl_write(&p->env->ctl, p->time, n * sizeof(*p->time));
}

/* READY, the traffic, then DONE and RESULT; in stage 2 the times follow it. */
static int on_step(struct peer *p, const struct bench_msg *msg)
{
	struct bench_msg ready = {.op = BENCH_OP_READY, .status = check_step(p, msg)}, done;
	enum fan_mode mode = (enum fan_mode)msg->arg[0];
	uint64_t bytes = 0, msgs = 0;
	int ret, err;

	p->rounds = msg->arg[3];
	if (!ready.status)
		ready.status =
			fan_node_prepare(&p->node, mode, msg->arg[1], (unsigned int)msg->arg[2]);
	if (!ready.status && mode == FAN_STAGE2) {
		p->time = calloc(p->rounds * p->node.active + 1, sizeof(*p->time));
		ready.status = p->time ? 0 : -ENOMEM;
	}
	err = bench_ctl_send(&p->env->ctl, &ready);
	if (err || ready.status)
		return err;
	p->node.deadline = bench_now() + STEP_MS * BENCH_MS;
	ret = mode == FAN_STREAM ? fan_stream(&p->node, msg->arg[4], &bytes, &msgs) : 0;
	if (!ret)
		ret = echo(p);
	err = bench_ctl_expect(&p->env->ctl, BENCH_OP_DONE, &done, STEP_MS);
	if (!err)
		err = reply(p, ret, bytes, msgs);
	if (!err && !ret && mode == FAN_STAGE2)
		err = send_times(p);
	free(p->time);
	p->time = NULL;
	return err;
}

static int on_close(struct peer *p)
{
	fan_node_free(&p->node);
	p->open = false;
	return reply(p, 0, 0, 0);
}

static int hello(struct bench_env *env)
{
	struct bench_msg msg;
	bool same;
	int ret = bench_ctl_recv(&env->ctl, &msg, HELLO_MS);

	if (ret || msg.op != BENCH_OP_HELLO)
		return ret ? ret : -EPROTO;
	same = !strcmp(msg.kind, FAN_PROTOCOL);
	memset(&msg, 0, sizeof(msg));
	msg.op = BENCH_OP_HELLO;
	strcpy(msg.kind, FAN_PROTOCOL);
	/* Also to one that speaks something else: it can then say what. */
	ret = bench_ctl_send(&env->ctl, &msg);
	return ret || same ? ret : -EPROTONOSUPPORT;
}

int fan_serve(struct bench_env *env, bool *known)
{
	struct peer p = {.env = env};
	struct bench_msg msg;
	int ret = hello(env);

	*known = !ret;
	while (!ret) {
		ret = bench_ctl_recv(&env->ctl, &msg, ROOT_GONE_MS);
		if (ret || msg.op == BENCH_OP_BYE)
			break;
		if (msg.op == FAN_OP_OPEN)
			ret = on_open(&p, &msg);
		else if (msg.op == FAN_OP_STEP)
			ret = on_step(&p, &msg);
		else
			ret = msg.op == FAN_OP_CLOSE ? on_close(&p) : -EPROTO;
	}
	fan_node_free(&p.node);
	free(p.time);
	return ret;
}
