/* Predictions, and choices of many ranks that see different times. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "coll_model.h"
#include "util_rand.h"

static const struct coll_cost *const typical = &coll_cost_typical;

static struct coll_shape shape_of(uint32_t hosts, uint32_t per_host)
{
	return (struct coll_shape){.ranks = hosts * per_host, .hosts = hosts, .per_host = per_host};
}

static double predict(const struct coll_shape *s, enum coll_op op, enum coll_variant v, size_t b)
{
	return coll_model_predict(typical, s, op, v, b);
}

/* ---- predictions ---- */

/* For every shape: a number where there is such a way, and more bytes never take less. */
static void test_predictions_are_sane(void **state)
{
	(void)state;
	for (uint32_t hosts = 1; hosts <= 48; hosts += 1 + hosts / 4)
		for (uint32_t per = 1; per <= 32; per++)
			for (int op = 0; op < COLL_OPS; op++)
				for (int v = 0; v < COLL_VARIANTS; v++) {
					struct coll_shape s = shape_of(hosts, per);
					double last = 0, t;

					for (size_t b = 1; b <= 1 << 24; b *= 4) {
						t = predict(&s, op, v, b);
						assert_true(t >= last);
						assert_false(isnan(t));
						last = t;
					}
				}
}

static void test_every_operation_has_two_ways(void **state)
{
	struct coll_shape s = shape_of(4, 4);

	(void)state;
	for (int op = 0; op < COLL_OPS; op++) {
		int ways = 0;

		assert_true(isfinite(predict(&s, op, COLL_MPI, 100)));
		assert_false(isfinite(predict(&s, op, COLL_AUTO, 100)));
		for (int v = 0; v < COLL_VARIANTS; v++)
			ways += isfinite(predict(&s, op, v, 100));
		assert_true(ways >= 2);
	}
}

/* What is known: three phases for small blocks, not from 8 KB on; awareness needs a spread. */
static void test_known_orders(void **state)
{
	struct coll_shape s = shape_of(4, 4), late = s;

	(void)state;
	assert_true(predict(&s, COLL_ALLTOALL, COLL_SHM_DIRECT, 4) <
		    predict(&s, COLL_ALLTOALL, COLL_DIRECT, 4));
	assert_true(predict(&s, COLL_ALLTOALL, COLL_SHM_DIRECT, 256) <
		    predict(&s, COLL_ALLTOALL, COLL_DIRECT, 256));
	assert_true(predict(&s, COLL_ALLTOALL, COLL_MPI, 4) <
		    predict(&s, COLL_ALLTOALL, COLL_DIRECT, 4));
	late.spread = 1e6;
	assert_true(predict(&s, COLL_ALLTOALL, COLL_PAP_DIRECT, 8192) ==
		    predict(&s, COLL_ALLTOALL, COLL_DIRECT, 8192));
	assert_true(predict(&late, COLL_ALLTOALL, COLL_PAP_DIRECT, 8192) <
		    predict(&late, COLL_ALLTOALL, COLL_DIRECT, 8192));
	/* Long vectors are halved, short ones are not. */
	s = shape_of(16, 1);
	assert_true(predict(&s, COLL_ALLREDUCE, COLL_TREE, 64) <
		    predict(&s, COLL_ALLREDUCE, COLL_HALVING, 64));
	assert_true(predict(&s, COLL_ALLREDUCE, COLL_TREE, 1 << 20) >
		    predict(&s, COLL_ALLREDUCE, COLL_HALVING, 1 << 20));
}

static void test_classes(void **state)
{
	(void)state;
	assert_int_equal(coll_model_class(0), 0);
	assert_int_equal(coll_model_class(1), 1);
	assert_int_equal(coll_model_class(4), coll_model_class(15));
	assert_int_equal(coll_model_class(16), coll_model_class(15) + 1);
	assert_int_equal(coll_model_class_end(coll_model_class(15)), 16);
	assert_int_equal(coll_model_class(SIZE_MAX), COLL_CLASSES - 1);
}

/* ---- choices ---- */

enum { RANKS = 16 };

/* Only the time after the last arrival is known. */
static void note(struct coll_chooser *c, enum coll_variant v, double ns, uint32_t kind, double last)
{
	struct coll_took took = {.ns = ns, .last = last, .kind = kind};

	coll_chooser_note(c, v, &took);
}

