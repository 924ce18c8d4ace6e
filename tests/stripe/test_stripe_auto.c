/* When messages are divided by themselves. */
#include "test_stripe.h"
#include "stripe_auto.h"

#define MB UINT64_C(1000000)
#define MS UINT64_C(1000000)

/* A network in which an undivided message of 1 MB takes so long and loses so many of its hundred
 * packets, and a divided one takes so long. */
struct net {
	struct stripe_auto a;
	uint64_t sent, lost, now;
	uint64_t single, divided;
	uint32_t loses;
	double link;
};

/* Sends n messages, one after the other; returns how many were divided. */
static uint32_t send_some(struct net *net, uint32_t n)
{
	uint32_t divided = 0;

	for (uint32_t i = 0; i < n; i++) {
		bool yes = stripe_auto(&net->a, net->sent, net->lost, net->link);
		uint64_t began = net->now;

		net->sent += 100;
		net->lost += yes ? 0 : net->loses;
		net->now += yes ? net->divided : net->single;
		stripe_auto_done(&net->a, yes, MB, began, net->now);
		net->now += MS;
		divided += yes;
	}
	return divided;
}

static void test_calm(void **state)
{
	struct net net = {.single = 100 * MS, .divided = 10 * MS};

	(void)state;
	assert_int_equal(send_some(&net, 5000), 0);
	/* What the beginning of a flow costs on the own link is not a crowd. */
	net.link = (double)MB / (double)net.single;
	net.lost += 9;
	assert_int_equal(send_some(&net, 5000), 0);
}

static void test_crowded(void **state)
{
	struct net net = {.single = 100 * MS, .divided = 50 * MS, .loses = 2};

	(void)state;
	/* Soon; and from then on nearly all. */
	assert_in_range(send_some(&net, 100), 50, 100 - STRIPE_AUTO_ENOUGH);
	send_some(&net, 1000);
	assert_true(send_some(&net, 10000) > 9900);
}

/* When the crowd has gone, messages go undivided again. */
static void test_over(void **state)
{
	struct net net = {.single = 100 * MS, .divided = 50 * MS, .loses = 2};

	(void)state;
	send_some(&net, 1000);
	net.loses = 0;
	net.single = 50 * MS;
	send_some(&net, 2 * STRIPE_AUTO_MOST);
	assert_int_equal(send_some(&net, 1000), 0);
	/* And divided when it is back. */
	net.loses = 2;
	net.single = 100 * MS;
	send_some(&net, 200);
	assert_true(send_some(&net, 1000) > 900);
}

/* Who gains nothing by it tries it more and more rarely. */
static void test_in_vain(void **state)
{
	struct net net = {.single = 100 * MS, .divided = 100 * MS, .loses = 2};
	uint32_t first, later;

	(void)state;
	first = send_some(&net, 2000);
	send_some(&net, 20000);
	later = send_some(&net, 2000);
	assert_in_range(first, STRIPE_AUTO_ENOUGH, 400);
	assert_true(later <= 2 * STRIPE_AUTO_ENOUGH);
}

/* Who fills its own link gains nothing by other paths, whatever is lost elsewhere. */
static void test_full(void **state)
{
	struct net net = {.single = 100 * MS, .divided = 50 * MS, .loses = 2};

	(void)state;
	net.link = 1.1 * (double)MB / (double)net.single;
	assert_int_equal(send_some(&net, 1000), 0);
	net.link = 1.5 * (double)MB / (double)net.single;
	assert_true(send_some(&net, 1000) > 800);
}

/* A hot spot that comes after long is found within a few messages, and costs little when it has
 * gone. */
static void test_spot(void **state)
{
	struct net net = {.single = 100 * MS, .divided = 110 * MS};

	(void)state;
	net.link = (double)MB / (double)net.single;
	assert_int_equal(send_some(&net, 1000), 0);
	net.single = 400 * MS;
	net.loses = 2;
	assert_in_range(send_some(&net, 12), 4, 12 - STRIPE_AUTO_ENOUGH);
	assert_int_equal(send_some(&net, 100), 100);
}

/* A path that has settled for what something else leaves it loses nothing. */
static void test_settled(void **state)
{
	struct net net = {.single = 400 * MS, .divided = 110 * MS};

	(void)state;
	assert_int_equal(send_some(&net, 100), 0); /* it is not known what the link has */
	net.link = (double)MB / (double)(100 * MS);
	assert_true(send_some(&net, 12) >= 4);
	assert_int_equal(send_some(&net, 100), 100);
	/* A little less than the link: that may have other reasons. */
	net = (struct net){.single = 150 * MS, .divided = 110 * MS, .link = net.link};
	assert_int_equal(send_some(&net, 1000), 0);
}

/* Messages that go at once: the time in which any is under way counts once. */
static void test_at_once(void **state)
{
	struct stripe_auto a = {0};

	(void)state;
	for (int i = 0; i < 8; i++)
		stripe_auto_done(&a, false, MB, 5 * MS, 100 * MS + (uint64_t)i);
	assert_int_equal(a.single.bytes, 8 * MB);
	assert_int_equal(a.single.ns, 95 * MS + 7);
	/* Nothing that was before. */
	stripe_auto_done(&a, true, MB, 50 * MS, 60 * MS);
	assert_int_equal(a.divided.ns, 0);
}

/* Others divide theirs. */
static uint32_t send_and_hear(struct net *net, uint32_t n)
{
	uint32_t divided = 0;

	for (uint32_t i = 0; i < n; i++) {
		stripe_auto_heard(&net->a);
		divided += send_some(net, 1);
	}
	return divided;
}

static void test_heard(void **state)
{
	/* Half of the own link, and little to gain. */
	struct net net = {.single = 100 * MS, .divided = 90 * MS, .link = (double)MB / (50 * MS)};
	struct net slower = net, full = net;

	(void)state;
	assert_int_equal(send_some(&net, 1000), 0);
	assert_in_range(send_and_hear(&net, 100), 50, 100);
	assert_true(send_and_hear(&net, 10000) > 9800);
	/* Not if it is slower for it, ... */
	slower.divided = 110 * MS;
	assert_in_range(send_and_hear(&slower, 1000), STRIPE_AUTO_ENOUGH, 400);
	/* ... nor where there is nothing to gain. */
	full.link = (double)MB / (90 * MS);
	assert_int_equal(send_and_hear(&full, 1000), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calm),    cmocka_unit_test(test_crowded),
		cmocka_unit_test(test_over),    cmocka_unit_test(test_in_vain),
		cmocka_unit_test(test_heard),   cmocka_unit_test(test_full),
		cmocka_unit_test(test_spot),    cmocka_unit_test(test_settled),
		cmocka_unit_test(test_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
