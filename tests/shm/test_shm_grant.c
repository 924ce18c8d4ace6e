/* Permissions to copy from another process' memory: given, taken back, and asked for. */
#include "link_rig.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shm_copy.h"
#include "util_clock.h"
#include "util_rand.h"

/* In the tests a gives and b asks. */

static void test_life(void **state)
{
	uint32_t word, again;
	struct rig r;
	int g;

	(void)state;
	rig_up(&r, RIG_RING);
	for (uint32_t i = 0; i < SHM_GRANTS; i++) /* nothing was given yet */
		for (word = 0; word < 3; word++)
			assert_false(shm_grant_good(&r.b, i, word));
	g = shm_grant_give(&r.a, &word);
	assert_true(g >= 0 && g < SHM_GRANTS);
	assert_true(shm_grant_good(&r.b, (uint32_t)g, word));
	/* It is the other's, not one's own, and no other one's. */
	assert_false(shm_grant_good(&r.a, (uint32_t)g, word));
	assert_false(shm_grant_good(&r.b, (uint32_t)g + 1, word));
	assert_false(shm_grant_good(&r.b, (uint32_t)g, word + 2));
	shm_grant_revoke(&r.a, g);
	assert_false(shm_grant_good(&r.b, (uint32_t)g, word));
	assert_false(shm_grant_good(&r.b, (uint32_t)g, word + 1));
	/* Still given: nobody else gets it. Twice is once. */
	shm_grant_revoke(&r.a, g);
	assert_int_not_equal(shm_grant_give(&r.a, &again), g);
	assert_false(shm_grant_good(&r.b, (uint32_t)g, word));
	shm_grant_end(&r.a, g);
	assert_false(shm_grant_good(&r.b, (uint32_t)g, word));
	assert_int_equal(shm_grant_give(&r.a, &again), g);
	assert_true(shm_grant_good(&r.b, (uint32_t)g, again));
	assert_false(shm_grant_good(&r.b, (uint32_t)g, word));
	/* Without a revoke before. */
	shm_grant_end(&r.a, g);
	assert_false(shm_grant_good(&r.b, (uint32_t)g, again));
	rig_down(&r);
}

/* The two directions have nothing to do with each other. */
static void test_both_ways(void **state)
{
	uint32_t wa, wb;
	struct rig r;
	int a, b;

	(void)state;
	rig_up(&r, RIG_RING);
	a = shm_grant_give(&r.a, &wa);
	b = shm_grant_give(&r.b, &wb);
	assert_int_equal(a, b);
	shm_grant_revoke(&r.a, a);
	assert_false(shm_grant_good(&r.b, (uint32_t)a, wa));
	assert_true(shm_grant_good(&r.a, (uint32_t)b, wb));
	rig_down(&r);
}

static void test_all_given(void **state)
{
	uint32_t word[SHM_GRANTS], more;
	uint64_t seen = 0;
	struct rig r;

	(void)state;
	rig_up(&r, RIG_RING);
	for (int i = 0; i < SHM_GRANTS; i++) {
		int g = shm_grant_give(&r.a, &more);

		assert_true(g >= 0 && g < SHM_GRANTS && !(seen >> g & 1));
		seen |= UINT64_C(1) << g;
		word[g] = more;
	}
	assert_int_equal(shm_grant_give(&r.a, &more), -ENOSPC);
	shm_grant_revoke(&r.a, 17); /* is not enough */
	assert_int_equal(shm_grant_give(&r.a, &more), -ENOSPC);
	for (uint32_t i = 0; i < SHM_GRANTS; i++)
		assert_int_equal(shm_grant_good(&r.b, i, word[i]), i != 17);
	for (int i = SHM_GRANTS - 1; i >= 0; i--) {
		shm_grant_end(&r.a, i);
		assert_int_equal(shm_grant_give(&r.a, &more), i);
		assert_int_not_equal(more, word[i]);
		assert_true(shm_grant_good(&r.b, (uint32_t)i, more));
		assert_false(shm_grant_good(&r.b, (uint32_t)i, word[i]));
	}
	rig_down(&r);
}

static void test_never_again(void **state)
{
	uint32_t word, last = 0;
	struct rig r;

	(void)state;
	rig_up(&r, RIG_RING);
	for (int i = 0; i < 200000; i++) {
		int g = shm_grant_give(&r.a, &word);

		assert_int_equal(g, 0);
		/* As long as they grow none comes twice. */
		assert_true(word & 1 && word > last);
		if (i % 3 == 0)
			shm_grant_revoke(&r.a, g);
		shm_grant_end(&r.a, g);
		assert_false(shm_grant_good(&r.b, 0, word));
		last = word;
	}
	rig_down(&r);
}

