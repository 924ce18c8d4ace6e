/* Zahavi, Fat-Trees Routing and Node Ordering Providing Contention Free Traffic for MPI Global
 * Collectives. The tuples that table 3 prints break the paper's own rules (docs/fabric.md); these
 * are the trees that its numbers belong to. */
#include "repro.h"

#include <math.h>

#define T144   "--pgft '2;12,12;1,6;1,2' "
#define T324   "--pgft '2;18,18;1,9;1,2' "
#define T1728  "--pgft '3;12,12,12;1,12,6;1,1,2' "
#define T1944  "--pgft '3;18,18,6;1,18,3;1,1,6' "
#define T16    "--pgft '2;4,4;1,4;1,1' "
#define HSD    "weft fabric hsd --json "
#define RANDOM "--order random:$ROUND "

static const struct repro_take average[] = {{.y = "avg_max_hsd"}, {0}};
static const struct repro_take worst[] = {{.y = "max_hsd"}, {0}};
static const struct repro_take bandwidth[] = {{.y = "bandwidth"}, {0}};

static const struct repro_step fig1_steps[] = {
	{"random order", HSD T16 "--cps shift:4 " RANDOM, worst},
	{"order of the tree", HSD T16 "--cps shift:4", worst},
	{0},
};
static const struct repro_experiment order16 = {.name = "fattree-order16",
						.steps = fig1_steps,
						.rounds = {9, 25},
						.seconds = {1, 2},
						.y = "most flows on a link",
						.bars = true};

