/* Networks as ibnetdiscover prints them, and all the ways in which such a text can be wrong. */
#include "test_fabric.h"

#include "fabric_net.h"
#include "fabric_tree.h"
#include "util_rand.h"

static int read_bytes(struct fabric_net *net, const char *text, size_t size, char *why)
{
	FILE *f = fmemopen((void *)text, size, "r");
	int ret;

	assert_non_null(f);
	ret = fabric_net_read(net, f, "x.net", why, 256);
	fclose(f);
	return ret;
}

static struct fabric_net must_read(const char *text)
{
	struct fabric_net net;
	char why[256] = "";

	if (read_bytes(&net, text, strlen(text), why))
		fail_msg("%s", why);
	return net;
}

static void check_refused(const char *text, const char *words)
{
	struct fabric_net net;
	char why[256] = "";

	assert_int_equal(read_bytes(&net, text, strlen(text), why), -EINVAL);
	if (!strstr(why, words))
		fail_msg("refused with \"%s\", without \"%s\"", why, words);
	assert_true(strlen(why) < 255);
	for (const char *p = why; *p; p++)
		assert_true(*p >= ' ' && *p < 0x7f);
}

/* Put together by hand, in the form that ibnetdiscover prints, with everything that may occur. */
static const char sample[] =
	"#\n"
	"# Topology file: generated on Sat Jun 13 22:28:55 2020\n"
	"#\n"
	"# Initiated from node 0002c90000000010 port 0002c90000000011\n"
	"\n"
	"vendid=0x2c9\n"
	"devid=0xbd36\n"
	"sysimgguid=0x2c90100000040\n"
	"switchguid=0x2c90100000040(2c90100000040)\n"
	"Switch\t8 \"S-0002c90100000040\"\t\t# \"L1-0003\" base port 0 lid 71 lmc 0\n"
	"[1]\t\"H-0002c900000000d0\"[1](2c900000000d1) \t\t# \"host00012\" lid 52 4xSDR\n"
	"[3]\t\"H-0002c900000000d0\"[2](2c900000000d2) \t\t# \"host00012\" lid 53 4xSDR\n"
	"[8]\t\"S-0002c90200000010\"[2]\t\t# \"a # \"b\" c\" lid 72 4xSDR\n"
	"[5][ext 7]\t\"R-00000000000000aa\"[2][ext 3](ab) \t\t# \"rt\" lid 9 4xSDR s=1 w=2 v=3\n"
	"\n"
	"vendid=0x2c9\n"
	"devid=0xbd36\n"
	"sysimgguid=0x2c90200000010\t\t# Chassis 1\n"
	"switchguid=0x2c90200000010(2c90200000010)\t# Spine\n"
	"Switch\t36 \"S-0002c90200000010\"\t\t# \"a # \"b\" c\" enhanced port 0 lid 72 lmc 0\n"
	"[2]\t\"S-0002c90100000040\"[8]\t\t# \"L1-0003\" lid 71 4xSDR\n"
	"\n"
	"Chassis 1 (guid 0x1234)\n"
	"Non-Chassis Nodes\n"
	"vendid=0x2c9\n"
	"devid=0x673c\n"
	"sysimgguid=0x2c900000000d3\n"
	"caguid=0x2c900000000d0\n"
	"Ca\t2 \"H-0002c900000000d0\"\t\t# \"host00012 HCA-1\"\n"
	"[1](2c900000000d1) \t\"S-0002c90100000040\"[1]\t\t# lid 52 lmc 2 \"L1-0003\" lid 71 "
	"4xSDR\n"
	"[2](2c900000000d2) \t\"S-0002c90100000040\"[3]\t\t# lid 53 lmc 0 \"L1-0003\" lid 71 "
	"4xSDR\n"
	"rtguid=0xaa\n"
	"Rt\t2 \"R-00000000000000aa\"\t\t# \"rt\"\n";

