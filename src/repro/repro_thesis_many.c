/* How the thesis' figures with several connections, and several pairs, are measured here; and what
 * a cache of registrations is worth. */
#include "repro_thesis_how.h"

#define PERF "weft-mpi-perf.openmpi "
#define WIRE "weft lab up wire --pgft '1;2;1;1' --rate unlimited --mtu 1500"
#define MPI  (REPRO_OPENMPI | REPRO_PROVIDER)

#define OF(name, size) "name=" name ",params.type=rc-send,params.size=" #size
static const struct repro_take conns_lat_takes[] = {
	{.series = "latency, 8",
	 .rows = "series",
	 .where = OF("per_message", 8),
	 .x = "params.n",
	 .y = "samples"},
	{.series = "latency, 64K",
	 .rows = "series",
	 .where = OF("per_message", 65536),
	 .x = "params.n",
	 .y = "samples"},
	{0},
};
static const struct repro_take conns_bw_takes[] = {
	{.series = "throughput, 4K",
	 .rows = "series",
	 .where = OF("throughput", 4096),
	 .x = "params.n",
	 .y = "samples"},
	{.series = "throughput, 64K",
	 .rows = "series",
	 .where = OF("throughput", 65536),
	 .x = "params.n",
	 .y = "samples"},
	{0},
};
#define CONNS(sizes)                                                                               \
	"weft bench verbs conns -q -t rc-send -n 1,2,4,8,16,64,{128|512} -s " sizes                \
	" --passes {2|6} --rounds {40|200} --step-ms {20|100} --max-seconds {15|120} -j -"
static const struct repro_step conns_lat_steps[] = {{"", CONNS("8,64K"), conns_lat_takes}, {0}};
static const struct repro_step conns_bw_steps[] = {{"", CONNS("4K,64K"), conns_bw_takes}, {0}};

const struct repro_experiment repro_conns_lat = {.name = "thesis-conns-latency",
						 .steps = conns_lat_steps,
						 .rounds = {3, 9},
						 .seconds = {15, 300},
						 .x = "connections",
						 .y = "half a round by their number, us",
						 .log_x = true,
						 .log_y = true};
const struct repro_experiment repro_conns_bw = {.name = "thesis-conns-stream",
						.steps = conns_bw_steps,
						.rounds = {3, 9},
						.seconds = {15, 300},
						.x = "connections",
						.y = "MB/s, both ways",
						.log_x = true};

static const struct repro_take pairs_lat_takes[] = {
	{.series = "8", .rows = "rows", .where = "size=8", .x = "pairs", .y = "p50_us"},
	{.series = "4K", .rows = "rows", .where = "size=4096", .x = "pairs", .y = "p50_us"},
	{0},
};
static const struct repro_take pairs_bw_takes[] = {
	{.series = "4K", .rows = "rows", .where = "size=4096", .x = "pairs", .y = "p50_MBps"},
	{.series = "64K", .rows = "rows", .where = "size=65536", .x = "pairs", .y = "p50_MBps"},
	{0},
};
#define PAIRS(ranks, kind) "weft run --lab wire -n " ranks " " PERF kind " -T {3|8} --json"
#define LAT                "multi-lat -m 8,4K -i {200|1000}"
#define BW                 "multi-bw -m 4K,64K -i {20|100}"
static const struct repro_step pairs_lat_steps[] = {
	{"", PAIRS("2", LAT), pairs_lat_takes},
	{"", PAIRS("4", LAT), pairs_lat_takes},
	{"", PAIRS("8", LAT), pairs_lat_takes},
	{0},
};
static const struct repro_step pairs_bw_steps[] = {
	{"", PAIRS("2", BW), pairs_bw_takes},
	{"", PAIRS("4", BW), pairs_bw_takes},
	{"", PAIRS("8", BW), pairs_bw_takes},
	{0},
};
const struct repro_experiment repro_pairs_lat = {.name = "thesis-pairs-latency",
						 .setup = WIRE,
						 .steps = pairs_lat_steps,
						 .needs = MPI | REPRO_LAB,
						 .rounds = {2, 9},
						 .seconds = {20, 250},
						 .x = "pairs",
						 .y = "half a round trip, us",
						 .log_y = true};
const struct repro_experiment repro_pairs_bw = {.name = "thesis-pairs-stream",
						.setup = WIRE,
						.steps = pairs_bw_steps,
						.needs = MPI | REPRO_LAB,
						.rounds = {2, 9},
						.seconds = {20, 250},
						.x = "pairs",
						.y = "MB/s, all pairs"};

static const struct repro_take cache_takes[] = {
	{.series = "first", .rows = "rows", .where = "use=first", .x = "size", .y = "p50_us"},
	{.series = "again", .rows = "rows", .where = "use=again", .x = "size", .y = "p50_us"},
	{.series = "remapped", .rows = "rows", .where = "use=remapped", .x = "size", .y = "p50_us"},
	{0},
};
#define CACHE(how)                                                                                 \
	"FI_WEFT_LOCAL=pieces FI_WEFT_CACHE=" how " weft run -n 2 " PERF                           \
	"regcache -m 64K,1M --buffers 16 -i {64|640} -T {4|10} --json"
static const struct repro_step cache_steps[] = {
	{"cached: ", CACHE("on"), cache_takes}, {"not: ", CACHE("off"), cache_takes}, {0}};
const struct repro_experiment repro_cache = {.name = "thesis-cache",
					     .steps = cache_steps,
					     .needs = MPI,
					     .rounds = {3, 9},
					     .seconds = {12, 150},
					     .x = "message, bytes",
					     .y = "half a round trip, us",
					     .log_x = true,
					     .log_y = true};
