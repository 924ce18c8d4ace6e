/* The files of OpenSM: what is written, that it reads the same again, and what is refused. (What
 * OpenSM itself says of them is tested in tests/opensm.) */
#include "test_fabric.h"

#include <inttypes.h>

#include "fabric_lft.h"
#include "util_rand.h"

static FILE *memory(char **text, size_t *size)
{
	FILE *f = open_memstream(text, size);

	assert_non_null(f);
	return f;
}

static char *written(const struct fabric_routes *r, bool guids)
{
	char *text;
	size_t size;
	FILE *f = memory(&text, &size);

	assert_int_equal(fabric_lft_write(r, guids, f), 0);
	fclose(f);
	return text;
}

static char *written_lids(const struct fabric_tree *t, uint32_t lmc)
{
	char *text;
	size_t size;
	FILE *f = memory(&text, &size);

	assert_int_equal(fabric_lft_write_lids(t, lmc, f), 0);
	fclose(f);
	return text;
}

static int read_text(struct fabric_routes *r, const struct fabric_tree *t, const char *text,
		     const char *lids, char why[256])
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	FILE *l = lids ? fmemopen((void *)lids, strlen(lids), "r") : NULL;
	int ret;

	assert_true(f && (l || !lids));
	why[0] = 0;
	ret = fabric_lft_read(r, t, f, "lfts", l, "guid2lid", why, 256);
	fclose(f);
	if (l)
		fclose(l);
	return ret;
}

/* ---- to the letter ---- */

static void test_text(void **state)
{
	struct fabric_pgft pgft = tree("2;2,1;1,2;1,1");
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	char *text, *lids, *more;
	struct fabric_routes r;
	struct fabric_tree t;
	size_t size;
	FILE *f;

	(void)state;
	fabric_tree_init(&t, &pgft);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	text = written(&r, true);
	assert_string_equal(text,
			    "Unicast lids [0-5] of switch Lid 3 guid 0x0002c90100000010 ('s1.0'):\n"
			    "0x0001 001 # Channel Adapter portguid 0x0002c90000000011: 'h0'\n"
			    "0x0002 002 # Channel Adapter portguid 0x0002c90000000021: 'h1'\n"
			    "0x0003 000 # Switch portguid 0x0002c90100000010: 's1.0'\n"
			    "0x0004 003 # Switch portguid 0x0002c90200000010: 's2.0'\n"
			    "0x0005 004 # Switch portguid 0x0002c90200000020: 's2.1'\n"
			    "5 lids dumped\n"
			    "Unicast lids [0-5] of switch Lid 4 guid 0x0002c90200000010 ('s2.0'):\n"
			    "0x0001 001 # Channel Adapter portguid 0x0002c90000000011: 'h0'\n"
			    "0x0002 001 # Channel Adapter portguid 0x0002c90000000021: 'h1'\n"
			    "0x0003 001 # Switch portguid 0x0002c90100000010: 's1.0'\n"
			    "0x0004 000 # Switch portguid 0x0002c90200000010: 's2.0'\n"
			    "4 lids dumped\n"
			    "Unicast lids [0-5] of switch Lid 5 guid 0x0002c90200000020 ('s2.1'):\n"
			    "0x0001 001 # Channel Adapter portguid 0x0002c90000000011: 'h0'\n"
			    "0x0002 001 # Channel Adapter portguid 0x0002c90000000021: 'h1'\n"
			    "0x0003 001 # Switch portguid 0x0002c90100000010: 's1.0'\n"
			    "0x0005 000 # Switch portguid 0x0002c90200000020: 's2.1'\n"
			    "4 lids dumped\n");
	lids = written_lids(&t, 2);
	assert_string_equal(lids, "0x0002c90000000011 0x0004 0x0007\n\n"
				  "0x0002c90000000021 0x0008 0x000b\n\n"
				  "0x0002c90100000010 0x000c 0x000c\n\n"
				  "0x0002c90200000010 0x000d 0x000d\n\n"
				  "0x0002c90200000020 0x000e 0x000e\n\n");
	f = memory(&more, &size);
	assert_int_equal(fabric_lft_write_roots(&t, f), 0);
	assert_int_equal(fabric_lft_write_hosts(&t, f), 0);
	fclose(f);
	assert_string_equal(more, "0x0002c90200000010\n0x0002c90200000020\n"
				  "0x0002c90000000011\n0x0002c90000000021\n");
	free(text);
	free(lids);
	free(more);
	fabric_tree_free(&t);
}