static void report(const struct coll_chooser *c, double ns[COLL_VARIANTS])
{
	struct coll_times times;

	coll_chooser_report(c, &times);
	memcpy(ns, times.ns, sizeof(times.ns));
}

static void agree(struct coll_chooser *c, const double ns[COLL_VARIANTS])
{
	struct coll_times times = {{0}, {0}};

	memcpy(times.ns, ns, sizeof(times.ns));
	coll_chooser_agree(c, &times);
}

/* Ranks of a machine where each way takes a known time, and noise. */
struct world {
	struct coll_chooser c[RANKS];
	double takes[COLL_VARIANTS], noise, spent;
	struct util_rand r;
};

static const unsigned int all_ways = (1u << COLL_VARIANTS) - 1;

static void start(struct world *w, uint64_t seed, double noise)
{
	struct coll_shape s = shape_of(4, 4);

	*w = (struct world){.noise = noise};
	util_rand_seed(&w->r, seed);
	for (int v = 0; v < COLL_VARIANTS; v++)
		w->takes[v] = 1e5;
	for (int i = 0; i < RANKS; i++)
		coll_chooser_init(&w->c[i], all_ways & ~(1u << COLL_AUTO), typical, &s,
				  COLL_ALLTOALL, 256);
}

/* Each rank has waited differently long, and some were interrupted. */
static double measured(struct world *w, enum coll_variant v)
{
	double t = w->takes[v] * (1 + w->noise * (double)util_rand_below(&w->r, 1000) / 1000);

	return util_rand_below(&w->r, 40) ? t : 20 * t;
}

static void all_agree(struct world *w)
{
	double sum[COLL_VARIANTS] = {0}, own[COLL_VARIANTS];

	for (int i = 0; i < RANKS; i++) {
		report(&w->c[i], own);
		for (int v = 0; v < COLL_VARIANTS; v++)
			sum[v] += own[v] / RANKS;
	}
	for (int i = 0; i < RANKS; i++)
		agree(&w->c[i], sum);
}

/* All ranks do the same in every call. */
static void calls(struct world *w, uint32_t n)
{
	while (n-- > 0) {
		enum coll_variant v = coll_chooser_next(&w->c[0]);
		bool due;

		for (int i = 0; i < RANKS; i++) {
			assert_int_equal(coll_chooser_next(&w->c[i]), v);
			note(&w->c[i], v, measured(w, v), 0, 0);
		}
		w->spent += w->takes[v];
		due = coll_chooser_due(&w->c[0]);
		for (int i = 0; i < RANKS; i++)
			assert_int_equal(coll_chooser_due(&w->c[i]), due);
		if (due)
			all_agree(w);
	}
}

/* Whatever was predicted, what is fastest gets used. */
static void test_finds_the_best(void **state)
{
	static const enum coll_variant ways[] = {COLL_MPI, COLL_DIRECT, COLL_PAP_DIRECT,
						 COLL_SHM_DIRECT, COLL_PAP_SHM_DIRECT};

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		enum coll_variant best = ways[seed % 5];
		struct world w;

		start(&w, seed, 0.5);
		if (!w.c[0].way[best].candidate)
			continue;
		w.takes[best] = 5e4;
		calls(&w, 2000);
		assert_int_equal(w.c[0].best, best);
		/* Trying costs a few calls. */
		assert_true(w.spent < 2000 * 5e4 * 1.1);
	}
}

static void test_adapts(void **state)
{
	struct world w;

	(void)state;
	start(&w, 3, 0.3);
	w.takes[COLL_SHM_DIRECT] = 7e4;
	calls(&w, 1000);
	assert_int_equal(w.c[0].best, COLL_SHM_DIRECT);
	w.takes[COLL_SHM_DIRECT] = 3e5;
	calls(&w, 10000);
	assert_int_not_equal(w.c[0].best, COLL_SHM_DIRECT);
	assert_true(w.c[0].changed >= 1);
}

/* Also if nothing was near it for long. */
static void test_adapts_at_last(void **state)
{
	struct world w;

	(void)state;
	start(&w, 3, 0.3);
	for (int v = 0; v < COLL_VARIANTS; v++)
		w.takes[v] = 2.1e5;
	w.takes[COLL_SHM_DIRECT] = 7e4;
	calls(&w, 1000);
	assert_int_equal(w.c[0].best, COLL_SHM_DIRECT);
	w.takes[COLL_SHM_DIRECT] = 3e6;
	calls(&w, 80000);
	assert_int_not_equal(w.c[0].best, COLL_SHM_DIRECT);
}