static void check_sample(const char *text)
{
	struct fabric_net net = must_read(text);
	const struct fabric_net_node *n = net.nodes;

	assert_int_equal(net.n_nodes, 4);
	assert_int_equal(net.n_ports, 8);
	assert_string_equal(n[0].id, "S-0002c90100000040");
	assert_string_equal(n[0].name, "L1-0003");
	assert_int_equal(n[0].guid, 0x2c90100000040);
	assert_int_equal(n[0].kind, FABRIC_NET_SWITCH);
	assert_int_equal(n[0].n_ports, 8);
	assert_int_equal(n[0].count, 4);
	assert_int_equal(n[0].lid, 71);
	assert_string_equal(n[1].name, "a # \"b\" c");
	assert_int_equal(n[1].lid, 72);
	assert_string_equal(n[2].name, "host00012");
	assert_string_equal(n[2].desc, "host00012 HCA-1");
	assert_int_equal(n[2].kind, FABRIC_NET_CA);
	assert_int_equal(n[3].kind, FABRIC_NET_ROUTER);
	/* Ports are in order, whatever that of the lines was. */
	assert_int_equal(net.ports[n[0].first + 2].number, 5);
	assert_int_equal(net.ports[n[0].first + 2].peer, 3);
	assert_int_equal(net.ports[n[0].first + 2].peer_port, 2);
	/* The router's port is listed at the switch only. */
	assert_int_equal(n[3].count, 1);
	assert_int_equal(net.ports[n[3].first].guid, 0xab);
	assert_int_equal(net.ports[n[3].first].peer, 0);
	assert_int_equal(net.ports[n[3].first].peer_port, 5);
	assert_int_equal(net.ports[n[3].first].lid, 9);
	assert_int_equal(net.ports[n[2].first].guid, 0x2c900000000d1);
	assert_int_equal(net.ports[n[2].first].lid, 52);
	assert_int_equal(net.ports[n[2].first].lmc, 2);
	assert_int_equal(net.ports[n[2].first + 1].lid, 53);
	assert_int_equal(fabric_net_find_port(&net, 0, 8), n[0].first + 3);
	assert_int_equal(fabric_net_find_port(&net, 0, 1), n[0].first);
	assert_int_equal(fabric_net_find_port(&net, 0, 2), UINT32_MAX);
	assert_int_equal(fabric_net_find_port(&net, 0, 0), UINT32_MAX);
	assert_int_equal(fabric_net_find_port(&net, 0, 9), UINT32_MAX);
	assert_int_equal(fabric_net_find_port(&net, 3, 2), n[3].first);
	fabric_net_free(&net);
}

static void test_sample(void **state)
{
	char crlf[2 * sizeof(sample)], *at = crlf;

	(void)state;
	check_sample(sample);
	for (const char *s = sample; *s; s++) {
		if (*s == '\n')
			*at++ = '\r';
		*at++ = *s;
	}
	*at = 0;
	check_sample(crlf);
}

/* Whatever is cut off, there is an answer, and it is one sentence. */
static void test_truncated(void **state)
{
	/* From the first cable on until the last node is described none can be accepted. */
	size_t first = (size_t)(strstr(sample, "[1]") - sample) + 1;
	size_t last = (size_t)(strstr(sample, "aa\"\t\t# \"rt\"") - sample) + 2;

	(void)state;
	assert_true(first < last);
	for (size_t size = 1; size < sizeof(sample) - 1; size++) {
		struct fabric_net net;
		char why[256] = "", *text = malloc(size);
		int ret;

		memcpy(text, sample, size);
		ret = read_bytes(&net, text, size, why);
		free(text);
		if (ret == 0) {
			assert_true(size < first || size > last);
			fabric_net_free(&net);
			continue;
		}
		assert_int_equal(ret, -EINVAL);
		if (strncmp(why, "x.net:", 6) != 0 && !strstr(why, "x.net has no nodes"))
			fail_msg("%zu bytes: %s", size, why);
	}
}

#define TWO "Switch 4 \"S-1\"\nCa 1 \"H-2\"\n"

