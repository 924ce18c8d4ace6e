/* Node 0: leads the peers through the steps, and has the clock. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#include "bench_time.h"
#include "fan.h"

#define REPLY_MS 30000
#define STEP_NS  (60 * BENCH_S)
#define LOST_NS  (200 * BENCH_MS) /* long against any delay by a scheduler */

int fan_root_hello(struct fan_root *root)
{
	for (unsigned int k = 0; k < root->procs; k++) {
		struct bench_msg msg = {.op = BENCH_OP_HELLO, .kind = FAN_PROTOCOL};
		int ret = bench_ctl_send(&root->ctl[k], &msg);

		if (!ret)
			ret = bench_ctl_expect(&root->ctl[k], BENCH_OP_HELLO, &msg, REPLY_MS);
		if (ret)
			return ret;
		if (strcmp(msg.kind, FAN_PROTOCOL) != 0) {
			fprintf(stderr,
				"weft bench verbs: a peer speaks `%s`, not `%s`; use the same Weft "
				"on both hosts\n",
				msg.kind, FAN_PROTOCOL);
			return -EPROTO;
		}
	}
	return 0;
}

/* ---- opening a type ---- */

static int open_group(struct fan_node *node, uint32_t group)
{
	struct bench_addr to = {.lid = 0xc000};

	to.gid.raw[10] = to.gid.raw[11] = 0xff;
	to.gid.raw[12] = 239;
	for (int i = 0; i < 3; i++)
		to.gid.raw[13 + i] = (uint8_t)(group >> (8 * i));
	node->group = bench_ah_create(node->env, &to);
	return node->group ? 0 : -errno;
}

static int open_at(struct fan_root *root, unsigned int k, uint32_t group)
{
	struct fan_node *node = &root->node;
	struct bench_msg msg = {
		.op = FAN_OP_OPEN,
		.arg = {root->share[k], k, root->procs, node->room, root->sleepy, group},
	};
	int ret;

	snprintf(msg.kind, sizeof(msg.kind), "%s", node->type->name);
	ret = bench_ctl_send(&root->ctl[k], &msg);
	if (!ret)
		ret = bench_ctl_expect(&root->ctl[k], BENCH_OP_READY, NULL, REPLY_MS);
	if (!ret)
		ret = fan_node_join(node, &root->ctl[k], k, root->procs, root->share[k]);
	if (!ret)
		root->opened = k + 1;
	return ret;
}

/* Peer i is in process i % procs, so that any first n of them are spread over all processes. */
static void divide(struct fan_root *root, unsigned int n, unsigned int *share)
{
	for (unsigned int k = 0; k < root->procs; k++)
		share[k] = n / root->procs + (k < n % root->procs);
}

int fan_root_open(struct fan_root *root, const struct fan_type *type, unsigned int n, size_t room)
{
	uint32_t group;
	int ret;

	root->opened = 0;
	root->node = (struct fan_node){.root = true, .deadline = bench_now() + STEP_NS};
	/* An administrator's own groups are in 239.255/16. */
	if (getrandom(&group, sizeof(group), 0) < 0)
		return -errno;
	group = (group & 0xffff00) | 0x80 | (group & 0x3f);
	ret = fan_node_make(&root->node, &root->env, type, n, room);
	if (!ret && type->func == FAN_MCAST)
		ret = open_group(&root->node, group);
	divide(root, n, root->share);
	for (unsigned int k = 0; k < root->procs && !ret; k++)
		if (root->share[k])
			ret = open_at(root, k, group);
	if (ret)
		fan_root_close(root);
	return ret;
}

void fan_root_close(struct fan_root *root)
{
	struct bench_msg msg = {.op = FAN_OP_CLOSE};

	fan_node_free(&root->node);
	for (unsigned int k = 0; k < root->opened; k++)
		if (root->share[k] && !bench_ctl_send(&root->ctl[k], &msg))
			bench_ctl_expect(&root->ctl[k], BENCH_OP_RESULT, NULL, REPLY_MS);
	root->opened = 0;
}

void fan_root_bye(struct fan_root *root)
{
	struct bench_msg msg = {.op = BENCH_OP_BYE};

	for (unsigned int k = 0; k < root->procs; k++) {
		bench_ctl_send(&root->ctl[k], &msg);
		bench_ctl_close(&root->ctl[k]);
	}
	bench_dev_close(root->env.dev);
	root->env.dev = NULL;
}

int fan_root_check(struct fan_root *root)
{
	struct pollfd fd[FAN_MAX_PROCS];

	for (unsigned int k = 0; k < root->procs; k++)
		fd[k] = (struct pollfd){.fd = root->ctl[k].fd, .events = POLLIN};
	if (poll(fd, root->procs, 0) <= 0)
		return 0;
	return -ECONNRESET; /* dead, or it gave up: a peer that works says nothing */
}

