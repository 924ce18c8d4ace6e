/* How the thesis' figures are measured here. */
#include "repro_thesis_how.h"

#define PERF "weft-mpi-perf.openmpi "
#define OFF  "FI_WEFT_SPECULATE=no WEFT_PROGRESS=off "
#define WIRE "weft lab up wire --pgft '1;2;1;1' --rate unlimited --mtu 1500"
/* The bucket of a lab's link holds 2 ms, which would be all of a message: 0.26 ms are enough. */
#define SHAPED(rate)                                                                               \
	"weft lab up wire --pgft '1;2;1;1' --rate " rate " --mtu 1500 && for p in 'h0 eth0' 'h1 "  \
	"eth0' 's1.0 d0' 's1.0 d1'; do weft lab exec wire ${p% *} -- tc qdisc change dev ${p#* } " \
	"root tbf rate " rate " burst 32k latency 20ms || exit 1; done"
#define SERVER "weft lab exec wire h1 -- weft verbs weft-perf server -q & "
#define CLIENT "weft lab exec wire h0 -- weft verbs weft-perf "
#define MPI    (REPRO_OPENMPI | REPRO_PROVIDER)

static const struct repro_take kinds_us[] = {
	{.rows = "results", .key = "kind", .x = "size", .y = "usec.median"}, {0}};
static const struct repro_take kinds_mbps[] = {
	{.rows = "results", .key = "kind", .x = "size", .y = "MBps.median"}, {0}};
static const struct repro_take us[] = {{.rows = "rows", .x = "size", .y = "p50_us"}, {0}};
static const struct repro_take mean_us[] = {{.rows = "rows", .x = "size", .y = "mean_us"}, {0}};
static const struct repro_take mbps[] = {{.rows = "rows", .x = "size", .y = "p50_MBps"}, {0}};

/* ---- chapter 3: latency and bandwidth ---- */

static const struct repro_step verbs_lat[] = {
	{"", SERVER CLIENT "lat -k tcp,rc,ud,rd -s 8,64,512,1K -r {3|10} -n {300|2000} -q -j - h1",
	 kinds_us},
	{"one host, ",
	 "export WEFT_ADDR=127.0.0.1; weft verbs weft-perf server -q & weft verbs weft-perf lat -k "
	 "rc "
	 "-s 8,64,512,1K -r {3|10} -n {300|2000} -q -j - 127.0.0.1",
	 kinds_us},
	{0},
};
const struct repro_experiment repro_verbs_lat = {.name = "thesis-verbs-latency",
						 .setup = WIRE,
						 .steps = verbs_lat,
						 .needs = REPRO_LAB,
						 .rounds = {3, 9},
						 .seconds = {8, 90},
						 .x = "message, bytes",
						 .y = "half a round trip, us",
						 .log_x = true};

static const struct repro_step verbs_bw[] = {
	{"", SERVER CLIENT "bw -k rc-write,rd -s 1K,4K,16K,64K,1M -r {2|10} -t {20|100} -q -j - h1",
	 kinds_mbps},
	{0},
};
const struct repro_experiment repro_verbs_bw = {.name = "thesis-verbs-stream",
						.setup = WIRE,
						.steps = verbs_bw,
						.needs = REPRO_LAB,
						.rounds = {3, 9},
						.seconds = {8, 90},
						.x = "message, bytes",
						.y = "MB/s",
						.log_x = true};

static const struct repro_step mpi_lat[] = {
	{"datagrams", "weft run --lab wire -n 2 " PERF "latency -m 8:64K:8 -T {3|8} --json", us},
	{"connections",
	 "FI_WEFT_TRANSPORT=rc weft run --lab wire -n 2 " PERF "latency -m 8:64K:8 -T {3|8} --json",
	 us},
	{"one host", "weft run -n 2 " PERF "latency -m 8:64K:8 -T {3|8} --json", us},
	{"verbs, ", SERVER CLIENT "lat -k rd -s 8,64,512,4K -r 3 -n 300 -q -j - h1", kinds_us},
	{0},
};
const struct repro_experiment repro_mpi_lat = {.name = "thesis-mpi-latency",
					       .setup = WIRE,
					       .steps = mpi_lat,
					       .needs = MPI | REPRO_LAB,
					       .rounds = {2, 9},
					       .seconds = {16, 200},
					       .x = "message, bytes",
					       .y = "half a round trip, us",
					       .log_x = true,
					       .log_y = true};

