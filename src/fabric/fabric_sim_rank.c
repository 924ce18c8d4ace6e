/* Ranks go through their stages: what they send, and when they go on. */
#include "fabric_sim_run.h"

#include <errno.h>

#include "fabric_text.h"

/* ---- a message ---- */

static void no_way(struct sim *s, int ret, uint32_t rank, const struct fabric_sim_part *part)
{
	const struct fabric_tree *t = s->net.routes->tree;
	char from[FABRIC_TREE_NAME_MAX], to[FABRIC_TREE_NAME_MAX];

	fabric_tree_name(t, s->traffic->hosts[rank], from);
	fabric_tree_name(t, s->traffic->hosts[part->to], to);
	if (ret == -ELOOP)
		fabric_refuse(s->why, s->why_size,
			      "the route from %s to %s does not arrive within %d links", from, to,
			      SIM_HOPS_MAX);
	else
		fabric_refuse(s->why, s->why_size, "there is no route from %s to %s", from, to);
	s->error = ret;
}

static bool part_is_good(struct sim *s, uint32_t rank, const struct fabric_sim_part *p)
{
	if (p->to >= s->traffic->ranks)
		s->error = fabric_refuse(s->why, s->why_size,
					 "rank %u sends to rank %u; the ranks are 0 to %u", rank,
					 p->to, s->traffic->ranks - 1);
	else if (p->address >> s->net.routes->rule.lmc)
		s->error = fabric_refuse(s->why, s->why_size,
					 "address %u of rank %u is not there; hosts have %u",
					 p->address, p->to, 1u << s->net.routes->rule.lmc);
	else if (s->ranks[rank].parts && s->net.config->progress == FABRIC_SIM_EXCHANGE &&
		 s->ranks[rank].to != p->to)
		s->error =
			fabric_refuse(s->why, s->why_size,
				      "rank %u sends to ranks %u and %u in one stage; an exchange "
				      "has one receiver",
				      rank, s->ranks[rank].to, p->to);
	return !s->error;
}

static bool add_part(struct sim *s, uint32_t rank, uint32_t number, const struct fabric_sim_part *p)
{
	struct sim_rank *r = &s->ranks[rank];
	uint32_t at;
	struct sim_part *part;
	int ret;

	if (p->to == rank || p->bytes == 0)
		return true;
	if (!part_is_good(s, rank, p))
		return false;
	at = sim_part_new(&s->net);
	if (at == FABRIC_NONE)
		return false;
	part = &s->net.parts[at];
	part->rank = rank;
	part->stage = r->stage;
	part->number = number;
	part->bytes = p->bytes;
	part->sent = part->arrived = part->packets = 0;
	ret = sim_net_path(&s->net, part, s->traffic->hosts[rank], s->traffic->hosts[p->to],
			   p->address);
	if (ret) {
		no_way(s, ret, rank, p);
		return false;
	}
	r->to = p->to;
	r->part[r->parts++ % FABRIC_SIM_PARTS_MAX] = at;
	s->result->bytes += p->bytes;
	return true;
}

static bool add_parts(struct sim *s, uint32_t rank, const struct fabric_sim_part *part, uint32_t n)
{
	struct sim_rank *r = &s->ranks[rank];
	uint32_t before = r->parts;

	if (n > FABRIC_SIM_PARTS_MAX - r->sends) {
		s->error = fabric_refuse(s->why, s->why_size,
					 "rank %u sends %u messages, or parts of one, in stage %u; "
					 "at most %d can be simulated",
					 rank, n + r->sends, r->stage, FABRIC_SIM_PARTS_MAX);
		return false;
	}
	for (uint32_t i = 0; i < n; i++)
		if (!add_part(s, rank, r->numbers++, &part[i]))
			return false;
	r->sends += r->parts - before;
	s->under_way += r->parts - before;
	s->result->parts += r->parts - before;
	return true;
}

/* Asks what the rank sends in its stage. */
static bool make_message(struct sim *s, uint32_t rank)
{
	struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX];
	struct sim_rank *r = &s->ranks[rank];
	uint32_t n = s->traffic->send(s->traffic->ctx, rank, r->stage, part);

	r->parts = r->numbers = r->sends = 0;
	if (!add_parts(s, rank, part, n))
		return false;
	s->stages_begun++;
	return true;
}

