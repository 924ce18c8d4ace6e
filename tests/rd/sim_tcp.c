/* TCP (Reno or, in its friendly region, CUBIC) with an ideal SACK: transmissions are numbered, a
 * packet that was overtaken by three is lost, what is sent again is just another packet. The link
 * keeps the order, so that is all there is to it. The receiver acknowledges as RD's does, so that
 * all that differs is the congestion control. */
#include <string.h>

#include "sim.h"

#define RTO (200 * MS)

struct segment {
	uint64_t number;
};

struct ack {
	unsigned int n;
	uint64_t numbers[SIM_TCP_ACK];
};

static void pump(struct sim *sim, struct sim_tcp *t);

static void tcp_lost(struct sim_tcp *t, uint64_t number)
{
	t->flight--;
	if (number < t->recover)
		return;
	t->recover = t->sent;
	t->threshold = t->window * t->keep > 2 ? t->window * t->keep : 2;
	t->window = t->threshold;
}

static void tcp_acked(struct sim_tcp *t, uint64_t number)
{
	t->acked[number % SIM_TCP_MAX] = true;
	t->flight--;
	if (number >= t->recover)
		t->window += t->window < t->threshold ? 1 : t->grow / t->window;
}

static void on_ack(struct sim *sim, void *obj, void *arg)
{
	struct sim_tcp *t = obj;
	struct ack *a = arg;
	uint64_t highest = 0;

	for (unsigned int i = 0; i < a->n; i++) {
		highest = a->numbers[i];
		if (highest >= t->oldest)
			tcp_acked(t, highest);
	}
	t->heard = sim->now;
	while (t->oldest < t->sent) {
		bool *acked = &t->acked[t->oldest % SIM_TCP_MAX];

		if (!*acked && t->oldest + 3 > highest)
			break;
		if (!*acked)
			tcp_lost(t, t->oldest);
		*acked = false;
		t->oldest++;
	}
	pump(sim, t);
}

static void send_ack(struct sim *sim, void *obj, void *arg)
{
	struct sim_tcp *t = obj;
	struct ack *a = malloc(sizeof(*a));

	(void)arg;
	assert_non_null(a);
	a->n = t->arrived_n;
	memcpy(a->numbers, t->arrived, sizeof(a->numbers));
	t->arrived_n = 0;
	sim_link_send(sim, t->back, 66, on_ack, t, a, sizeof(*a));
}

static void on_segment(struct sim *sim, void *obj, void *arg)
{
	struct sim_tcp *t = obj;
	struct segment *s = arg;

	t->bins[sim->now / SIM_BIN] += t->packet;
	assert_true(t->arrived_n < SIM_TCP_ACK);
	t->arrived[t->arrived_n++] = s->number;
	if (t->arrived_n == 1)
		sim_at(sim, sim->now + SIM_ACK_DELAY + util_rand_below(&sim->r, 10 * US), send_ack,
		       t, NULL);
}

static void on_rto(struct sim *sim, void *obj, void *arg)
{
	struct sim_tcp *t = obj;

	(void)arg;
	if (sim->now >= t->heard + RTO) {
		while (t->oldest < t->sent)
			t->acked[t->oldest++ % SIM_TCP_MAX] = false;
		t->threshold = t->window / 2 > 2 ? t->window / 2 : 2;
		t->window = 2;
		t->flight = 0;
		t->recover = t->sent;
		t->heard = sim->now;
		pump(sim, t);
	}
	sim_at(sim, t->heard + RTO, on_rto, t, NULL);
}

static void pump(struct sim *sim, struct sim_tcp *t)
{
	while ((double)t->flight + 1 <= t->window && t->sent - t->oldest < SIM_TCP_MAX) {
		struct segment *s = malloc(sizeof(*s));

		assert_non_null(s);
		s->number = t->sent++;
		t->flight++;
		sim_link_send(sim, t->there, t->packet, on_segment, t, s, sizeof(*s));
	}
}

static void on_start(struct sim *sim, void *obj, void *arg)
{
	struct sim_tcp *t = obj;

	(void)arg;
	t->heard = sim->now;
	pump(sim, t);
	sim_at(sim, sim->now + RTO, on_rto, t, NULL);
}

void sim_tcp_reno(struct sim_tcp *t)
{
	*t = (struct sim_tcp){.grow = 1, .keep = 0.5};
}

void sim_tcp_cubic(struct sim_tcp *t)
{
	*t = (struct sim_tcp){.grow = 9.0 / 17, .keep = 0.7};
}

void sim_tcp_start(struct sim *sim, struct sim_tcp *t, uint32_t packet, struct sim_link *there,
		   struct sim_link *back, uint64_t at)
{
	t->packet = packet;
	t->there = there;
	t->back = back;
	t->window = 10;
	t->threshold = 1e9;
	sim_at(sim, at, on_start, t, NULL);
}