#define SIM "weft fabric sim -q --json --stages {4|16} " T1944
#define AT(bytes)                                                                                  \
	{"shift, random order", SIM "--cps shift " RANDOM "--bytes " #bytes, bandwidth, bytes},    \
		{"recursive doubling, random order", SIM "--cps recdbl " RANDOM "--bytes " #bytes, \
		 bandwidth, bytes},                                                                \
	{                                                                                          \
		"shift, order of the tree", SIM "--cps shift --bytes " #bytes, bandwidth, bytes    \
	}

static const struct repro_step fig2_steps[] = {
	AT(8192),
	AT(65536),
	AT(262144),
	{"adversarial ring", SIM "--cps ring --order adversarial --bytes 262144", bandwidth,
	 262144},
	{0},
};
static const struct repro_experiment sizes = {.name = "fattree-sizes",
					      .steps = fig2_steps,
					      .rounds = {2, 7},
					      .seconds = {40, 500},
					      .x = "message, bytes",
					      .y = "part of the hosts' bandwidth",
					      .log_x = true};

#define GROWS(name, cps)                                                                           \
	{name, HSD "--pgft '2;8,16;1,8;1,1' --cps " cps " " RANDOM, average, 128},                 \
		{name, HSD T324 "--cps " cps " " RANDOM, average, 324},                            \
		{name, HSD T1728 "--cps " cps " " RANDOM, average, 1728},                          \
	{                                                                                          \
		name, HSD T1944 "--cps " cps " " RANDOM, average, 1944                             \
	}

static const struct repro_step fig3_steps[] = {
	GROWS("ring", "ring"),
	GROWS("shift", "shift"),
	GROWS("butterfly", "recdbl"),
	GROWS("binomial", "binomial"),
	GROWS("dissemination", "dissemination"),
	GROWS("tournament", "tournament"),
	{0},
};
static const struct repro_experiment growth = {.name = "fattree-growth",
					       .steps = fig3_steps,
					       .rounds = {6, 25},
					       .seconds = {8, 40},
					       .x = "hosts",
					       .y = "hot-spot degree, mean over stages"};

#define CPS(name)                                                                                  \
	{                                                                                          \
		name, HSD T1944 "--cps " name, worst                                               \
	}
static const struct repro_step table2_steps[] = {
	CPS("dissemination"), CPS("tournament"), CPS("shift"), CPS("ring"), CPS("binomial"), {0},
};
static const struct repro_experiment sequences = {.name = "fattree-sequences",
						  .steps = table2_steps,
						  .rounds = {1, 1},
						  .seconds = {1, 1},
						  .y = "most flows on a link, any stage",
						  .bars = true};

#define ROW(hosts, tree)                                                                           \
	{"shift, random order", HSD tree "--cps shift " RANDOM, average, hosts},                   \
		{"recursive doubling, random order", HSD tree "--cps topo-recdbl " RANDOM,         \
		 average, hosts},                                                                  \
		{"shift, order of the tree", HSD tree "--cps shift", average, hosts},              \
	{                                                                                          \
		"recursive doubling, order of the tree", HSD tree "--cps topo-recdbl", average,    \
			hosts                                                                      \
	}
static const struct repro_step table3_steps[] = {
	ROW(144, T144), ROW(324, T324), ROW(1728, T1728), ROW(1944, T1944), {0},
};
static const struct repro_experiment table = {.name = "fattree-table3",
					      .steps = table3_steps,
					      .rounds = {6, 25},
					      .seconds = {8, 40},
					      .x = "hosts",
					      .y = "hot-spot degree, mean over stages"};

static const struct repro_claim fig1[] = {
	{"In random order flows meet on links", "3 hot spots", "flows on the worst link",
	 REPRO_VALUE, "random order", NULL, 0, 0, REPRO_AT_LEAST, NAN, 0, 1},
	{"In the order of the tree none do", "1 flow per link", "flows on the worst link",
	 REPRO_VALUE, "order of the tree", NULL, 0, 0, REPRO_ABOUT, 1, 0, NAN},
	{0},
};
static const struct repro_claim fig2[] = {
	{"Random order: bandwidth of shifts falls as messages grow", "falls", "of that at 8 KB",
	 REPRO_RISE, "shift, random order", NULL, 0, 0, REPRO_AT_MOST, NAN, 0, 1},
	{"Random order of large messages: down to about 40 %", "~40 %", "of the hosts' bandwidth",
	 REPRO_VALUE, "shift, random order", NULL, 262144, 0, REPRO_ABOUT, 0.4, 0.25, 1},
	{"Recursive doubling is lower, also for short messages", "lower", "of shift", REPRO_RATIO,
	 "recursive doubling, random order", "shift, random order", 8192, 8192, REPRO_AT_MOST, NAN,
	 0, 1},
	{"An adversarial order of a ring", "7.1 %", "of the hosts' bandwidth", REPRO_VALUE,
	 "adversarial ring", NULL, 262144, 0, REPRO_ABOUT, 0.071, 0.1, 1},
	{"In the order of the tree, all of the bandwidth", "full", "of the hosts' bandwidth",
	 REPRO_VALUE, "shift, order of the tree", NULL, 262144, 0, REPRO_ABOUT, 1, 0.02, NAN},
	{0},
};
static const struct repro_claim fig3[] = {
	{"Ring: the degree grows with the cluster", "grows", "times, 128 to 1944 hosts", REPRO_RISE,
	 "ring", NULL, 0, 0, REPRO_AT_LEAST, NAN, 0, 1},
	{"Shift: it grows", "grows", "times, 128 to 1944 hosts", REPRO_RISE, "shift", NULL, 0, 0,
	 REPRO_AT_LEAST, NAN, 0, 1},
	{"Butterfly: it grows", "grows", "times, 128 to 1944 hosts", REPRO_RISE, "butterfly", NULL,
	 0, 0, REPRO_AT_LEAST, NAN, 0, 1},
	{0},
};
#define FREE(name)                                                                                 \
	{                                                                                          \
		name ": free of hot spots, as a part of shifts", "1", NULL, REPRO_VALUE, name,     \
			NULL, 0, 0, REPRO_ABOUT, 1, 0, NAN                                         \
	}
static const struct repro_claim table2[] = {
	FREE("dissemination"), FREE("tournament"), FREE("shift"),
	FREE("ring"),          FREE("binomial"),   {0},
};
#define TIMES(text, series, hosts, number)                                                         \
	{                                                                                          \
		text, #number, NULL, REPRO_VALUE, series ", random order", NULL, hosts, 0,         \
			REPRO_ABOUT, number, 0.05, 1                                               \
	}
static const struct repro_claim table3[] = {
	TIMES("Shift, 144 hosts", "shift", 144, 3.75),
	TIMES("Shift, 324 hosts", "shift", 324, 4.32),
	TIMES("Shift, 1728 hosts", "shift", 1728, 5.24),
	TIMES("Shift, 1944 hosts", "shift", 1944, 5.41),
	TIMES("Recursive doubling, 144 hosts", "recursive doubling", 144, 2.9),
	TIMES("Recursive doubling, 324 hosts", "recursive doubling", 324, 3.25),
	TIMES("Recursive doubling, 1728 hosts", "recursive doubling", 1728, 4.26),
	TIMES("Recursive doubling, 1944 hosts", "recursive doubling", 1944, 4.26),
	{"In the order of the tree: shift, no hot spot anywhere", "1", NULL, REPRO_MAXIMUM,
	 "shift, order of the tree", NULL, 0, 0, REPRO_ABOUT, 1, 0, NAN},
	{"... recursive doubling that knows the tree, neither", "1", NULL, REPRO_MAXIMUM,
	 "recursive doubling, order of the tree", NULL, 0, 0, REPRO_ABOUT, 1, 0, NAN},
	{0},
};

const struct repro_figure repro_fattree[] = {
	{"fattree/fig1", "An order of ranks that causes blocking, and one that prevents it.",
	 &order16, NULL,
	 "random orders, one for each round, not the paper's, which is in its drawing", fig1},
	{"fattree/fig2", "Bandwidth of collectives on 1944 hosts against the message size.", &sizes,
	 NULL, "a simulator of our own; some of the stages of shift, spread over all", fig2},
	{"fattree/fig3", "Hot-spot degree of collectives against the size of the cluster.", &growth,
	 NULL, "the tree of 128 hosts is not said; 2;8,16;1,8;1,1 here", fig3},
	{"fattree/fig4", "A tree that an XGFT can not describe and a PGFT can.", NULL,
	 "a drawing; weft fabric check --pgft '2;4,4;1,2;1,2' is that tree"},
	{"fattree/fig5", "Nodes, ports and connections of a PGFT.", NULL,
	 "a drawing: nothing in it is measured"},
	{"fattree/fig6", "An example of routes in a part of a PGFT.", NULL,
	 "a drawing: nothing in it is measured"},
	{"fattree/table1", "Which permutation sequences MVAPICH and Open MPI use.", NULL,
	 "a survey of the sources of two libraries of 2011"},
	{"fattree/table2", "The sequences' definitions; all that go one way are parts of shifts.",
	 &sequences, NULL, "what follows from it is checked: on 1944 hosts none has a hot spot",
	 table2},
	{"fattree/table3", "Hot-spot degrees of trees and sequences, ranks at random and in order.",
	 &table, NULL,
	 "the trees that the numbers belong to, since the printed tuples break the paper's rules; "
	 "full "
	 "trees only: which hosts the partial ones leave out is not said",
	 table3},
	{0},
};