/* Two that are equal but for noise are not changed back and forth. */
static void test_stays(void **state)
{
	uint32_t changed = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world w;

		start(&w, seed, 0.3);
		calls(&w, 50000);
		changed += w.c[0].changed;
	}
	assert_true(changed <= 4);
}

static void test_far_ones_are_not_tried(void **state)
{
	struct coll_shape s = shape_of(1, 16);
	struct coll_cost slow = *typical;
	struct coll_chooser c;

	(void)state;
	slow.flag = 1e6;
	coll_chooser_init(&c, all_ways, &slow, &s, COLL_BARRIER, 0);
	for (int v = 0; v < COLL_VARIANTS; v++)
		if (v != COLL_MPI && v != COLL_DISSEM)
			assert_false(c.way[v].candidate);
	/* One way only: never a question. */
	coll_chooser_init(&c, 1u << COLL_MPI, typical, &s, COLL_BARRIER, 0);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(coll_chooser_next(&c), COLL_MPI);
		note(&c, COLL_MPI, 1, 0, 0);
		assert_false(coll_chooser_due(&c));
	}
	/* None is allowed that is known: the MPI's. */
	coll_chooser_init(&c, 0, typical, &s, COLL_BARRIER, 0);
	assert_int_equal(coll_chooser_next(&c), COLL_MPI);
}

/* MPI_Alltoallv: calls of two kinds, one of which takes a hundred times as long, alternate in some
 * pattern. The way that is faster for both is found in all of them. */
static void test_kinds(void **state)
{
	static const char *const patterns[] = {"AB",  "BA",    "AABB", "ABBA",
					       "AAB", "ABBBB", "A",    "BAAAAAAA"};
	struct coll_shape s = shape_of(1, 16);

	(void)state;
	for (size_t p = 0; p < sizeof(patterns) / sizeof(*patterns); p++) {
		for (int better = 0; better < 2; better++) {
			struct coll_chooser c;
			double ns[COLL_VARIANTS];

			coll_chooser_init(&c, 1u << COLL_MPI | 1u << COLL_PAP_DIRECT, typical, &s,
					  COLL_ALLTOALLV, 0);
			assert_true(c.way[COLL_MPI].candidate && c.way[COLL_PAP_DIRECT].candidate);
			for (int i = 0; i < 3000; i++) {
				enum coll_variant v = coll_chooser_next(&c);
				uint32_t kind = patterns[p][(size_t)i % strlen(patterns[p])] == 'B';
				double t = kind ? 1e6 : 1e4;

				note(&c, v, (v == COLL_MPI) == better ? t : 1.5 * t, kind, 0);
				if (!coll_chooser_due(&c))
					continue;
				report(&c, ns);
				assert_true((ns[COLL_MPI] > 0) == (ns[COLL_PAP_DIRECT] > 0));
				agree(&c, ns);
			}
			assert_int_equal(c.best, better ? COLL_MPI : COLL_PAP_DIRECT);
		}
	}
}

/* Calls that have nothing in common say nothing. */
static void test_nothing_in_common(void **state)
{
	struct coll_shape s = shape_of(1, 16);
	struct coll_chooser c;
	double ns[COLL_VARIANTS];

	(void)state;
	coll_chooser_init(&c, 1u << COLL_MPI | 1u << COLL_PAP_DIRECT, typical, &s, COLL_ALLTOALLV,
			  0);
	while (!coll_chooser_due(&c)) {
		enum coll_variant v = coll_chooser_next(&c);

		note(&c, v, 1e5, v == COLL_MPI, 0);
	}
	report(&c, ns);
	for (int v = 0; v < COLL_VARIANTS; v++)
		assert_true(ns[v] == 0);
}

/* Times from nowhere: no harm, and still the same choice. */
static void test_strange_times(void **state)
{
	static const double strange[] = {0, -1, INFINITY, NAN, 1e300};
	struct coll_shape s = shape_of(4, 4);
	struct coll_chooser c;

	(void)state;
	coll_chooser_init(&c, all_ways, typical, &s, COLL_ALLTOALL, 64);
	for (int i = 0; i < 100000; i++) {
		enum coll_variant v = coll_chooser_next(&c);
		struct coll_times times;

		assert_true(v > COLL_AUTO && v < COLL_VARIANTS && c.way[v].candidate);
		note(&c, v, strange[i % 5], 0, 0);
		if (!coll_chooser_due(&c))
			continue;
		for (int k = 0; k < COLL_VARIANTS; k++)
			times.ns[k] = times.whole[k] = strange[(i + k) % 5];
		coll_chooser_agree(&c, &times);
	}
}

