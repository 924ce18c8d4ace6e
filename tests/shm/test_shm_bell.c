/* Doorbells: rung when somebody sleeps, not otherwise, and never missed. */
#include "link_rig.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "util_clock.h"
#include "util_rand.h"

/* Who sleeps is rung for once, who is awake not at all. */
static void test_bell(void **state)
{
	struct rig r;

	(void)state;
	rig_up(&r, RIG_RING);
	shm_link_ring(&r.a);
	assert_int_equal(rig_bell_count(r.bell_b), 0);
	shm_link_sleep(&r.b, true);
	shm_link_ring_room(&r.a); /* it does not wait for room */
	assert_int_equal(rig_bell_count(r.bell_b), 0);
	shm_link_ring(&r.a);
	shm_link_ring(&r.a);
	assert_int_equal(rig_bell_count(r.bell_b), 1);
	assert_int_equal(rig_bell_count(r.bell_a), 0);
	shm_link_sleep(&r.b, true);
	shm_link_sleep(&r.b, false);
	shm_link_ring(&r.a);
	assert_int_equal(rig_bell_count(r.bell_b), 0);
	while (shm_ring_reserve(&r.b.tx, 500))
		shm_ring_commit(&r.b.tx, 500);
	shm_link_sleep(&r.b, true);
	shm_link_ring_room(&r.a); /* nothing was read yet */
	assert_int_equal(rig_bell_count(r.bell_b), 0);
	for (uint64_t from = r.a.rx.pos; r.a.rx.pos - from < RIG_RING / 4;) {
		const void *rec;
		uint32_t len;

		assert_int_equal(shm_ring_peek(&r.a.rx, &rec, &len), 1);
		shm_ring_release(&r.a.rx);
	}
	shm_link_ring_room(&r.a);
	shm_link_ring_room(&r.a);
	assert_int_equal(rig_bell_count(r.bell_b), 1);
	assert_non_null(shm_ring_reserve(&r.b.tx, 500));
	rig_down(&r);
}

/* The race that the flag is about: one side commits and looks whether the other sleeps, the
 * other falls asleep and looks whether there is something, within the same few nanoseconds.
 * Nothing blocks here; a sleeper that has found nothing watches its doorbell instead, so
 * that there can be very many tries. */
#define TRIES    300000
#define TIME_MAX (3 * UTIL_NS_PER_S) /* enough tries on any machine */
#define PATIENCE (5 * UTIL_NS_PER_S)

struct race {
	struct rig r;
	atomic_uint turn;   /* both start try number `turn` at the same time */
	atomic_uint woken;  /* tries that the sleeper has survived */
	atomic_bool missed; /* it was not rung for */
	unsigned int slept;
};

static void spin(struct util_rand *r, uint64_t below)
{
	for (volatile uint64_t n = util_rand_below(r, below); n > 0; n--)
		;
}

static bool found(struct race *race)
{
	const void *rec;
	uint32_t len;

	if (shm_ring_peek(&race->r.b.rx, &rec, &len) != 1)
		return false;
	shm_ring_release(&race->r.b.rx);
	return true;
}

/* Sleeps until there is a record. It may be woken for nothing, by a ring for the record
 * before, which it has found by itself. */
static void fall_asleep(struct race *race)
{
	uint64_t until = util_now_ns() + PATIENCE;

	for (;;) {
		shm_link_sleep(&race->r.b, true);
		if (found(race))
			break;
		race->slept++;
		while (!rig_bell_count(race->r.bell_b)) {
			if (util_now_ns() > until) {
				atomic_store(&race->missed, true);
				return;
			}
		}
		shm_link_sleep(&race->r.b, false);
		if (found(race))
			return;
	}
	shm_link_sleep(&race->r.b, false);
}

static void *sleeper(void *arg)
{
	struct race *race = arg;
	unsigned int seen = 0, now;
	struct util_rand r;

	util_rand_seed(&r, 2);
	while ((now = atomic_load(&race->turn)) != UINT32_MAX) {
		if (now == seen)
			continue;
		seen = now;
		spin(&r, 50);
		fall_asleep(race);
		rig_bell_count(race->r.bell_b);
		atomic_store(&race->woken, seen);
	}
	return NULL;
}

static void test_race(void **state)
{
	static struct race race;
	uint64_t until = util_now_ns() + TIME_MAX;
	struct util_rand r;
	unsigned int n;
	pthread_t t;

	(void)state;
	util_rand_seed(&r, 1);
	rig_up(&race.r, RIG_RING);
	assert_int_equal(pthread_create(&t, NULL, sleeper, &race), 0);
	for (n = 1; n <= TRIES && util_now_ns() < until; n++) {
		void *to = shm_ring_reserve(&race.r.a.tx, 8);

		assert_non_null(to);
		memset(to, 0, 8);
		atomic_store(&race.turn, n);
		spin(&r, 500); /* the sleeper hears of its turn later */
		shm_ring_commit(&race.r.a.tx, 8);
		shm_link_ring(&race.r.a);
		while (atomic_load(&race.woken) != n && !atomic_load(&race.missed))
			;
		if (atomic_load(&race.missed))
			break;
	}
	atomic_store(&race.turn, UINT32_MAX);
	pthread_join(t, NULL);
	print_message("fell asleep %u times in %u tries\n", race.slept, n - 1);
	assert_false(atomic_load(&race.missed));
	rig_down(&race.r);
}

#define COUNTED(test) cmocka_unit_test_setup_teardown(test, rig_count_before, rig_count_after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		COUNTED(test_bell),
		COUNTED(test_race),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
