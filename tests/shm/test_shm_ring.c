/* The ring against a model, between two threads, and against a writer that scribbles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "shm_ring.h"
#include "util_clock.h"
#include "util_rand.h"

#ifndef __has_feature
#define __has_feature(x) 0
#endif
#if defined(__SANITIZE_THREAD__) || __has_feature(thread_sanitizer)
#define TSAN 1
#else
#define TSAN 0
#endif

#define GUARD 4096 /* bytes around the ring that nobody may touch */

struct pair {
	uint8_t *mem; /* guard, ring, guard */
	uint8_t *data;
	uint32_t size;
	_Alignas(128) shm_word head;
	_Alignas(128) struct shm_ring_tx tx;
	_Alignas(128) struct shm_ring_rx rx;
};

static void pair_init(struct pair *p, uint32_t size)
{
	memset(p, 0, sizeof(*p));
	p->mem = aligned_alloc(4096, size + 2 * GUARD);
	assert_non_null(p->mem);
	memset(p->mem, 0xa5, size + 2 * GUARD);
	p->data = p->mem + GUARD;
	p->size = size;
	memset(p->data, 0, size);
	shm_ring_tx_init(&p->tx, p->data, size, &p->head);
	shm_ring_rx_init(&p->rx, p->data, size, &p->head);
}

static void pair_free(struct pair *p)
{
	for (uint32_t i = 0; i < GUARD; i++) {
		assert_int_equal(p->mem[i], 0xa5);
		assert_int_equal(p->data[p->size + i], 0xa5);
	}
	free(p->mem);
}

/* The bytes of record number n. */
static void fill(uint8_t *p, uint32_t len, uint64_t n)
{
	struct util_rand r;

	util_rand_seed(&r, n);
	util_rand_bytes(&r, p, len);
}

static int check(const uint8_t *p, uint32_t len, uint64_t n)
{
	struct util_rand r;
	uint64_t v = 0;

	util_rand_seed(&r, n);
	for (uint32_t i = 0; i < len; i++, v >>= 8) {
		if (i % 8 == 0)
			v = util_rand_next(&r);
		if (p[i] != (uint8_t)v)
			return -1;
	}
	return 0;
}

static uint32_t some_len(struct util_rand *r, uint32_t max)
{
	switch (util_rand_below(r, 4)) {
	case 0:
		return (uint32_t)util_rand_below(r, max + 1);
	case 1:
		return max - (uint32_t)util_rand_below(r, 3);
	default:
		return (uint32_t)util_rand_below(r, 200);
	}
}

static void test_sizes(void **state)
{
	(void)state;
	assert_false(shm_ring_size_ok(0));
	assert_false(shm_ring_size_ok(SHM_RING_MIN / 2));
	assert_false(shm_ring_size_ok(SHM_RING_MIN + 64));
	assert_false(shm_ring_size_ok(2 * (uint64_t)SHM_RING_MAX));
	assert_false(shm_ring_size_ok((UINT64_C(1) << 32) + SHM_RING_MIN));
	assert_true(shm_ring_size_ok(SHM_RING_MIN));
	assert_true(shm_ring_size_ok(SHM_RING_MAX));
}

static void test_empty_and_full(void **state)
{
	const void *rec;
	struct pair p;
	uint32_t len;
	int n = 0;

	(void)state;
	pair_init(&p, SHM_RING_MIN);
	assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), 0);
	shm_ring_release(&p.rx); /* nothing was peeked at: nothing happens */
	assert_null(shm_ring_reserve(&p.tx, shm_ring_max(p.size) + 1));
	assert_false(p.tx.full);
	while (shm_ring_reserve(&p.tx, 0)) {
		shm_ring_commit(&p.tx, 0);
		n++;
	}
	assert_true(p.tx.full);
	/* All but the line for the header behind the last one. */
	assert_int_equal(n, p.size / SHM_RING_ALIGN - 1);
	assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), 1);
	assert_int_equal(len, 0);
	assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), 1); /* still the same */
	assert_null(shm_ring_reserve(&p.tx, 0));
	shm_ring_release(&p.rx);
	assert_non_null(shm_ring_reserve(&p.tx, 0));
	assert_false(p.tx.full);
	shm_ring_commit(&p.tx, 0);
	for (; n > 0; n--) {
		assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), 1);
		shm_ring_release(&p.rx);
	}
	assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), 0);
	pair_free(&p);
}

/* The largest record fits wherever the ring stands, as long as it is empty; also one that
 * is reserved large, scribbled full and committed small. */
