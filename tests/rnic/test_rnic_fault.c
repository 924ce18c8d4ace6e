/* Faults on purpose: what a specification means, and that it happens as often as it says. */
#include <math.h>
#include "rig.h"
#include "rnic_fault.h"
#include "util_log.h"

#define ONE    4294967296.0
#define ROUNDS 1000000

static struct rnic_fault parse(const char *spec)
{
	char why[256] = "";
	struct rnic_fault f;

	if (rnic_fault_parse(&f, spec, why, sizeof(why)))
		fail_msg("%s: %s", spec, why);
	return f;
}

/* ---- parsing ---- */

static void test_nothing(void **state)
{
	struct rnic_fault f = parse(NULL);

	(void)state;
	CHECK(!rnic_fault_any(&f));
	f = parse("");
	CHECK(!rnic_fault_any(&f));
	f = parse("loss=0,delay=0,seed=3");
	CHECK(!rnic_fault_any(&f));
	for (size_t len = 0; len < 100; len++) {
		struct rnic_fault_verdict v = rnic_fault_next(&f, len);

		CHECK(!v.drop && !v.again && !v.flip && !v.reorder && !v.delay);
	}
}

static void test_probabilities(void **state)
{
	static const struct {
		const char *text;
		double p;
	} good[] = {
		{"0", 0},        {"1", 1},          {"1.0", 1},           {"0.5", 0.5},
		{".5", 0.5},     {"0.05", 0.05},    {"5%", 0.05},         {"100%", 1},
		{"0.1%", 0.001}, {"0%", 0},         {"12.5%", 0.125},     {"0.000001", 0.000001},
		{"001.", 1},     {"0.25000", 0.25}, {"99.999%", 0.99999}, {"1.00%", .01}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char spec[64];
		struct rnic_fault f;

		snprintf(spec, sizeof(spec), "corrupt=%s,seed=1", good[i].text);
		f = parse(spec);
		if (fabs((double)f.corrupt - good[i].p * ONE) > 0.51)
			fail_msg("%s became %f", spec, (double)f.corrupt / ONE);
		CHECK(!f.loss && !f.dup && !f.reorder && !f.delay);
	}
}

static void test_delays(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {{"0", 0},
		    {"2", 2000000},
		    {"7ns", 7},
		    {"30us", 30000},
		    {"2ms", 2000000},
		    {"08ms", 8000000},
		    {"1s", 1000000000},
		    {"60s", UINT64_C(60000000000)},
		    {"60000000000ns", UINT64_C(60000000000)}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		char spec[64];

		snprintf(spec, sizeof(spec), "seed=1,delay=%s", good[i].text);
		CHECK(parse(spec).delay == good[i].ns);
	}
}

static void test_everything(void **state)
{
	struct rnic_fault f =
		parse("loss=0.05,dup=0.01,reorder=0.02,corrupt=0.04,delay=2ms,seed=42");

	(void)state;
	CHECK_EQ(llround((double)f.loss / ONE * 1e6), 50000);
	CHECK_EQ(llround((double)f.dup / ONE * 1e6), 10000);
	CHECK_EQ(llround((double)f.reorder / ONE * 1e6), 20000);
	CHECK_EQ(llround((double)f.corrupt / ONE * 1e6), 40000);
	CHECK_EQ(f.delay, 2000000);
	CHECK_EQ(f.seed, 42);
	CHECK(f.seeded && rnic_fault_any(&f));
	CHECK_EQ(parse("seed=042").seed, 42);
	CHECK_EQ(parse("seed=0x2a").seed, 42);
	CHECK(parse("seed=18446744073709551615").seed == UINT64_MAX);
}

