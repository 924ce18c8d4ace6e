/* The table of buffers: what is counted, what is frequent, how large it gets, and when it gives
 * up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "msg_reuse.h"
#include "util_rand.h"

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);
void *__real_realloc(void *p, size_t size);
void *__wrap_realloc(void *p, size_t size);

static bool scarce; /* there is no memory for tables */

void *__wrap_malloc(size_t size)
{
	return scarce ? NULL : __real_malloc(size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return scarce ? NULL : __real_realloc(p, size);
}

#define LEN  4096
#define BASE UINT64_C(0x7f3a12340000)

static struct msg_reuse r;

static void begin(uint32_t least, bool adapts)
{
	uint32_t all[MSG_COSTS_CLASSES];

	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++)
		all[i] = least;
	msg_reuse_init(&r, all, adapts);
}

static enum msg_reuse_say use(uint64_t addr, uint32_t len)
{
	return msg_reuse_use(&r, (void *)(uintptr_t)addr, len);
}

static int teardown(void **state)
{
	(void)state;
	scarce = false;
	msg_reuse_free(&r);
	return 0;
}

/* All chains are sound; the length of the longest. */
static uint32_t check_table(void)
{
	uint32_t longest = 0, found = 0, frequent = 0;

	for (uint32_t i = 0; r.chain && i < UINT32_C(1) << r.bits; i++) {
		uint32_t len = 0;

		for (uint32_t k = r.chain[i]; k != UINT32_MAX; k = r.buf[k].next) {
			assert_true(k < r.n && ++len <= r.n);
			for (uint32_t m = r.buf[k].next; m != UINT32_MAX; m = r.buf[m].next)
				assert_true(r.buf[k].addr != r.buf[m].addr);
			frequent += r.buf[k].frequent;
			found++;
		}
		longest = len > longest ? len : longest;
	}
	assert_int_equal(found, r.n);
	assert_int_equal(frequent, r.frequent);
	assert_true(msg_reuse_bytes(&r) <= 2 << 20);
	return longest;
}

/* As buffers lie: packed, on pages of their own, in an array of structures, anywhere. */
static void test_spread(void **state)
{
	static const uint64_t steps[] = {16, 64, 1000, 4096, 8192, 3 * 4096 + 64, 65536, 1 << 20};
	struct util_rand rand;

	(void)state;
	for (size_t k = 0; k < sizeof(steps) / sizeof(*steps); k++) {
		begin(100, true);
		for (uint64_t i = 0; i < MSG_REUSE_FIRST; i++)
			use(BASE + i * steps[k], LEN);
		assert_int_equal(r.n, MSG_REUSE_FIRST);
		/* as even as chance would have it, or better */
		assert_true(check_table() <= 4);
		msg_reuse_free(&r);
	}
	begin(100, true);
	util_rand_seed(&rand, 11);
	for (uint64_t i = 0; i < MSG_REUSE_FIRST; i++)
		use(BASE + util_rand_below(&rand, UINT64_C(1) << 32) * 8, LEN);
	assert_true(check_table() <= 10);
}

/* The thesis' example: of 4 KB, from the 15th use on. */
static void test_frequent(void **state)
{
	(void)state;
	begin(15, true);
	assert_int_equal(msg_reuse_bytes(&r), 0);
	for (int i = 1; i < 15; i++) {
		assert_int_equal(use(BASE, LEN), MSG_REUSE_COPY);
		assert_int_equal(use(BASE + LEN, LEN), MSG_REUSE_COPY);
	}
	assert_int_equal(r.frequent, 0);
	assert_int_equal(use(BASE, LEN), MSG_REUSE_REGISTER);
	assert_int_equal(r.frequent, 1);
	assert_int_equal(use(BASE, LEN), MSG_REUSE_REGISTER); /* nobody has said that it was */
	msg_reuse_kept(&r);
	assert_int_equal(use(BASE, LEN), MSG_REUSE_DIRECT);
	assert_int_equal(use(BASE, LEN / 2), MSG_REUSE_DIRECT);
	assert_int_equal(use(BASE, LEN + 1), MSG_REUSE_REGISTER); /* may have to be made larger */
	assert_int_equal(r.n, 2);
	assert_int_equal(r.frequent, 1);
	assert_true(msg_reuse_bytes(&r) < 20000);
}

