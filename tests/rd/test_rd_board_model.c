/* The sender's half of the sequence space against a model: two lanes, two paths, arrays of
 * states that are searched from end to end. What arrives is chosen at random, the
 * acknowledgements are those of rd_rx, late ones and invented ones. */
#include <errno.h>
#include <string.h>

#include "test_rd.h"
#include "rd_board.h"
#include "rd_rx.h"

#define LANES 2
#define PATHS 2
#define SPAN  20000 /* numbers of one run; state i is of first + i */
#define WORDS (RD_WINDOW / 64)

enum what { UNSENT, OUT, LOST, ACKED, RECALLED };

struct item {
	enum what what;
	bool moved;
	uint8_t path;
	uint16_t times;
	uint32_t bytes;
	uint64_t serial; /* order without wrap-around */
	uint64_t when;
};

struct ack {
	uint32_t next;
	unsigned int n;
	uint64_t words[WORDS];
};

struct lane {
	struct rd_board board;
	struct rd_rx rx;
	struct item items[SPAN];
	uint32_t first, high; /* high: relative */
	struct ack late;
};

struct road {
	struct rd_path path;
	uint64_t serial, acked; /* acked: the highest, plus one */
	uint32_t order0;
	bool touched; /* by the acknowledgement being taken in */
};

struct world {
	struct util_rand r;
	struct rd_pool pool;
	struct lane lanes[LANES];
	struct road roads[PATHS];
	uint64_t now;
	/* What the callback expects. */
	struct lane *acking;
	uint32_t told, last;
	bool sound;
};

static uint32_t below(struct world *w, uint32_t n)
{
	return (uint32_t)util_rand_below(&w->r, n);
}

static uint32_t model_una(const struct lane *l)
{
	uint32_t i = 0;

	while (i < l->high && l->items[i].what == ACKED)
		i++;
	return i;
}

/* ---- comparison ------------------------------------------------------------------------- */

static struct item *item_of(struct world *w, const struct rd_sent *s)
{
	struct lane *l = s->board == &w->lanes[0].board ? &w->lanes[0] : &w->lanes[1];

	return &l->items[s->psn - l->first];
}

static void check_path(struct world *w, unsigned int k)
{
	struct road *road = &w->roads[k];
	uint32_t last[LANES], bytes = 0, n = 0;
	bool any[LANES] = {false};
	struct rd_sent *s;
	uint64_t serial = 0;

	list_for_each (s, &road->path.flight, link) {
		struct item *it = item_of(w, s);

		assert_true(it->what == OUT && it->path == k && !s->lost);
		assert_true(n == 0 || it->serial > serial);
		assert_true(s->order == road->order0 + (uint32_t)it->serial);
		assert_true(s->times == it->times && s->bytes == it->bytes);
		serial = it->serial;
		bytes += s->bytes;
		n++;
	}
	assert_int_equal(road->path.cc.flight, bytes);
	list_for_each (s, &road->path.lost, link) {
		unsigned int lane = s->board == &w->lanes[1].board;

		assert_true(item_of(w, s)->what == LOST && item_of(w, s)->path == k && s->lost);
		assert_true(!any[lane] || rd_seq_before(last[lane], s->psn));
		last[lane] = s->psn;
		any[lane] = true;
		n++;
	}
	for (unsigned int i = 0; i < LANES; i++) {
		for (uint32_t j = model_una(&w->lanes[i]); j < w->lanes[i].high; j++) {
			struct item *it = &w->lanes[i].items[j];

			n -= (it->what == OUT || it->what == LOST) && it->path == k;
		}
	}
	assert_int_equal(n, 0);
}

static void check(struct world *w)
{
	uint32_t used = 0;

	for (unsigned int i = 0; i < LANES; i++) {
		struct lane *l = &w->lanes[i];
		uint32_t una = model_una(l), out = 0, holes = 0;

		assert_true(l->board.una == l->first + una);
		assert_true(l->board.high == l->first + l->high);
		for (uint32_t j = una; j < l->high; j++) {
			enum what what = l->items[j].what;

			assert_true(rd_board_acked(&l->board, l->first + j) == (what == ACKED));
			out += what == OUT || what == LOST;
			holes += what == UNSENT;
		}
		assert_int_equal(l->board.n_out, out);
		assert_int_equal(l->board.holes, holes);
		assert_true(rd_board_empty(&l->board) == !out);
		if (una == l->high)
			assert_null(l->board.ring);
		used += out;
	}
	assert_int_equal(w->pool.n_used, used);
	assert_true(w->pool.n_free <= w->pool.keep);
	for (unsigned int k = 0; k < PATHS; k++)
		check_path(w, k);
}