#define WINDOWS "-m 2K:2M:32 -i {5|20} -T {3|6} --json"
static const struct repro_step mpi_bw[] = {
	{"one way", "weft run --lab wire -n 2 " PERF "bw " WINDOWS, mbps},
	{"both ways, datagrams", "weft run --lab wire -n 2 " PERF "bibw " WINDOWS, mbps},
	{"both ways, connections",
	 "FI_WEFT_TRANSPORT=rc weft run --lab wire -n 2 " PERF "bibw " WINDOWS, mbps},
	{0},
};
const struct repro_experiment repro_mpi_bw = {.name = "thesis-mpi-stream",
					      .setup = WIRE,
					      .steps = mpi_bw,
					      .needs = MPI | REPRO_LAB,
					      .rounds = {2, 9},
					      .seconds = {16, 200},
					      .x = "message, bytes",
					      .y = "MB/s",
					      .log_x = true};

/* ---- chapter 3: memory ---- */

static const struct repro_take reg_takes[] = {
	{.series = "register", .rows = "results", .x = "size", .y = "reg_first_us.median"},
	{.series = "deregister", .rows = "results", .x = "size", .y = "dereg_first_us.median"},
	{.series = "copy", .rows = "results", .x = "size", .y = "memcpy_us.median"},
	{0},
};
static const struct repro_step reg_steps[] = {
	{"", "weft verbs weft-perf reg -r {2|10} -s 4K,64K,1M,16M -j -", reg_takes}, {0}};
const struct repro_experiment repro_register = {.name = "thesis-register",
						.steps = reg_steps,
						.rounds = {3, 9},
						.seconds = {3, 30},
						.x = "memory, bytes",
						.y = "us",
						.log_x = true,
						.log_y = true};

static const struct repro_take reuse_takes[] = {
	{.series = "never again",
	 .rows = "rows",
	 .where = "reuse_pct=0",
	 .x = "size",
	 .y = "p50_us"},
	{.series = "half", .rows = "rows", .where = "reuse_pct=50", .x = "size", .y = "p50_us"},
	{.series = "always", .rows = "rows", .where = "reuse_pct=100", .x = "size", .y = "p50_us"},
	{0},
};
static const struct repro_step reuse_steps[] = {
	{"", "weft run -n 2 " PERF "reuse -m 64:1M:8 -i {100|1000} -T {4|10} --json", reuse_takes},
	{0},
};
const struct repro_experiment repro_buffers = {.name = "thesis-buffers",
					       .steps = reuse_steps,
					       .needs = MPI,
					       .rounds = {3, 9},
					       .seconds = {12, 100},
					       .x = "message, bytes",
					       .y = "half a round trip, us",
					       .log_x = true,
					       .log_y = true};

/* ---- chapter 4 ---- */

static const struct repro_take overlap_takes[] = {
	{.series = "receiver, receiver early",
	 .rows = "rows",
	 .where = "scenario=receiver-early,side=receiver",
	 .x = "size",
	 .y = "overlap_pct"},
	{.series = "receiver, sender early",
	 .rows = "rows",
	 .where = "scenario=sender-early,side=receiver",
	 .x = "size",
	 .y = "overlap_pct"},
	{.series = "sender, sender early",
	 .rows = "rows",
	 .where = "scenario=sender-early,side=sender",
	 .x = "size",
	 .y = "overlap_pct"},
	{0},
};
#define OVERLAP "weft run --lab wire -n 2 " PERF "overlap -i {3|5} -m 1M:4M:4 -T {10|25} --json"
static const struct repro_step overlap_steps[] = {
	{"new: ", OVERLAP, overlap_takes}, {"before: ", OFF OVERLAP, overlap_takes}, {0}};
