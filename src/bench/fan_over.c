/* What calls cost the program: posting, and polling an empty CQ, one with one completion, and one
 * with many. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bench_time.h"
#include "fan_out.h"
#include "fan_stop.h"

#define MANY    8 /* messages whose completions wait in the CQ: twice as many of them */
#define FILL_US 2000
#define GIVE_UP (2 * BENCH_S)
#define EMPTY   64

enum what { CLOCK, POST_SEND, POST_RECV, POLL_EMPTY, POLL_ONE, POLL_FULL, WHATS };

static const char *const names[] = {"clock",      "post_send", "post_recv",
				    "poll_empty", "poll_one",  "poll_full"};

struct over {
	struct fan_root *root;
	struct fan_node *node;
	struct bench_result_series *s[WHATS];
};

static void sample(struct over *v, enum what what, uint64_t from, uint64_t to)
{
	bench_result_add(v->s[what], (double)(to - from) / 1e3);
}

static int post(struct over *v, bool timed)
{
	struct fan_req req = {.opcode = IBV_WR_SEND,
			      .local = fan_msg(v->node, 0),
			      .len = v->node->size,
			      .signal = true};
	uint64_t from = bench_now();
	int ret = fan_post(v->node, 0, &req);

	if (timed)
		sample(v, POST_SEND, from, bench_now());
	return ret;
}

/* One completion: checks it and posts its receive again. */
static int handle(struct over *v, const struct ibv_wc *wc)
{
	uint64_t from = bench_now();
	int ret;

	if (wc->status != IBV_WC_SUCCESS)
		return -EIO;
	if (!(wc->wr_id & FAN_RECV))
		return 0;
	ret = fan_refill(v->node, FAN_OF(wc->wr_id));
	sample(v, POST_RECV, from, bench_now());
	return ret;
}

/* Takes n completions, one by one; each call that found one is a sample of `what`. */
static int take(struct over *v, enum what what, unsigned int n)
{
	uint64_t deadline = bench_now() + GIVE_UP;
	uint32_t spins = 0;
	struct ibv_wc wc;
	int ret = 0;

	while (n && !ret) {
		uint64_t from = bench_now();
		int got = ibv_poll_cq(v->node->cq, 1, &wc);

		if (got < 0)
			return -EIO;
		if (got) {
			sample(v, what, from, bench_now());
			ret = handle(v, &wc);
			n--;
		} else if (bench_expired(&spins, deadline)) {
			return -ETIMEDOUT;
		} else if (!(spins & 255)) {
			ret = fan_root_check(v->root);
		}
	}
	return ret;
}

static int empty(struct over *v)
{
	struct ibv_wc wc;

	for (int i = 0; i < EMPTY; i++) {
		uint64_t a = bench_now(), b = bench_now(), c;
		int got = ibv_poll_cq(v->node->cq, 1, &wc);

		c = bench_now();
		if (got)
			return got < 0 ? -EIO : handle(v, &wc);
		sample(v, CLOCK, a, b);
		sample(v, POLL_EMPTY, b, c);
	}
	return 0;
}

/* While the program sleeps, the device fills the CQ. */
static int full(struct over *v)
{
	int ret = 0;

	for (int i = 0; i < MANY && !ret; i++)
		ret = post(v, false);
	usleep(FILL_US);
	return ret ? ret : take(v, POLL_FULL, 2 * MANY);
}

static int rounds(struct over *v, const struct fan_opts *o)
{
	uint64_t enough = bench_now() + o->step_ms * BENCH_MS;
	int ret = 0;

	for (uint64_t i = 0; i < o->rounds && !ret && (i < 4 || bench_now() < enough); i++) {
		ret = post(v, true);
		if (!ret)
			ret = take(v, POLL_ONE, 2);
		if (!ret && i % 8 == 0)
			ret = empty(v);
		if (!ret && i % 8 == 4)
			ret = full(v);
	}
	return ret;
}

static void row(const struct over *v, const struct fan_out *out)
{
	struct bench_summary s;

	if (!out->table)
		return;
	for (int i = 0; i < WHATS; i++) {
		bench_result_summary(v->s[i], &s);
		printf("%-11s %8zu %-11s %6zu %9.3f %9.3f %9.3f %9.3f %9.3f %5zu\n",
		       v->node->type->name, v->node->size, names[i], s.n, s.min, s.median, s.mean,
		       s.p99, s.max, s.outliers);
	}
}

static int measure(struct over *v, struct fan_out *out, const struct fan_type *type, size_t size)
{
	const struct fan_opts *o = out->o;
	struct fan_step step = {.mode = FAN_ECHO, .size = size, .n = 1};
	int ret = 0, err;

	for (int i = 0; i < WHATS; i++)
		v->s[i] = bench_result_series(
			out->result, names[i], "us", false,
			json_pack("{s:s, s:I}", "type", type->name, "size", (json_int_t)size));
	for (uint64_t pass = 0; pass < o->passes && !ret && !fan_stop_told(); pass++) {
		ret = fan_root_begin(v->root, &step);
		if (!ret)
			ret = rounds(v, o);
		err = fan_root_finish(v->root, NULL, NULL);
		if (!ret)
			ret = err;
	}
	if (!ret)
		row(v, out);
	return ret;
}

int fan_overhead(struct fan_root *root, struct fan_out *out)
{
	const struct fan_opts *o = out->o;
	uint64_t deadline = bench_now() + o->max_seconds * BENCH_S;
	size_t room = fan_most(o->sizes, o->n_sizes), limit;
	int ret = 0;

	if (out->table)
		printf("# what calls cost, usec; clock: what is in each of the others for reading "
		       "it; poll_full: %d completions wait\n#%-10s %8s %-11s %6s %9s %9s %9s %9s "
		       "%9s %5s\n",
		       2 * MANY, "type", "bytes", "call", "times", "t_min", "t_median", "t_avg",
		       "t_p99", "t_max", "outl");
	for (int i = 0; o->types[i] && !ret && !fan_stop_told(); i++) {
		struct over v = {.root = root, .node = &root->node};

		limit = fan_type_limit(&root->env, o->types[i]);
		fan_progress(o, "%s", o->types[i]->name);
		ret = fan_root_open(root, o->types[i], 1, room < limit ? room : limit);
		if (ret == -EOPNOTSUPP) {
			fprintf(stderr,
				"weft bench verbs: %s: this device has no such queue pairs\n",
				o->types[i]->name);
			ret = 0;
			continue;
		}
		for (size_t k = 0; k < o->n_sizes && !ret && !fan_stop_now(deadline); k++)
			if (o->sizes[k] <= limit)
				ret = measure(&v, out, o->types[i], o->sizes[k]);
		fan_root_close(root);
		if (!ret)
			ret = fan_out_keep(out, false);
	}
	return ret;
}
