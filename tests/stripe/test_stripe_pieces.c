/* Policies of small pieces, and that no policy loses or doubles a byte. */
#include "test_stripe.h"

/* ---- no byte is lost, none is sent twice ---- */

static const char *const all[] = {"single",  "even:4",   "roundrobin:3", "weighted:5,2,1",
				  "hsam:12", "bss:12,3", "pull:12",      "pull:12,6",
				  "pull:1",  "hop:12",   "hop:2",        "hop:16"};

struct under_way {
	struct stripe_piece piece;
	uint64_t began;
};

/* One message: pieces end in any order, some fail, paths heal, and completions are sometimes found
 * all at once. map counts how often each byte has arrived. */
static void one_message(const struct stripe_conf *c, struct stripe_peer *p, uint64_t bytes,
			struct util_rand *r, uint8_t *map)
{
	struct under_way out[STRIPE_OUT_MAX];
	uint64_t now = 1, arrived = 0;
	uint32_t n = 0, failures = 0, idle = 0;
	struct stripe_msg m;
	bool end = !bytes;

	memset(map, 0, bytes);
	stripe_begin(c, p, &m, bytes, 0);
	while (!end) {
		uint32_t i;
		struct under_way u;

		while (util_rand_below(r, 8) && stripe_next(c, p, &m, &u.piece)) {
			assert_true(u.piece.path < c->paths);
			assert_true(u.piece.bytes && u.piece.offset + u.piece.bytes <= bytes);
			u.began = now;
			assert_true(n < STRIPE_OUT_MAX);
			out[n++] = u;
		}
		if (!n) { /* asked to the end, there must be one */
			assert_true(++idle < 1000);
			continue;
		}
		now += util_rand_below(r, 4) ? util_rand_below(r, 1000) : 0;
		i = (uint32_t)util_rand_below(r, n);
		u = out[i];
		out[i] = out[--n];
		if (!util_rand_below(r, 10) && failures < 100) {
			stripe_failed(c, p, &m, &u.piece);
			assert_true(p->down[u.piece.path]);
			failures++;
		} else {
			for (uint64_t b = 0; b < u.piece.bytes; b++)
				assert_int_equal(map[u.piece.offset + b]++, 0);
			arrived += u.piece.bytes;
			end = stripe_done(c, p, &m, &u.piece, u.began, now);
			assert_int_equal(end, arrived == bytes);
		}
		if (!util_rand_below(r, 6))
			stripe_heal(c, p, (uint32_t)util_rand_below(r, c->paths));
	}
	assert_int_equal(n, 0);
	assert_int_equal(arrived, bytes);
	for (uint64_t b = 0; b < bytes; b++)
		assert_int_equal(map[b], 1);
}

static void test_conserved(void **state)
{
	uint8_t *map = malloc(1 << 16);

	(void)state;
	assert_non_null(map);
	for (size_t i = 0; i < COUNT(all); i++)
		for (uint64_t seed = 1; seed <= 4; seed++) {
			struct stripe_conf c = policy(all[i]);
			struct util_rand r = {seed};
			struct stripe_peer p;

			c.least = seed % 2 ? 0 : 500;
			c.line = seed > 2 ? 1 : 0;
			stripe_peer_init(&c, &p, seed);
			for (int k = 0; k < 60; k++)
				one_message(&c, &p,
					    util_rand_next(&r) % (1 << 16) >>
						    util_rand_below(&r, 16),
					    &r, map);
		}
	free(map);
}

