/* Vishnu and others, Topology agnostic hot-spot avoidance with InfiniBand. Published values are
 * those of the text; the figures' points are not in it. */
#include "repro.h"

#include <math.h>

#define TREE "--pgft '2;12,12;1,12;1,1'"
#define SIM                                                                                        \
	"weft fabric sim -q " TREE " --paths hashed --stripe single --stripe hsam:4 --stripe "     \
	"bss:4,2 --stripe bss:12,3 --stripe pull:12,6 --seed $ROUND --json "

static const struct repro_take policies[] = {{.key = "policy", .y = "last_round_us"}, {0}};
static const struct repro_take degree[] = {{.y = "max_hsd"}, {0}};
static const struct repro_take by_step[] = {{.rows = "rows", .x = "step", .y = "MBps"}, {0}};

static const struct repro_step table_steps[] = {
	{"routes that know no pattern",
	 "weft fabric hsd --pgft '2;12,2;1,12;1,1' --routing random:$ROUND --cps drc:12 --json",
	 degree},
	{"D-Mod-K", "weft fabric hsd --pgft '2;12,2;1,12;1,1' --cps drc:12 --json", degree},
	{0},
};

static const struct repro_experiment link_usage = {
	.name = "hsal-links",
	.steps = table_steps,
	.rounds = {9, 25},
	.seconds = {1, 3},
	.y = "most flows on a link",
	.bars = true,
};

static const struct repro_step ring_steps[] = {
	{"one path",
	 "FI_WEFT_STRIPING=single weft run --lab tree -n 24 --order routing weft-mpi-perf.openmpi "
	 "drc "
	 "-m {256K|1M} --steps 1-23 -W 2 -i {1|3} -w 1 -T {20|100} --json",
	 by_step},
	{0},
};

static const struct repro_experiment ring_lab = {
	.name = "hsal-ring",
	.setup =
		"weft lab up tree --pgft '2;12,2;1,12;1,1' --rate 50mbit --mtu 9000 --routing ecmp",
	.steps = ring_steps,
	.needs = REPRO_OPENMPI | REPRO_LAB | REPRO_PROVIDER,
	.rounds = {1, 6},
	.seconds = {20, 700},
	.x = "step",
	.y = "MB/s per rank",
};

#define SIMULATED(id, step, quick, full)                                                           \
	static const struct repro_step id##_steps[] = {{"", SIM step, policies}, {0}};             \
	static const struct repro_experiment id = {                                                \
		.name = "hsal-" #id,                                                               \
		.steps = id##_steps,                                                               \
		.rounds = {3, 7},                                                                  \
		.seconds = {quick, full},                                                          \
		.y = "time of the last round, us",                                                 \
		.bars = true,                                                                      \
	}

SIMULATED(alltoall48, "--ranks 48 --bytes {64K|256K}", 12, 120);
SIMULATED(alltoall64, "--ranks 64 --order random:$ROUND --bytes {32K|64K}", 20, 120);
SIMULATED(drc24, "--ranks 24 --cps drc:12 --bytes 1M --rounds 20", 6, 20);
SIMULATED(drc64, "--ranks 64 --cps drc:32 --bytes 1M --rounds 20", 12, 40);

#define NO_NAS                                                                                     \
	"the NAS Parallel Benchmarks are not part of Weft, and are not installed; arrival/table1 " \
	"measures a Fourier transform of its own"
#define DRAWING "a drawing: nothing in it is measured"