const struct repro_experiment repro_overlap = {.name = "thesis-overlap",
					       .setup = SHAPED("1gbit"),
					       .steps = overlap_steps,
					       .needs = MPI | REPRO_LAB,
					       .rounds = {2, 7},
					       .seconds = {40, 350},
					       .x = "message, bytes",
					       .y = "overlap, %",
					       .log_x = true};

static const struct repro_take progress_takes[] = {
	{.series = "receiver, receiver early",
	 .rows = "rows",
	 .where = "scenario=receiver-early,side=receiver",
	 .x = "delay_x",
	 .y = "left_pct"},
	{.series = "receiver, sender early",
	 .rows = "rows",
	 .where = "scenario=sender-early,side=receiver",
	 .x = "delay_x",
	 .y = "left_pct"},
	{.series = "sender, receiver early",
	 .rows = "rows",
	 .where = "scenario=receiver-early,side=sender",
	 .x = "delay_x",
	 .y = "left_pct"},
	{0},
};
#define PROGRESS "weft run --lab wire -n 2 " PERF "progress -m 1M -i {3|5} -T {6|10} --json"
static const struct repro_step progress_steps[] = {
	{"new: ", PROGRESS, progress_takes}, {"before: ", OFF PROGRESS, progress_takes}, {0}};
const struct repro_experiment repro_progress = {.name = "thesis-progress",
						.setup = SHAPED("1gbit"),
						.steps = progress_steps,
						.needs = MPI | REPRO_LAB,
						.rounds = {2, 7},
						.seconds = {24, 160},
						.x = "time away, latencies",
						.y = "left of the latency, %"};

static const struct repro_take iteration[] = {{.rows = "rows", .x = "ratio", .y = "T_iter_us"},
					      {0}};
#define EXCHANGE(model)                                                                            \
	"weft run --lab wire -n 2 " PERF "exchange --model " model                                 \
	" -d 11000 -i {6|20} -T {7|12} --json"
static const struct repro_step exchange_steps[] = {
	{"model 1, new", EXCHANGE("1"), iteration},
	{"model 1, before", OFF EXCHANGE("1"), iteration},
	{"model 2, new", EXCHANGE("2"), iteration},
	{"model 2, before", OFF EXCHANGE("2"), iteration},
	{0},
};
const struct repro_experiment repro_exchange = {.name = "thesis-exchange",
						.setup = SHAPED("100mbit"),
						.steps = exchange_steps,
						.needs = MPI | REPRO_LAB,
						.rounds = {2, 7},
						.seconds = {60, 400},
						.x = "communication / computation",
						.y = "time of an iteration, us"};

static const struct repro_take ping_pong[] = {
	{.rows = "rows", .where = "timing=ping-pong", .x = "size", .y = "p50_us"}, {0}};
#define LATE "weft run --lab wire -n 2 " PERF "pingpong-late -i {50|300} -w 20 -T {4|6} --json"
static const struct repro_step late_steps[] = {
	{"speculating", "FI_WEFT_USAGE=0 " LATE, ping_pong},
	{"adapting", LATE, ping_pong},
	{"not", "FI_WEFT_SPECULATE=no " LATE, ping_pong},
	{0},
};
const struct repro_experiment repro_late = {.name = "thesis-late",
					    .setup = WIRE,
					    .steps = late_steps,
					    .needs = MPI | REPRO_LAB,
					    .rounds = {3, 11},
					    .seconds = {48, 250},
					    .x = "message, bytes",
					    .y = "half a round trip, us",
					    .log_x = true,
					    .log_y = true};

/* ---- chapter 5 ---- */

