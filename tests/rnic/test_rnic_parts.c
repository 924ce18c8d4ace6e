/* The small parts that need no device: table of numbers, timers, receive queues. */
#include "rig.h"
#include "rnic_rq.h"
#include "rnic_table.h"

/* ---- the table ---- */

static void test_table(void **state)
{
	enum { N = 3000 };
	struct util_rand *r = rig_rand();
	struct rnic_table *t = rnic_table_new();
	uint32_t keys[N];
	char values[N];
	bool in[N] = {false};

	(void)state;
	CHECK(t);
	for (int i = 0; i < N; i++)
		/* half of them in a row, as numbers of queue pairs are; key 0 among them */
		keys[i] = i % 2 ? (uint32_t)i * 256 : (uint32_t)(util_rand_next(r) | 1);
	keys[1] = 0;
	for (int round = 0; round < 20000; round++) {
		size_t i = util_rand_below(r, N);

		if (in[i]) {
			CHECK_EQ(rnic_table_add(t, keys[i], &values[0]), -EEXIST);
			CHECK(rnic_table_get(t, keys[i]) == &values[i]);
			if (util_rand_below(r, 2)) {
				rnic_table_del(t, keys[i]);
				in[i] = false;
			}
		} else {
			void *was = rnic_table_get(t, keys[i]);

			if (was)
				continue; /* two equal random keys */
			CHECK_0(rnic_table_add(t, keys[i], &values[i]));
			in[i] = true;
		}
	}
	for (int i = 0; i < N; i++)
		if (in[i])
			CHECK(rnic_table_get(t, keys[i]) == &values[i]);
	rnic_table_del(t, 0x12345679); /* of one that is not there: nothing */
	rnic_table_free(t);
	rnic_table_free(NULL);
}

/* ---- timers ---- */

#define TIMERS 200

static struct rnic_engine engine;
static struct rnic_timer timers[TIMERS];
static uint64_t fired_last;
static unsigned int fired;

static void fire(struct rnic_timer *t, uint64_t now)
{
	CHECK(t->at <= now);
	CHECK(t->at >= fired_last); /* in order */
	CHECK_EQ(t->slot, -1);
	fired_last = t->at;
	fired++;
}

static void again(struct rnic_timer *t, uint64_t now)
{
	if (++fired < 5)
		CHECK_0(rnic_timer_arm(&engine, t, now + 10));
}

static void test_timers(void **state)
{
	struct util_rand *r = rig_rand();
	unsigned int armed = 0;

	(void)state;
	memset(&engine, 0, sizeof(engine));
	CHECK(rnic_timer_next(&engine) == UINT64_MAX);
	for (int i = 0; i < TIMERS; i++)
		rnic_timer_init(&timers[i], fire);
	for (int round = 0; round < 5000; round++) {
		struct rnic_timer *t = &timers[util_rand_below(r, TIMERS)];

		if (util_rand_below(r, 3))
			CHECK_0(rnic_timer_arm(&engine, t, 1000 + util_rand_below(r, 10000)));
		else
			rnic_timer_cancel(&engine, t);
	}
	for (int i = 0; i < TIMERS; i++)
		armed += timers[i].slot >= 0;
	CHECK_EQ(engine.n_timers, armed);
	fired = 0;
	fired_last = 0;
	rnic_timer_run(&engine, 999);
	CHECK_EQ(fired, 0);
	rnic_timer_run(&engine, 5000);
	CHECK(fired > 0 && fired < armed);
	CHECK(rnic_timer_next(&engine) > 5000);
	rnic_timer_run(&engine, 20000);
	CHECK_EQ(fired, armed);
	CHECK(rnic_timer_next(&engine) == UINT64_MAX);
	/* one that arms itself again, and is not due yet */
	rnic_timer_init(&timers[0], again);
	CHECK_0(rnic_timer_arm(&engine, &timers[0], 0));
	fired = 0;
	rnic_timer_run(&engine, 100);
	CHECK_EQ(fired, 1);
	for (uint64_t now = 110; now < 200; now += 10)
		rnic_timer_run(&engine, now);
	CHECK_EQ(fired, 5);
	free(engine.heap);
}

/* ---- receive queues ---- */

static void test_rq(void **state)
{
	static const uint64_t lengths[] = {0, 10, 30, 60};
	struct ibv_sge sge[3] = {{1, 10, 1}, {2, 20, 2}, {3, 30, 3}};
	struct ibv_recv_wr wr = {.sg_list = sge}, *bad;
	struct rnic_rwqe *out;
	struct list_head waiter;
	struct rnic_rq rq;
	bool wake, low;

	(void)state;
	list_init(&waiter);
	CHECK_0(rnic_rq_init(&rq, 5, 3));
	out = malloc(rnic_rwqe_size(&rq));
	CHECK(out);
	for (uint64_t round = 0; round < 40; round++) {
		for (uint64_t i = 0; i < 5; i++) {
			wr.wr_id = round * 5 + i;
			wr.num_sge = (int)(i % 4);
			CHECK_0(rnic_rq_post(&rq, &wr, &bad, &wake));
			CHECK(!wake);
		}
		CHECK_EQ(rnic_rq_post(&rq, &wr, &bad, &wake), ENOMEM);
		for (uint64_t i = 0; i < 5; i++) {
			CHECK(rnic_rq_hold(&rq, out, &waiter, &low));
			CHECK_EQ(out->wr_id, round * 5 + i);
			CHECK_EQ(out->num_sge, i % 4);
			CHECK_EQ(out->length, lengths[i % 4]);
			CHECK_0(memcmp(out->sge, sge, (size_t)out->num_sge * sizeof(*sge)));
			/* what is held keeps its place, and comes first when it is given back */
			CHECK_EQ(rnic_rq_post(&rq, &wr, &bad, &wake), ENOMEM);
			if (round % 2) {
				rnic_rq_give_back(&rq, out);
				CHECK_EQ(rnic_rq_post(&rq, &wr, &bad, &wake), ENOMEM);
				memset(out, 0, sizeof(*out));
				CHECK(rnic_rq_hold(&rq, out, &waiter, &low));
				CHECK_EQ(out->wr_id, round * 5 + i);
			}
		}
		for (int i = 0; i < 5; i++)
			rnic_rq_used(&rq);
	}
	/* who finds none is woken by the next, once */
	CHECK(!rnic_rq_hold(&rq, out, NULL, &low));
	CHECK(list_empty(&rq.waiters));
	CHECK(!rnic_rq_hold(&rq, out, &waiter, &low));
	CHECK(!rnic_rq_hold(&rq, out, &waiter, &low)); /* twice on the list is once */
	CHECK(!list_empty(&rq.waiters));
	CHECK_0(rnic_rq_post(&rq, &wr, &bad, &wake));
	CHECK(wake);
	CHECK_0(rnic_rq_post(&rq, &wr, &bad, &wake));
	CHECK(!wake);
	list_del(&waiter);
	rq.limit = 2;
	CHECK(rnic_rq_hold(&rq, out, NULL, &low));
	CHECK(low);
	CHECK(rnic_rq_hold(&rq, out, NULL, &low));
	CHECK(!low);
	rnic_rq_destroy(&rq);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_table),
		RIG_TEST(test_timers),
		RIG_TEST(test_rq),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
