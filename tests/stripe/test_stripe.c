/* Policies of shares: names, and the equations of the paper by hand. */
#include "test_stripe.h"

static void test_names(void **state)
{
	static const char *const good[] = {"single",       "original", "even:3",   "roundrobin:16",
					   "weighted:1",   "hsam:4",   "hsam:16",  "bss:12,3",
					   "bss:16,1",     "pull:12",  "pull:8,6", "weighted:3,1",
					   "weighted:1,2", "hop:12",   "hop:1"};
	static const char *const bad[] = {
		"",
		"hsam",
		"hsam:",
		"hsam:0",
		"hsam:17",
		"hsam:4x",
		"hsam:4,2",
		"bss:4",
		"bss:4,",
		"bss:4,0",
		"bss:4,5",
		"bss:0,0",
		"bss:4,2,",
		"Original",
		"bss:99999999999,1",
		"single:1",
		"hop",
		"pull:4,",
		"weighted:",
		"weighted:1,",
		"weighted:0",
		"weighted:65536",
		"weighted:1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
		"a name\nthat is far longer than what is printed of it, really"};
	char text[STRIPE_NAME_MAX];

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct stripe_conf c = policy(good[i]);

		stripe_print(&c, text);
		assert_string_equal(text, good[i]);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct stripe_conf c = {.paths = 7};
		char why[256] = "";

		assert_int_equal(stripe_parse(&c, bad[i], why, sizeof(why)), -EINVAL);
		assert_true(strlen(why) > 20 && !strchr(why, '\n'));
		assert_int_equal(c.paths, 7);
	}
}

/* Sends a message; its i-th piece takes time[i]. Returns how many there were. */
static uint32_t send(const struct stripe_conf *c, struct stripe_peer *p, uint64_t bytes,
		     const uint64_t *time, struct stripe_piece *piece)
{
	struct stripe_msg m;
	uint32_t n;

	stripe_begin(c, p, &m, bytes, 0);
	n = take_all(c, p, &m, piece);
	assert_int_equal(m.left, 0);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(
			stripe_done(c, p, &m, &piece[i], 1000 * (i + 1), 1000 * (i + 1) + time[i]),
			i + 1 == n);
	return n;
}

static void test_begin(void **state)
{
	struct stripe_conf c = policy("bss:4,2");
	struct stripe_piece piece[STRIPE_OUT_MAX];
	struct stripe_peer p;
	struct stripe_msg m;

	(void)state;
	stripe_peer_init(&c, &p, 1);
	for (int i = 0; i < 4; i++)
		assert_close(p.weight[i], .25, 1e-12);
	stripe_begin(&c, &p, &m, 1001, 0);
	assert_int_equal(take_all(&c, &p, &m, piece), 2);
	assert_int_equal(piece[0].path, 0);
	assert_int_equal(piece[1].path, 1);
	assert_int_equal(piece[0].bytes, 500);
	assert_int_equal(piece[1].bytes, 501);
	assert_int_equal(piece[0].offset, 0);
	assert_int_equal(piece[1].offset, 500);
	/* A message of nothing has no pieces. */
	stripe_begin(&c, &p, &m, 0, 0);
	assert_false(stripe_next(&c, &p, &m, piece));
}

/* Equation 3 with numbers. Both halves of a message; one took three times as long: of W_batch
 * = 1/2 the rates give 3/8 and 1/8, and α = .95 takes 95 % of the way from 1/4. */
static void test_learn(void **state)
{
	struct stripe_conf c = policy("bss:4,2");
	struct stripe_piece piece[STRIPE_OUT_MAX];
	struct stripe_peer p;

	(void)state;
	stripe_peer_init(&c, &p, 1);
	send(&c, &p, 1000, (uint64_t[]){300, 100}, piece);
	assert_close(p.weight[0], .05 * .25 + .95 * .125, 1e-12);
	assert_close(p.weight[1], .05 * .25 + .95 * .375, 1e-12);
	assert_close(p.weight[2], .25, 1e-12);
	assert_close(p.weight[3], .25, 1e-12);
	/* The heaviest first: 1 and, of those that were not used, 2. A time of 0 is no division
	 * by it, and the sum stays. */
	assert_int_equal(send(&c, &p, 1000, (uint64_t[]){0, 0}, piece), 2);
	assert_int_equal(piece[0].path, 1);
	assert_int_equal(piece[1].path, 2);
	assert_true(piece[0].bytes > piece[1].bytes);
	assert_close(p.weight[0] + p.weight[1] + p.weight[2] + p.weight[3], 1, 1e-12);
}