/* What the header promises: something is under way as long as something is left. */
static void test_never_stuck(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(all); i++) {
		struct stripe_conf c = policy(all[i]);
		struct stripe_piece piece[STRIPE_OUT_MAX];
		struct stripe_peer p;
		struct stripe_msg m;

		stripe_peer_init(&c, &p, 3);
		for (uint32_t k = 0; k < 30; k++) {
			bool end = false;
			uint64_t now = 0;

			stripe_begin(&c, &p, &m, 1 + k * k * 10000, 0);
			for (int turns = 0; !end && turns < 1000; turns++) {
				uint32_t n = take_all(&c, &p, &m, piece);

				assert_true(n > 0);
				for (uint32_t x = 0; x < n; x++)
					end = stripe_done(&c, &p, &m, &piece[x], now,
							  now + 10 + x * (piece[x].path + 1));
				now += 1000;
			}
			assert_true(end);
		}
	}
}

/* ---- pieces ---- */

static void test_piece_size(void **state)
{
	struct stripe_conf c = policy("pull:4");
	struct stripe_piece piece[STRIPE_OUT_MAX];
	struct stripe_peer p;
	struct stripe_msg m;

	(void)state;
	stripe_peer_init(&c, &p, 1);
	c.least = 1000;
	/* A 64th; two on each path. */
	stripe_begin(&c, &p, &m, 640000, 0);
	assert_int_equal(take_all(&c, &p, &m, piece), 8);
	for (int i = 0; i < 8; i++)
		assert_int_equal(piece[i].bytes, 10000);
	/* Not below what is worth it; what fits into one is one; no crumb at the end. */
	stripe_peer_init(&c, &p, 1);
	stripe_begin(&c, &p, &m, 6400, 0);
	assert_int_equal(take_all(&c, &p, &m, piece), 6);
	assert_int_equal(piece[0].bytes, 1000);
	assert_int_equal(piece[5].bytes, 1400);
	stripe_peer_init(&c, &p, 1);
	stripe_begin(&c, &p, &m, 900, 0);
	assert_int_equal(take_all(&c, &p, &m, piece), 1);
	/* Not above what can still react. */
	stripe_peer_init(&c, &p, 1);
	stripe_begin(&c, &p, &m, UINT64_C(1) << 40, 0);
	stripe_next(&c, &p, &m, piece);
	assert_int_equal(piece[0].bytes, 4 << 20);
	c.least = 0;
	stripe_peer_init(&c, &p, 1);
	stripe_begin(&c, &p, &m, 3, 0);
	assert_int_equal(take_all(&c, &p, &m, piece), 3);
}

/* A path that is due less than a piece gets less, if that is worth it at the end of a message, and
 * else nothing. */
static void test_piece_last(void **state)
{
	struct stripe_conf c = policy("pull:4");
	struct stripe_piece piece[STRIPE_OUT_MAX];
	struct stripe_peer p;
	struct stripe_msg m;

	(void)state;
	c.least = 1000;
	for (c.last = 0; c.last <= 10000; c.last += 10000) {
		uint32_t n, slow = 0;

		stripe_peer_init(&c, &p, 1);
		for (uint32_t k = 0; k < 4; k++)
			p.weight[k] = k == 3 ? 0.02 : 1;
		stripe_begin(&c, &p, &m, 640000, 0);
		n = take_all(&c, &p, &m, piece);
		for (uint32_t i = 0; i < n; i++)
			slow += piece[i].path == 3 && piece[i].bytes < 10000;
		assert_int_equal(slow, c.last ? 0 : 1);
	}
}

/* Of several messages to a peer the first has the paths, until it is all given out; but each of the
 * others has something under way. */
static void test_one_after_the_other(void **state)
{
	struct stripe_conf c = policy("pull:4");
	struct stripe_piece first[STRIPE_OUT_MAX], second[STRIPE_OUT_MAX];
	struct stripe_peer p;
	struct stripe_msg a, b;

	(void)state;
	stripe_peer_init(&c, &p, 1);
	c.least = 1000;
	stripe_begin(&c, &p, &a, 640000, 0);
	stripe_begin(&c, &p, &b, 640000, 0);
	assert_int_equal(take_all(&c, &p, &a, first), 8);
	assert_int_equal(take_all(&c, &p, &b, second), 1);
	stripe_done(&c, &p, &a, &first[0], 0, 1);
	assert_int_equal(take_all(&c, &p, &b, second), second[0].path != first[0].path);
	/* What is given up makes room, too. */
	for (int i = 1; i < 8; i++)
		stripe_forget(&p, &a, &first[i]);
	assert_true(take_all(&c, &p, &b, second) >= 6);
}