/* ---- what the model says about losses --------------------------------------------------- */

static uint64_t patience(const struct rd_path *p)
{
	uint64_t rtt = p->rtt.smoothed > p->rtt.latest ? p->rtt.smoothed : p->rtt.latest;
	uint64_t late = rtt / 4 * (1 + p->reorder);

	return rtt + (late > 100 * US ? late : 100 * US);
}

/* Calls for each that is on the way on this path; returns how many became lost. */
static unsigned int model_lose(struct world *w, unsigned int k, bool all)
{
	struct road *road = &w->roads[k];
	unsigned int n = 0;

	for (unsigned int i = 0; i < LANES; i++) {
		for (uint32_t j = 0; j < w->lanes[i].high; j++) {
			struct item *it = &w->lanes[i].items[j];

			if (it->what != OUT || it->path != k)
				continue;
			if (!all && (it->serial + 1 >= road->acked ||
				     ((road->path.reorder || road->acked - 1 - it->serial < 3) &&
				      w->now < it->when + patience(&road->path))))
				continue;
			it->what = LOST;
			n++;
		}
	}
	return n;
}

static struct item *model_oldest(struct world *w, unsigned int k)
{
	struct item *oldest = NULL;

	for (unsigned int i = 0; i < LANES; i++) {
		for (uint32_t j = 0; j < w->lanes[i].high; j++) {
			struct item *it = &w->lanes[i].items[j];

			if (it->what == OUT && it->path == k &&
			    (!oldest || it->serial < oldest->serial))
				oldest = it;
		}
	}
	return oldest;
}

static void model_acked(struct world *w, struct item *it)
{
	struct road *road = &w->roads[it->path];
	const struct rd_rtt *rtt = &road->path.rtt;
	uint64_t soon = rtt->smoothed < rtt->latest ? rtt->smoothed : rtt->latest;

	soon -= soon / 4;
	if (road->path.backoff || soon < rtt->least)
		soon = rtt->least;
	if (it->moved || it->what == RECALLED) {
		it->what = ACKED;
		return;
	}
	if (it->serial + 1 > road->acked &&
	    (it->times == 1 || rtt->samples < RD_RTT_MANY || w->now - it->when >= soon))
		road->acked = it->serial + 1;
	road->touched = true;
	it->what = ACKED;
}

/* ---- steps ------------------------------------------------------------------------------ */

static void send(struct world *w, struct lane *l, uint32_t at, unsigned int k)
{
	struct item *it = &l->items[at];
	uint32_t bytes = 60 + below(w, 1440), una = model_una(l);
	int rc = rd_board_send(&l->board, &w->roads[k].path, l->first + at, bytes, w->now);

	if (it->what == ACKED) {
		assert_int_equal(rc, -EALREADY);
		return;
	}
	assert_true(rd_board_fits(&l->board, l->first + at) == (at - una < RD_WINDOW));
	if (at - una >= RD_WINDOW) {
		assert_int_equal(rc, -ENOSPC);
		return;
	}
	assert_int_equal(rc, 0);
	it->times = it->what == UNSENT ? 1 : it->what == RECALLED ? 2 : it->times + 1;
	it->what = OUT;
	it->moved = false;
	it->path = (uint8_t)k;
	it->bytes = bytes;
	it->when = w->now;
	it->serial = w->roads[k].serial++;
	if (at >= l->high)
		l->high = at + 1;
}

/* In order, but sometimes some numbers are left out for later. */
static void step_send(struct world *w, struct lane *l)
{
	uint32_t n = 1 + below(w, 20);

	while (n--) {
		uint32_t at = l->high;

		if (!below(w, 20))
			at += below(w, 5);
		if (!below(w, 2000))
			at += RD_WINDOW;
		if (l->high > 3 && !below(w, 10))
			at = l->high - 1 - below(w, 3);
		send(w, l, at, below(w, 8) ? 0 : 1);
	}
	/* What was left out, or taken back. */
	for (uint32_t i = model_una(l); i < l->high && !below(w, 2); i++) {
		if (l->items[i].what == UNSENT || l->items[i].what == RECALLED)
			send(w, l, i, below(w, PATHS));
	}
}