static const struct repro_claim fig4[] = {
	{"Of the links, some carry several flows of step 12 where routes know nothing of it", "4",
	 NULL, REPRO_VALUE, "routes that know no pattern", NULL, 0, 0, REPRO_ABOUT, 4, 0.25, 1},
	{0},
};
static const struct repro_claim fig5[] = {
	{"Bandwidth is least where all messages cross the tree, in step 12", "step 12", NULL,
	 REPRO_RATIO, "one path", "one path", 12, 1, REPRO_AT_MOST, NAN, 0, 1},
	{0},
};
static const struct repro_claim fig10[] = {
	{"BSS(12,3) takes half the time of one path", "half", "of one path", REPRO_RATIO,
	 "bss:12,3", "single", 0, 0, REPRO_AT_MOST, 0.5, 0.02, 1},
	{"BSS(12,3) is below HSAM(4)", "by 27 %", "%", REPRO_GAIN, "bss:12,3", "hsam:4", 0, 0,
	 REPRO_AT_LEAST, 27, 0, 0},
	{"BSS(12,3) is below BSS(4,2)", "by 15 %", "%", REPRO_GAIN, "bss:12,3", "bss:4,2", 0, 0,
	 REPRO_AT_LEAST, 15, 0, 0},
	{0},
};
static const struct repro_claim fig11[] = {
	{"Ranks on hosts by chance: BSS(12,3) is below one path", "significant", "of one path",
	 REPRO_RATIO, "bss:12,3", "single", 0, 0, REPRO_AT_MOST, NAN, 0, 1},
	{"... and below HSAM(4)", "significant", "of HSAM(4)", REPRO_RATIO, "bss:12,3", "hsam:4", 0,
	 0, REPRO_AT_MOST, NAN, 0, 1},
	{0},
};
static const struct repro_claim fig14[] = {
	{"Displaced ring: BSS(12,3) is below HSAM(4)", "significant", "of HSAM(4)", REPRO_RATIO,
	 "bss:12,3", "hsam:4", 0, 0, REPRO_AT_MOST, NAN, 0, 1},
	{"One path is much worse than HSAM(4)", "much worse", "of HSAM(4)", REPRO_RATIO, "single",
	 "hsam:4", 0, 0, REPRO_AT_LEAST, NAN, 0, 1},
	{0},
};

#define SIMULATED_HERE                                                                             \
	"simulated: 12 addresses per host with hashed ways on the 144-port switch, instead of an " \
	"InfiniBand cluster; pull:12,6 is Weft's own policy"

const struct repro_figure repro_hsal[] = {
	{"hsal/fig1", "Eager and rendezvous protocol of MPI.", NULL, DRAWING},
	{"hsal/fig2", "The blocks of a 144-port switch.", NULL, DRAWING},
	{"hsal/fig3", "The first steps of a displaced ring.", NULL, DRAWING},
	{"hsal/fig4", "How many flows of step 12 of a displaced ring each link carries.",
	 &link_usage, NULL, "routes are random tables, one for each round, not OpenSM's", fig4},
	{"hsal/fig5", "Bandwidth in each step of a displaced ring of 24 processes.", &ring_lab,
	 NULL,
	 "a lab of 50 Mbit/s links whose switches hash flows; mean over all ranks, not rank 0",
	 fig5},
	{"hsal/fig6", "The parts of the hot-spot avoidance layer.", NULL, DRAWING},
	{"hsal/fig7", "Feedback in adaptive striping.", NULL, DRAWING},
	{"hsal/fig8", "The layer below MPI.", NULL, DRAWING},
	{"hsal/fig9", "The layer in the rendezvous protocol.", NULL, DRAWING},
	{"hsal/fig10", "MPI_Alltoall of 48 processes, in order.", &alltoall48, NULL, SIMULATED_HERE,
	 fig10},
	{"hsal/fig11", "MPI_Alltoall of 64 processes, on hosts by chance.", &alltoall64, NULL,
	 SIMULATED_HERE, fig11},
	{"hsal/fig12",
	 "MPI_Allgather of 48 processes, in order: there is little to avoid, and all policies are "
	 "alike.",
	 NULL,
	 "the simulator divides messages of an alltoall and of displaced rings only; make bench "
	 "BENCH=--stripe measures MPI_Allgather on labs"},
	{"hsal/fig13",
	 "MPI_Allgather of 64 processes, on hosts by chance: 43 % below one path, 32 % below HSAM.",
	 NULL,
	 "the simulator divides messages of an alltoall and of displaced rings only; make bench "
	 "BENCH=--stripe measures MPI_Allgather on labs"},
	{"hsal/fig14", "Displaced ring of 24 processes.", &drc24, NULL, SIMULATED_HERE, fig14},
	{"hsal/fig15", "Displaced ring of 64 processes.", &drc64, NULL, SIMULATED_HERE, fig14},
	{"hsal/fig16", "NAS FT class B: BSS 10 to 11 % below one path, 6 to 7 % below HSAM.", NULL,
	 NO_NAS},
	{"hsal/fig17", "NAS FT class C: BSS 13 % below one path, 6.5 % below HSAM.", NULL, NO_NAS},
	{0},
};
