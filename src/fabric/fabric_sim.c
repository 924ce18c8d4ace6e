/* The loop over all events, from the first to the end. */
#include "fabric_sim_run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_text.h"
#include "util_rand.h"

const struct fabric_sim_config fabric_sim_paper = {
	.link_mbs = 4000,
	.host_mbs = 3250,
	.mtu = 2048,
	.aggregate = 1,
	.buffer = 800 * SIM_BLOCK,
	.host_buffer = 800 * SIM_BLOCK,
	.reads = 3,
	.cable_ns = 25,
	.switch_ns = 100,
};

static void start(struct sim *s)
{
	struct util_rand rand;

	util_rand_seed(&rand, s->net.config->seed);
	for (uint32_t i = 0; i < s->traffic->ranks; i++) {
		struct sim_rank *r = &s->ranks[i];

		r->stage = r->waiters = r->drain.head = FABRIC_NONE;
	}
	s->stage = FABRIC_NONE;
	if (s->net.config->progress == FABRIC_SIM_IN_STEP) {
		sim_step_next(s);
		return;
	}
	for (uint32_t i = 0; i < s->traffic->ranks; i++) {
		uint64_t range = s->net.config->start_ns * UINT64_C(1000) + 1;

		sim_at_odd(&s->net.events, util_rand_below(&rand, range),
			   SIM_WHAT(SIM_BEGINS, i, 0));
	}
}

static void happen(struct sim *s, uint64_t what)
{
	struct sim_net *n = &s->net;
	uint32_t a = sim_a(what), b = sim_b(what);

	switch ((enum sim_kind)sim_kind(what)) {
	case SIM_ARRIVES:
		if (n->links[a].to < n->hosts)
			sim_host_arrives(s, n->links[a].rank, b);
		else
			sim_switch_arrives(n, a, b);
		break;
	case SIM_CREDIT:
		n->links[a].credits += b;
		if (n->links[a].sender_rank != FABRIC_NONE)
			sim_host_credit(s, n->links[a].sender_rank);
		else
			sim_switch_credit(n, a);
		break;
	case SIM_SENT:
		sim_switch_sent(n, a);
		break;
	case SIM_READY:
		sim_host_ready(s, a);
		break;
	case SIM_DRAINED:
		sim_host_drained(s, a);
		break;
	case SIM_POSTED:
		sim_host_posted(s, a);
		break;
	case SIM_BEGINS:
		sim_rank_begins(s, a);
		break;
	}
}

/* Nothing happens any more, and not everything has arrived. */
static void stuck(struct sim *s)
{
	const struct sim_net *n = &s->net;
	const struct fabric_tree *t = n->routes->tree;
	uint64_t packets = 0;
	uint32_t at = FABRIC_NONE;
	char name[FABRIC_TREE_NAME_MAX];

	for (uint32_t i = 0; i < n->n_links; i++) {
		const struct sim_link *l = &n->links[i];
		uint32_t all =
			(l->to < n->hosts ? n->config->host_buffer : n->config->buffer) / SIM_BLOCK;

		if (l->credits < all)
			at = l->to;
		packets += l->credits < all;
	}
	if (at == FABRIC_NONE) {
		s->error = fabric_refuse(s->why, s->why_size,
					 "ranks wait for messages that nobody sends");
		return;
	}
	fabric_tree_name(t, at, name);
	fabric_refuse(s->why, s->why_size,
		      "deadlock after %.3f us: packets in %llu buffers wait for each other, some "
		      "of them in %s; routes that go down and then up again can do this",
		      (double)n->events.now / 1e6, (unsigned long long)packets, name);
	s->error = -EDEADLK;
}

#define GOING_EVERY (1u << 21) /* events: a few times per second */

static bool going(struct sim *s)
{
	double all = (double)s->traffic->ranks * s->traffic->stages;

	if (!s->traffic->going || s->traffic->going(s->traffic->ctx, (double)s->stages_begun / all))
		return true;
	fabric_refuse(s->why, s->why_size, "the simulation was stopped");
	s->error = -ECANCELED;
	return false;
}

static void run(struct sim *s)
{
	uint64_t events = 0, what;

	while (!s->error && !s->net.events.failed) {
		if (s->at_end == s->traffic->ranks && !s->under_way)
			break;
		if (!sim_next(&s->net.events, &what)) {
			stuck(s);
			break;
		}
		happen(s, what);
		if (++events % GOING_EVERY == 0 && !going(s))
			break;
	}
	s->result->events = events;
}

static int simulate(struct sim *s)
{
	const struct fabric_sim_config *c = s->net.config;
	struct fabric_sim_result *r = s->result;

	s->ranks = calloc(s->traffic->ranks, sizeof(*s->ranks));
	if (!s->ranks)
		return -ENOMEM;
	start(s);
	run(s);
	free(s->ranks);
	if (s->net.events.failed && !s->error)
		return -ENOMEM;
	if (r->ps)
		r->bandwidth =
			(double)r->bytes * 1e6 / ((double)r->ps * s->traffic->ranks * c->host_mbs);
	return s->error;
}

int fabric_sim(const struct fabric_routes *routes, const struct fabric_sim_config *config,
	       const struct fabric_sim_traffic *traffic, struct fabric_sim_result *result,
	       char *why, size_t why_size)
{
	struct sim s = {.traffic = traffic, .result = result, .why = why, .why_size = why_size};
	int ret = sim_check(routes, config, traffic, why, why_size);

	if (ret)
		return ret;
	*result = (struct fabric_sim_result){.stage_ps = result->stage_ps,
					     .busy_ps = result->busy_ps};
	ret = sim_net_init(&s.net, routes, config, traffic);
	if (ret == -E2BIG)
		fabric_refuse(why, why_size, "a tree of %u hosts is too large to be simulated",
			      fabric_hosts(&routes->tree->pgft));
	if (!ret) {
		s.net.busy = result->busy_ps;
		if (s.net.busy)
			memset(s.net.busy, 0, s.net.n_links * sizeof(*s.net.busy));
		ret = simulate(&s);
	}
	sim_net_free(&s.net);
	if (ret == -ENOMEM)
		fabric_refuse(why, why_size, "no memory to simulate %u hosts",
			      fabric_hosts(&routes->tree->pgft));
	return ret;
}