/* Two hosts; one of them has all its ranks early, by clocks that are a second apart. What counts is
 * what was left after the last arrival of all. */
static void test_last_of_all(void **state)
{
	static const double took[2] = {300, 100}; /* of the MPI's, and of ours, beyond the last */
	struct coll_shape shape = {.ranks = 4, .hosts = 2, .per_host = 2};
	double last[2][COLL_ALL_TRIES], ns[COLL_VARIANTS];
	static const double offset[2] = {0, -1e9};
	struct coll_chooser c[2];

	(void)state;
	for (int h = 0; h < 2; h++)
		coll_chooser_init(&c[h], 1u << COLL_MPI | 1u << COLL_PAP_DIRECT, &coll_cost_typical,
				  &shape, COLL_ALLTOALL, 64);
	for (uint32_t call = 0; !coll_chooser_due(&c[0]); call++) {
		enum coll_variant v = coll_chooser_next(&c[0]);
		double zero = 1e15 + call * 1e6, late[2] = {call * 777 % 5000, call * 333 % 7000};
		double end = zero + (late[0] > late[1] ? late[0] : late[1]) + took[v != COLL_MPI];

		for (int h = 0; h < 2; h++)
			note(&c[h], v, end - zero - late[h], 0, zero + late[h] - offset[h]);
	}
	for (int h = 0; h < 2; h++)
		coll_chooser_lasts(&c[h], offset[h], last[h]);
	for (int i = 0; i < COLL_ALL_TRIES; i++)
		if (last[1][i] > last[0][i])
			last[0][i] = last[1][i];
	for (int h = 0; h < 2; h++) {
		coll_chooser_correct(&c[h], offset[h], last[0]);
		report(&c[h], ns);
		assert_true(ns[COLL_MPI] > 299 && ns[COLL_MPI] < 301);
		assert_true(ns[COLL_PAP_DIRECT] > 99 && ns[COLL_PAP_DIRECT] < 101);
	}
	/* A clock that is wrong makes no negative times of what all have agreed on. */
	for (int i = 0; i < COLL_ALL_TRIES; i++)
		last[0][i] = 2e15;
	coll_chooser_correct(&c[0], 0, last[0]);
	report(&c[0], ns);
	agree(&c[0], ns);
	assert_true(c[0].way[COLL_MPI].agreed == 0 && c[0].way[COLL_PAP_DIRECT].agreed == 0);
}

/* A host whose clock is thought to be 200 us ahead of what it is: the mean of all has a part of
 * that, and not less for those who would have had a time below 0. */
static void test_wrong_clock(void **state)
{
	enum { HOSTS = 4 };
	static const double took = 100e3, wrong[HOSTS] = {0, 0, 0, 200e3};
	struct coll_shape shape = {.ranks = HOSTS, .hosts = HOSTS, .per_host = 1};
	double last[HOSTS][COLL_ALL_TRIES], ns[COLL_VARIANTS], mean = 0;
	struct coll_chooser c[HOSTS];

	(void)state;
	for (int h = 0; h < HOSTS; h++)
		coll_chooser_init(&c[h], 1u << COLL_MPI | 1u << COLL_PAP_DIRECT, &coll_cost_typical,
				  &shape, COLL_ALLTOALL, 64);
	/* All come at once, so the last one is that host. */
	for (uint32_t call = 0; !coll_chooser_due(&c[0]); call++)
		for (int h = 0; h < HOSTS; h++)
			note(&c[h], coll_chooser_next(&c[h]), took, 0, 1e15 + call * 1e6);
	for (int h = 0; h < HOSTS; h++)
		coll_chooser_lasts(&c[h], wrong[h], last[h]);
	for (int h = 0; h < HOSTS; h++) {
		coll_chooser_correct(&c[h], wrong[h], last[HOSTS - 1]);
		report(&c[h], ns);
		mean += ns[COLL_MPI] / HOSTS;
	}
	assert_true(fabs(mean - (took - 150e3)) < 1);
}

