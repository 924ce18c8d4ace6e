/* Names, rates, times and addresses of labs: what is accepted, what is refused and how. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "lab.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static struct lab_spec make(const char *tuple, const char *routing, uint32_t prefix)
{
	struct lab_spec s = {.name = "fat", .net = 0x0a400000, .prefix = prefix};
	char why[256];

	if (fabric_pgft_parse(&s.tree, tuple, why, sizeof(why)) ||
	    fabric_routing_parse(&s.routing, routing, why, sizeof(why)))
		fail_msg("%s", why);
	return s;
}

static void test_names(void **state)
{
	static const char *const good[] = {"a", "fat", "Fat-2", "a-b-c", "abcdefghijklmno"};
	static const char *const bad[] = {"",         "2fat", "-fat", "fat-", "fat_2",
					  "a.b",      "a/b",  "a b",  "..",   "abcdefghijklmnop",
					  "\xc3\xa4", "a\n"};
	struct lab_error e;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++)
		assert_int_equal(lab_name_check(good[i], &e), 0);
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(lab_name_check(bad[i], &e), -EINVAL);
		assert_non_null(strstr(e.text, "it becomes part of host names"));
		assert_non_null(strstr(e.text, "at most 15 characters"));
	}
}

static void test_rates(void **state)
{
	static const struct {
		const char *text;
		uint64_t rate;
		const char *printed;
	} cases[] = {
		{"100mbit", 100000000, "100mbit"},
		{"100Mbit/s", 100000000, "100mbit"},
		{"2.5gbit", UINT64_C(2500000000), "2.5gbit"},
		{".5GBIT", 500000000, "500mbit"},
		{"1.gbit", 1000000000, "1gbit"},
		{"1000mbit", 1000000000, "1gbit"},
		{"0.1mbit", 100000, "100kbit"},
		{"8kbit", 8000, "8kbit"},
		{"8000bit/s", 8000, "8kbit"},
		{"12345bit", 12345, "12.345kbit"},
		{"999999999999999bit", UINT64_C(999999999999999), "999.999999999999tbit"},
		{"1000tbit", UINT64_C(1000000000000000), "1000tbit"},
		{"unlimited", 0, "unlimited"},
		{"Unlimited", 0, "unlimited"},
	};
	struct lab_error e;
	char text[32];
	uint64_t rate;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(lab_rate_parse(cases[i].text, &rate, &e), 0);
		assert_true(rate == cases[i].rate);
		lab_rate_print(rate, text);
		assert_string_equal(text, cases[i].printed);
		assert_int_equal(lab_rate_parse(text, &rate, &e), 0);
		assert_true(rate == cases[i].rate);
	}
}

static void test_bad_rates(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"100", "100: which unit? For example 100mbit"},
		{"2.5", "2.5: which unit? For example 2.5mbit"},
		{"100mbps", "tc takes mbps for bytes per second, others take it for bits; "
			    "write 100mbit"},
		{"1.5Gbps", "write 1.5Gbit for bits per second"},
		{"100bps", "tc takes bps"},
		{"100MB/s", "'MB/s' is not a unit of rates; expected bit, kbit"},
		{"100mbit/h", "is not a unit"},
		{"100 mbit", "is not a unit"},
		{"100m", "'m' is not a unit"},
		{"100/s", "is not a unit"},
		{"0mbit", "a rate of zero lets nothing through; for no limit write 'unlimited'"},
		{"0.0bit", "a rate of zero"},
		{"-5mbit", "-5mbit: a rate can not be negative"},
		{"7999bit", "too slow"},
		{"0.00000001bit", "too slow"},
		{"1001tbit", "too fast"},
		{"99999999999999999999999999999999999999gbit", "too fast"},
		{"", "'' is not a rate; expected a number and a unit"},
		{"mbit", "is not a rate"},
		{".mbit", "is not a rate"},
		{"nan", "is not a rate"},
		{"inf", "is not a rate"},
		{"infmbit", "is not a rate"},
		{"-", "is not a rate"},
		{"+5mbit", "is not a rate"},
		{"1,5mbit", "is not a unit"},
		{"1.2.3mbit", "is not a unit"},
		{"1e3mbit", "is not a unit"},
		{"0x10mbit", "is not a unit"},
	};
	struct lab_error e;
	uint64_t rate = 4711;

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(lab_rate_parse(cases[i].text, &rate, &e), -EINVAL);
		if (!strstr(e.text, cases[i].says))
			fail_msg("'%s' gave: %s", cases[i].text, e.text);
	}
	assert_true(rate == 4711);
}

/* So many digits that they overflow, before and behind the point. */
static void test_endless_digits(void **state)
{
	static char text[20000];
	struct lab_error e;
	uint64_t v;

	(void)state;
	memset(text, '9', sizeof(text) - 1);
	memcpy(text + 12000, "mbit", 5);
	assert_int_equal(lab_rate_parse(text, &v, &e), -EINVAL);
	text[6000] = '.';
	assert_int_equal(lab_rate_parse(text, &v, &e), -EINVAL);
	text[12000] = '\0';
	assert_int_equal(lab_time_parse(text, &v, &e), -EINVAL);
	assert_true(strlen(e.text) < sizeof(e.text) - 1);
}

