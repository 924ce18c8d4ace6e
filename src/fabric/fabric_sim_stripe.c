#include "fabric_sim_stripe.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric_text.h"
#include "util_rand.h"

#define RANKS_MAX 1024 /* there are weights for each pair */

const struct fabric_sim_config fabric_sim_ddr = {
	.link_mbs = 2000,
	.host_mbs = 1500,
	.mtu = 2048,
	.aggregate = 1,
	.buffer = 51200,
	.host_buffer = 51200,
	.reads = 3,
	.cable_ns = 25,
	.switch_ns = 200,
	.post_ns = 1000,
	.progress = FABRIC_SIM_EXCHANGE,
};

/* What a rank has under way. It has one message at a time. */
struct sender {
	uint32_t to, shares, left;
	struct fabric_share share[FABRIC_STRIPE_PATHS_MAX];
	uint64_t time[FABRIC_STRIPE_PATHS_MAX];
};

struct study {
	const struct fabric_sim_stripes *what;
	double *weight; /* by sender, receiver and path */
	uint8_t *first; /* by sender and receiver */
	struct sender *sender;
	uint32_t round;
};

static uint32_t steps(const struct fabric_sim_stripes *w)
{
	return w->step ? 1 : w->ranks - 1;
}

static uint32_t partner(const struct fabric_sim_stripes *w, uint32_t rank, uint32_t stage)
{
	uint32_t s = w->step ? w->step : stage + 1;

	if (!w->rings && !w->step && (w->ranks & (w->ranks - 1)) == 0)
		return rank ^ s;
	return (rank + s) % w->ranks;
}

static size_t pair(const struct study *s, uint32_t rank, uint32_t to)
{
	return (size_t)rank * s->what->ranks + to;
}

/* ---- what the simulation asks and tells ---- */

static uint32_t study_send(void *ctx, uint32_t rank, uint32_t stage,
			   struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX])
{
	struct study *s = ctx;
	const struct fabric_sim_stripes *w = s->what;
	struct sender *me = &s->sender[rank];
	size_t p;

	me->to = partner(w, rank, stage);
	p = pair(s, rank, me->to);
	me->shares = fabric_stripe_divide(&w->policy, &s->weight[p * w->policy.paths], w->bytes,
					  me->share);
	me->left = me->shares;
	for (uint32_t i = 0; i < me->shares; i++)
		part[i] = (struct fabric_sim_part){
			.to = me->to,
			.address = (s->first[p] + me->share[i].path) % w->addresses,
			.bytes = me->share[i].bytes,
		};
	return me->shares;
}

static uint32_t study_expects(void *ctx, uint32_t rank, uint32_t stage)
{
	(void)ctx;
	(void)rank;
	(void)stage;
	return 1;
}

static void study_arrived(void *ctx, uint32_t rank, uint32_t stage, uint32_t part, uint64_t ps)
{
	struct study *s = ctx;
	const struct fabric_stripe *policy = &s->what->policy;
	struct sender *me = &s->sender[rank];

	(void)stage;
	me->time[part] = ps;
	if (--me->left)
		return;
	fabric_stripe_learn(policy, &s->weight[pair(s, rank, me->to) * policy->paths], me->share,
			    me->time, me->shares);
}

static bool study_going(void *ctx, double done)
{
	const struct study *s = ctx;

	return s->what->going(s->what->ctx, (s->round + done) / s->what->rounds);
}

/* ---- all ---- */

static int check(const struct fabric_routes *routes, const struct fabric_sim_config *config,
		 const struct fabric_sim_stripes *w, char *why, size_t why_size)
{
	uint32_t addresses = 1u << routes->rule.lmc;

	if (w->ranks < 2 || w->ranks > RANKS_MAX)
		return fabric_refuse(why, why_size,
				     "%u ranks can not be simulated; expected 2 to %d", w->ranks,
				     RANKS_MAX);
	if (w->step >= w->ranks)
		return fabric_refuse(why, why_size, "there is no step %u of %u ranks", w->step,
				     w->ranks);
	if (w->addresses == 0 || w->addresses > addresses)
		return fabric_refuse(
			why, why_size,
			"%u addresses can not be used; the routes have %u of each host",
			w->addresses, addresses);
	if (w->policy.paths > w->addresses)
		return fabric_refuse(why, why_size, "%u paths need as many addresses; there are %u",
				     w->policy.paths, w->addresses);
	if (config->progress == FABRIC_SIM_ASYNC)
		return fabric_refuse(why, why_size,
				     "weights are learnt from messages that have arrived; expected "
				     "ranks in step, or that exchange");
	return 0;
}

static int begin(struct study *s)
{
	const struct fabric_sim_stripes *w = s->what;
	size_t pairs = (size_t)w->ranks * w->ranks;
	struct util_rand rand;

	s->weight = malloc(pairs * w->policy.paths * sizeof(*s->weight));
	s->first = calloc(pairs, 1);
	s->sender = calloc(w->ranks, sizeof(*s->sender));
	if (!s->weight || !s->first || !s->sender)
		return -ENOMEM;
	util_rand_seed(&rand, w->seed);
	for (size_t i = 0; i < pairs; i++) {
		fabric_stripe_begin(&w->policy, &s->weight[i * w->policy.paths]);
		if (w->draw)
			s->first[i] = (uint8_t)util_rand_below(&rand, w->addresses);
	}
	return 0;
}

static int rounds(struct study *s, const struct fabric_routes *routes,
		  const struct fabric_sim_config *config, uint64_t *ps,
		  struct fabric_sim_result *result, char *why, size_t why_size)
{
	struct fabric_sim_traffic traffic = {
		.ranks = s->what->ranks,
		.hosts = s->what->hosts,
		.stages = steps(s->what),
		.ctx = s,
		.send = study_send,
		.expects = study_expects,
		.arrived = study_arrived,
		.going = s->what->going ? study_going : NULL,
	};
	int ret = 0;

	for (s->round = 0; s->round < s->what->rounds && !ret; s->round++) {
		ret = fabric_sim(routes, config, &traffic, result, why, why_size);
		ps[s->round] = result->ps;
	}
	return ret;
}

int fabric_sim_stripes(const struct fabric_routes *routes, const struct fabric_sim_config *config,
		       const struct fabric_sim_stripes *what, uint64_t *ps,
		       struct fabric_sim_result *result, char *why, size_t why_size)
{
	struct fabric_sim_result own = {0};
	struct study s = {.what = what};
	int ret = check(routes, config, what, why, why_size);

	if (ret)
		return ret;
	ret = begin(&s);
	if (ret)
		fabric_refuse(why, why_size, "no memory for the weights of %u ranks", what->ranks);
	else
		ret = rounds(&s, routes, config, ps, result ? result : &own, why, why_size);
	free(s.weight);
	free(s.first);
	free(s.sender);
	return ret;
}