/* ---- there and back ---- */

static void check_same(const struct fabric_routes *a, const struct fabric_routes *b)
{
	const struct fabric_pgft *p = &a->tree->pgft;
	size_t n = fabric_routes_entries(a);
	uint16_t *rows = malloc(2 * n * sizeof(*rows));

	assert_non_null(rows);
	assert_int_equal(a->rule.lmc, b->rule.lmc);
	for (uint32_t node = p->first[1]; node < fabric_nodes(p); node++) {
		assert_int_equal(fabric_routes_row(a, node, rows), 0);
		assert_int_equal(fabric_routes_row(b, node, rows + n), 0);
		assert_memory_equal(rows, rows + n, n * sizeof(*rows));
	}
	for (uint32_t node = 0; node < fabric_nodes(p); node++)
		for (uint32_t e = 0; e < n; e++) {
			uint32_t j = e >> a->rule.lmc, i = e & ((1u << a->rule.lmc) - 1), cable;
			bool up[2];

			if (!fabric_tree_has_node(a->tree, node))
				continue;
			cable = fabric_routes_step(a, node, j, i, &up[0]);
			assert_int_equal(fabric_routes_step(b, node, j, i, &up[1]), cable);
			assert_true(cable == FABRIC_NONE || up[0] == up[1]);
		}
	free(rows);
}

static void check_round_trip(const struct fabric_tree *t, const struct fabric_routing *rule)
{
	struct fabric_routes r, again;
	char why[256], *text, *lids;

	assert_int_equal(fabric_lft_check(t, rule->lmc, why, sizeof(why)), 0);
	assert_int_equal(fabric_routes_make(&r, t, rule, NULL), 0);
	text = written(&r, true);
	if (read_text(&again, t, text, NULL, why))
		fail_msg("%s", why);
	check_same(&r, &again);
	fabric_routes_free(&again);
	free(text);
	/* Without GUIDs in the tables. */
	text = written(&r, false);
	lids = written_lids(t, rule->lmc);
	if (read_text(&again, t, text, lids, why))
		fail_msg("%s", why);
	check_same(&r, &again);
	fabric_routes_free(&again);
	fabric_routes_free(&r);
	free(text);
	free(lids);
}

/* Tables without hosts have no LIDs to tell the LMC by. */
static bool any_host(const struct fabric_tree *t)
{
	for (uint32_t j = 0; j < fabric_hosts(&t->pgft); j++)
		if (fabric_tree_has_cable(t, j)) /* numbered as the hosts are: one for each */
			return true;
	return false;
}

static void test_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++)
		for (uint32_t seed = 0; seed < 12; seed++) {
			struct fabric_routing rule = {.kind = seed % 3 == 2 ? FABRIC_RANDOM
									    : FABRIC_DMODK,
						      .seed = seed,
						      .lmc = seed % 4};
			struct fabric_pgft pgft = tree(trees[i]);
			struct util_rand rand;
			struct fabric_tree t;

			if (fabric_up_ports(&pgft, 0) != 1)
				continue;
			print_message("%s seed %u\r", trees[i], seed);
			util_rand_seed(&rand, seed);
			fabric_tree_init(&t, &pgft);
			for (uint32_t k = 0; k < seed; k++)
				fabric_tree_cut(
					&t, (uint32_t)util_rand_below(&rand, fabric_cables(&pgft)));
			if (seed > 8)
				fabric_tree_remove(
					&t, (uint32_t)util_rand_below(&rand, fabric_nodes(&pgft)));
			if (any_host(&t))
				check_round_trip(&t, &rule);
			fabric_tree_free(&t);
		}
}