static const struct repro_take layer[] = {
	{.series = "copied", .x = "1", .y = "2"},
	{.series = "not copied", .x = "1", .y = "3"},
	{.series = "the copy itself", .x = "1", .y = "7"},
	{0},
};
static const struct repro_step copy_steps[] = {
	{"",
	 "WEFT_ADDR=127.0.0.1 weft verbs weft-msg-perf latency -r {6|60} -n {100|300} -T 60 -s "
	 "256,1K,4K,8K",
	 layer, 0, true},
	{0},
};
const struct repro_experiment repro_copy = {.name = "thesis-copy",
					    .steps = copy_steps,
					    .rounds = {3, 9},
					    .seconds = {6, 90},
					    .x = "message, bytes",
					    .y = "half a round trip, us",
					    .log_x = true};

static const struct repro_take look[] = {
	{.series = "hash", .x = "1", .y = "5"}, {.series = "tree", .x = "1", .y = "6"}, {0}};
static const struct repro_step search_steps[] = {
	{"", "weft-msg-perf search -r 3 -n 1000", look, 0, true}, {0}};
const struct repro_experiment repro_search = {.name = "thesis-search",
					      .steps = search_steps,
					      .rounds = {1, 6},
					      .seconds = {5, 30},
					      .x = "buffers",
					      .y = "ns for a look",
					      .log_x = true,
					      .log_y = true};

#define ONOFF(command, take)                                                                       \
	{"on", command, take},                                                                     \
	{                                                                                          \
		"off", "FI_WEFT_REUSE=no " command, take                                           \
	}
#define SPECTRUM                                                                                   \
	"weft run -n 2 " PERF                                                                      \
	"spectrum --by send --layout packed -m 1K,8K --buffers {100|1000} -T "                     \
	"{4|15} --json"
static const struct repro_step spectrum_steps[] = {ONOFF(SPECTRUM, mean_us), {0}};
const struct repro_experiment repro_spectrum = {.name = "thesis-spectrum",
						.steps = spectrum_steps,
						.needs = MPI,
						.rounds = {3, 9},
						.seconds = {20, 300},
						.x = "message, bytes",
						.y = "mean of all uses, us"};

#define ONESIDED(kind) "weft run -n 2 " PERF kind " -m 256:8K:32 -i {200|1000} -T {3|8} --json"
static const struct repro_step onesided_steps[] = {
	{"put, on", ONESIDED("put"), us},
	{"put, off", "FI_WEFT_REUSE=no " ONESIDED("put"), us},
	{"get, on", ONESIDED("get"), us},
	{"get, off", "FI_WEFT_REUSE=no " ONESIDED("get"), us},
	{0},
};
const struct repro_experiment repro_onesided = {.name = "thesis-onesided",
						.steps = onesided_steps,
						.needs = MPI,
						.rounds = {3, 9},
						.seconds = {24, 200},
						.x = "message, bytes",
						.y = "transfer and fence, us"};

/* ---- chapter 6 ---- */

static const struct repro_take memory_takes[] = {
	{.rows = "rows", .where = "when=all,what=Rss", .x = "ranks", .y = "mean_MiB"}, {0}};
#define MEMORY(ranks) "WEFT_RD_SHM=off weft run --lab four -n " ranks " " PERF "memory -T 30 --json"
static const struct repro_step memory_steps[] = {
	{"datagrams", MEMORY("4"), memory_takes},
	{"connections", "FI_WEFT_TRANSPORT=rc " MEMORY("4"), memory_takes},
	{"datagrams", MEMORY("{16|64}"), memory_takes},
	{"connections", "FI_WEFT_TRANSPORT=rc " MEMORY("{16|64}"), memory_takes},
	{0},
};
const struct repro_experiment repro_memory = {
	.name = "thesis-memory",
	.setup = "weft lab up four --pgft '2;2,2;1,2;1,1' --rate unlimited --mtu 9000",
	.steps = memory_steps,
	.needs = MPI | REPRO_LAB,
	.rounds = {2, 6},
	.seconds = {30, 300},
	.x = "processes",
	.y = "resident memory of a process, MiB"};