static void test_wrap(void **state)
{
	struct pair p;

	(void)state;
	pair_init(&p, SHM_RING_MIN);
	for (uint64_t n = 0; n < 2000; n++) {
		uint32_t len = n % 3 ? shm_ring_max(p.size) : (uint32_t)(n * 13 % 300), got, show;
		uint8_t *to = shm_ring_reserve(&p.tx, len);
		const void *rec;

		assert_non_null(to);
		memset(to, 0xff, len);
		show = n % 5 ? len : len / 7;
		fill(to, show, n);
		assert_int_equal(shm_ring_peek(&p.rx, &rec, &got), 0);
		if (n % 7 == 0)
			continue; /* abandoned */
		shm_ring_commit(&p.tx, show);
		assert_int_equal(shm_ring_peek(&p.rx, &rec, &got), 1);
		assert_int_equal(got, show);
		assert_int_equal((uintptr_t)rec % 8, 0);
		assert_int_equal(check(rec, got, n), 0);
		shm_ring_release(&p.rx);
		assert_int_equal(shm_ring_peek(&p.rx, &rec, &got), 0);
	}
	pair_free(&p);
}

#define IN_FLIGHT 4096 /* power of two; more than a ring of the test can hold */

static void run_model(uint64_t seed, uint32_t size)
{
	uint32_t *lens = calloc(IN_FLIGHT, sizeof(*lens)), len;
	uint64_t sent = 0, taken = 0;
	struct util_rand r;
	const void *rec;
	struct pair p;

	assert_non_null(lens);
	util_rand_seed(&r, seed);
	pair_init(&p, size);
	for (int step = 0; step < 100000; step++) {
		/* In phases, so that it gets full and empty. */
		if (util_rand_below(&r, 100) < (step / 500 % 2 ? 80u : 20u)) {
			uint32_t want = some_len(&r, shm_ring_max(size));
			uint32_t show = util_rand_below(&r, 4) ? want : want / 2;
			uint8_t *to = shm_ring_reserve(&p.tx, want);

			if (!to) {
				assert_true(p.tx.full && sent > taken);
				continue;
			}
			memset(to, 0x5a, want);
			fill(to, show, sent);
			shm_ring_commit(&p.tx, show);
			lens[sent++ % IN_FLIGHT] = show;
		} else if (sent == taken) {
			assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), 0);
		} else {
			assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), 1);
			assert_int_equal(len, lens[taken % IN_FLIGHT]);
			assert_int_equal(check(rec, len, taken++), 0);
			shm_ring_release(&p.rx);
		}
	}
	assert_true(taken > 1000);
	free(lens);
	pair_free(&p);
}

static uint64_t test_seed(void)
{
	const char *env = getenv("WEFT_TEST_SEED");
	uint64_t seed = env ? strtoull(env, NULL, 0) : util_now_ns();

	print_message("WEFT_TEST_SEED=%llu\n", (unsigned long long)seed);
	return seed;
}

static void test_model(void **state)
{
	uint64_t seed = test_seed();

	(void)state;
	run_model(seed, SHM_RING_MIN);
	run_model(seed + 1, SHM_RING_MIN * 8);
}

#define RECORDS 1000000

struct stream {
	struct pair p;
	uint64_t seed;
	uint64_t bad;
};

static void *writer(void *arg)
{
	struct stream *s = arg;
	struct util_rand r;

	util_rand_seed(&r, s->seed);
	for (uint64_t n = 0; n < RECORDS; n++) {
		uint32_t len = (uint32_t)util_rand_below(&r, n % 64 ? 100 : 2000);
		uint8_t *to;

		while (!(to = shm_ring_reserve(&s->p.tx, len)))
			sched_yield();
		fill(to, len, n);
		shm_ring_commit(&s->p.tx, len);
	}
	return NULL;
}

/* The same lengths in the same order, by the same seed. */
static void reader(struct stream *s)
{
	struct util_rand r;
	const void *rec;
	uint32_t len;
	int ret;

	util_rand_seed(&r, s->seed);
	for (uint64_t n = 0; n < RECORDS; n++) {
		while (!(ret = shm_ring_peek(&s->p.rx, &rec, &len)))
			sched_yield();
		if (ret < 0 || len != util_rand_below(&r, n % 64 ? 100 : 2000) ||
		    check(rec, len, n)) {
			s->bad = n + 1;
			return;
		}
		shm_ring_release(&s->p.rx);
	}
}

static void test_threads(void **state)
{
	static struct stream s;
	pthread_t t;

	(void)state;
	s.seed = test_seed();
	pair_init(&s.p, 16384);
	assert_int_equal(pthread_create(&t, NULL, writer, &s), 0);
	reader(&s);
	if (s.bad) /* the writer may wait for ever now */
		fail_msg("record %llu is wrong", (unsigned long long)(s.bad - 1));
	pthread_join(t, NULL);
	pair_free(&s.p);
}