/* ---- ways to switches ---- */

/* The port of one entry, as a reader of the text finds it; 0xffff: there is none. */
static uint32_t find_entry(const char *text, uint64_t guid, uint32_t lid)
{
	char head[40], entry[16];
	const char *at, *end;

	snprintf(head, sizeof(head), " guid 0x%016" PRIx64 " ", guid);
	snprintf(entry, sizeof(entry), "\n0x%04x ", lid);
	at = strstr(text, head);
	assert_non_null(at);
	end = strstr(at, "lids dumped");
	at = strstr(at, entry);
	return at && at < end ? (uint32_t)strtoul(at + 8, NULL, 10) : 0xffff;
}

/* From every leaf to every switch, by the written tables; up and then down. */
static void check_switches(const struct fabric_tree *t)
{
	const struct fabric_pgft *p = &t->pgft;
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	struct fabric_routes r;
	char *text;

	assert_int_equal(fabric_routes_make(&r, t, &rule, NULL), 0);
	text = written(&r, false);
	for (uint32_t leaf = p->first[1]; leaf < p->first[2]; leaf++)
		for (uint32_t to = p->first[1]; to < fabric_nodes(p); to++) {
			uint32_t node = leaf, port, hops = 0;
			bool down = false, turned = false;

			if (!fabric_tree_has_node(t, leaf))
				continue;
			while (port = find_entry(text, fabric_tree_guid(t, node),
						 fabric_lid(p, 0, to)),
			       port != 0 && port != 0xffff) {
				uint32_t cable = fabric_tree_cable_at(t, node, port);
				struct fabric_cable c;
				bool up;

				assert_int_not_equal(cable, FABRIC_NONE);
				c = fabric_cable(p, cable);
				up = fabric_number(p, c.lower) == node;
				/* Once, where one leaf helps out: test_fabric_beside.c. */
				assert_false(up && down && (turned || fabric_tree_whole(t)));
				turned |= up && down;
				down = !up;
				node = fabric_number(p, up ? c.upper : c.lower);
				assert_true(++hops <= 4 * p->h);
			}
			if (port == 0)
				assert_int_equal(node, to);
			else
				assert_int_equal(node, leaf);
			/* On a whole tree all are reached from a host's only leaf. */
			if (fabric_tree_whole(t))
				assert_int_equal(port, 0);
			if (!fabric_tree_has_node(t, to))
				assert_int_equal(port, 0xffff);
		}
	free(text);
	fabric_routes_free(&r);
}

static void test_switches(void **state)
{
	static const char *const some[] = {"1;5;1;1", "2;4,4;1,2;1,2", "3;3,3,2;1,2,3;1,2,1"};

	(void)state;
	for (size_t i = 0; i < COUNT(some); i++) {
		struct fabric_pgft pgft = tree(some[i]);
		struct fabric_tree t;

		fabric_tree_init(&t, &pgft);
		check_switches(&t);
		for (uint32_t k = 0; k < 5; k++) {
			fabric_tree_cut(&t, fabric_cables(&pgft) * k / 5);
			check_switches(&t);
		}
		fabric_tree_remove(&t, fabric_nodes(&pgft) - 1);
		check_switches(&t);
		fabric_tree_free(&t);
	}
}

/* ---- as others print them ---- */

#define G(level, n) "0x0002c90" #level "000000" #n "0"
#define H(n)        "0x0002c900000000" #n "1"