static void test_lines(void **state)
{
	(void)state;
	check_refused("", "x.net has no nodes; expected what ibnetdiscover prints");
	check_refused("# nothing\n\n", "has no nodes");
	check_refused("\n\nNonsense 4 \"S-1\"\n", "x.net:3: 'Nonsense 4 \"S-1\"' is no line");
	check_refused("Switch x \"S-1\"\n", "x.net:1: 'x \"S-1\"' is no number of ports");
	check_refused("Switch 0 \"S-1\"\n", "is no number of ports; expected 1 to 65535");
	check_refused("Switch 65536 \"S-1\"\n", "is no number of ports");
	check_refused("Switch 99999999999999999999999 \"S-1\"\n", "is no number of ports");
	check_refused("Switch 4\n", "where the id of the node should be");
	check_refused("Switch 4 S-1\n", "'S-1' where the id");
	check_refused("Switch 4 \"S-1\n", "where the id");
	check_refused("Switch 4 \"S-1\" x\n", "behind the id");
	check_refused("Switch 4 \"sw1\"\n",
		      "'sw1' has no GUID; expected a line such as switchguid");
	check_refused("Switch 4 \"S-0\"\n", "'S-0' has no GUID");
	check_refused("Switch 4 \"S-11112222333344445\"\n", "has no GUID");
	check_refused("switchguid=0x\nSwitch 4 \"sw1\"\n", "'0x' is no GUID");
	check_refused("switchguid=0x12345678123456789\n", "is no GUID");
	check_refused("switchguid=0x1\n", "x.net:1: the file ends before the node of this GUID");
	check_refused("nodeguid=0x1\n", "'nodeguid' is not known");
	check_refused("[1] \"S-1\"[1]\n", "x.net:1: a port before the first node");
	check_refused(TWO "[x] \"S-1\"[1]\n", "x.net:3: '[x] \"S-1\"[1]' is no port");
	check_refused(TWO "[0] \"S-1\"[1]\n", "is no port");
	check_refused(TWO "[1 \"S-1\"[1]\n", "is no port");
	check_refused(TWO "[1](zz) \"S-1\"[1]\n", "'(zz) ");
	check_refused(TWO "[1] S-1[1]\n", "where the id of the node at the other end should be");
	check_refused(TWO "[1] \"S-1\"\n", "'' where the port of 'S-1' should be");
	check_refused(TWO "[1] \"S-1\"[1](0)\n", "is no GUID");
	check_refused(TWO "[1] \"S-1\"[1] x\n", "'x' behind the port");
	check_refused("\x1b[31m\n", "'\\x1b[31m' is no line");
}

static void test_contradictions(void **state)
{
	(void)state;
	check_refused(TWO "[2] \"S-1\"[1]\n",
		      "x.net:3: port 2 of 'H-2', which has 1 port (line 2)");
	check_refused(TWO "[1] \"S-1\"[5]\n",
		      "x.net:3: port 5 of 'S-1', which has 4 ports (line 1)");
	check_refused(TWO "[1] \"S-3\"[1]\n",
		      "x.net:3: 'S-3' is described nowhere in this file; is it cut off?");
	check_refused(TWO "[1] \"H-2\"[1]\n", "port 1 of 'H-2' is joined with itself");
	check_refused(TWO "[1] \"S-1\"[1]\n[1] \"S-1\"[1]\n",
		      "x.net:4: port 1 of 'H-2' is in line 3 already");
	check_refused(TWO "[1] \"S-1\"[1]\n[1] \"S-1\"[2]\n",
		      "x.net:4: port 1 of 'H-2' goes to port 2 of 'S-1' here, but to port 1 of "
		      "'S-1' in line 3");
	check_refused(TWO "Ca 1 \"H-3\"\n[1] \"S-1\"[1]\nCa 1 \"H-5\"\n[1] \"S-1\"[1]\n",
		      "x.net:6: port 1 of 'S-1' goes to port 1 of 'H-5' here, but to port 1 of "
		      "'H-3' in line 4");
	/* The two ends do not agree: the later line is named first. */
	check_refused("Switch 4 \"S-1\"\n[1] \"H-2\"[1]\nCa 1 \"H-2\"\n[1] \"S-1\"[2]\n",
		      "in line 2");
	check_refused(TWO "Switch 4 \"S-1\"\n", "x.net:3: 'S-1' is described in line 1 already");
	check_refused("Switch 4 \"S-1\"\nSwitch 4 \"T-1\"\n",
		      "x.net:2: the GUID 0x1 is that of 'S-1' in line 1 already");
	check_refused("Switch 4 \"S-1\"\n[1] \"H-2\"[1](9)\n[2] \"H-4\"[1](9)\nCa 1 \"H-2\"\n"
		      "Ca 1 \"H-4\"\n",
		      "x.net:3: the GUID 0x9 is that of another port already, see line 2");
	check_refused("Switch 4 \"S-1\"\n[1] \"H-2\"[1](9)\nCa 1 \"H-2\"\n[1](8) \"S-1\"[1]\n",
		      "the GUID of port 1 of 'H-2' is");
}