/* Of long messages there may be few. */
static void test_long_ones_are_tried_less(void **state)
{
	struct coll_shape shape = {.ranks = 4, .hosts = 2, .per_host = 2};
	double first[COLL_VARIANTS] = {0};
	struct coll_chooser c;
	int calls = 0;

	(void)state;
	first[COLL_MPI] = 5e6;
	first[COLL_PAP_DIRECT] = 3.5e6;
	coll_chooser_init(&c, 1u << COLL_MPI | 1u << COLL_PAP_DIRECT, &coll_cost_typical, &shape,
			  COLL_ALLTOALL, 64 << 10);
	for (; !coll_chooser_due(&c); calls++)
		note(&c, coll_chooser_next(&c), 1, 0, 0);
	assert_int_equal(calls, 6);
	agree(&c, first);
	for (int i = 0; i < 32; i++) {
		assert_int_equal(coll_chooser_next(&c), COLL_PAP_DIRECT);
		note(&c, COLL_PAP_DIRECT, 1, 0, 0);
	}
}

/* Those that are near each other are tried again at once, and what is known is the mean. */
static void test_tries_again(void **state)
{
	struct coll_shape shape = {.ranks = 4, .hosts = 2, .per_host = 2};
	double first[COLL_VARIANTS] = {0}, second[COLL_VARIANTS] = {0};
	struct coll_chooser c;
	int calls = 0;

	(void)state;
	first[COLL_MPI] = 100;
	first[COLL_PAP_DIRECT] = 70;
	second[COLL_MPI] = 100;
	second[COLL_PAP_DIRECT] = 150;
	coll_chooser_init(&c, 1u << COLL_MPI | 1u << COLL_PAP_DIRECT, &coll_cost_typical, &shape,
			  COLL_ALLTOALL, 64);
	for (; !coll_chooser_due(&c); calls++)
		note(&c, coll_chooser_next(&c), 1, 0, 0);
	agree(&c, first);
	assert_int_equal(c.best, COLL_PAP_DIRECT);
	for (; !coll_chooser_due(&c); calls++)
		note(&c, coll_chooser_next(&c), 1, 0, 0);
	assert_int_equal(calls, 4 * COLL_TRIES);
	agree(&c, second);
	assert_true(c.way[COLL_PAP_DIRECT].agreed == 110);
	assert_int_equal(c.best, COLL_MPI);
	for (; !coll_chooser_due(&c); calls++)
		note(&c, coll_chooser_next(&c), 1, 0, 0);
	assert_int_equal(calls, 6 * COLL_TRIES);
	agree(&c, second);
	assert_true(fabs(c.way[COLL_PAP_DIRECT].agreed - 370. / 3) < .01);
	/* Enough: then it is used for a while. */
	for (int i = 0; i < 128; i++) {
		assert_int_equal(coll_chooser_next(&c), COLL_MPI);
		note(&c, COLL_MPI, 1, 0, 0);
	}
	assert_false(coll_chooser_due(&c));
}

/* What a way of ours (its time after the last arrival, and the whole) is chosen against, if the
 * MPI's own took 1000 of 4000. */
static enum coll_variant against_mpi(double ns, double whole)
{
	struct coll_shape shape = {.ranks = 4, .hosts = 2, .per_host = 2};
	struct coll_took ours = {.ns = ns, .whole = whole}, mpi = {.ns = 1000, .whole = 4000};
	struct coll_times times;
	struct coll_chooser c;

	coll_chooser_init(&c, 1u << COLL_MPI | 1u << COLL_PAP_DIRECT, &coll_cost_typical, &shape,
			  COLL_ALLTOALL, 64);
	while (!coll_chooser_due(&c)) {
		enum coll_variant v = coll_chooser_next(&c);

		coll_chooser_note(&c, v, v == COLL_MPI ? &mpi : &ours);
	}
	coll_chooser_report(&c, &times);
	assert_true(times.ns[COLL_MPI] == 1000 && times.whole[COLL_MPI] == 4000);
	coll_chooser_agree(&c, &times);
	assert_true(c.way[COLL_PAP_DIRECT].whole == whole);
	return c.best;
}