/* Each size needs as many as it needs; what can not pay is not even looked for. */
static void test_classes(void **state)
{
	uint32_t least[MSG_COSTS_CLASSES];

	(void)state;
	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++)
		least[i] = i < 2 ? MSG_COSTS_NEVER : 20 - i;
	msg_reuse_init(&r, least, true);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(use(BASE, 63), MSG_REUSE_COPY);
		assert_int_equal(use(BASE, 255), MSG_REUSE_COPY);
	}
	assert_int_equal(r.n, 0);
	for (int i = 1; i < 14; i++)
		assert_int_equal(use(BASE, 256), MSG_REUSE_COPY);
	assert_int_equal(use(BASE, 4096),
			 MSG_REUSE_REGISTER);             /* the 14th, of which 14 are enough */
	assert_int_equal(use(BASE, 256), MSG_REUSE_COPY); /* 18 are needed */
	assert_int_equal(use(BASE, 1 << 20), MSG_REUSE_REGISTER);
	assert_int_equal(r.n, 1);
}

/* A registration that is gone is earned anew, with twice as many uses each time. */
static void test_lost(void **state)
{
	(void)state;
	begin(4, true);
	for (uint32_t lost = 0; lost < 6; lost++) {
		for (uint32_t i = 1; i < 4u << lost; i++)
			assert_int_equal(use(BASE, LEN), MSG_REUSE_COPY);
		assert_int_equal(use(BASE, LEN), MSG_REUSE_REGISTER);
		msg_reuse_kept(&r);
		assert_int_equal(use(BASE, LEN), MSG_REUSE_DIRECT);
		assert_int_equal(r.frequent, 1);
		msg_reuse_lost(&r);
		assert_int_equal(r.frequent, 0);
	}
	msg_reuse_free(&r);
	/* unless whoever it is wants all of them */
	begin(1, false);
	for (int i = 0; i < 10; i++) {
		assert_int_equal(use(BASE, LEN), MSG_REUSE_REGISTER);
		msg_reuse_lost(&r);
	}
}

/* What is refused, and tried again and again, is one use. */
static void test_undo(void **state)
{
	(void)state;
	begin(3, true);
	use(BASE, LEN);
	for (int i = 0; i < 100; i++) {
		assert_int_equal(use(BASE, LEN), MSG_REUSE_COPY);
		msg_reuse_undo(&r);
	}
	msg_reuse_undo(&r); /* there is nothing to be undone */
	assert_int_equal(use(BASE, LEN), MSG_REUSE_COPY);
	assert_int_equal(use(BASE, LEN), MSG_REUSE_REGISTER);
}

/* As long as a fifth is frequent it grows, up to its bound. */
static void test_bound(void **state)
{
	(void)state;
	begin(2, true);
	for (uint64_t i = 0; i < 2 * MSG_REUSE_MOST; i++) {
		use(BASE + i * LEN, LEN);
		if (i % 4 == 0)
			use(BASE + i * LEN, LEN);
		if (i < MSG_REUSE_MOST)
			assert_int_equal(r.state, MSG_REUSE_GROWS);
		assert_true(r.n <= MSG_REUSE_MOST && msg_reuse_bytes(&r) <= 2 << 20);
		if (i == MSG_REUSE_MOST - 1) {
			assert_int_equal(r.n, MSG_REUSE_MOST);
			assert_true(check_table() <= 12);
		}
	}
	assert_int_equal(r.stops, 1);
	msg_reuse_free(&r);
	begin(1, false); /* begins anew */
	for (uint64_t i = 0; i < 3 * MSG_REUSE_MOST; i++)
		assert_int_equal(use(BASE + i * LEN, LEN), MSG_REUSE_REGISTER);
	assert_int_equal(r.stops, 0);
	assert_true(r.n <= MSG_REUSE_MOST);
}