static void test_ibroute(void **state)
{
	static const char *const lines[] = {
		"Unicast lids [0x0-0x9] of switch DR path slid 0; dlid 0; 0,1 guid ",
		G(1, 1) " (my guid 0x77):\n",
		"  Lid  Out   Destination\n",
		"       Port     Info \n",
		"0x0009 002 : (Channel Adapter portguid " H(2) ": 'b')\n",
		"0x0004 001 : (Channel Adapter portguid " H(1) ": 'a')\n",
		"0x0005 000 : (Switch portguid " G(1, 1) ": 'portguid 0x1')\r\n",
		"3 valid lids dumped \n\n",
	};
	char text[1024] = "";
	struct fabric_pgft pgft = tree("1;2;1;1");
	struct fabric_routes r;
	struct fabric_tree t;
	char why[256];
	bool up;

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		strcat(text, lines[i]);
	fabric_tree_init(&t, &pgft);
	if (read_text(&r, &t, text, NULL, why))
		fail_msg("%s", why);
	assert_int_equal(r.rule.lmc, 0);
	assert_int_equal(r.table[0], 1);
	assert_int_equal(r.table[1], 2);
	assert_int_equal(fabric_routes_step(&r, 2, 1, 0, &up), 1);
	assert_false(up);
	fabric_routes_free(&r);
	fabric_tree_free(&t);
}

/* Tables of a whole fabric, read when a switch and a host are missing: ways end before them. */
static void test_older(void **state)
{
	struct fabric_pgft pgft = tree("2;4,4;1,2;1,2");
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	struct fabric_routes whole, r;
	struct fabric_tree t;
	char why[256], *text;

	(void)state;
	fabric_tree_init(&t, &pgft);
	assert_int_equal(fabric_routes_make(&whole, &t, &rule, NULL), 0);
	text = written(&whole, true);
	assert_int_equal(fabric_tree_remove(&t, 3), 0);
	assert_int_equal(fabric_tree_remove(&t, pgft.first[2] + 1), 0);
	if (read_text(&r, &t, text, NULL, why))
		fail_msg("%s", why);
	for (uint32_t node = 0; node < fabric_nodes(&pgft); node++)
		for (uint32_t j = 0; j < fabric_hosts(&pgft); j++) {
			bool up[2];
			uint32_t cable = fabric_routes_step(&r, node, j, 0, &up[0]);
			uint32_t before = fabric_routes_step(&whole, node, j, 0, &up[1]);
			bool there = before != FABRIC_NONE && fabric_tree_has_cable(&t, before);

			if (j == 3)
				assert_int_equal(cable, FABRIC_NONE);
			else if (node >= fabric_hosts(&pgft))
				assert_int_equal(cable, there ? before : FABRIC_NONE);
		}
	fabric_routes_free(&r);
	fabric_tree_free(&t);
	free(text);
}

/* Tables may send in circles: that is for the user of them to find. */
static void test_wrong_way(void **state)
{
	static const char text[] = "Unicast lids of switch guid " G(1, 1) "\n0x1 2\n0x2 1\n";
	static const char lids[] = H(1) " 0x1 0x1\n" H(2) " 0x2 0x2\n0x77 0x3 0x3\n";
	struct fabric_pgft pgft = tree("1;2;1;1");
	struct fabric_routes r;
	struct fabric_tree t;
	char why[256];

	(void)state;
	fabric_tree_init(&t, &pgft);
	if (read_text(&r, &t, text, lids, why))
		fail_msg("%s", why);
	assert_int_equal(r.table[0], 2);
	assert_int_equal(r.table[1], 1);
	fabric_routes_free(&r);
	fabric_tree_free(&t);
}

/* ---- refusals ---- */

#define HEAD "Unicast lids [0-3] of switch Lid 3 guid " G(1, 1) " ('s1.0'):\n"
#define A    "0x0001 001 # Channel Adapter portguid " H(1) ": 'h0'\n"
#define B    "0x0002 002 # Channel Adapter portguid " H(2) ": 'h1'\n"