static void test_times(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{"10", UINT64_C(10000000000)},
		{"0.5", 500000000},
		{"500ms", 500000000},
		{"10s", UINT64_C(10000000000)},
		{"2m", UINT64_C(120000000000)},
		{"2min", UINT64_C(120000000000)},
		{"1h", UINT64_C(3600000000000)},
		{"1500us", 1500000},
		{"1.5S", 1500000000},
	};
	static const char *const bad[] = {"",   "s",   "-1",     "0",       "0s",    "1us",
					  "1d", "1 s", "10001h", "forever", "1.1.1", "nan"};
	struct lab_error e;
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(lab_time_parse(good[i].text, &ns, &e), 0);
		assert_true(ns == good[i].ns);
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(lab_time_parse(bad[i], &ns, &e), -EINVAL);
}

static void expect_address(const struct lab_spec *s, uint32_t level, uint32_t index, uint32_t a,
			   const char *text)
{
	struct fabric_node n = {.level = level, .index = index};
	struct in_addr addr = lab_address(s, n, a);
	char got[INET_ADDRSTRLEN];

	inet_ntop(AF_INET, &addr, got, sizeof(got));
	assert_string_equal(got, text);
}

static void test_addresses(void **state)
{
	struct lab_spec s = make("2;12,2;1,12;1,1", "dmodk", 26);

	(void)state;
	assert_int_equal(lab_address_count(&s), 2 * 25);
	expect_address(&s, 0, 0, 0, "10.64.0.1");
	expect_address(&s, 0, 23, 0, "10.64.0.24");
	expect_address(&s, 1, 0, 0, "10.64.0.32");
	expect_address(&s, 1, 1, 0, "10.64.0.33");
	expect_address(&s, 2, 0, 0, "10.64.0.34");
	expect_address(&s, 2, 11, 0, "10.64.0.45");
	s = make("2;12,2;1,12;1,1", "lmc:2", 24);
	assert_int_equal(lab_address_count(&s), 2 * 25 * 4);
	expect_address(&s, 0, 0, 0, "10.64.0.4");
	expect_address(&s, 0, 0, 3, "10.64.0.7");
	expect_address(&s, 0, 23, 3, "10.64.0.99");
	expect_address(&s, 1, 0, 0, "10.64.0.128");
	/* More switches than hosts. */
	s = make("2;2,1;3,4;1,1", "dmodk", 27);
	assert_int_equal(lab_address_count(&s), 2 * 16);
}

static uint64_t block(uint64_t count)
{
	uint64_t size = 1;

	while (size < count)
		size *= 2;
	return size;
}

/* Every address of the block: to its owner and back, or nobody's; none twice. */
static void check_block(const char *tuple, const char *routing)
{
	struct lab_spec s = make(tuple, routing, 32);
	uint64_t size = block(lab_address_count(&s)), owned = 0;

	for (uint64_t left = size; left > 1; left /= 2)
		s.prefix--;
	for (uint64_t i = 0; i < size; i++) {
		struct in_addr addr = {.s_addr = htonl((uint32_t)(s.net + i))};
		struct fabric_node n;
		uint32_t a;

		if (lab_find_address(&s, addr, &n, &a))
			continue;
		owned++;
		assert_true(lab_address(&s, n, a).s_addr == addr.s_addr);
		assert_true(i > 0 && i < size - 1);
	}
	assert_true(owned == ((uint64_t)fabric_hosts(&s.tree) << s.routing.lmc) +
				     fabric_nodes(&s.tree) - fabric_hosts(&s.tree));
}

