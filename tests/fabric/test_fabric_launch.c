/* Orders as launchers read them: known texts, and what is read back is what was written. */
#include "test_fabric.h"

#include "fabric_launch.h"
#include "fabric_net.h"
#include "fabric_order.h"

/* What is written, as text; the caller frees it. */
static char *written(enum fabric_launch kind, const struct fabric_tree *t, const uint32_t *hosts,
		     uint32_t count, uint32_t lmc)
{
	char why[256] = "", *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	if (fabric_launch_write(f, kind, t, hosts, count, lmc, why, sizeof(why)))
		fail_msg("%s", why);
	assert_int_equal(fclose(f), 0);
	return text;
}

static void check_text(const char *kind_name, const char *tuple, const uint32_t *hosts,
		       uint32_t count, const char *want)
{
	struct fabric_pgft t = tree(tuple);
	struct fabric_tree fabric;
	enum fabric_launch kind;
	char why[256], *text;

	fabric_tree_init(&fabric, &t);
	assert_int_equal(fabric_launch_parse(&kind, kind_name, why, sizeof(why)), 0);
	text = written(kind, &fabric, hosts, count, 0);
	assert_string_equal(text, want);
	free(text);
	fabric_tree_free(&fabric);
}

#define HOSTS(...) (const uint32_t[]){__VA_ARGS__}, COUNT(((const uint32_t[]){__VA_ARGS__}))

static void test_ranks(void **state)
{
	static const char two[] = "2;2,2;1,2;1,1";

	(void)state;
	check_text("names", two, HOSTS(3, 0, 2), "h3\nh0\nh2\n");
	check_text("slurm", two, HOSTS(3, 0, 2), "h3\nh0\nh2\n");
	check_text("openmpi", two, HOSTS(3, 0, 2), "h3 slots=1\nh0 slots=1\nh2 slots=1\n");
	check_text("mpich", two, HOSTS(3, 0, 2), "h3:1\nh0:1\nh2:1\n");
	check_text("openmpi-rankfile", two, HOSTS(3, 0, 2),
		   "rank 0=h3 slot=0\nrank 1=h0 slot=0\nrank 2=h2 slot=0\n");
}

static void test_opensm(void **state)
{
	static const char two[] = "2;2,2;1,2;1,1";
	struct fabric_pgft t = tree(two);
	struct fabric_tree fabric;
	char *text;

	(void)state;
	check_text("opensm", two, HOSTS(0, 1, 2, 3),
		   "0x0001\th0\n0x0002\th1\n0x0003\th2\n0x0004\th3\n");
	check_text("opensm", two, HOSTS(1, 2),
		   "0xFFFF\tDUMMY\n0x0002\th1\n0x0003\th2\n0xFFFF\tDUMMY\n");
	/* Not in the order of the fabric: as the ranks are. */
	check_text("opensm", two, HOSTS(2, 1), "0x0003\th2\n0x0002\th1\n");
	fabric_tree_init(&fabric, &t);
	text = written(FABRIC_LAUNCH_OPENSM, &fabric, HOSTS(0, 1, 2, 3), 2);
	assert_string_equal(text, "0x0004\th0\n0x0008\th1\n0x000c\th2\n0x0010\th3\n");
	free(text);
}

static void test_topology(void **state)
{
	(void)state;
	check_text("slurm-topology", "1;3;1;1", HOSTS(2, 0, 1), "SwitchName=s1.0 Nodes=h0,h1,h2\n");
	check_text("slurm-topology", "2;2,3;1,2;1,1", HOSTS(5, 3, 2, 0),
		   "SwitchName=s1.0 Nodes=h0\nSwitchName=s1.1 Nodes=h2,h3\n"
		   "SwitchName=s1.2 Nodes=h5\nSwitchName=t2.0 Switches=s1.0,s1.1,s1.2\n");
	/* Nothing is left of the second sub-tree. */
	check_text("slurm-topology", "3;2,2,3;1,2,2;1,1,1", HOSTS(0, 1, 2, 9),
		   "SwitchName=s1.0 Nodes=h0,h1\nSwitchName=s1.1 Nodes=h2\n"
		   "SwitchName=s1.4 Nodes=h9\nSwitchName=t2.0 Switches=s1.0,s1.1\n"
		   "SwitchName=t2.2 Switches=s1.4\nSwitchName=t3.0 Switches=t2.0,t2.2\n");
	/* Hosts with two leaves: the first is named. */
	check_text("slurm-topology", "1;2;2;1", HOSTS(0, 1), "SwitchName=s1.0 Nodes=h0,h1\n");
}