/* Who keeps others from arriving pays for it where ways are close otherwise, and only there. */
static void test_the_whole_time(void **state)
{
	(void)state;
	/* Nothing speaks for ours, or not enough. */
	assert_int_equal(against_mpi(1000, 4000), COLL_MPI);
	assert_int_equal(against_mpi(800, 3000), COLL_MPI);
	assert_int_equal(against_mpi(740, 4000), COLL_PAP_DIRECT);
	/* The whole time does. */
	assert_int_equal(against_mpi(900, 2000), COLL_PAP_DIRECT);
	assert_int_equal(against_mpi(800, 2400), COLL_PAP_DIRECT);
	assert_int_equal(against_mpi(1800, 800), COLL_PAP_DIRECT);
	/* But it makes no more than a factor of four, whichever it speaks for. */
	assert_int_equal(against_mpi(2900, 10), COLL_PAP_DIRECT);
	assert_int_equal(against_mpi(3100, 10), COLL_MPI);
	assert_int_equal(against_mpi(200, 400000), COLL_MPI);
	assert_int_equal(against_mpi(180, 400000), COLL_PAP_DIRECT);
	/* It need not be known. */
	assert_int_equal(against_mpi(800, 0), COLL_MPI);
	assert_int_equal(against_mpi(740, 0), COLL_PAP_DIRECT);
}

/* What was tried under other arrivals, and is not any more, is no measure. */
static void test_the_whole_time_of_now(void **state)
{
	static const unsigned int ways =
		1u << COLL_MPI | 1u << COLL_PAP_SHM_DIRECT | 1u << COLL_PAP_DIRECT;
	struct coll_shape shape = {.ranks = 4, .hosts = 4, .per_host = 1};
	struct coll_chooser c;

	(void)state;
	coll_chooser_init(&c, ways, &coll_cost_typical, &shape, COLL_ALLTOALL, 64);
	for (uint32_t n = 0; n < 12; n++) {
		bool late = n >= 3;
		struct coll_times t = {{0}, {0}};

		t.ns[COLL_MPI] = 100e3, t.whole[COLL_MPI] = late ? 50e6 : 110e3;
		t.ns[COLL_PAP_SHM_DIRECT] = 80e3;
		t.whole[COLL_PAP_SHM_DIRECT] = late ? 20e6 : 90e3;
		if (!late)
			t.ns[COLL_PAP_DIRECT] = t.whole[COLL_PAP_DIRECT] = 500e3;
		coll_chooser_agree(&c, &t);
		if (n < 3)
			assert_int_equal(c.best, COLL_MPI);
	}
	assert_int_equal(c.best, COLL_PAP_SHM_DIRECT);
}

/* The whole time puts a way out of reach, so that it is not tried any more: what it adds is not
 * forgotten with that, nor is what is used left out of the comparison. */
static void test_what_is_far_stays_far(void **state)
{
	static const unsigned int ways =
		1u << COLL_MPI | 1u << COLL_PAP_SHM_DIRECT | 1u << COLL_PAP_DIRECT;
	struct coll_took took[COLL_VARIANTS] = {
		[COLL_MPI] = {.ns = 8e3, .whole = 6000e3},
		[COLL_PAP_DIRECT] = {.ns = 18e3, .whole = 300e3},
		[COLL_PAP_SHM_DIRECT] = {.ns = 15e3, .whole = 2000e3},
	};
	struct coll_shape shape = {.ranks = 8, .hosts = 1, .per_host = 8};
	struct coll_times times;
	struct coll_chooser c;
	uint32_t by[COLL_VARIANTS] = {0};

	(void)state;
	coll_chooser_init(&c, ways, &coll_cost_typical, &shape, COLL_ALLTOALL, 64);
	for (int i = 0; i < 200000; i++) {
		enum coll_variant v = coll_chooser_next(&c);

		by[v]++;
		coll_chooser_note(&c, v, &took[v]);
		if (!coll_chooser_due(&c))
			continue;
		coll_chooser_report(&c, &times);
		coll_chooser_agree(&c, &times);
		assert_int_equal(c.best, COLL_PAP_DIRECT);
	}
	assert_true(c.agreed >= 3 && by[COLL_MPI] < 100);
}

/* The MPI's own is in use until something is measured where ranks may leave early: so it is tried,
 * whatever is predicted. */
static void test_in_use_is_tried(void **state)
{
	struct coll_shape s = {.ranks = 33, .hosts = 2, .per_host = 32};
	struct coll_cost slow = *typical;
	struct coll_chooser c;

	(void)state;
	slow.o = 5e3;
	slow.cores = 32;
	assert_true(coll_model_predict(&slow, &s, COLL_ALLTOALLV, COLL_MPI, 0) >
		    8 * coll_model_predict(&slow, &s, COLL_ALLTOALLV, COLL_PAP_DIRECT, 0));
	coll_chooser_init(&c, 1u << COLL_MPI | 1u << COLL_PAP_DIRECT, &slow, &s, COLL_ALLTOALLV, 0);
	assert_true(c.way[COLL_MPI].candidate && c.way[COLL_PAP_DIRECT].candidate && c.trying);
}