/* Numbers from the other side, which may be any, and words that it has overwritten. */
static void test_garbage(void **state)
{
	static const uint32_t odd[] = {SHM_GRANTS,       SHM_GRANTS + 1, 1000,      0x7fffffff,
				       0x80000000 - 100, 0x80000000,     UINT32_MAX};
	struct util_rand rand;
	uint32_t word, again;
	struct rig r;
	int g;

	(void)state;
	util_rand_seed(&rand, 3);
	rig_up(&r, RIG_RING);
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++)
		for (word = 0; word < 4; word++)
			assert_false(shm_grant_good(&r.b, odd[i], word));
	for (int i = 0; i < 100000; i++) {
		uint32_t any = (uint32_t)util_rand_next(&rand);
		int k;

		g = shm_grant_give(&r.a, &word);
		assert_true(g >= 0);
		/* The copier scribbles over our words, which all can write to. Whatever it makes of
		 * them, which grants we have given is not its business. */
		for (int n = 0; n < 4; n++)
			atomic_store(&r.b.peer_grants[util_rand_below(&rand, SHM_GRANTS)],
				     any + (uint32_t)n);
		k = shm_grant_give(&r.a, &again);
		assert_true(k >= 0 && k != g && again & 1);
		shm_grant_revoke(&r.a, g);
		assert_false(atomic_load(&r.b.peer_grants[g]) & 1);
		shm_grant_end(&r.a, g);
		shm_grant_end(&r.a, k);
		assert_true(r.a.granted == 0);
	}
	/* An even word is never good, even if it is there. */
	atomic_store(&r.b.peer_grants[5], 1234);
	assert_false(shm_grant_good(&r.b, 5, 1234));
	rig_down(&r);
}

/* ---- a race ---- */

#define SPAN    16384
#define RACE_NS UTIL_NS_PER_S

/* The owner's memory holds the number of its round everywhere; when it is taken back, SCRIBBLE. */
#define SCRIBBLE UINT32_C(0xffffffff)

struct race {
	struct rig r;
	_Atomic(uint32_t) data[SPAN / 4];
	_Atomic(uint64_t) offer; /* word and round; 0: none */
	atomic_bool stop;
	uint32_t rounds, good, bad;
};

static void *owner(void *arg)
{
	struct race *x = arg;
	struct util_rand rand;

	util_rand_seed(&rand, 4);
	for (x->rounds = 1; !atomic_load(&x->stop); x->rounds++) {
		uint32_t word;
		int g;

		for (int i = 0; i < SPAN / 4; i++)
			atomic_store_explicit(&x->data[i], x->rounds, memory_order_relaxed);
		g = shm_grant_give(&x->r.a, &word);
		/* Release, as the commit of a record. */
		atomic_store_explicit(&x->offer, (uint64_t)word << 32 | x->rounds,
				      memory_order_release);
		for (uint64_t i = util_rand_below(&rand, 20000); i; i--)
			__asm__ volatile("");
		if (x->rounds % 2)
			shm_grant_revoke(&x->r.a, g);
		else
			shm_grant_end(&x->r.a, g);
		for (int i = 0; i < SPAN / 4; i++)
			atomic_store_explicit(&x->data[i], SCRIBBLE, memory_order_relaxed);
		shm_grant_end(&x->r.a, g);
	}
	return NULL;
}

/* Half of the time as a process would, half of it by itself, which the compiler may look into. */
static void copy(struct race *x, uint32_t *to, bool kernel)
{
	struct iovec l = {to, SPAN}, r = {x->data, SPAN};

	if (kernel && !shm_copy_from(getpid(), (struct shm_vec){&l, 1}, (struct shm_vec){&r, 1}))
		return;
	for (int i = 0; i < SPAN / 4; i++)
		to[i] = atomic_load_explicit(&x->data[i], memory_order_relaxed);
}

static void copier(struct race *x)
{
	static uint32_t got[SPAN / 4];
	uint64_t offer = atomic_load_explicit(&x->offer, memory_order_acquire);
	uint32_t round = (uint32_t)offer;

	copy(x, got, round % 4 < 2);
	if (!shm_grant_good(&x->r.b, 0, (uint32_t)(offer >> 32))) {
		x->bad++;
		return;
	}
	x->good++;
	for (int i = 0; i < SPAN / 4; i++)
		if (got[i] != round)
			fail_msg("round %u: word %d is %x", round, i, got[i]);
}

static void test_race(void **state)
{
	uint64_t end = util_now_ns() + RACE_NS;
	static struct race x;
	pthread_t t;

	(void)state;
	rig_up(&x.r, RIG_RING);
	assert_int_equal(pthread_create(&t, NULL, owner, &x), 0);
	while (util_now_ns() < end)
		copier(&x);
	atomic_store(&x.stop, true);
	pthread_join(t, NULL);
	print_message("%u rounds, %u copies good, %u too late\n", x.rounds, x.good, x.bad);
	assert_true(x.good > 0 && x.bad > 0);
	rig_down(&x.r);
}

#define COUNTED(test) cmocka_unit_test_setup_teardown(test, rig_count_before, rig_count_after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		COUNTED(test_life),        COUNTED(test_both_ways), COUNTED(test_all_given),
		COUNTED(test_never_again), COUNTED(test_garbage),   COUNTED(test_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