/* Sends a message over paths of these rates, each a queue. Returns the time. */
static uint64_t over(const struct stripe_conf *c, struct stripe_peer *p, uint64_t bytes,
		     const double *rate, uint64_t *moved)
{
	struct under_way out[STRIPE_OUT_MAX];
	double end[STRIPE_OUT_MAX], free_at[STRIPE_PATHS_MAX] = {0};
	uint32_t n = 0;
	uint64_t now = 0;
	struct stripe_msg m;
	bool all_in = false;

	memset(moved, 0, c->paths * sizeof(*moved));
	stripe_begin(c, p, &m, bytes, 0);
	while (!all_in) {
		uint32_t at = 0;

		while (stripe_next(c, p, &m, &out[n].piece)) {
			uint32_t k = out[n].piece.path;

			free_at[k] = (free_at[k] > (double)now ? free_at[k] : (double)now) +
				     (double)out[n].piece.bytes / rate[k];
			out[n].began = now;
			end[n++] = free_at[k];
		}
		assert_true(n > 0);
		for (uint32_t i = 1; i < n; i++)
			at = end[i] < end[at] ? i : at;
		now = (uint64_t)end[at];
		moved[out[at].piece.path] += out[at].piece.bytes;
		all_in = stripe_done(c, p, &m, &out[at].piece, out[at].began, now);
		out[at] = out[--n];
		end[at] = end[n];
	}
	return now;
}

/* Nothing has to be learnt: the first message is already within a few pieces of the best. */
static void test_pull(void **state)
{
	static const double rate[] = {.4, .1, .3, .2};
	struct stripe_conf c = policy("pull:4");
	struct stripe_peer p;
	uint64_t moved[4];

	(void)state;
	stripe_peer_init(&c, &p, 1);
	assert_true(over(&c, &p, 10000000, rate, moved) < 11500000);
	for (int k = 0; k < 5; k++)
		over(&c, &p, 10000000, rate, moved);
	assert_true(over(&c, &p, 10000000, rate, moved) < 10300000);
	for (int i = 0; i < 4; i++) {
		assert_close((double)moved[i] / 1e7, rate[i], .03);
		assert_close(p.weight[i], rate[i], .02);
	}
}

/* The best three of six, and one that becomes good is found. */
static void test_pull_best(void **state)
{
	double rate[] = {.05, .3, .05, .3, .05, .3};
	struct stripe_conf c = policy("pull:6,3");
	struct stripe_peer p;
	uint64_t moved[6];
	int k;

	(void)state;
	c.line = .9;
	stripe_peer_init(&c, &p, 1);
	for (k = 0; k < 10; k++)
		over(&c, &p, 10000000, rate, moved);
	assert_int_equal(moved[0] + moved[2] + moved[4], 0);
	rate[1] = .05;
	rate[0] = .3;
	for (k = 0; k < 60 && moved[0] < 2500000; k++)
		over(&c, &p, 10000000, rate, moved);
	print_message("a path that became good was found after %d messages\n", k);
	assert_true(k < 60);
}