/* Every refusal names the value and says what would be right, and leaves no faults. */
static void test_refusals(void **state)
{
	static const struct {
		const char *spec, *wrong, *right;
	} bad[] = {
		{"loss", "\"loss\"", "KEY=VALUE"},
		{"loss=0.1,", "\"\"", "KEY=VALUE"},
		{",loss=0.1", "\"\"", "KEY=VALUE"},
		{"loss=0.1,,dup=0.1", "\"\"", "KEY=VALUE"},
		{"loss:0.1", "\"loss:0.1\"", "KEY=VALUE"},
		{"los=0.1", "\"los\"", "loss, dup, corrupt, reorder, delay and seed"},
		{"losses=0.1", "\"losses\"", "keys are loss"},
		{"Loss=0.1", "\"Loss\"", "keys are loss"},
		{"loss=0.1, dup=0.1", "\" dup\"", "keys are loss"},
		{"=0.1", "\"\"", "keys are loss"},
		{"loss=0.1,loss=0.1", "loss is there twice", "once"},
		{"loss=", "loss= ", "from 0 to 1"},
		{"loss=1.1", "loss=1.1", "from 0 to 1"},
		{"loss=2", "loss=2", "percentage, as 5%"},
		{"dup=101%", "dup=101%", "from 0 to 1"},
		{"dup=-0.1", "dup=-0.1", "from 0 to 1"},
		{"dup=+0.1", "dup=+0.1", "from 0 to 1"},
		{"dup= 0.1", "dup= 0.1", "from 0 to 1"},
		{"dup=1e-3", "dup=1e-3", "as 0.05"},
		{"corrupt=0.1x", "corrupt=0.1x", "from 0 to 1"},
		{"corrupt=5%%", "corrupt=5%%", "from 0 to 1"},
		{"corrupt=0.1.1", "corrupt=0.1.1", "from 0 to 1"},
		{"reorder=.", "reorder=.", "from 0 to 1"},
		{"reorder=nan", "reorder=nan", "from 0 to 1"},
		{"reorder=0x1", "reorder=0x1", "from 0 to 1"},
		/* rarer than can be expressed, and more digits than are kept */
		{"loss=0.000000000001", "loss=0.000000000001", "from 0 to 1"},
		{"loss=0.1000000000001", "loss=0.1000000000001", "from 0 to 1"},
		{"delay=", "delay= ", "ns, us, ms or s"},
		{"delay=fast", "delay=fast", "as 2ms"},
		{"delay=2m", "delay=2m", "ns, us, ms or s"},
		{"delay=2 ms", "delay=2 ms", "ns, us, ms or s"},
		{"delay=1.5ms", "delay=1.5ms", "whole number"},
		{"delay=-1ms", "delay=-1ms", "whole number"},
		{"delay=61s", "delay=61s", "up to 60s"},
		{"delay=99999999999999999999s", "delay=9999", "up to 60s"},
		{"delay=18446744073709551615s", "delay=1844", "up to 60s"},
		{"seed=", "seed= ", "whole number"},
		{"seed=1.0", "seed=1.0", "whole number"},
		{"seed=-1", "seed=-1", "whole number"},
		{"seed=0x", "seed=0x", "whole number"},
		{"seed=18446744073709551616", "seed=1844", "below 2^64"},
		{"loss=0.000000000000000000000000000000000000000000000000000000000000000000000000",
		 "loss=0.0000", "from 0 to 1"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		char why[256] = "";
		struct rnic_fault f;

		memset(&f, 0xff, sizeof(f));
		CHECK_EQ(rnic_fault_parse(&f, bad[i].spec, why, sizeof(why)), -EINVAL);
		CHECK(!rnic_fault_any(&f));
		if (!strstr(why, bad[i].wrong) || !strstr(why, bad[i].right))
			fail_msg("%s: %s", bad[i].spec, why);
	}
}

/* A reason that does not fit is cut, and nothing behind it written. */
static void test_small_reason(void **state)
{
	char why[17];
	struct rnic_fault f;

	(void)state;
	why[16] = '#';
	CHECK_EQ(rnic_fault_parse(&f, "loss=much", why, 16), -EINVAL);
	CHECK_EQ(strlen(why), 15);
	CHECK_EQ(why[16], '#');
	CHECK_EQ(rnic_fault_parse(&f, "loss=much", NULL, 0), -EINVAL);
}

/* Bytes of any kind: taken or refused, and never more than that. */
static void test_garbage(void **state)
{
	static const char alphabet[] = "loss=dupcorrupt,reorder.delay%seed0123456789xms ";
	struct util_rand *r = rig_rand();

	(void)state;
	util_log_set_level(UTIL_LOG_ERROR); /* drawn seeds */
	for (int i = 0; i < 100000; i++) {
		char spec[40], why[64];
		size_t len = util_rand_below(r, sizeof(spec));
		struct rnic_fault f;

		for (size_t k = 0; k < len; k++) {
			spec[k] = alphabet[util_rand_below(r, sizeof(alphabet) - 1)];
			if (!util_rand_below(r, 20))
				spec[k] = (char)(1 + util_rand_below(r, 255));
		}
		spec[len] = '\0';
		if (rnic_fault_parse(&f, spec, why, sizeof(why)))
			CHECK(strlen(why) > 0);
		else
			CHECK(f.loss <= (uint64_t)ONE && f.dup <= (uint64_t)ONE);
	}
	util_log_set_level(UTIL_LOG_WARN);
}

/* ---- decisions ---- */

static void within(const char *what, uint64_t count, double p)
{
	double want = p * ROUNDS, sigma = sqrt(ROUNDS * p * (1 - p));

	if (fabs((double)count - want) > 3 * sigma)
		fail_msg("%s: %llu of %d, expected %.0f +- %.0f", what, (unsigned long long)count,
			 ROUNDS, want, 3 * sigma);
}

/* A fixed seed: seven comparisons at 3 sigma fail by chance in one run of fifty. */
static void test_frequencies(void **state)
{
	struct rnic_fault f = parse("loss=5%,dup=0.01,corrupt=0.02,reorder=50%,delay=2ms,seed=20");
	uint64_t drop = 0, again = 0, flip = 0, reorder = 0, both = 0, low = 0, early = 0;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		struct rnic_fault_verdict v = rnic_fault_next(&f, 1000);

		drop += v.drop;
		again += v.again;
		flip += v.flip;
		reorder += v.reorder;
		both += v.drop && v.reorder;
		low += v.flip && v.bit < 4000;
		early += v.delay < 500000;
		CHECK(v.delay <= 2000000);
		CHECK(v.bit < 8000);
	}
	within("loss", drop, 0.05);
	within("dup", again, 0.01);
	within("corrupt", flip, 0.02);
	within("reorder", reorder, 0.5);
	within("loss and reorder", both, 0.025); /* independent of each other */
	within("corrupt in the first half", low, 0.01);
	within("delay in the first quarter", early, 0.25);
}

