/* Which tuples are RLFTs, and which rule the others break where. */
#include "test_fabric.h"

#include "fabric_rlft.h"

static struct fabric_rlft check(const char *text)
{
	struct fabric_pgft t = tree(text);
	struct fabric_rlft r;
	bool is_one = fabric_rlft_check(&t, &r);

	assert_int_equal(is_one, r.count == 0);
	assert_true(r.count <= FABRIC_RLFT_MAX);
	for (uint32_t i = 0; i < r.count; i++) {
		print_message("%s: %s\n", text, r.broken[i].text);
		assert_true(strlen(r.broken[i].text) > 20);
		assert_true(strlen(r.broken[i].text) < sizeof(r.broken[i].text) - 1);
	}
	return r;
}

/* Table 3, as corrected. */
static void test_corrected(void **state)
{
	static const char *const whole[] = {
		"2;12,12;1,6;1,2",        "2;18,18;1,9;1,2",          "3;12,12,12;1,12,6;1,1,2",
		"3;18,18,6;1,18,3;1,1,6", "3;18,18,36;1,18,18;1,1,1", "1;5;1;1",
		"2;12,24;1,12;1,1",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(whole); i++)
		assert_int_equal(check(whole[i]).count, 0);
}

static void check_broken(const char *text, uint32_t at, enum fabric_rlft_rule rule, uint32_t level,
			 const char *words)
{
	struct fabric_rlft r = check(text);

	assert_true(at < r.count);
	assert_int_equal(r.broken[at].rule, rule);
	assert_int_equal(r.broken[at].level, level);
	if (!strstr(r.broken[at].text, words))
		fail_msg("\"%s\" is not in \"%s\"", words, r.broken[at].text);
}

/* Table 3, as printed. */
static void test_printed(void **state)
{
	(void)state;
	assert_int_equal(check("2;12,12;1,12;1,2").count, 2);
	check_broken("2;12,12;1,12;1,2", 0, FABRIC_RLFT_BISECTION, 1,
		     "m1*p1 = 12 ports down and w2*p2 = 24 ports up");
	check_broken("2;12,12;1,12;1,2", 1, FABRIC_RLFT_PORTS, 2, "m2*p2 = 24 ports");
	assert_int_equal(check("2;16,16;1,16;1,2").count, 2);
	check_broken("2;16,16;1,16;1,2", 0, FABRIC_RLFT_BISECTION, 1, "16 ports down");
	assert_int_equal(check("3;12,12,12;1,12,12;1,1,2").count, 2);
	check_broken("3;12,12,12;1,12,12;1,1,2", 0, FABRIC_RLFT_BISECTION, 2,
		     "m2*p2 = 12 ports down and w3*p3 = 24 ports up");
	check_broken("3;12,12,12;1,12,12;1,1,2", 1, FABRIC_RLFT_PORTS, 2, "36 ports");
	assert_int_equal(check("3;18,18,6;1,18,6;1,1,3").count, 1);
	check_broken("3;18,18,6;1,18,6;1,1,3", 0, FABRIC_RLFT_PORTS, 3,
		     "level 3, the top, have m3*p3 = 18 ports, those of level 1 have 36");
}

static void test_hosts(void **state)
{
	(void)state;
	check_broken("1;4;3;2", 0, FABRIC_RLFT_HOSTS, 1, "w1*p1 = 3*2 cables");
	check_broken("2;4,4;2,2;2,3", 0, FABRIC_RLFT_HOSTS, 1, "w1*p1 = 2*2");
	check_broken("2;2,8;1,2;2,1", 0, FABRIC_RLFT_HOSTS, 1, "w1*p1 = 1*2");
}

/* Every small tuple against the rules as written down, as one condition. */
static void test_all_small(void **state)
{
	uint32_t found = 0;

	(void)state;
	for (uint32_t x = 0; x < 4 * 4 * 4 * 4 * 2 * 2; x++) {
		uint32_t m1 = 1 + x % 4, m2 = 1 + x / 4 % 4, w2 = 1 + x / 16 % 4,
			 p2 = 1 + x / 64 % 4;
		uint32_t w1 = 1 + x / 256 % 2, p1 = 1 + x / 512;
		bool want = w1 == 1 && p1 == 1 && m1 == w2 * p2 && m2 * p2 == 2 * m1;
		struct fabric_rlft r;
		struct fabric_pgft t;
		char text[64];

		snprintf(text, sizeof(text), "2;%u,%u;%u,%u;%u,%u", m1, m2, w1, w2, p1, p2);
		t = tree(text);
		assert_int_equal(fabric_rlft_check(&t, &r), want);
		found += want;
	}
	/* By hand: m1 = w2*p2 and m2*p2 = 2*m1 hence m2 = 2*w2 <= 4: w2 is 1 or 2, p2 <= 4/w2. */
	assert_int_equal(found, 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corrected),
		cmocka_unit_test(test_printed),
		cmocka_unit_test(test_hosts),
		cmocka_unit_test(test_all_small),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