/* ---- steps ---- */

int fan_root_begin(struct fan_root *root, const struct fan_step *step)
{
	unsigned int share[FAN_MAX_PROCS];
	struct bench_msg msg = {
		.op = FAN_OP_STEP,
		.arg = {step->mode, step->size, 0, step->rounds, step->budget},
	};
	int ret = 0;

	root->node.deadline = bench_now() + STEP_NS;
	divide(root, step->n, share);
	for (unsigned int k = 0; k < root->procs && !ret; k++) {
		msg.arg[2] = share[k];
		if (root->share[k])
			ret = bench_ctl_send(&root->ctl[k], &msg);
	}
	if (!ret)
		ret = fan_node_prepare(&root->node, step->mode, step->size, step->n);
	for (unsigned int k = 0; k < root->procs; k++) {
		int theirs = root->share[k] ? bench_ctl_expect(&root->ctl[k], BENCH_OP_READY, NULL,
							       REPLY_MS)
					    : 0;

		if (!ret)
			ret = theirs;
	}
	return ret;
}

int fan_root_finish(struct fan_root *root, uint64_t *bytes, uint64_t *msgs)
{
	struct bench_msg done = {.op = BENCH_OP_DONE}, result;
	int ret = 0;

	for (unsigned int k = 0; k < root->procs; k++)
		if (root->share[k])
			bench_ctl_send(&root->ctl[k], &done);
	for (unsigned int k = 0; k < root->procs; k++) {
		int err = root->share[k] ? bench_ctl_expect(&root->ctl[k], BENCH_OP_RESULT, &result,
							    REPLY_MS)
					 : 0;

		if (!ret)
			ret = err;
		if (!err && root->share[k] && bytes) {
			*bytes += result.arg[0];
			*msgs += result.arg[1];
		}
	}
	return ret;
}

/* Process k's times of stage 2, at their places in t; the round is the longest of them. */
static int take_times(struct fan_root *root, unsigned int k, const struct fan_step *step,
		      unsigned int share, size_t done, struct fan_times *t)
{
	uint64_t row[FAN_MAX_N];

	for (size_t r = 0; r < step->rounds; r++) {
		uint64_t *trip = t->trip + (t->rounds + r) * step->n;
		int ret = bench_ctl_read(&root->ctl[k], row, share * sizeof(row[0]), REPLY_MS);

		if (ret)
			return ret;
		for (unsigned int j = 0; j < share && r < done; j++) {
			uint64_t ns = be64toh(row[j]);

			if (!ns || ns > STEP_NS)
				return -EPROTO;
			trip[k + j * root->procs] = ns;
			if (t->round[t->rounds + r] < ns)
				t->round[t->rounds + r] = ns;
		}
	}
	return 0;
}

static int collect(struct fan_root *root, const struct fan_step *step, size_t done,
		   struct fan_times *t)
{
	unsigned int share[FAN_MAX_PROCS];
	int ret = 0;

	divide(root, step->n, share);
	for (size_t r = 0; r < done; r++)
		t->round[t->rounds + r] = 0;
	for (unsigned int k = 0; k < root->procs && !ret; k++)
		if (root->share[k])
			ret = take_times(root, k, step, share[k], done, t);
	if (!ret)
		t->rounds += done;
	return ret;
}

int fan_root_step(struct fan_root *root, const struct fan_step *step, struct fan_times *t)
{
	bool stage2 = step->mode == FAN_STAGE2;
	struct fan_plan plan = {
		.n = step->n,
		.msgs = root->node.type->func == FAN_MCAST ? 1 : step->n,
		.rounds = step->rounds,
		.seq0 = step->seq0,
		.budget = step->budget,
		.lost_ns = fan_is_lossy(root->node.type) ? LOST_NS : 0,
	};
	size_t before = t->rounds, done;
	int err, ret = fan_root_begin(root, step);

	plan.deadline = root->node.deadline;
	if (!ret)
		ret = fan_rounds(&fan_root_ops, root, &plan, t);
	done = t->rounds - before;
	if (stage2)
		t->rounds = before; /* the peers know better */
	err = fan_root_finish(root, NULL, NULL);
	if (!ret)
		ret = err;
	return ret || !stage2 ? ret : collect(root, step, done, t);
}

int fan_root_stream(struct fan_root *root, const struct fan_step *step, double *rate, double *msgs)
{
	uint64_t bytes = 0, count = 0, more = 0, n = 0;
	int err, ret = fan_root_begin(root, step);

	if (!ret)
		ret = fan_stream(&root->node, step->budget, &bytes, &count);
	err = fan_root_finish(root, &more, &n);
	if (ret || err)
		return ret ? ret : err;
	*rate = (double)(bytes + more) * 1e9 / (double)step->budget;
	*msgs = (double)(count + n) * 1e9 / (double)step->budget;
	return 0;
}