/* Every node is in one line, every switch but the last has one parent, and names come first. */
static void test_topology_is_a_tree(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);
		uint32_t hosts[256], count, lines = 0, children = 0;
		struct fabric_tree fabric;
		char why[256], *text;

		fabric_tree_init(&fabric, &t);
		assert_int_equal(fabric_order(&t, "random:1", hosts, &count, why, sizeof(why)), 0);
		text = written(FABRIC_LAUNCH_TOPOLOGY, &fabric, hosts, count, 0);
		for (char *p = text; *p; p++) {
			lines += *p == '\n';
			children += *p == ',' || *p == '\n';
		}
		/* All but the top are somebody's child, and hosts are children, too. */
		assert_int_equal(children, lines - 1 + count);
		for (uint32_t l = 1; l <= t.h; l++)
			lines -= count / t.M[l];
		assert_int_equal(lines, 0);
		free(text);
	}
}

/* Of machines that are called otherwise than hosts are here, as a lab's. */
static void test_topology_of_others(void **state)
{
	struct fabric_pgft t = tree("2;2,2;1,2;1,1");
	char why[256] = "", *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	(void)state;
	assert_non_null(f);
	assert_int_equal(fabric_launch_topology(f, &t, "fat-", why, sizeof(why)), 0);
	assert_int_equal(fclose(f), 0);
	assert_string_equal(text, "SwitchName=s1.0 Nodes=fat-h0,fat-h1\n"
				  "SwitchName=s1.1 Nodes=fat-h2,fat-h3\n"
				  "SwitchName=t2.0 Switches=s1.0,s1.1\n");
	free(text);
	f = fopen("/dev/full", "we");
	if (f) {
		assert_int_equal(fabric_launch_topology(f, &t, "", why, sizeof(why)), -ENOSPC);
		fclose(f);
	}
}

/* Our own readers take what was written for others. */
static void test_read_back(void **state)
{
	static const char *const kinds[] = {"names", "openmpi", "mpich", "slurm"};
	struct fabric_pgft t = tree("2;12,2;1,12;1,1");
	uint32_t hosts[24], again[24], count;
	struct fabric_tree fabric;

	(void)state;
	fabric_tree_init(&fabric, &t);
	for (size_t i = 0; i < COUNT(kinds); i++) {
		enum fabric_launch kind;
		char why[256], *text;
		FILE *f;

		assert_int_equal(fabric_launch_parse(&kind, kinds[i], why, sizeof(why)), 0);
		assert_int_equal(fabric_order(&t, "random:9", hosts, &count, why, sizeof(why)), 0);
		text = written(kind, &fabric, hosts, count, 0);
		f = fmemopen(text, strlen(text), "r");
		assert_non_null(f);
		if (fabric_order_read(&t, f, "back", again, &count, why, sizeof(why)))
			fail_msg("%s", why);
		assert_int_equal(count, 24);
		assert_memory_equal(hosts, again, sizeof(hosts));
		fclose(f);
		free(text);
	}
}

/* ---- names of a network ---- */

static const char network[] =
	"switchguid=0x100(100)\n"
	"Switch\t4 \"S-0000000000000100\"\t\t# \"%s\" base port 0 lid 9 lmc 0\n"
	"[1]\t\"H-0000000000000010\"[1](11) \t\t# \"%s\" lid 52 4xSDR\n"
	"[2]\t\"H-0000000000000020\"[1](21) \t\t# \"node2 HCA-1\" lid 7 4xSDR\n"
	"\n"
	"caguid=0x10\n"
	"Ca\t1 \"H-0000000000000010\"\t\t# \"%s\"\n"
	"[1](11) \t\"S-0000000000000100\"[1]\t\t# lid 52 lmc 0 \"sw\" lid 9 4xSDR\n"
	"\n"
	"caguid=0x20\n"
	"Ca\t1 \"H-0000000000000020\"\t\t# \"node2 HCA-1\"\n"
	"[1](21) \t\"S-0000000000000100\"[2]\t\t# lid 7 lmc 0 \"sw\" lid 9 4xSDR\n";