/* What is known of the paths is of use soon after, not much later; at first nothing is known. */
static void test_pull_stale(void **state)
{
	double rate[] = {.05, .3, .05, .3, .05, .3};
	struct stripe_conf c = policy("pull:6,3");
	struct stripe_peer p;
	struct stripe_msg m;
	uint64_t moved[6];

	(void)state;
	c.line = .9;
	stripe_peer_init(&c, &p, 1);
	stripe_begin(&c, &p, &m, 1000000, 5);
	assert_int_equal(m.paths, 6);
	for (int k = 0; k < 10; k++)
		over(&c, &p, 10000000, rate, moved);
	stripe_begin(&c, &p, &m, 1000000, p.ended + p.took);
	assert_int_equal(m.paths, 3);
	stripe_begin(&c, &p, &m, 1000000, p.ended + 40 * p.took);
	assert_int_equal(m.paths, 6);
	/* Still the best first, and one that fails leaves all others. */
	assert_int_equal(m.order[0] % 2 + m.order[1] % 2 + m.order[2] % 2, 3);
	stripe_down(&c, &p, m.order[0]);
	assert_true(stripe_next(&c, &p, &m, &(struct stripe_piece){0}));
	assert_int_equal(m.paths, 5);
}

/* Slots leave what is slow, and come back to it when it is not any more. */
static void test_hop(void **state)
{
	double rate[12];
	struct stripe_conf c = policy("hop:12");
	struct stripe_peer p;
	uint64_t moved[12], slow = 0;

	(void)state;
	c.line = 1;
	for (int i = 0; i < 12; i++)
		rate[i] = i < 6 ? .05 : .25;
	stripe_peer_init(&c, &p, 1);
	for (int k = 0; k < 10; k++)
		over(&c, &p, 10000000, rate, moved);
	assert_true(p.slots >= 4 && p.slots <= 8);
	for (int i = 0; i < 6; i++)
		slow += moved[i];
	assert_true(slow < 1000000);
	/* Everything is slow: more slots, but not without end. */
	for (int i = 0; i < 12; i++)
		rate[i] = .05;
	for (int k = 0; k < 20; k++)
		over(&c, &p, 10000000, rate, moved);
	assert_int_equal(p.slots, 8);
	for (int i = 0; i < 12; i++)
		rate[i] = .25;
	for (int k = 0; k < 40; k++)
		over(&c, &p, 10000000, rate, moved);
	assert_int_equal(p.slots, 4);
}

/* Completions that are all found at once change no rate and move no slot. */
static void test_late(void **state)
{
	static const char *const names[] = {"pull:4", "hop:12"};

	(void)state;
	for (size_t x = 0; x < COUNT(names); x++) {
		struct stripe_conf c = policy(names[x]);
		struct stripe_piece piece[STRIPE_OUT_MAX];
		double rate[12];
		struct stripe_peer p, then;
		uint64_t moved[12], now = 0;
		struct stripe_msg m;
		bool end = false;

		c.line = 1;
		for (int i = 0; i < 12; i++)
			rate[i] = .25;
		stripe_peer_init(&c, &p, 1);
		for (int k = 0; k < 5; k++)
			over(&c, &p, 10000000, rate, moved);
		then = p;
		stripe_begin(&c, &p, &m, 10000000, 0);
		while (!end) {
			uint32_t n = take_all(&c, &p, &m, piece);

			for (uint32_t i = 0; i < n; i++)
				end = stripe_done(&c, &p, &m, &piece[i], now, now + 50000000);
			now += 50000000;
		}
		for (uint32_t i = 0; i < c.paths; i++)
			for (uint32_t s = 0; s < p.slots || !s; s++)
				if (x == 0 || p.slot[s] == i)
					assert_true(p.weight[i] == then.weight[i]);
		assert_int_equal(p.slots, then.slots);
		assert_memory_equal(p.slot, then.slot, p.slots * sizeof(p.slot[0]));
	}
}

/* The sender was late once, in the middle: how long the message took is no reason for more slots.
 */
