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

/* What a rank has under way: one message at a time, and the pieces of it, by part. */
struct sender {
	uint32_t to, numbers, out;
	uint64_t now; /* the last arrival */
	struct stripe_msg msg;
	struct {
		uint32_t number;
		struct stripe_piece piece;
	} under_way[STRIPE_OUT_MAX];
};

struct study {
	const struct fabric_sim_stripes *what;
	struct stripe_conf policy;
	struct stripe_peer *peer; /* by sender and receiver */
	uint8_t *first;           /* as well */
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

/* All that may be sent now. */
static uint32_t study_more(void *ctx, uint32_t rank, uint32_t stage,
			   struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX])
{
	struct study *s = ctx;
	struct sender *me = &s->sender[rank];
	size_t p = pair(s, rank, me->to);
	struct stripe_piece piece;
	uint32_t n = 0;

	(void)stage;
	while (stripe_next(&s->policy, &s->peer[p], &me->msg, &piece)) {
		me->under_way[me->out].number = me->numbers++;
		me->under_way[me->out++].piece = piece;
		part[n++] = (struct fabric_sim_part){
			.to = me->to,
			.address = (s->first[p] + piece.path) % s->what->addresses,
			.bytes = piece.bytes,
		};
	}
	return n;
}

static uint32_t study_send(void *ctx, uint32_t rank, uint32_t stage,
			   struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX])
{
	struct study *s = ctx;
	struct sender *me = &s->sender[rank];

	me->to = partner(s->what, rank, stage);
	me->numbers = me->out = 0;
	stripe_begin(&s->policy, &s->peer[pair(s, rank, me->to)], &me->msg, s->what->bytes,
		     me->now);
	return study_more(ctx, rank, stage, part);
}

static uint32_t study_expects(void *ctx, uint32_t rank, uint32_t stage)
{
	(void)ctx;
	(void)rank;
	(void)stage;
	return 1;
}

static void study_arrived(void *ctx, uint32_t rank, uint32_t stage, uint32_t part, uint64_t posted,
			  uint64_t now)
{
	struct study *s = ctx;
	struct sender *me = &s->sender[rank];
	struct stripe_piece piece;
	uint32_t i = 0;

	(void)stage;
	while (me->under_way[i].number != part)
		i++;
	piece = me->under_way[i].piece;
	me->under_way[i] = me->under_way[--me->out];
	me->now = now;
	stripe_done(&s->policy, &s->peer[pair(s, rank, me->to)], &me->msg, &piece, posted, now);
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

/* A piece is worth its cost if it takes twice as long, and is of whole packets. Rates are in bytes
 * per picosecond. */
static void know_line(struct stripe_conf *p, const struct fabric_sim_config *c)
{
	uint64_t mbs = c->host_mbs < c->link_mbs ? c->host_mbs : c->link_mbs;
	uint64_t packet = (uint64_t)c->mtu * c->aggregate;

	p->line = (double)mbs / 1e6;
	p->least = 2 * c->post_ns * mbs / 1000;
	p->least = (p->least / packet + 1) * packet;
}

static int begin(struct study *s, const struct fabric_sim_config *config)
{
	const struct fabric_sim_stripes *w = s->what;
	size_t pairs = (size_t)w->ranks * w->ranks;
	struct util_rand rand;

	s->policy = w->policy;
	know_line(&s->policy, config);
	s->peer = malloc(pairs * sizeof(*s->peer));
	s->first = calloc(pairs, 1);
	s->sender = calloc(w->ranks, sizeof(*s->sender));
	if (!s->peer || !s->first || !s->sender)
		return -ENOMEM;
	util_rand_seed(&rand, w->seed);
	for (size_t i = 0; i < pairs; i++) {
		stripe_peer_init(&s->policy, &s->peer[i], w->seed + i * UTIL_RAND_STEP);
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
		.more = study_more,
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
	ret = begin(&s, config);
	if (ret)
		fabric_refuse(why, why_size, "no memory for the weights of %u ranks", what->ranks);
	else
		ret = rounds(&s, routes, config, ps, result ? result : &own, why, why_size);
	free(s.peer);
	free(s.first);
	free(s.sender);
	return ret;
}