/* Of a program that never uses a buffer twice: looks, and the longest time without any. */
static void test_never_again(void **state)
{
	uint64_t looked = 0, messages = 0, rest = 0;
	const uint64_t most = UINT64_C(8) << 20;

	(void)state;
	begin(10, true);
	for (; messages < most; messages++) {
		enum msg_reuse_state before = r.state;

		assert_int_equal(use(BASE + messages * 64, LEN), MSG_REUSE_COPY);
		looked += r.state != MSG_REUSE_RESTS;
		rest = r.state == MSG_REUSE_RESTS ? rest + 1 : 0;
		assert_true(r.n <= MSG_REUSE_FIRST);
		if (before == MSG_REUSE_GROWS)
			assert_true(r.state != MSG_REUSE_RESTS);
		if (r.state == MSG_REUSE_RESTS)
			assert_int_equal(msg_reuse_bytes(&r), 0);
		if (messages == MSG_REUSE_FIRST)
			assert_int_equal(r.state, MSG_REUSE_STOPPED);
		if (messages == MSG_REUSE_FIRST + MSG_REUSE_WINDOW)
			assert_int_equal(r.state, MSG_REUSE_RESTS);
	}
	assert_true(r.rests >= 5 && r.rests <= 8);
	assert_true(looked * 100 < most); /* less than one in a hundred looks */
	assert_true(r.rested >= MSG_REUSE_REST << 4 && r.rested <= MSG_REUSE_LONG);
}

/* It stops, but those that it knows are still worth it; then a program that has begun to reuse
 * buffers is found out. */
static void test_stopped(void **state)
{
	uint64_t i;

	(void)state;
	begin(10, true);
	for (i = 0; i <= MSG_REUSE_FIRST; i++) {
		use(BASE + i * LEN, LEN);
		if (i % 10 == 0)
			for (int k = 0; k < 9; k++)
				use(BASE + i * LEN, LEN);
	}
	assert_int_equal(r.state, MSG_REUSE_STOPPED);
	for (; i < 100000; i++) {
		assert_int_equal(use(BASE + i * LEN, LEN), MSG_REUSE_COPY);
		if (i % 8 == 0)
			assert_int_equal(use(BASE + i % 400 / 10 * 10 * LEN, LEN),
					 MSG_REUSE_REGISTER);
	}
	assert_int_equal(r.state, MSG_REUSE_STOPPED);
	assert_int_equal(r.n, MSG_REUSE_FIRST);
	assert_int_equal(r.stops, 1);
	for (i = 0; r.state != MSG_REUSE_RESTS; i++)
		use(BASE - i * LEN, LEN);
	assert_true(i <= 2 * MSG_REUSE_WINDOW);
	for (i = 0; i < MSG_REUSE_REST + 50 * 10; i++)
		use(BASE - i % 50 * LEN, LEN);
	assert_int_equal(r.state, MSG_REUSE_GROWS);
	assert_int_equal(r.frequent, 50);
}

static void test_no_memory(void **state)
{
	(void)state;
	begin(1, true);
	scarce = true;
	assert_int_equal(use(BASE, LEN), MSG_REUSE_COPY);
	msg_reuse_kept(&r);
	msg_reuse_lost(&r);
	msg_reuse_undo(&r);
	scarce = false;
	for (uint64_t i = 0; i < 3 * MSG_REUSE_FIRST; i++) {
		scarce = i % 3 == 1;
		use(BASE + i * LEN, LEN);
	}
	scarce = false;
	assert_true(r.n > MSG_REUSE_FIRST);
	check_table();
}

/* ---- against a model that looks through a list ---- */

struct model {
	uint64_t addr;
	uint32_t len, uses, lost;
	bool kept;
};

enum { MODELS = 500 };