static void step_resend(struct world *w)
{
	for (unsigned int k = 0; k < PATHS; k++) {
		for (uint32_t n = below(w, 30); n; n--) {
			struct rd_sent *s = rd_path_lost(&w->roads[k].path);
			struct lane *l;

			if (!s)
				break;
			l = s->board == &w->lanes[0].board ? &w->lanes[0] : &w->lanes[1];
			send(w, l, s->psn - l->first, below(w, 10) ? k : below(w, PATHS));
		}
	}
}

static void step_arrive(struct world *w, struct lane *l)
{
	uint32_t una = model_una(l);

	for (uint32_t i = una; i < l->high; i++) {
		uint32_t psn = l->first + i;

		if (l->items[i].what == UNSENT || below(w, 4) == 0)
			continue;
		if (rd_rx_look(&l->rx, psn) == RD_NEW)
			assert_int_equal(rd_rx_mark(&l->rx, psn), 0);
		if (!below(w, 30))
			break;
	}
}

static void told(void *arg, uint32_t psn)
{
	struct world *w = arg;
	uint32_t at = psn - w->acking->first;
	struct item *it;

	if (at >= w->acking->high || (w->told && at <= w->last)) {
		w->sound = false;
		return;
	}
	it = &w->acking->items[at];
	if (it->what == UNSENT || it->what == ACKED)
		w->sound = false;
	model_acked(w, it);
	w->last = at;
	w->told++;
}

/* How many packets an acknowledgement is about, in the model's opinion; -EPROTO if one of
 * them was never sent. */
static int model_ack(const struct lane *l, const struct ack *a)
{
	uint32_t una = model_una(l);
	int64_t next = (int64_t)una + (int32_t)(a->next - (l->first + una));
	int n = 0;

	if (next > l->high)
		return -EPROTO;
	for (int64_t i = una; i < next; i++) {
		if (l->items[i].what == UNSENT)
			return -EPROTO;
		n += l->items[i].what != ACKED;
	}
	for (uint32_t i = 0; i < 64 * a->n; i++) {
		int64_t at = next + 1 + i;

		if (!(a->words[i / 64] >> (i % 64) & 1) || at < una)
			continue;
		if (at >= l->high || l->items[at].what == UNSENT)
			return -EPROTO;
		n += l->items[at].what != ACKED;
	}
	return n;
}

static void ack(struct world *w, struct lane *l, const struct ack *a)
{
	int expect = model_ack(l, a), rc;

	w->acking = l;
	w->told = 0;
	w->sound = true;
	rc = rd_board_ack(&l->board, a->next, a->words, a->n, w->now, told, w);
	assert_true(w->sound);
	assert_int_equal(rc, expect);
	assert_int_equal(w->told, expect < 0 ? 0 : expect);
	for (unsigned int k = 0; k < PATHS; k++) {
		unsigned int lost = rd_path_settle(&w->roads[k].path, w->now);

		assert_int_equal(lost, w->roads[k].touched ? model_lose(w, k, false) : 0);
		w->roads[k].touched = false;
		assert_int_equal(rd_path_settle(&w->roads[k].path, w->now), 0);
	}
}

static void step_ack(struct world *w, struct lane *l)
{
	struct ack a = {.next = l->rx.next};

	a.n = rd_rx_sack(&l->rx, a.words, WORDS);
	if (below(w, 5))
		ack(w, l, &a);
	if (!below(w, 4))
		ack(w, l, &l->late);
	if (!below(w, 3))
		l->late = a;
}

/* From a peer that makes them up. */
static void step_hostile(struct world *w, struct lane *l)
{
	static const uint32_t odd[] = {
		0,         UINT32_C(0x7fffffff), UINT32_C(0x80000000), UINT32_C(0xffff0000),
		RD_WINDOW, (uint32_t)-RD_WINDOW};
	struct ack a = {.next = l->board.una + odd[below(w, 6)] + below(w, 40) - 20,
			.n = below(w, 4) ? below(w, 3) : WORDS};

	for (unsigned int i = 0; i < a.n; i++) {
		a.words[i] = util_rand_next(&w->r);
		for (uint32_t j = below(w, 7); j; j--)
			a.words[i] &= util_rand_next(&w->r);
	}
	ack(w, l, &a);
}