static void test_late_once(void **state)
{
	struct stripe_conf c = policy("hop:12");
	struct stripe_piece piece[STRIPE_OUT_MAX];
	struct stripe_peer p;
	struct stripe_msg m;

	(void)state;
	c.line = 1;
	stripe_peer_init(&c, &p, 1);
	for (int k = 0; k < 4; k++) {
		uint64_t now = 500000000;
		bool end = false;
		uint32_t n;

		stripe_begin(&c, &p, &m, 10000000, 0);
		n = take_all(&c, &p, &m, piece);
		for (uint32_t i = 0; i < n; i++)
			stripe_done(&c, &p, &m, &piece[i], 0, now);
		while (!end) {
			n = take_all(&c, &p, &m, piece);
			for (uint32_t i = 0; i < n; i++)
				end = stripe_done(&c, &p, &m, &piece[i], now, now + 1000 * (i + 1));
			now += 1000 * n;
		}
	}
	assert_int_equal(p.slow, 0);
	assert_int_equal(p.slots, 4);
}

/* A path that has become very slow is known for it after one message. */
static void test_sudden(void **state)
{
	double rate[] = {.25, .25, .25, .25};
	struct stripe_conf c = policy("pull:4");
	struct stripe_peer p;
	uint64_t moved[4];

	(void)state;
	stripe_peer_init(&c, &p, 1);
	for (int k = 0; k < 5; k++)
		over(&c, &p, 10000000, rate, moved);
	rate[2] = .005;
	over(&c, &p, 10000000, rate, moved);
	assert_true(p.weight[2] < .02);
}

/* A path that fails is left at once, and used again when it has healed. */
static void test_down(void **state)
{
	static const char *const names[] = {"pull:4", "pull:4,2", "hop:4"};
	double rate[] = {.25, .25, .25, .25};

	(void)state;
	for (size_t x = 0; x < COUNT(names); x++) {
		struct stripe_conf c = policy(names[x]);
		struct stripe_piece piece[STRIPE_OUT_MAX];
		struct stripe_peer p;
		struct stripe_msg m;
		uint64_t moved[4];
		uint32_t path, n;
		int k;

		stripe_peer_init(&c, &p, 1);
		stripe_begin(&c, &p, &m, 10000000, 0);
		n = take_all(&c, &p, &m, piece);
		path = piece[0].path;
		for (uint32_t i = 0; i < n; i++)
			if (piece[i].path == path)
				stripe_failed(&c, &p, &m, &piece[i]);
		n = take_all(&c, &p, &m, piece);
		for (uint32_t i = 0; i < n; i++)
			assert_true(piece[i].path != path);
		over(&c, &p, 10000000, rate, moved);
		assert_int_equal(moved[path], 0);
		stripe_heal(&c, &p, path);
		for (k = 0; k < 20 && !moved[path]; k++)
			over(&c, &p, 10000000, rate, moved);
		assert_true(k < 20);
	}
}

/* Pieces are as long as the line makes worth it, within limits; of a line that nobody knows, the
 * longest. */
static void test_least(void **state)
{
	uint64_t before = 0;

	(void)state;
	assert_true(stripe_least(0) == 16384);
	assert_true(stripe_least(-1) == 16384);
	assert_true(stripe_least(0.0005) == 4096);
	assert_true(stripe_least(12.5) == 16384);
	for (double line = 0.0001; line < 1; line *= 1.1) {
		uint64_t least = stripe_least(line);

		assert_true(least >= before);
		before = least;
	}
	/* 20 Mbit/s: 2.5 MB/s for 2.5 ms */
	assert_true(stripe_least(0.0025) == 6250);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_conserved),
		cmocka_unit_test(test_never_stuck),
		cmocka_unit_test(test_piece_size),
		cmocka_unit_test(test_piece_last),
		cmocka_unit_test(test_one_after_the_other),
		cmocka_unit_test(test_pull),
		cmocka_unit_test(test_pull_best),
		cmocka_unit_test(test_pull_stale),
		cmocka_unit_test(test_hop),
		cmocka_unit_test(test_late),
		cmocka_unit_test(test_late_once),
		cmocka_unit_test(test_sudden),
		cmocka_unit_test(test_down),
		cmocka_unit_test(test_least),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