static struct model *model_of(struct model *all, uint32_t *n, uint64_t addr)
{
	for (uint32_t i = 0; i < *n; i++)
		if (all[i].addr == addr)
			return &all[i];
	assert_true(*n < MODELS);
	all[*n] = (struct model){.addr = addr};
	return &all[(*n)++];
}

static enum msg_reuse_say model_use(struct model *m, uint32_t len, const uint32_t *least)
{
	uint32_t size = 0;

	while (size + 1 < MSG_COSTS_CLASSES && len >= 128u << size)
		size++;
	m->uses++;
	if (len > m->len) {
		m->len = len;
		m->kept = false;
	}
	if (m->uses < (uint64_t)least[size] << m->lost)
		return MSG_REUSE_COPY;
	return m->kept ? MSG_REUSE_DIRECT : MSG_REUSE_REGISTER;
}

static void model_run(uint64_t seed)
{
	static struct model all[MODELS];
	uint32_t least[MSG_COSTS_CLASSES], n = 0;
	struct util_rand rand;

	util_rand_seed(&rand, seed);
	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++)
		least[i] = 1 + (uint32_t)util_rand_below(&rand, 60);
	msg_reuse_init(&r, least, true);
	for (int i = 0; i < 20000; i++) {
		uint64_t addr = BASE + util_rand_below(&rand, MODELS) * 192;
		uint32_t len = 64u + (uint32_t)util_rand_below(
					     &rand, 1u << (1 + util_rand_below(&rand, 17)));
		struct model *m = model_of(all, &n, addr);
		enum msg_reuse_say say = model_use(m, len, least);

		if (use(addr, len) != say)
			fail_msg("seed %llu, step %d: %d, not %d", (unsigned long long)seed, i,
				 msg_reuse_use(&r, (void *)(uintptr_t)addr, len), say);
		if (say == MSG_REUSE_REGISTER && util_rand_below(&rand, 2)) {
			msg_reuse_kept(&r);
			m->kept = true;
		} else if (say != MSG_REUSE_COPY && util_rand_below(&rand, 10) == 0) {
			msg_reuse_lost(&r);
			m->uses = 0;
			m->kept = false;
			m->lost += m->lost < 20;
		} else if (util_rand_below(&rand, 8) == 0) {
			msg_reuse_undo(&r);
			m->uses--;
		}
	}
	assert_int_equal(r.n, n);
	check_table();
	msg_reuse_free(&r);
}

static void test_model(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++)
		model_run(seed);
}

/* Programs that change their ways: whatever happens, the table is sound and within its bound. */
static void test_random(void **state)
{
	struct util_rand rand;

	(void)state;
	util_rand_seed(&rand, 5);
	for (int round = 0; round < 6; round++) {
		begin(1 + (uint32_t)util_rand_below(&rand, 30), round % 3 != 2);
		for (int phase = 0; phase < 12; phase++) {
			uint64_t spread = UINT64_C(1) << util_rand_below(&rand, 21);
			uint64_t base = BASE + (util_rand_next(&rand) & 0xffff000);

			for (int i = 0; i < 20000; i++) {
				enum msg_reuse_say say =
					use(base + util_rand_below(&rand, spread) * 64, LEN);

				if (say == MSG_REUSE_REGISTER)
					msg_reuse_kept(&r);
				else if (say == MSG_REUSE_DIRECT && i % 50 == 0)
					msg_reuse_lost(&r);
			}
			check_table();
		}
		msg_reuse_free(&r);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(test_spread, teardown),
		cmocka_unit_test_teardown(test_frequent, teardown),
		cmocka_unit_test_teardown(test_classes, teardown),
		cmocka_unit_test_teardown(test_lost, teardown),
		cmocka_unit_test_teardown(test_undo, teardown),
		cmocka_unit_test_teardown(test_bound, teardown),
		cmocka_unit_test_teardown(test_never_again, teardown),
		cmocka_unit_test_teardown(test_stopped, teardown),
		cmocka_unit_test_teardown(test_no_memory, teardown),
		cmocka_unit_test_teardown(test_model, teardown),
		cmocka_unit_test_teardown(test_random, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
