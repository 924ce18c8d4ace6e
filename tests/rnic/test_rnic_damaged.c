/* A buffer that the application writes to while it is being sent.
 *
 * Verbs forbid it, hardware survives it. Here the payload is checksummed and then sent
 * from where it lies, so the peer finds the CRC wrong. The message has to be sent again,
 * and nothing else may suffer: every request completes, in order, once, and what was
 * sent from quiet buffers arrives as it was.
 */
#include <pthread.h>
#include <stdatomic.h>
#include "rig.h"

#define BLOCK  (256u << 10)
#define ROUNDS 200

static atomic_bool stop;

static void *scribble(void *arg)
{
	/* volatile: the compiler must not keep the bytes to itself */
	volatile uint8_t *buf = arg;

	for (size_t i = 0; !atomic_load(&stop); i = (i + 4099) % BLOCK)
		buf[i]++;
	return NULL;
}

static void quiet_pattern(uint8_t *buf, size_t len, unsigned int round)
{
	for (size_t i = 0; i < len; i += 8)
		buf[i] = (uint8_t)(round + i / 8);
}

static uint64_t run(struct pair *p, bool send)
{
	pthread_t thread;

	atomic_store(&stop, false);
	CHECK_0(pthread_create(&thread, NULL, scribble, p->a.buf));
	for (unsigned int r = 0; r < ROUNDS; r++) {
		uint8_t *quiet = p->a.buf + BLOCK;

		quiet_pattern(quiet, BLOCK, r);
		memset(p->b.buf + BLOCK, 0, BLOCK);
		if (send) {
			end_recv(&p->b, 1, 0, BLOCK);
			end_recv(&p->b, 2, BLOCK, BLOCK);
			end_send(&p->a, 1, 0, BLOCK); /* the one that is written to */
			end_send(&p->a, 2, BLOCK, BLOCK);
			CHECK_EQ(EXPECT_OK(p->b.rcq, 1).byte_len, BLOCK);
			CHECK_EQ(EXPECT_OK(p->b.rcq, 2).byte_len, BLOCK);
		} else {
			end_write(&p->a, 1, 0, BLOCK, 0);
			end_write(&p->a, 2, BLOCK, BLOCK, BLOCK);
		}
		EXPECT_OK(p->a.scq, 1);
		EXPECT_OK(p->a.scq, 2);
		CHECK(!memcmp(quiet, p->b.buf + BLOCK, BLOCK));
	}
	atomic_store(&stop, true);
	pthread_join(thread, NULL);
	return rig_engine(&p->rig)->stats.bad_crc;
}

static void scribbled(bool send)
{
	struct rig_opts o = rig_defaults();
	uint64_t damaged = 0;
	struct pair p;

	o.buf_len = 2 * BLOCK;
	/* Once is enough for a queue pair: it copies from then on. So several of them. */
	for (int i = 0; i < 3; i++) {
		pair_open(&p, &o);
		damaged += run(&p, send);
		pair_close(&p);
	}
	printf("damaged messages that were sent again: %llu\n", (unsigned long long)damaged);
}

static void test_write(void **state)
{
	(void)state;
	scribbled(false);
}

static void test_send(void **state)
{
	(void)state;
	scribbled(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {RIG_TEST(test_write), RIG_TEST(test_send)};

	/* A race that is the subject of the test. */
	if (RIG_TSAN)
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