/* Two hosts and a switch: recognising them is somebody else's test. */
static void read_network(struct fabric_tree *t, const char *leaf, const char *host)
{
	static const uint64_t guids[] = {0x10, 0x20, 0x100};
	struct fabric_pgft pgft = tree("1;2;1;1");
	char text[2048], why[256] = "";
	FILE *f;

	snprintf(text, sizeof(text), network, leaf, host, host);
	f = fmemopen(text, strlen(text), "r");
	fabric_tree_init(t, &pgft);
	t->net = calloc(1, sizeof(*t->net));
	t->net_node = calloc(3, sizeof(*t->net_node));
	t->lower_port = calloc(2, sizeof(*t->lower_port));
	t->upper_port = calloc(2, sizeof(*t->upper_port));
	assert_true(f && t->net && t->net_node && t->lower_port && t->upper_port);
	if (fabric_net_read(t->net, f, "net", why, sizeof(why)))
		fail_msg("%s", why);
	fclose(f);
	for (uint32_t i = 0; i < 3; i++)
		while (t->net->nodes[t->net_node[i]].guid != guids[i])
			t->net_node[i]++;
	for (uint16_t i = 0; i < 2; i++) {
		t->lower_port[i] = 1;
		t->upper_port[i] = i + 1;
	}
}

static void test_network(void **state)
{
	struct fabric_tree t;
	char *text;

	(void)state;
	read_network(&t, "rack;L1", "node1 mlx5_0");
	text = written(FABRIC_LAUNCH_RANKFILE, &t, HOSTS(1, 0), 0);
	assert_string_equal(text, "rank 0=node2 slot=0\nrank 1=node1 slot=0\n");
	free(text);
	text = written(FABRIC_LAUNCH_OPENSM, &t, HOSTS(0, 1), 0);
	assert_string_equal(text, "0x0034\tnode1\n0x0007\tnode2\n");
	free(text);
	/* A switch that is called what Slurm would not read has its other name. */
	text = written(FABRIC_LAUNCH_TOPOLOGY, &t, HOSTS(0, 1), 0);
	assert_string_equal(text, "SwitchName=s1.0 Nodes=node1,node2\n");
	free(text);
	fabric_tree_free(&t);
}

static void test_bad_name(void **state)
{
	char why[256] = "", *text = NULL;
	struct fabric_tree t;
	size_t size;
	FILE *f;

	(void)state;
	read_network(&t, "L1", "a=b,c");
	for (int kind = FABRIC_LAUNCH_NAMES; kind < FABRIC_LAUNCH_OPENSM; kind++) {
		f = open_memstream(&text, &size);
		assert_non_null(f);
		assert_int_equal(fabric_launch_write(f, (enum fabric_launch)kind, &t, HOSTS(0, 1),
						     0, why, sizeof(why)),
				 -EINVAL);
		assert_non_null(strstr(why, kind == FABRIC_LAUNCH_NAMES
						    ? "is called 'a=b,c', which would not be read"
						    : "is called 'a=b,c', which no launcher would "
						      "read"));
		fclose(f);
		free(text);
	}
	/* OpenSM's has it as the rest of the line. */
	text = written(FABRIC_LAUNCH_OPENSM, &t, HOSTS(0, 1), 0);
	assert_string_equal(text, "0x0034\ta=b,c\n0x0007\tnode2\n");
	free(text);
	fabric_tree_free(&t);
}

static void test_refusals(void **state)
{
	struct fabric_pgft t = tree("2;256,256;1,1;1,1");
	struct fabric_tree fabric;
	enum fabric_launch kind;
	char why[256] = "";
	FILE *f = fopen("/dev/full", "we");

	(void)state;
	assert_non_null(f);
	assert_int_equal(fabric_launch_parse(&kind, "pbs", why, sizeof(why)), -EINVAL);
	assert_non_null(strstr(why, "'pbs' is no format for an order; known are names"));
	fabric_tree_init(&fabric, &t);
	assert_int_equal(
		fabric_launch_write(f, FABRIC_LAUNCH_NAMES, &fabric, HOSTS(0), 0, why, sizeof(why)),
		-ENOSPC);
	fclose(f);
	/* Before anything is written. */
	f = tmpfile();
	assert_non_null(f);
	assert_int_equal(fabric_launch_write(f, FABRIC_LAUNCH_OPENSM, &fabric, HOSTS(0, 65000), 0,
					     why, sizeof(why)),
			 -EINVAL);
	assert_non_null(strstr(why, "host h65000 would have LID 65001; the last is 49151"));
	assert_int_equal(ftell(f), 0);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks),
		cmocka_unit_test(test_opensm),
		cmocka_unit_test(test_topology),
		cmocka_unit_test(test_topology_is_a_tree),
		cmocka_unit_test(test_topology_of_others),
		cmocka_unit_test(test_read_back),
		cmocka_unit_test(test_network),
		cmocka_unit_test(test_bad_name),
		cmocka_unit_test(test_refusals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