/* Asks what else there is of the message. */
static void make_more(struct sim *s, uint32_t rank)
{
	struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX];
	struct sim_rank *r = &s->ranks[rank];
	uint32_t before = r->parts, n = s->traffic->more(s->traffic->ctx, rank, r->stage, part);

	if (n && add_parts(s, rank, part, n) && r->parts > before)
		sim_host_more(s, rank, before);
}

static void at_the_end(struct sim *s, uint32_t rank)
{
	s->ranks[rank].parts = 0;
	s->at_end++;
}

/* ---- each for itself ---- */

static void async_next(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank];

	while (++r->stage < s->traffic->stages) {
		if (!make_message(s, rank))
			return;
		if (r->parts) {
			sim_host_post(s, rank);
			return;
		}
	}
	at_the_end(s, rank);
}

/* ---- in step ---- */

void sim_step_next(struct sim *s)
{
	uint64_t now = s->net.events.now;

	while (!s->under_way && !s->error) {
		if (s->stage != FABRIC_NONE && s->result->stage_ps)
			s->result->stage_ps[s->stage] = now - s->stage_began;
		s->stage_began = now;
		if (++s->stage >= s->traffic->stages) {
			s->at_end = s->traffic->ranks;
			return;
		}
		for (uint32_t i = 0; i < s->traffic->ranks; i++) {
			s->ranks[i].stage = s->stage;
			if (!make_message(s, i))
				return;
		}
		for (uint32_t i = 0; i < s->traffic->ranks; i++)
			if (s->ranks[i].parts)
				sim_host_post(s, i);
	}
}

/* ---- exchange ---- */

static void exchange_send(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank], *to = &s->ranks[r->to];

	if (to->stage != FABRIC_NONE && to->stage >= r->stage) {
		sim_host_post(s, rank);
		return;
	}
	r->next_waiter = to->waiters;
	to->waiters = rank;
}

/* Those whose stage this rank has come to; the others go on waiting. */
static void exchange_wake(struct sim *s, uint32_t rank)
{
	uint32_t waiter = s->ranks[rank].waiters, next;

	s->ranks[rank].waiters = FABRIC_NONE;
	for (; waiter != FABRIC_NONE; waiter = next) {
		next = s->ranks[waiter].next_waiter;
		exchange_send(s, waiter);
	}
}

static void exchange_next(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank];

	while (++r->stage < s->traffic->stages) {
		r->receives = s->traffic->expects(s->traffic->ctx, rank, r->stage);
		if (!make_message(s, rank))
			return;
		exchange_wake(s, rank);
		if (r->parts)
			exchange_send(s, rank);
		if (r->parts || r->receives)
			return;
	}
	exchange_wake(s, rank);
	at_the_end(s, rank);
}

static void exchange_arrived(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank], *to = &s->ranks[r->to];
	uint32_t receiver = r->to;

	if (to->receives == 0) {
		s->error =
			fabric_refuse(s->why, s->why_size,
				      "rank %u did not expect the message of rank %u in stage %u",
				      receiver, rank, r->stage);
		return;
	}
	to->receives--;
	if (!r->receives)
		exchange_next(s, rank);
	if (!s->error && !to->receives && !to->sends)
		exchange_next(s, receiver);
}

/* ---- what hosts say ---- */

void sim_rank_on_wire(struct sim *s, uint32_t rank)
{
	if (s->net.config->progress == FABRIC_SIM_ASYNC)
		async_next(s, rank);
}

void sim_rank_arrived(struct sim *s, const struct sim_part *part)
{
	if (s->traffic->arrived)
		s->traffic->arrived(s->traffic->ctx, part->rank, part->stage, part->number,
				    part->posted_at, s->net.events.now);
	s->result->ps = s->net.events.now;
	s->under_way--;
	s->ranks[part->rank].sends--;
	if (s->traffic->more)
		make_more(s, part->rank);
	if (s->net.config->progress == FABRIC_SIM_IN_STEP)
		sim_step_next(s);
	else if (s->net.config->progress == FABRIC_SIM_EXCHANGE && !s->ranks[part->rank].sends)
		exchange_arrived(s, part->rank);
}

void sim_rank_begins(struct sim *s, uint32_t rank)
{
	if (s->net.config->progress == FABRIC_SIM_EXCHANGE)
		exchange_next(s, rank);
	else
		async_next(s, rank);
}