static void step_time(struct world *w)
{
	w->now += below(w, 20) ? below(w, 500 * US) : below(w, 60 * MS);
	for (unsigned int k = 0; k < PATHS; k++) {
		struct rd_path *p = &w->roads[k].path;
		struct item *oldest = model_oldest(w, k);
		uint64_t at = rd_path_deadline(p);
		bool silent = oldest && w->now >= p->heard + rd_rtt_timeout(&p->rtt, NULL,
									    p->backoff + p->held);
		unsigned int n, backoff = p->backoff;

		assert_true((at == UINT64_MAX) == !oldest);
		n = rd_path_expire(p, w->now);
		if (at > w->now) {
			assert_int_equal(n, 0);
			continue;
		}
		if (n && n == model_lose(w, k, false)) {
			assert_int_equal(p->backoff, backoff);
			continue;
		}
		assert_true(silent);
		assert_int_equal(p->backoff, backoff + 1);
		if (backoff) {
			assert_int_equal(n, model_lose(w, k, true));
			continue;
		}
		oldest->what = LOST;
		assert_int_equal(n, 1);
	}
}

static void step_recall(struct world *w, struct lane *l)
{
	uint32_t una = model_una(l), n = below(w, 40), from;

	from = una + below(w, l->high - una + 10);
	from -= from > 5 ? below(w, 5) : 0;
	rd_board_recall(&l->board, l->first + from, n);
	for (uint32_t i = from; i < from + n && i < l->high; i++) {
		if (l->items[i].what == OUT || l->items[i].what == LOST)
			l->items[i].what = RECALLED;
	}
}

static void step_move(struct world *w)
{
	unsigned int from = below(w, PATHS);

	rd_path_move(&w->roads[from].path, &w->roads[1 - from].path);
	for (unsigned int i = 0; i < LANES; i++) {
		for (uint32_t j = 0; j < w->lanes[i].high; j++) {
			struct item *it = &w->lanes[i].items[j];

			if ((it->what == OUT || it->what == LOST) && it->path == from) {
				it->path = (uint8_t)(1 - from);
				it->what = LOST;
				it->moved = true;
			}
		}
	}
}

static void step(struct world *w)
{
	struct lane *l = &w->lanes[below(w, LANES)];
	uint32_t dice = below(w, 100);

	if (dice < 30)
		step_send(w, l);
	else if (dice < 45)
		step_resend(w);
	else if (dice < 65)
		step_arrive(w, l);
	else if (dice < 85)
		step_ack(w, l);
	else if (dice < 88)
		step_hostile(w, l);
	else if (dice < 97)
		step_time(w);
	else if (dice < 99)
		step_recall(w, l);
	else
		step_move(w);
}

static void run(uint64_t seed)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	util_rand_seed(&w->r, seed);
	rd_pool_init(&w->pool, below(w, 100));
	w->now = 1 + below(w, 1000);
	for (unsigned int i = 0; i < LANES; i++) {
		w->lanes[i].first = UINT32_MAX - below(w, 2000);
		w->lanes[i].late.next = w->lanes[i].first;
		rd_board_init(&w->lanes[i].board, &w->pool, w->lanes[i].first);
		rd_rx_init(&w->lanes[i].rx, w->lanes[i].first);
	}
	for (unsigned int k = 0; k < PATHS; k++) {
		rd_path_init(&w->roads[k].path, 1500, 1 << 20);
		w->roads[k].order0 = UINT32_MAX - below(w, 2000);
		w->roads[k].path.order = w->roads[k].order0;
	}
	for (int i = 0; i < 700 && w->lanes[0].high + w->lanes[1].high < 6000; i++) {
		step(w);
		check(w);
	}
	for (unsigned int i = 0; i < LANES; i++) {
		rd_board_free(&w->lanes[i].board);
		rd_rx_free(&w->lanes[i].rx);
	}
	for (unsigned int k = 0; k < PATHS; k++) {
		assert_int_equal(w->roads[k].path.cc.flight, 0);
		assert_true(rd_path_deadline(&w->roads[k].path) == UINT64_MAX);
		assert_null(rd_path_lost(&w->roads[k].path));
	}
	assert_int_equal(w->pool.n_used, 0);
	rd_pool_free(&w->pool);
	free(w);
}

static void test_random(void **state)
{
	uint64_t seed = test_seed("board", 1);

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		print_message("seed %llu\n", (unsigned long long)seed + i);
		run(seed + i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