static void test_address_owners(void **state)
{
	struct lab_spec s = make("2;12,2;1,12;1,1", "dmodk", 26);
	const uint32_t strangers[] = {0,          s.net - 1,  s.net,      s.net + 25,
				      s.net + 46, s.net + 63, s.net + 64, UINT32_MAX};
	struct fabric_node n;
	uint32_t a;

	(void)state;
	check_block("2;12,2;1,12;1,1", "dmodk");
	check_block("2;12,2;1,12;1,1", "lmc:3");
	check_block("1;3;1;1", "random:5");
	check_block("3;2,2,2;1,2,2;1,1,2", "lmc:7");
	check_block("2;2,1;3,4;1,1", "ecmp");
	check_block("2;12,12;1,6;1,2", "dmodk");
	for (size_t i = 0; i < COUNT(strangers); i++)
		assert_int_equal(lab_find_address(&s,
						  (struct in_addr){.s_addr = htonl(strangers[i])},
						  &n, &a),
				 -ENOENT);
}

static void test_find_node(void **state)
{
	struct lab_spec s = make("2;12,2;1,12;1,1", "lmc:1", 25);
	static const struct {
		const char *text;
		uint32_t level, index, a;
	} good[] = {
		{"h3", 0, 3, 0},         {"fat-h3", 0, 3, 0},    {"s1.1", 1, 1, 0},
		{"fat-s2.11", 2, 11, 0}, {"10.64.0.8", 0, 3, 0}, {"10.64.0.9", 0, 3, 1},
		{"10.64.0.65", 1, 1, 0},
	};
	static const char *const bad[] = {"h24",  "s1.2", "s3.0",    "fat-h24",
					  "fat-", "fat",  "slim-h3", "",
					  "-h3",  "h",    "10.64.0", "fat-10.64.0.8"};
	struct lab_error e;
	struct fabric_node n;
	uint32_t a;

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(lab_find_node(&s, good[i].text, &n, &a, &e), 0);
		assert_int_equal(n.level, good[i].level);
		assert_int_equal(n.index, good[i].index);
		assert_int_equal(a, good[i].a);
	}
	for (size_t i = 0; i < COUNT(bad); i++) {
		assert_int_equal(lab_find_node(&s, bad[i], &n, &a, &e), -ENOENT);
		assert_non_null(strstr(e.text, "its hosts are h0 to h23, its switches s1.0 to "
					       "s2.11"));
	}
	assert_int_equal(lab_find_node(&s, "192.0.2.1", &n, &a, &e), -ENOENT);
	assert_string_equal(e.text, "192.0.2.1 is nobody's address in lab fat, whose block is "
				    "10.64.0.0/25");
}

static void test_other_names(void **state)
{
	struct lab_spec s = make("2;12,2;1,12;1,1", "dmodk", 26);
	struct fabric_node host = {0, 7}, leaf = {1, 1};
	char name[LAB_HOST_NAME_MAX], port[LAB_PORT_MAX];

	(void)state;
	lab_host_name(&s, host, name);
	assert_string_equal(name, "fat-h7");
	lab_host_name(&s, leaf, name);
	assert_string_equal(name, "fat-s1.1");
	lab_port_name(host, true, 0, port);
	assert_string_equal(port, "eth0");
	lab_port_name(leaf, true, 11, port);
	assert_string_equal(port, "u11");
	lab_port_name(leaf, false, 3, port);
	assert_string_equal(port, "d3");
	lab_port_name(host, true, UINT32_MAX, port);
	assert_string_equal(port, "eth4294967295");
}

/* A sentence that is too long is cut, not written beyond its end. */
static void test_fail(void **state)
{
	struct lab_error e;

	(void)state;
	assert_int_equal(lab_fail(&e, ENOENT, "%s has %d", "fat", 3), -ENOENT);
	assert_string_equal(e.text, "fat has 3");
	assert_int_equal(e.code, ENOENT);
	lab_fail(&e, EINVAL, "%1000s", "x");
	assert_int_equal(strlen(e.text), sizeof(e.text) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),          cmocka_unit_test(test_rates),
		cmocka_unit_test(test_bad_rates),      cmocka_unit_test(test_endless_digits),
		cmocka_unit_test(test_times),          cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_address_owners), cmocka_unit_test(test_find_node),
		cmocka_unit_test(test_other_names),    cmocka_unit_test(test_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