/* Paths of fixed rates: HSAM gives them what they can carry, so that all end together. */
static void test_converges(void **state)
{
	static const double rate[] = {4, 1, 2, 1};
	struct stripe_conf c = policy("hsam:4");
	struct stripe_peer p;

	(void)state;
	stripe_peer_init(&c, &p, 1);
	for (int k = 0; k < 10; k++) {
		struct stripe_piece piece[STRIPE_OUT_MAX];
		struct stripe_msg m;
		uint32_t n;

		stripe_begin(&c, &p, &m, 1 << 20, 0);
		n = take_all(&c, &p, &m, piece);
		for (uint32_t i = 0; i < n; i++)
			stripe_done(
				&c, &p, &m, &piece[i], 0,
				(uint64_t)(1000 * (double)piece[i].bytes / rate[piece[i].path]) +
					i);
	}
	for (int i = 0; i < 4; i++)
		assert_close(p.weight[i], rate[i] / 8, 1e-4);
}

/* Weight moves within the batch only, so a batch of one learns nothing: as the equations are, a
 * bad path is never left. */
static void test_batch_of_one(void **state)
{
	struct stripe_conf c = policy("bss:12,1");
	struct stripe_piece piece[STRIPE_OUT_MAX];
	struct stripe_peer p;

	(void)state;
	stripe_peer_init(&c, &p, 1);
	for (int k = 0; k < 5; k++) {
		assert_int_equal(send(&c, &p, 1000, (uint64_t[]){1000000}, piece), 1);
		assert_int_equal(piece[0].path, 0);
		assert_int_equal(piece[0].bytes, 1000);
		assert_close(p.weight[0], 1.0 / 12, 1e-12);
	}
}

static void test_fixed(void **state)
{
	struct stripe_conf even = policy("even:4"), weighted = policy("weighted:3,1"),
			   turn = policy("roundrobin:3"), single = policy("single");
	struct stripe_piece piece[STRIPE_OUT_MAX];
	static const uint64_t time[] = {9, 7, 5, 3};
	struct stripe_peer p;

	(void)state;
	stripe_peer_init(&even, &p, 1);
	for (int k = 0; k < 2; k++) {
		assert_int_equal(send(&even, &p, 4000, time, piece), 4);
		for (uint32_t i = 0; i < 4; i++)
			assert_int_equal(piece[i].bytes, 1000);
	}
	stripe_peer_init(&weighted, &p, 1);
	for (int k = 0; k < 2; k++) {
		assert_int_equal(send(&weighted, &p, 4000, time, piece), 2);
		assert_int_equal(piece[0].bytes, 3000);
	}
	stripe_peer_init(&turn, &p, 1);
	for (uint32_t k = 0; k < 6; k++) {
		assert_int_equal(send(&turn, &p, 4000, time, piece), 1);
		assert_int_equal(piece[0].path, k % 3);
	}
	p.down[0] = true;
	send(&turn, &p, 4000, time, piece);
	assert_int_equal(piece[0].path, 1);
	stripe_peer_init(&single, &p, 1);
	assert_int_equal(send(&single, &p, 4000, time, piece), 1);
	assert_int_equal(piece[0].path, 0);
}

/* The three cases of section 4.3.2. */
static void test_late(void **state)
{
	struct stripe_conf c = policy("hsam:2");
	struct stripe_piece piece[STRIPE_OUT_MAX];
	struct stripe_peer p;
	struct stripe_msg m;

	(void)state;
	/* All found at once, though one was posted later: nothing changes, to the bit. */
	stripe_peer_init(&c, &p, 1);
	stripe_begin(&c, &p, &m, 1000, 0);
	take_all(&c, &p, &m, piece);
	stripe_done(&c, &p, &m, &piece[0], 0, 5000);
	assert_true(stripe_done(&c, &p, &m, &piece[1], 1000, 5000));
	assert_true(p.weight[0] == .5 && p.weight[1] == .5);
	/* On time: 100 and 300. Late for the second, at 200 and 300, or 100 and 400: not the best,
	 * but the same way. */
	for (uint64_t late = 0; late <= 100; late += 100) {
		stripe_peer_init(&c, &p, 1);
		send(&c, &p, 1000, (uint64_t[]){100 + late, 300}, piece);
		assert_true(p.weight[0] > .5 && p.weight[1] < .5);
		stripe_peer_init(&c, &p, 1);
		send(&c, &p, 1000, (uint64_t[]){100, 300 + late}, piece);
		assert_true(p.weight[0] > .5 && p.weight[1] < .5);
	}
}

