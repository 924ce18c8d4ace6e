/* What a switch does: queues at its inputs, turns at its outputs, credits. */
#include "fabric_sim_net.h"

static void set_bit(uint64_t *bits, uint32_t i)
{
	bits[i / 64] |= UINT64_C(1) << i % 64;
}

static void clear_bit(uint64_t *bits, uint32_t i)
{
	bits[i / 64] &= ~(UINT64_C(1) << i % 64);
}

/* The first bit from `from` on; FABRIC_NONE: there is none. */
static uint32_t bit_from(const uint64_t *bits, uint32_t n_words, uint32_t from)
{
	uint32_t w = from / 64;
	uint64_t word;

	if (w >= n_words)
		return FABRIC_NONE;
	word = bits[w] & ~UINT64_C(0) << from % 64;
	while (!word) {
		if (++w == n_words)
			return FABRIC_NONE;
		word = bits[w];
	}
	return w * 64 + (uint32_t)__builtin_ctzll(word);
}

static struct sim_queue *queue(struct sim_net *n, const struct sim_link *in, uint32_t out_port)
{
	return &n->queues[in->queue + (n->config->fifo ? 0 : out_port)];
}

static void want(struct sim_net *n, struct sim_link *in, struct sim_link *out)
{
	set_bit(&n->bits[out->wanted], in->in_port);
	set_bit(&n->bits[in->has], out->out_port);
}

static void want_no_more(struct sim_net *n, struct sim_link *in, struct sim_link *out)
{
	clear_bit(&n->bits[out->wanted], in->in_port);
	clear_bit(&n->bits[in->has], out->out_port);
}

void sim_link_start(struct sim_net *n, uint32_t link, uint32_t packet)
{
	struct sim_link *l = &n->links[link];
	struct sim_packet *p = &n->packets[packet];

	l->credits -= sim_blocks(p->bytes);
	sim_push(&n->events, l->to < n->hosts ? n->lane_host : n->lane_switch,
		 SIM_WHAT(SIM_ARRIVES, link, packet));
	if (n->busy)
		n->busy[link] += sim_ps(p->bytes, n->config->link_mbs);
}

/* The input that is next in turn and may send; FABRIC_NONE: none. All bitmaps of a node have the
 * same number of words, and the link back, link ^ 1, is an input of the node that sends here. */
static uint32_t next_input(const struct sim_net *n, uint32_t link)
{
	const struct sim_link *out = &n->links[link], *back = &n->links[link ^ 1];
	const uint64_t *bits = &n->bits[out->wanted];
	const uint32_t *in = &n->in[back->first_port];
	uint32_t port;

	for (port = bit_from(bits, back->words, out->last + 1); port != FABRIC_NONE;
	     port = bit_from(bits, back->words, port + 1))
		if (n->links[in[port]].reads < n->reads)
			return in[port];
	for (port = bit_from(bits, back->words, 0); port <= out->last;
	     port = bit_from(bits, back->words, port + 1))
		if (n->links[in[port]].reads < n->reads)
			return in[port];
	return FABRIC_NONE;
}

/* Sends what is next in turn, if the link is free and there is room at its other end. Who is in
 * turn and does not fit is waited for: smaller packets of others must not starve it. */
static void serve(struct sim_net *n, uint32_t link)
{
	struct sim_link *out = &n->links[link], *in;
	uint32_t input, packet;
	struct sim_packet *p;
	struct sim_queue *q;

	if (out->serves != FABRIC_NONE || !out->credits)
		return;
	input = next_input(n, link);
	if (input == FABRIC_NONE)
		return;
	in = &n->links[input];
	q = queue(n, in, out->out_port);
	packet = q->head;
	p = &n->packets[packet];
	if (sim_blocks(p->bytes) > out->credits)
		return;
	sim_queue_take(n, q);
	if (n->config->fifo || q->head == FABRIC_NONE)
		want_no_more(n, in, out);
	in->reads++;
	out->last = in->in_port;
	out->serves = input;
	out->blocks = sim_blocks(p->bytes);
	p->hop++;
	sim_link_start(n, link, packet);
	if (p->bytes == n->packet)
		sim_push(&n->events, n->lane_sent, SIM_WHAT(SIM_SENT, link, 0));
	else
		sim_at(&n->events, sim_ps(p->bytes, n->config->link_mbs),
		       SIM_WHAT(SIM_SENT, link, 0));
}

static uint32_t next_link(const struct sim_net *n, uint32_t packet)
{
	const struct sim_packet *p = &n->packets[packet];

	return n->parts[p->part].path[p->hop + 1];
}

void sim_switch_arrives(struct sim_net *n, uint32_t link, uint32_t packet)
{
	struct sim_link *in = &n->links[link];
	uint32_t out = next_link(n, packet);
	struct sim_queue *q = queue(n, in, n->links[out].out_port);
	bool first = q->head == FABRIC_NONE;

	sim_queue_put(n, q, packet);
	if (!first || (n->config->fifo && in->reads))
		return;
	want(n, in, &n->links[out]);
	serve(n, out);
}

void sim_switch_credit(struct sim_net *n, uint32_t link)
{
	serve(n, link);
}

/* An input that was at its limit can send again: the outputs that wait for it, in turn. */
static void offer(struct sim_net *n, struct sim_link *in)
{
	const uint64_t *bits = &n->bits[in->has];
	const uint32_t *links = &n->in[in->first_port];
	uint32_t start = in->next_out, port;

	for (port = bit_from(bits, in->words, start); port != FABRIC_NONE && in->reads < n->reads;
	     port = bit_from(bits, in->words, port + 1)) {
		serve(n, links[port] ^ 1);
		in->next_out = port + 1;
	}
	for (port = bit_from(bits, in->words, 0); port < start && in->reads < n->reads;
	     port = bit_from(bits, in->words, port + 1)) {
		serve(n, links[port] ^ 1);
		in->next_out = port + 1;
	}
}

void sim_switch_sent(struct sim_net *n, uint32_t link)
{
	struct sim_link *out = &n->links[link], *in = &n->links[out->serves];
	bool was_full = in->reads == n->reads;

	sim_link_room(n, out->serves, out->blocks);
	in->reads--;
	out->serves = FABRIC_NONE;
	if (n->config->fifo && n->queues[in->queue].head != FABRIC_NONE)
		want(n, in, &n->links[next_link(n, n->queues[in->queue].head)]);
	serve(n, link);
	if (was_full)
		offer(n, in);
}