static void test_zero_byte(void **state)
{
	static const char text[] = "Switch 4 \"S-1\"\n\0\n";
	struct fabric_net net;
	char why[256] = "";

	(void)state;
	assert_int_equal(read_bytes(&net, text, sizeof(text) - 1, why), -EINVAL);
	assert_string_equal(why, "x.net:2: a zero byte; expected a text file");
}

static void test_unreadable(void **state)
{
	FILE *f = fopen("/tmp", "r");
	struct fabric_net net;
	char why[256] = "";

	(void)state;
	assert_non_null(f);
	assert_int_equal(fabric_net_read(&net, f, "/tmp", why, sizeof(why)), -EISDIR);
	assert_string_equal(why, "can not read /tmp: Is a directory");
	fclose(f);
}

/* Names: the shortest that tells nodes apart. */
static void test_names(void **state)
{
	struct fabric_net net = must_read("Ca 1 \"H-10\" # \"a HCA-1\"\n"
					  "Ca 1 \"H-20\" # \"a HCA-2\"\n"
					  "Ca 1 \"H-30\" # \"b HCA-1\"\n"
					  "Ca 1 \"H-40\" # \"c d\"\n"
					  "Ca 1 \"H-50\" # \"c d\"\n"
					  "Ca 1 \"H-60\"\n"
					  "Switch 1 \"S-70\" # \"MF0 sw\"\n"
					  "Ca 1 \"H-80\" # \"localhost HCA-1\"\n"
					  "Ca 1 \"H-90\" # \"localhost HCA-1\"\n"
					  "Ca 1 \"H-a0\" # \"e f\"\n"
					  "Ca 1 \"H-b0\" # \"e g\"\n"
					  "Ca 1 \"H-c0\" # \"e/f\"\n"
					  "Ca 1 \"H-d0\" # \"same\"\n"
					  "Ca 1 \"H-e0\" # \"same\"\n");
	static const char *const want[] = {"a/HCA-1", "a/HCA-2", "b",    "H-40", "H-50",
					   "H-60",    "MF0 sw",  "H-80", "H-90", "H-a0",
					   "e/g",     "H-c0",    "H-d0", "H-e0"};
	/* The same description twice is a machine still, if it names an adapter. */
	static const char *const hosts[] = {"a",    "a",    "b", "c", "c",    "H-60", "MF0 sw",
					    "H-80", "H-90", "e", "e", "H-c0", "H-d0", "H-e0"};

	(void)state;
	for (uint32_t i = 0; i < net.n_nodes; i++) {
		assert_string_equal(net.nodes[i].name, want[i]);
		assert_string_equal(net.nodes[i].host, hosts[i]);
	}
	fabric_net_free(&net);
}

/* Ports in the text of a tree from which much was taken away. */
static void test_write_damaged(void **state)
{
	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++)
		for (size_t i = 0; i < COUNT(trees); i++) {
			struct fabric_pgft g = tree(trees[i]);
			struct fabric_tree t;
			struct fabric_net net;
			struct util_rand r;
			size_t size;
			char *text;
			FILE *f = open_memstream(&text, &size);

			fabric_tree_init(&t, &g);
			util_rand_seed(&r, seed);
			for (uint32_t k = 0; k < seed % 7; k++) {
				fabric_tree_cut(&t, util_rand_below(&r, fabric_cables(&g)));
				fabric_tree_remove(&t, util_rand_below(&r, fabric_nodes(&g)));
			}
			if (t.n_nodes_gone == fabric_nodes(&g))
				fabric_tree_free(&t), fabric_tree_init(&t, &g);
			assert_int_equal(fabric_net_write(&t, f), 0);
			fclose(f);
			net = must_read(text);
			assert_int_equal(net.n_nodes, fabric_nodes(&g) - t.n_nodes_gone);
			assert_int_equal(net.n_ports, 2 * (fabric_cables(&g) - t.n_cables_gone));
			fabric_net_free(&net);
			fabric_tree_free(&t);
			free(text);
		}
}