static void test_always_and_never(void **state)
{
	struct rnic_fault f = parse("loss=1,corrupt=100%,delay=1ns,seed=1");
	uint64_t late = 0;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		struct rnic_fault_verdict v = rnic_fault_next(&f, 1);

		CHECK(v.drop && v.flip && !v.again && !v.reorder);
		CHECK(v.bit < 8);
		CHECK(v.delay <= 1);
		late += v.delay;
	}
	CHECK(late > 4500 && late < 5500);
}

/* The bit is one of the datagram, every one of them is hit, and nothing has none. */
static void test_bits(void **state)
{
	struct rnic_fault f = parse("corrupt=1,seed=7");

	(void)state;
	for (size_t len = 1; len <= 16; len++) {
		bool hit[128] = {false};

		for (int i = 0; i < 5000; i++) {
			struct rnic_fault_verdict v = rnic_fault_next(&f, len);

			CHECK(v.flip && v.bit < 8 * len);
			hit[v.bit] = true;
		}
		for (size_t i = 0; i < 8 * len; i++)
			CHECK(hit[i]);
	}
	for (int i = 0; i < 1000; i++) {
		struct rnic_fault_verdict v = rnic_fault_next(&f, 0);

		CHECK(!v.flip && !v.bit);
	}
	CHECK(rnic_fault_next(&f, 65535).bit < 8 * 65535);
}

static bool same(struct rnic_fault_verdict a, struct rnic_fault_verdict b)
{
	return a.drop == b.drop && a.again == b.again && a.flip == b.flip && a.bit == b.bit &&
	       a.reorder == b.reorder && a.delay == b.delay;
}

static void test_seeds(void **state)
{
	static const char *const spec = "loss=0.3,dup=0.3,corrupt=0.3,reorder=0.3,delay=1ms,seed=";
	struct rnic_fault f[3], only = parse("loss=0.3,seed=5");
	int differ = 0;

	(void)state;
	for (int i = 0; i < 3; i++) {
		char text[128];

		snprintf(text, sizeof(text), "%s%d", spec, i < 2 ? 5 : 6);
		f[i] = parse(text);
	}
	for (int i = 0; i < 10000; i++) {
		struct rnic_fault_verdict v = rnic_fault_next(&f[0], 100);

		CHECK(same(v, rnic_fault_next(&f[1], 100)));
		differ += !same(v, rnic_fault_next(&f[2], 100));
		/* One fault less does not change the others. */
		CHECK_EQ(rnic_fault_next(&only, 100).drop, v.drop);
	}
	CHECK(differ > 5000);
}

/* Without a seed: one that is not always the same, and that repeats the choices. */
static void test_drawn_seed(void **state)
{
	struct rnic_fault a, b, again;
	char spec[64];

	(void)state;
	util_log_set_level(UTIL_LOG_ERROR);
	a = parse("loss=0.5");
	b = parse("loss=0.5");
	util_log_set_level(UTIL_LOG_WARN);
	CHECK(!a.seeded && !b.seeded);
	CHECK(a.seed != b.seed);
	snprintf(spec, sizeof(spec), "loss=0.5,seed=%llu", (unsigned long long)a.seed);
	again = parse(spec);
	for (int i = 0; i < 1000; i++)
		CHECK(same(rnic_fault_next(&a, 10), rnic_fault_next(&again, 10)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		RIG_TEST(test_nothing),  RIG_TEST(test_probabilities),
		RIG_TEST(test_delays),   RIG_TEST(test_everything),
		RIG_TEST(test_refusals), RIG_TEST(test_small_reason),
		RIG_TEST(test_garbage),  RIG_TEST(test_frequencies),
		RIG_TEST(test_bits),     RIG_TEST(test_always_and_never),
		RIG_TEST(test_seeds),    RIG_TEST(test_drawn_seed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