static void test_refused(void **state)
{
	static const struct {
		const char *text, *lids, *why;
	} bad[] = {
		{"\n", NULL, "lfts: no LID of host h0;"},
		{HEAD A, NULL, "lfts: no LID of host h1;"},
		{A B, NULL, "lfts:1: an entry without a switch"},
		{HEAD A B HEAD, NULL,
		 "lfts:4: the table of switch s1.0 again; the first is in line 1"},
		{HEAD A A, NULL, "lfts:3: LID 0x0001 again in the table of switch s1.0"},
		{HEAD A B "hello", NULL, "lfts:4: 'hello' is neither"},
		{HEAD "0x0000 001", NULL, "lfts:2: '0x0000 001' is no entry"},
		{HEAD "0xc000 001", NULL, "lfts:2: '0xc000 001' is no entry"},
		{HEAD "0x1000000000000000000000001 001", NULL, "lfts:2: "},
		{HEAD "0x0001", NULL, "lfts:2: '0x0001' is no entry"},
		{HEAD "0x0001 256", NULL, "lfts:2: '0x0001 256' is no entry"},
		{HEAD "0x0001 1x", NULL, "lfts:2: '0x0001 1x' is no entry"},
		{HEAD "0x 001", NULL, "lfts:2: '0x 001' is no entry"},
		{HEAD "0x0001 001 portguid 0x77", NULL,
		 "lfts:2: no node of this fabric has the port GUID 0x0000000000000077"},
		{HEAD "0x0001 001 portguid 0x12345678901234567", NULL,
		 "lfts:2: '0x12345678901234567' is no GUID"},
		{HEAD A "0x0002 002 portguid " H(1) "\n0x0003 002 portguid " H(2) "\n", NULL,
		 "lfts: host h1 has 1 LIDs, but host 0 of the fabric has 2"},
		{HEAD A B "0x0004 001 portguid " H(1) "\n", NULL,
		 "lfts: host h0 has 2 LIDs from 0x0001 to 0x0004"},
		{HEAD A B "Unicast lids of switch guid 0x5", NULL,
		 "lfts:4: no switch of this fabric has the GUID 0x0000000000000005"},
		{HEAD A B "Unicast lids of switch guid " H(1), NULL,
		 "lfts:4: no switch of this fabric has the GUID 0x0002c90000000011"},
		{HEAD A B "Unicast lids of switch", NULL, "lfts:4: the table of which switch?"},
		{HEAD A "0x0002 003 portguid " H(2), NULL,
		 "lfts:1: in the table that begins here, LID 0x0002 leaves switch s1.0 by port 3, "
		 "where no cable is"},
		{HEAD A B, H(1) " 0x1\n", "guid2lid:1: '" H(1) " 0x1' is no line of a guid2lid"},
		{HEAD A B, H(1) " 0x2 0x1\n", "guid2lid:1: "},
		{HEAD A B, H(1) " 0x0 0x1\n", "guid2lid:1: "},
		{HEAD A B, H(1) " 0x1 0x1 0\n", "guid2lid:1: "},
		{HEAD A B, H(1) " 0x1 0x2\n\n" H(2) " 0x2 0x3\n",
		 "guid2lid:3: LID 0x0002 is of port GUID 0x0002c90000000021, but it was of "
		 "0x0002c90000000011 before"},
		{HEAD A B, H(2) " 0x1 0x1\n", "lfts:2: LID 0x0001 is of port GUID"},
		{A, "# nothing\n", "lfts:1: an entry without a switch"},
	};
	struct fabric_pgft pgft = tree("1;2;1;1");
	struct fabric_routes r;
	struct fabric_tree t;
	char why[256];

	(void)state;
	fabric_tree_init(&t, &pgft);
	for (size_t i = 0; i < COUNT(bad); i++) {
		int ret = read_text(&r, &t, bad[i].text, bad[i].lids, why);

		if (ret != -EINVAL || strncmp(why, bad[i].why, strlen(bad[i].why)) != 0)
			fail_msg("case %zu: %d, %s\nexpected %s", i, ret, why, bad[i].why);
		assert_null(r.table);
	}
	fabric_tree_free(&t);
}