/* Cables of a node that is taken away are counted once. */
static void test_remove(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft g = tree(trees[i]);
		struct fabric_tree t;
		uint32_t gone = 0;

		fabric_tree_init(&t, &g);
		for (uint32_t k = 0; k < fabric_nodes(&g); k += 2) {
			assert_int_equal(fabric_tree_remove(&t, k), 0);
			assert_int_equal(fabric_tree_remove(&t, k), 0);
		}
		assert_int_equal(t.n_nodes_gone, (fabric_nodes(&g) + 1) / 2);
		for (uint32_t k = 0; k < fabric_cables(&g); k++) {
			struct fabric_cable c = fabric_cable(&g, k);
			bool want =
				fabric_number(&g, c.lower) % 2 && fabric_number(&g, c.upper) % 2;

			assert_int_equal(fabric_tree_has_cable(&t, k), want);
			gone += !want;
		}
		assert_int_equal(t.n_cables_gone, gone);
		fabric_tree_free(&t);
	}
}

/* The ports, names and GUIDs of a tuple's tree, all different and found again. */
static void test_tuple_tree(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft g = tree(trees[i]);
		struct fabric_tree t;
		uint32_t cables = 0, found;
		char name[FABRIC_TREE_NAME_MAX];

		fabric_tree_init(&t, &g);
		for (uint32_t k = 0; k < fabric_nodes(&g); k++) {
			assert_int_equal(fabric_tree_cable_at(&t, k, 0), FABRIC_NONE);
			for (uint32_t port = 1; port <= fabric_tree_ports(&t, k); port++) {
				uint32_t cable = fabric_tree_cable_at(&t, k, port);
				struct fabric_cable c = fabric_cable(&g, cable);

				if (fabric_number(&g, c.lower) == k) {
					assert_int_equal(fabric_tree_lower_port(&t, cable), port);
					cables++;
				} else {
					assert_int_equal(fabric_number(&g, c.upper), k);
					assert_int_equal(fabric_tree_upper_port(&t, cable), port);
				}
			}
			assert_int_equal(fabric_tree_cable_at(&t, k, fabric_tree_ports(&t, k) + 1),
					 FABRIC_NONE);
			fabric_tree_name(&t, k, name);
			assert_int_equal(fabric_tree_find(&t, name, &found), 0);
			assert_int_equal(found, k);
			sprintf(name, "0x%llx", (unsigned long long)fabric_tree_guid(&t, k));
			assert_int_equal(fabric_tree_find(&t, name, &found), 0);
			assert_int_equal(found, k);
			sprintf(name, "0x%llx", (unsigned long long)fabric_tree_port_guid(&t, k));
			assert_int_equal(fabric_tree_find(&t, name, &found), 0);
			assert_int_equal(found, k);
		}
		assert_int_equal(cables, fabric_cables(&g));
		assert_int_equal(fabric_tree_find(&t, "0x0002c90000000000", &found), -ENOENT);
		assert_int_equal(fabric_tree_find(&t, "0x", &found), -ENOENT);
		assert_int_equal(fabric_tree_find(&t, "0x-1", &found), -ENOENT);
		assert_int_equal(fabric_tree_find(&t, "0x1ffffffffffffffff", &found), -ENOENT);
		assert_int_equal(fabric_tree_find(&t, "s9.0", &found), -ENOENT);
		assert_int_equal(fabric_tree_guid(&t, 0), 0x0002c90000000010);
		assert_int_equal(fabric_tree_port_guid(&t, 0), 0x0002c90000000011);
		fabric_tree_free(&t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sample),    cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_lines),     cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_zero_byte), cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_names),     cmocka_unit_test(test_write_damaged),
		cmocka_unit_test(test_remove),    cmocka_unit_test(test_tuple_tree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