/* A stripe that was lost goes elsewhere, whole, and nothing is learnt of a message in which that
 * happened; the path is not used before it heals. */
static void test_failed(void **state)
{
	struct stripe_conf c = policy("bss:4,2");
	struct stripe_piece piece[STRIPE_OUT_MAX], again;
	struct stripe_peer p;
	struct stripe_msg m;

	(void)state;
	stripe_peer_init(&c, &p, 1);
	stripe_begin(&c, &p, &m, 1000, 0);
	take_all(&c, &p, &m, piece);
	stripe_failed(&c, &p, &m, &piece[0]);
	assert_int_equal(m.left, 500);
	assert_true(stripe_next(&c, &p, &m, &again));
	assert_int_equal(again.offset, piece[0].offset);
	assert_int_equal(again.bytes, piece[0].bytes);
	assert_int_equal(again.path, 2); /* 1 has something to do */
	assert_false(stripe_next(&c, &p, &m, &again));
	assert_false(stripe_done(&c, &p, &m, &piece[1], 0, 10));
	assert_true(stripe_done(&c, &p, &m, &again, 0, 1000));
	for (int i = 0; i < 4; i++)
		assert_true(p.weight[i] == .25);
	stripe_begin(&c, &p, &m, 1000, 0);
	take_all(&c, &p, &m, piece);
	assert_int_equal(piece[0].path, 1);
	assert_int_equal(piece[1].path, 2);
	/* What was divided but not given out leaves a path that failed meanwhile. */
	stripe_begin(&c, &p, &m, 1000, 0);
	p.down[1] = true;
	take_all(&c, &p, &m, piece);
	assert_int_equal(piece[0].path, 2);
	assert_true(piece[0].path != 1 && piece[1].path != 1 && m.torn);
	/* Where all are down, all are tried. */
	for (int i = 0; i < 4; i++)
		p.down[i] = true;
	stripe_begin(&c, &p, &m, 1000, 0);
	assert_int_equal(take_all(&c, &p, &m, piece), 2);
	stripe_heal(&c, &p, 99);
	stripe_heal(&c, &p, 3);
	stripe_begin(&c, &p, &m, 1000, 0);
	assert_int_equal(take_all(&c, &p, &m, piece), 1);
	assert_int_equal(piece[0].path, 3);
}

/* Any weights and sizes: shares add up, none is empty, no path twice, in the order of weight, and
 * each within a byte of what it should have. */
static void test_divide(void **state)
{
	struct util_rand r = {11};

	(void)state;
	for (int k = 0; k < 20000; k++) {
		struct stripe_conf c = policy("bss:16,16");
		struct stripe_piece piece[STRIPE_OUT_MAX];
		uint64_t bytes = util_rand_next(&r) >> util_rand_below(&r, 64), sum = 0;
		uint32_t n, seen = 0;
		struct stripe_peer p;
		struct stripe_msg m;
		double total = 0;

		c.paths = 1 + (uint32_t)util_rand_below(&r, STRIPE_PATHS_MAX);
		c.batch = 1 + (uint32_t)util_rand_below(&r, c.paths);
		stripe_peer_init(&c, &p, 1);
		for (uint32_t i = 0; i < c.paths; i++)
			p.weight[i] = (double)(util_rand_next(&r) >> 1 >> util_rand_below(&r, 63)) /
					      1e18 +
				      1e-30;
		stripe_begin(&c, &p, &m, bytes, 0);
		n = take_all(&c, &p, &m, piece);
		assert_true(n <= c.batch);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(piece[i].bytes > 0);
			assert_false(seen >> piece[i].path & 1);
			assert_true(!i || p.weight[piece[i].path] <= p.weight[piece[i - 1].path]);
			assert_int_equal(piece[i].offset, sum);
			seen |= 1u << piece[i].path;
			sum += piece[i].bytes;
			total += p.weight[piece[i].path];
		}
		assert_int_equal(sum, bytes);
		if (n == c.batch && bytes < 1u << 30)
			for (uint32_t i = 0; i < n; i++)
				assert_true((double)piece[i].bytes -
						    (double)bytes * p.weight[piece[i].path] /
							    total <
					    1.001);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),        cmocka_unit_test(test_begin),
		cmocka_unit_test(test_learn),        cmocka_unit_test(test_converges),
		cmocka_unit_test(test_batch_of_one), cmocka_unit_test(test_fixed),
		cmocka_unit_test(test_late),         cmocka_unit_test(test_failed),
		cmocka_unit_test(test_divide),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
