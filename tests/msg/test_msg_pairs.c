/* Which address talks to which. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include "util_rand.h"
#include "msg_pairs.h"

static uint32_t ip(const char *text)
{
	struct in_addr a;

	assert_int_equal(inet_pton(AF_INET, text, &a), 1);
	return a.s_addr;
}

/* own: "10.0.0.1/24 ..."; peer: "10.0.0.2 ...", the first of which it is known by. want: numbers of
 * our addresses and, behind them, those of the peer's: "0:10.0.0.2 ...". */
static void check(const char *own, const char *peer, const char *want)
{
	struct msg_own o[MSG_ADDRS];
	struct msg_pair out[MSG_ADDRS];
	uint32_t p[64], n_own = 0, n_peer = 0, n;
	char copy[1024], got[1024] = "", *save, *slash;

	strcpy(copy, own);
	for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		int bits;

		slash = strchr(s, '/');
		*slash = 0;
		bits = (int)strtol(slash + 1, NULL, 10);
		o[n_own++] = (struct msg_own){
			.ip = ip(s),
			.mask = htonl((uint32_t)(UINT64_C(0xffffffff) << (32 - bits)))};
	}
	strcpy(copy, peer);
	for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save))
		p[n_peer++] = ip(s);
	n = msg_pairs(o, n_own, p[0], p, n_peer, out);
	for (uint32_t i = 0; i < n; i++)
		sprintf(got + strlen(got), "%s%u:%s", i ? " " : "", out[i].own,
			inet_ntoa((struct in_addr){out[i].peer}));
	assert_string_equal(got, want);
}

/* Several in one subnet, as with LMC: number i to number i. */
static void test_one_subnet(void **state)
{
	(void)state;
	check("10.0.0.4/16 10.0.0.5/16 10.0.0.6/16 10.0.0.7/16",
	      "10.0.0.8 10.0.0.9 10.0.0.10 10.0.0.11",
	      "0:10.0.0.8 1:10.0.0.9 2:10.0.0.10 3:10.0.0.11");
	check("10.0.0.4/16 10.0.0.5/16", "10.0.0.8 10.0.0.9 10.0.0.10",
	      "0:10.0.0.8 1:10.0.0.9 0:10.0.0.10");
	check("10.0.0.4/16 10.0.0.5/16 10.0.0.6/16", "10.0.0.8 10.0.0.9", "0:10.0.0.8 1:10.0.0.9");
	check("10.0.0.4/16 10.0.0.5/16", "10.0.0.8", "0:10.0.0.8");
	check("10.0.0.4/16", "10.0.0.8 10.0.0.9", "0:10.0.0.8 0:10.0.0.9");
}

/* Several interfaces: each to its counterpart, in whatever order they are. */
static void test_interfaces(void **state)
{
	(void)state;
	check("10.1.0.1/24 10.2.0.1/24", "10.1.0.2 10.2.0.2", "0:10.1.0.2 1:10.2.0.2");
	check("10.1.0.1/24 10.2.0.1/24", "10.2.0.2 10.1.0.2", "1:10.2.0.2 0:10.1.0.2");
	check("10.1.0.1/24 10.1.0.3/24 10.2.0.1/24 10.2.0.3/24",
	      "10.1.0.2 10.2.0.2 10.1.0.4 10.2.0.4", "0:10.1.0.2 2:10.2.0.2 1:10.1.0.4 3:10.2.0.4");
	/* prefixes count, not how addresses look */
	check("10.1.0.1/8 192.168.1.1/31", "192.168.1.0 10.200.0.1 192.168.1.2",
	      "1:192.168.1.0 0:10.200.0.1 0:192.168.1.2");
}

/* Only routers between: in their order, too. */
static void test_routed(void **state)
{
	(void)state;
	check("10.1.0.1/31 10.2.0.1/31", "10.3.0.1 10.4.0.1", "0:10.3.0.1 1:10.4.0.1");
	check("10.1.0.1/32 10.2.0.1/32 10.3.0.1/32", "10.4.0.1 10.5.0.1 10.6.0.1 10.7.0.1",
	      "0:10.4.0.1 1:10.5.0.1 2:10.6.0.1 0:10.7.0.1");
}

static void test_left_out(void **state)
{
	(void)state;
	/* a bridge that each machine has for itself */
	check("10.1.0.1/24 172.17.0.1/16", "10.1.0.2 172.17.0.1", "0:10.1.0.2");
	check("10.1.0.1/24",
	      "10.1.0.2 0.0.0.0 0.1.2.3 127.0.0.1 224.0.0.1 255.255.255.255 240.1.1.1",
	      "0:10.1.0.2");
	check("10.1.0.1/24", "10.1.0.2 10.1.0.2 10.1.0.3 10.1.0.3 10.1.0.2",
	      "0:10.1.0.2 0:10.1.0.3");
	check("127.0.1.1/8 127.0.1.2/8", "127.0.2.1 127.0.2.2", "0:127.0.2.1 1:127.0.2.2");
}

/* Whatever is said: no more than there may be, nothing twice, nothing of ours. */
static void test_anything(void **state)
{
	struct util_rand r;

	(void)state;
	util_rand_seed(&r, 4);
	for (int round = 0; round < 20000; round++) {
		struct msg_own own[MSG_ADDRS];
		struct msg_pair out[MSG_ADDRS];
		uint32_t peer[2 * MSG_ADDRS];
		uint32_t n_own = 1 + (uint32_t)util_rand_below(&r, MSG_ADDRS);
		uint32_t n_peer = (uint32_t)util_rand_below(&r, 2 * MSG_ADDRS + 1), n;

		for (uint32_t i = 0; i < n_own; i++)
			own[i] = (struct msg_own){
				.ip = htonl(0x0a000000 + (uint32_t)util_rand_below(&r, 64)),
				.mask = htonl(~0u << util_rand_below(&r, 32))};
		for (uint32_t i = 0; i < 2 * MSG_ADDRS; i++)
			peer[i] = htonl(0x0a000000 + (uint32_t)util_rand_below(&r, 96));
		n = msg_pairs(own, n_own, peer[0], peer, n_peer, out);
		assert_in_range(n, 1, MSG_ADDRS);
		assert_int_equal(out[0].peer, peer[0]);
		for (uint32_t i = 0; i < n; i++) {
			assert_true(out[i].own < n_own);
			for (uint32_t k = 0; k < n_own; k++)
				assert_true(!i || own[k].ip != out[i].peer);
			for (uint32_t k = 0; k < i; k++)
				assert_int_not_equal(out[k].peer, out[i].peer);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_subnet), cmocka_unit_test(test_interfaces),
		cmocka_unit_test(test_routed),     cmocka_unit_test(test_left_out),
		cmocka_unit_test(test_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
