/* Sender and receiver of RD, made of rd_board, rd_path and rd_rx, as a device would use them. */
#include "sim.h"

#define ACK_BYTES 100 /* on the wire, with nothing missing */

struct data {
	uint32_t psn, bytes;
	unsigned int path;
};

struct ack {
	uint32_t next;
	unsigned int n;
	uint64_t words[];
};

static void pump(struct sim *sim, struct sim_rd *f);

/* ---- receiver --------------------------------------------------------------------------- */

static void on_ack(struct sim *sim, void *obj, void *arg)
{
	struct sim_rd *f = obj;
	struct ack *a = arg;

	assert_true(rd_board_ack(&f->board, a->next, a->words, a->n, sim->now, NULL, NULL) >= 0);
	for (unsigned int i = 0; i < f->n_paths; i++)
		rd_path_settle(&f->paths[i], sim->now);
	if (!f->done_at && f->queued == f->total && f->board.una == f->board.high)
		f->done_at = sim->now;
	pump(sim, f);
}

static void send_ack(struct sim *sim, void *obj, void *arg)
{
	struct sim_rd *f = obj;
	uint64_t words[RD_WINDOW / 64];
	unsigned int n = rd_rx_sack(&f->rx, words, RD_WINDOW / 64);
	size_t len = sizeof(struct ack) + n * sizeof(uint64_t);
	struct ack *a = malloc(len);

	(void)arg;
	assert_non_null(a);
	a->next = f->rx.next;
	a->n = n;
	for (unsigned int i = 0; i < n; i++)
		a->words[i] = words[i];
	f->ack_due = false;
	sim_link_send(sim, f->back[f->ack_path], ACK_BYTES + 8 * n, on_ack, f, a, len);
}

static void on_data(struct sim *sim, void *obj, void *arg)
{
	struct sim_rd *f = obj;
	struct data *d = arg;

	assert_int_not_equal(rd_rx_look(&f->rx, d->psn), RD_FAR);
	if (rd_rx_look(&f->rx, d->psn) == RD_NEW) {
		assert_int_equal(rd_rx_mark(&f->rx, d->psn), 0);
		f->arrived++;
		f->bins[sim->now / SIM_BIN] += d->bytes;
	} else {
		f->duplicates++;
	}
	f->ack_path = d->path;
	if (f->ack_due)
		return;
	f->ack_due = true;
	/* No timer is exact; without this, flows would march in step. */
	sim_at(sim, sim->now + SIM_ACK_DELAY + util_rand_below(&sim->r, 10 * US), send_ack, f,
	       NULL);
}

/* ---- sender ----------------------------------------------------------------------------- */

static void on_timer(struct sim *sim, void *obj, void *arg)
{
	struct sim_rd *f = obj;

	(void)arg;
	if (sim->now < f->timer)
		return; /* an earlier one has been set since */
	f->timer = UINT64_MAX;
	for (unsigned int i = 0; i < f->n_paths; i++) {
		rd_path_expire(&f->paths[i], sim->now);
		if (f->n_paths > 1 && rd_path_silent(&f->paths[i]) && !f->dead[1 - i]) {
			f->dead[i] = true;
			rd_path_move(&f->paths[i], &f->paths[1 - i]);
		}
	}
	pump(sim, f);
}

static void arm(struct sim *sim, struct sim_rd *f)
{
	uint64_t at = UINT64_MAX;

	for (unsigned int i = 0; i < f->n_paths; i++) {
		uint64_t t = rd_path_deadline(&f->paths[i]);

		at = t < at ? t : at;
	}
	if (at >= f->timer)
		return; /* the one that is set looks again */
	f->timer = at > sim->now ? at : sim->now;
	sim_at(sim, f->timer, on_timer, f, NULL);
}

static void transmit(struct sim *sim, struct sim_rd *f, unsigned int path, uint32_t psn)
{
	struct data *d = malloc(sizeof(*d));

	assert_non_null(d);
	*d = (struct data){psn, f->packet, path};
	assert_int_equal(rd_board_send(&f->board, &f->paths[path], psn, f->packet, sim->now), 0);
	sim_link_send(sim, f->there[path], f->packet, on_data, f, d, sizeof(*d));
}

static void pump_path(struct sim *sim, struct sim_rd *f, unsigned int path)
{
	struct rd_path *p = &f->paths[path];

	for (;;) {
		struct rd_sent *s = rd_path_lost(p);
		uint32_t psn = s ? s->psn : f->first + (uint32_t)f->queued;

		if (!s &&
		    (f->queued == f->total || f->dead[path] || !rd_board_fits(&f->board, psn)))
			return;
		if (rd_cc_room(&p->cc) < f->packet) {
			p->limited = true;
			return;
		}
		transmit(sim, f, path, psn);
		f->queued += !s;
	}
}

static void pump(struct sim *sim, struct sim_rd *f)
{
	for (unsigned int i = 0; i < f->n_paths; i++)
		pump_path(sim, f, i);
	arm(sim, f);
}

static void on_start(struct sim *sim, void *obj, void *arg)
{
	(void)arg;
	pump(sim, obj);
}

/* ---- life ------------------------------------------------------------------------------- */

void sim_rd_init(struct sim_rd *f, uint32_t packet, struct sim_link *there, struct sim_link *back)
{
	*f = (struct sim_rd){.packet = packet,
			     .cap = 1 << 20,
			     .there = {there},
			     .back = {back},
			     .n_paths = 1,
			     .timer = UINT64_MAX};
}

void sim_rd_start(struct sim *sim, struct sim_rd *f, uint64_t at, uint64_t total)
{
	if (!f->board.pool) {
		rd_pool_init(&f->pool, 1024);
		rd_board_init(&f->board, &f->pool, f->first);
		rd_rx_init(&f->rx, f->first);
		for (unsigned int i = 0; i < f->n_paths; i++)
			rd_path_init(&f->paths[i], f->packet, f->cap);
	}
	f->total = total;
	f->done_at = 0;
	sim_at(sim, at, on_start, f, NULL);
}

void sim_rd_free(struct sim_rd *f)
{
	rd_board_free(&f->board);
	assert_int_equal(f->pool.n_used, 0);
	for (unsigned int i = 0; i < f->n_paths; i++)
		assert_int_equal(f->paths[i].cc.flight, 0);
	rd_pool_free(&f->pool);
	rd_rx_free(&f->rx);
}

static uint64_t sum(const uint64_t *bins, uint64_t from, uint64_t to)
{
	uint64_t n = 0;

	for (uint64_t i = from / SIM_BIN; i < to / SIM_BIN; i++)
		n += bins[i];
	return n;
}

uint64_t sim_rd_bytes(const struct sim_rd *f, uint64_t from, uint64_t to)
{
	return sum(f->bins, from, to);
}

uint64_t sim_tcp_bytes(const struct sim_tcp *t, uint64_t from, uint64_t to)
{
	return sum(t->bins, from, to);
}

uint64_t sim_rd_timeouts(const struct sim_rd *f)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < f->n_paths; i++)
		n += f->paths[i].timeouts;
	return n;
}

uint64_t sim_rd_sent(const struct sim_rd *f)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < f->n_paths; i++)
		n += f->paths[i].sent_packets;
	return n;
}