static void test_refused_more(void **state)
{
	struct fabric_pgft pgft = tree("2;2,1;1,2;1,1");
	char why[256], line[1100];
	struct fabric_routes r;
	struct fabric_tree t;
	FILE *f;

	(void)state;
	fabric_tree_init(&t, &pgft);
	assert_int_equal(read_text(&r, &t, HEAD A B, NULL, why), -EINVAL);
	assert_string_equal(why, "lfts: no table of switch s2.0, GUID 0x0002c90200000010");
	memset(line, 'x', sizeof(line));
	line[1099] = 0;
	assert_int_equal(read_text(&r, &t, line, NULL, why), -EINVAL);
	assert_string_equal(why, "lfts:1: a line of more than 1000 characters; expected tables of "
				 "OpenSM");
	f = fmemopen("\n\0\n", 3, "r");
	assert_non_null(f);
	assert_int_equal(fabric_lft_read(&r, &t, f, "lfts", NULL, NULL, why, 256), -EINVAL);
	assert_string_equal(why, "lfts:2: a zero byte; expected a text file");
	fclose(f);
	f = fopen("/", "r");
	assert_non_null(f);
	assert_int_equal(fabric_lft_read(&r, &t, f, "/", NULL, NULL, why, 256), -EISDIR);
	assert_string_equal(why, "can not read /: Is a directory");
	fclose(f);
	fabric_tree_free(&t);
}

static void test_check(void **state)
{
	static const struct {
		const char *tree;
		uint32_t lmc;
		const char *why;
	} cases[] = {
		{"3;18,18,36;1,18,18;1,1,1", 0, NULL},
		{"3;18,18,36;1,18,18;1,1,1", 2, NULL},
		{"3;18,18,36;1,18,18;1,1,1", 3,
		 "11664 hosts with 8 addresses each and 1620 switches need LIDs up to 94939; "
		 "InfiniBand has them up to 49151"},
		{"3;100,100,100;1,100,100;1,1,1", 0, "1000000 hosts with 1 addresses each"},
		{"1;254;1;1", 0, NULL},
		{"1;255;1;1", 0,
		 "switch 's1.0' has a port 255; in InfiniBand, the last one is 254"},
		{"2;200,2;1,55;1,1", 0, "switch 's1.0' has a port 255"},
		{"1;4;3;2", 0, "each host has 6 cables"},
	};
	char why[256];

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct fabric_pgft pgft = tree(cases[i].tree);
		struct fabric_tree t;
		int ret;

		fabric_tree_init(&t, &pgft);
		ret = fabric_lft_check(&t, cases[i].lmc, why, sizeof(why));
		assert_int_equal(ret, cases[i].why ? -EINVAL : 0);
		if (ret)
			assert_memory_equal(why, cases[i].why, strlen(cases[i].why));
		fabric_tree_free(&t);
	}
}

/* A disk that is full is no success. */
static void test_full(void **state)
{
	struct fabric_pgft pgft = tree("2;12,12;1,6;1,2");
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	FILE *f = fopen("/dev/full", "w");
	struct fabric_routes r;
	struct fabric_tree t;

	(void)state;
	assert_non_null(f);
	fabric_tree_init(&t, &pgft);
	assert_int_equal(fabric_routes_make(&r, &t, &rule, NULL), 0);
	assert_int_equal(fabric_lft_write(&r, true, f), -ENOSPC);
	assert_int_equal(fabric_lft_write_lids(&t, 0, f), -ENOSPC);
	assert_int_equal(fabric_lft_write_roots(&t, f), -ENOSPC);
	assert_int_equal(fabric_lft_write_hosts(&t, f), -ENOSPC);
	fclose(f);
	fabric_tree_free(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),      cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_switches),  cmocka_unit_test(test_ibroute),
		cmocka_unit_test(test_wrong_way), cmocka_unit_test(test_older),
		cmocka_unit_test(test_refused),   cmocka_unit_test(test_refused_more),
		cmocka_unit_test(test_check),     cmocka_unit_test(test_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