/* Of ours, the better one is used, also where it would not be enough to leave the MPI's own for;
 * and that is taken back for what is not a tenth better. */
static void test_ours_among_themselves(void **state)
{
	static const unsigned int ways =
		1u << COLL_MPI | 1u << COLL_PAP_SHM_DIRECT | 1u << COLL_PAP_DIRECT;
	struct coll_shape shape = {.ranks = 4, .hosts = 4, .per_host = 1};
	struct coll_chooser c;
	double ns[COLL_VARIANTS] = {0};

	(void)state;
	coll_chooser_init(&c, ways, &coll_cost_typical, &shape, COLL_ALLTOALL, 64);
	ns[COLL_MPI] = 100e3, ns[COLL_PAP_SHM_DIRECT] = 70e3, ns[COLL_PAP_DIRECT] = 90e3;
	agree(&c, ns);
	assert_int_equal(c.best, COLL_PAP_SHM_DIRECT);
	ns[COLL_PAP_SHM_DIRECT] = 98e3, ns[COLL_PAP_DIRECT] = 75e3;
	for (int i = 0; i < 20; i++) {
		agree(&c, ns);
		assert_int_not_equal(c.best, COLL_MPI);
	}
	assert_int_equal(c.best, COLL_PAP_DIRECT);
	ns[COLL_PAP_DIRECT] = 97e3;
	for (int i = 0; i < 20; i++)
		agree(&c, ns);
	assert_int_equal(c.best, COLL_MPI);
}

/* The first round of the better of two ways was `first`; from then on it takes 40 and the MPI's own
 * 100. Returns how many calls it takes until it is used. */
static int after_a_wrong_round(double first)
{
	struct coll_shape shape = {.ranks = 4, .hosts = 4, .per_host = 1};
	struct coll_times times;
	struct coll_chooser c;
	int calls = 0;

	coll_chooser_init(&c, 1u << COLL_MPI | 1u << COLL_TREE, &coll_cost_typical, &shape,
			  COLL_ALLREDUCE, 64);
	for (; calls < 200000 && (!c.agreed || c.best != COLL_TREE); calls++) {
		enum coll_variant v = coll_chooser_next(&c);

		note(&c, v, v == COLL_MPI ? 100e3 : 40e3, 0, 0);
		if (!coll_chooser_due(&c))
			continue;
		coll_chooser_report(&c, &times);
		if (!c.agreed)
			times.ns[COLL_TREE] = first;
		coll_chooser_agree(&c, &times);
	}
	return calls;
}

/* One wrong time does not decide for ever. */
static void test_wrong_once(void **state)
{
	(void)state;
	assert_true(after_a_wrong_round(40e3) <= 2 * COLL_TRIES);
	/* Clocks that are not equally fast: it is as if it had not been tried. */
	assert_true(after_a_wrong_round(-5e3) <= 4 * COLL_TRIES);
	/* Stopped for a while in most of its tries. */
	assert_true(after_a_wrong_round(120e3) <= 6 * COLL_TRIES);
	assert_true(after_a_wrong_round(900e3) < 33000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_last_of_all),
		cmocka_unit_test(test_wrong_clock),
		cmocka_unit_test(test_the_whole_time),
		cmocka_unit_test(test_the_whole_time_of_now),
		cmocka_unit_test(test_ours_among_themselves),
		cmocka_unit_test(test_what_is_far_stays_far),
		cmocka_unit_test(test_in_use_is_tried),
		cmocka_unit_test(test_wrong_once),
		cmocka_unit_test(test_tries_again),
		cmocka_unit_test(test_long_ones_are_tried_less),
		cmocka_unit_test(test_predictions_are_sane),
		cmocka_unit_test(test_every_operation_has_two_ways),
		cmocka_unit_test(test_known_orders),
		cmocka_unit_test(test_classes),
		cmocka_unit_test(test_finds_the_best),
		cmocka_unit_test(test_adapts),
		cmocka_unit_test(test_adapts_at_last),
		cmocka_unit_test(test_stays),
		cmocka_unit_test(test_far_ones_are_not_tried),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_nothing_in_common),
		cmocka_unit_test(test_strange_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
