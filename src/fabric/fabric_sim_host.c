/* What a host does: it sends the parts of a message packet by packet, and takes in what arrives. */
#include "fabric_sim_run.h"

#include <string.h>

static uint32_t next_bytes(const struct sim *s, const struct sim_part *part)
{
	uint64_t left = part->bytes - part->sent;

	return left < s->net.packet ? (uint32_t)left : s->net.packet;
}

/* The next part in turn that there are credits for; FABRIC_NONE: none. */
static uint32_t next_part(const struct sim *s, const struct sim_rank *r)
{
	for (uint32_t i = 0, k = r->turn; i < r->n_live; i++, k++) {
		const struct sim_part *p;

		k = k < r->n_live ? k : 0;
		p = &s->net.parts[r->live[k]];
		if (sim_blocks(next_bytes(s, p)) <= s->net.links[p->path[0]].credits)
			return k;
	}
	return FABRIC_NONE;
}

static void on_wire(struct sim_rank *r, uint32_t k)
{
	r->n_live--;
	memmove(&r->live[k], &r->live[k + 1], (r->n_live - k) * sizeof(r->live[0]));
}

static void send_packet(struct sim *s, uint32_t rank, struct sim_part *part, uint32_t packet)
{
	struct sim_net *n = &s->net;
	struct sim_packet *p = &n->packets[packet];

	p->bytes = next_bytes(s, part) & 0xffffff;
	p->hop = 0;
	p->number = part->packets++;
	part->sent += p->bytes;
	s->result->packets++;
	sim_link_start(n, part->path[0], packet);
	if (p->bytes == n->packet)
		sim_push(&n->events, n->lane_ready, SIM_WHAT(SIM_READY, rank, 0));
	else
		sim_at(&n->events, sim_pace(n, p->bytes), SIM_WHAT(SIM_READY, rank, 0));
}

static void send_next(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank];
	uint32_t k, packet;
	struct sim_part *part;

	if (r->busy || !r->n_live)
		return;
	k = next_part(s, r);
	if (k == FABRIC_NONE)
		return;
	packet = sim_packet_new(&s->net);
	if (packet == FABRIC_NONE)
		return;
	part = &s->net.parts[r->live[k]];
	s->net.packets[packet].part = r->live[k];
	r->busy = true;
	send_packet(s, rank, part, packet);
	if (part->sent == part->bytes)
		on_wire(r, k);
	else
		k++;
	r->turn = k;
}

void sim_host_posted(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank];
	uint64_t post = s->net.config->post_ns * UINT64_C(1000);

	do {
		uint32_t part = r->part[r->posted++ % FABRIC_SIM_PARTS_MAX];

		s->net.parts[part].posted_at = s->net.events.now;
		r->live[r->n_live++] = part;
	} while (!post && r->posted < r->parts);
	if (r->posted < r->parts)
		sim_at(&s->net.events, post, SIM_WHAT(SIM_POSTED, rank, 0));
	send_next(s, rank);
}

static void begin_to_post(struct sim *s, uint32_t rank)
{
	uint64_t post = s->net.config->post_ns * UINT64_C(1000);

	if (post)
		sim_at(&s->net.events, post, SIM_WHAT(SIM_POSTED, rank, 0));
	else
		sim_host_posted(s, rank);
}

void sim_host_post(struct sim *s, uint32_t rank)
{
	s->ranks[rank].posted = s->ranks[rank].n_live = s->ranks[rank].turn = 0;
	begin_to_post(s, rank);
}

void sim_host_more(struct sim *s, uint32_t rank, uint32_t before)
{
	/* Otherwise the CPU is still at those, and goes on. */
	if (s->ranks[rank].posted == before)
		begin_to_post(s, rank);
}

void sim_host_ready(struct sim *s, uint32_t rank)
{
	struct sim_rank *r = &s->ranks[rank];

	r->busy = false;
	if (r->n_live)
		send_next(s, rank);
	else if (r->posted == r->parts)
		sim_rank_on_wire(s, rank);
}

void sim_host_credit(struct sim *s, uint32_t rank)
{
	send_next(s, rank);
}

/* ---- receiving ---- */

static void drain_next(struct sim *s, uint32_t rank)
{
	struct sim_net *n = &s->net;
	struct sim_rank *r = &s->ranks[rank];
	uint32_t bytes;

	r->draining = r->drain.head != FABRIC_NONE;
	if (!r->draining)
		return;
	bytes = n->packets[r->drain.head].bytes;
	if (bytes == n->packet)
		sim_push(&n->events, n->lane_drained, SIM_WHAT(SIM_DRAINED, rank, 0));
	else
		sim_at(&n->events, sim_ps(bytes, n->config->host_mbs),
		       SIM_WHAT(SIM_DRAINED, rank, 0));
}

void sim_host_arrives(struct sim *s, uint32_t rank, uint32_t packet)
{
	sim_queue_put(&s->net, &s->ranks[rank].drain, packet);
	if (!s->ranks[rank].draining)
		drain_next(s, rank);
}

void sim_host_drained(struct sim *s, uint32_t rank)
{
	struct sim_net *n = &s->net;
	uint32_t packet = sim_queue_take(n, &s->ranks[rank].drain);
	struct sim_packet *p = &n->packets[packet];
	uint32_t number = p->part;
	struct sim_part *part = &n->parts[number];

	sim_link_room(n, part->path[p->hop], sim_blocks(p->bytes));
	drain_next(s, rank);
	if (s->traffic->packet)
		s->traffic->packet(s->traffic->ctx, part->rank, part->stage, part->number,
				   (uint64_t)p->number * n->packet, p->bytes);
	part->arrived += p->bytes;
	sim_packet_free(n, packet);
	if (part->arrived < part->bytes)
		return;
	/* What follows may begin messages, and so move the pool. */
	struct sim_part done = *part;

	sim_part_free(n, number);
	sim_rank_arrived(s, &done);
}