/* What a reader does with each header that makes no sense: -EPROTO, and no way back. */
static void test_bad_headers(void **state)
{
	static const uint64_t bad[] = {
		SHM_RING_MIN / 4 + 2, UINT32_MAX, UINT64_C(1) << 32,
		UINT64_MAX - 1,       UINT64_MAX, (UINT64_C(1) << 63) + 5,
	};
	const void *rec;
	struct pair p;
	uint32_t len;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pair_init(&p, SHM_RING_MIN);
		atomic_store(shm_ring_word(p.data, p.size, 0), bad[i]);
		assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), -EPROTO);
		atomic_store(shm_ring_word(p.data, p.size, 0), 0);
		assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), -EPROTO);
		shm_ring_release(&p.rx);
		pair_free(&p);
	}
	/* A good length where it would run over the end. */
	pair_init(&p, SHM_RING_MIN);
	p.rx.pos = SHM_RING_MIN - SHM_RING_ALIGN;
	atomic_store(shm_ring_word(p.data, p.size, p.rx.pos), 1000 + 1);
	assert_int_equal(shm_ring_peek(&p.rx, &rec, &len), -EPROTO);
	pair_free(&p);
}

/* A head that goes back, or past what was written. */
static void test_bad_head(void **state)
{
	static const int64_t bad[] = {-1, 1, 1 << 20, INT64_MAX, INT64_MIN};
	struct pair p;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		pair_init(&p, SHM_RING_MIN);
		for (int n = 0; n < 3; n++) {
			assert_non_null(shm_ring_reserve(&p.tx, 1000));
			shm_ring_commit(&p.tx, 1000);
		}
		atomic_store(&p.head, bad[i] < 0 ? (uint64_t)bad[i] : p.tx.pos + (uint64_t)bad[i]);
		assert_null(shm_ring_reserve(&p.tx, 1000));
		assert_int_equal(p.tx.err, -EPROTO);
		atomic_store(&p.head, p.tx.pos);
		assert_null(shm_ring_reserve(&p.tx, 8));
		pair_free(&p);
	}
}

struct hostile {
	struct pair *p;
	uint64_t seed;
	atomic_bool stop;
};

/* Words that look right now and then, everywhere, all the time. */
static void *scribbler(void *arg)
{
	struct hostile *h = arg;
	struct util_rand r;

	util_rand_seed(&r, h->seed);
	while (!atomic_load_explicit(&h->stop, memory_order_relaxed)) {
		uint64_t at = util_rand_below(&r, h->p->size / 8) * 8, v = util_rand_next(&r);

		if (v % 4 < 2)
			v = v >> 8 & 0x7f;
		else if (v % 4 == 2)
			v = UINT64_MAX;
		else if (v % 64 == 3)
			atomic_store_explicit(&h->p->head, v >> 40, memory_order_relaxed);
		atomic_store_explicit(shm_ring_word(h->p->data, h->p->size, at), v,
				      memory_order_relaxed);
	}
	return NULL;
}

/* Touches all of what it is given, through volatile, or it might not be read at all. */
static unsigned int touch(const struct pair *p, const void *rec, uint32_t len)
{
	const volatile uint8_t *b = rec;
	unsigned int sum = 0;

	assert_true(b >= p->data && b + len <= p->data + p->size);
	for (uint32_t i = 0; i < len; i++)
		sum += b[i];
	return sum;
}

static void test_hostile(void **state)
{
	struct hostile h = {.seed = test_seed()};
	uint64_t taken = 0, broken = 0, until;
	volatile unsigned int sink = 0;
	const void *rec;
	struct pair p;
	uint32_t len;
	pthread_t t;

	(void)state;
	if (TSAN)
		skip(); /* it races on purpose */
	pair_init(&p, SHM_RING_MIN);
	h.p = &p;
	assert_int_equal(pthread_create(&t, NULL, scribbler, &h), 0);
	until = util_now_ns() + UTIL_NS_PER_S;
	while (util_now_ns() < until) {
		int ret = shm_ring_peek(&p.rx, &rec, &len);
		uint8_t *to = shm_ring_reserve(&p.tx, 100);

		if (to) {
			memset(to, 1, 100);
			shm_ring_commit(&p.tx, 100);
		}
		if (ret > 0) {
			sink += touch(&p, rec, len);
			shm_ring_release(&p.rx);
			taken++;
		} else if (ret < 0) {
			/* Another life, another place. */
			assert_int_equal(ret, -EPROTO);
			shm_ring_rx_init(&p.rx, p.data, p.size, &p.head);
			p.rx.pos = ++broken * SHM_RING_ALIGN;
		}
		if (p.tx.err)
			shm_ring_tx_init(&p.tx, p.data, p.size, &p.head);
	}
	atomic_store(&h.stop, true);
	pthread_join(t, NULL);
	(void)sink;
	print_message("%llu records taken, broken %llu times\n", (unsigned long long)taken,
		      (unsigned long long)broken);
	assert_true(taken > 0 && broken > 0);
	pair_free(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),    cmocka_unit_test(test_empty_and_full),
		cmocka_unit_test(test_wrap),     cmocka_unit_test(test_model),
		cmocka_unit_test(test_threads),  cmocka_unit_test(test_bad_headers),
		cmocka_unit_test(test_bad_head), cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
