/* Hoefler and others, Assessing Single-Message and Multi-Node Communication Performance of
 * InfiniBand. */
#include "repro.h"

#include <math.h>

#define SERVER "weft lab exec wire h1 -- weft verbs weft-perf server -q & "
#define CLIENT "weft lab exec wire h0 -- weft verbs weft-perf "

static const struct repro_take kinds_us[] = {
	{.rows = "results", .key = "kind", .x = "size", .y = "usec.median"}, {0}};
static const struct repro_take kinds_mbps[] = {
	{.rows = "results", .key = "kind", .x = "size", .y = "MBps.median"}, {0}};

static const struct repro_step size_steps[] = {
	{"", SERVER CLIENT "lat -k rc,ud,rd -s 8,64,256,512,1K -r {3|10} -n {300|2000} -q -j - h1",
	 kinds_us},
	{0},
};
static const struct repro_step bw_steps[] = {
	{"",
	 SERVER CLIENT "bw -k rc,rc-write,rd -s 1K,8K,64K,256K,1M -r {2|10} -t {20|100} -q -j - h1",
	 kinds_mbps},
	{0},
};

#define WIRE "weft lab up wire --pgft '1;2;1;1' --rate unlimited --mtu 9000"
static const struct repro_experiment by_size = {.name = "onetomany-size",
						.setup = WIRE,
						.steps = size_steps,
						.needs = REPRO_LAB,
						.rounds = {3, 9},
						.seconds = {8, 60},
						.x = "message, bytes",
						.y = "half a round trip, us"};
static const struct repro_experiment stream = {.name = "onetomany-stream",
					       .setup = WIRE,
					       .steps = bw_steps,
					       .needs = REPRO_LAB,
					       .rounds = {3, 9},
					       .seconds = {12, 120},
					       .x = "message, bytes",
					       .y = "MB/s",
					       .log_x = true};

static const struct repro_claim fig2[] = {
	{"Latency grows with the message, RC", "linearly", "times, 8 bytes to 1 KB", REPRO_RISE,
	 "rc", NULL, 0, 0, REPRO_AT_LEAST, NAN, 0, 1},
	{"... and UD", "linearly", "times, 8 bytes to 1 KB", REPRO_RISE, "ud", NULL, 0, 0,
	 REPRO_AT_LEAST, NAN, 0, 1},
	{0},
};
static const struct repro_claim fig4[] = {
	{"Bandwidth grows with the message, up to 1 MB", "grows", "times, 1 KB to 1 MB", REPRO_RISE,
	 "rc", NULL, 0, 0, REPRO_AT_LEAST, NAN, 0, 1},
	{0},
};

/* ---- one host and n others ---- */

#define AT(size) "name=per_message,params.stage=1,params.size=" #size
#define OF(n)    "name=per_message,params.stage=1,params.n=" #n
#define FAN      "weft bench verbs pingpong -q --passes {2|8} --rounds {40|200} --step-ms {20|100} "

static const struct repro_take fan_by_n[] = {
	{.rows = "series", .where = AT(1), .key = "params.type", .x = "params.n", .y = "samples"},
	{0}};
static const struct repro_take large_by_n[] = {{.rows = "series",
						.where = AT(1048576),
						.key = "params.type",
						.x = "params.n",
						.y = "samples"},
					       {0}};
static const struct repro_take fan_by_size[] = {{.series = "n = 1, ",
						 .rows = "series",
						 .where = OF(1),
						 .key = "params.type",
						 .x = "params.size",
						 .y = "samples"},
						{.series = "n = 15, ",
						 .rows = "series",
						 .where = OF(15),
						 .key = "params.type",
						 .x = "params.size",
						 .y = "samples"},
						{0}};
static const struct repro_step fan_steps[] = {
	{"",
	 FAN "-t rc-send,rc-write,ud-send,ud-mcast -n 1,2,4,8,10,15,{20|20,40} -s 1 --max-seconds "
	     "{20|120} -j -",
	 fan_by_n},
	{0},
};
static const struct repro_step large_steps[] = {
	{"", FAN "-t rc-send,rc-write -n 1,2,4,8,10,15,20 -s 1M --max-seconds {20|120} -j -",
	 large_by_n},
	{0},
};
static const struct repro_step short_steps[] = {
	{"", FAN "-t rc-send,ud-send -n 1,15 -s 1,64,256,1K --max-seconds {15|120} -j -",
	 fan_by_size},
	{0},
};
static const struct repro_step long_steps[] = {
	{"", FAN "-t rc-send -n 1,15 -s 1K,16K,256K,1M --max-seconds {15|120} -j -", fan_by_size},
	{0},
};

#define PER_MESSAGE "half a round by the number of messages, us"
static const struct repro_experiment fan = {.name = "onetomany-fan",
					    .steps = fan_steps,
					    .rounds = {3, 9},
					    .seconds = {12, 300},
					    .x = "hosts",
					    .y = PER_MESSAGE};
static const struct repro_experiment fan_large = {.name = "onetomany-fan-large",
						  .steps = large_steps,
						  .rounds = {3, 9},
						  .seconds = {20, 400},
						  .x = "hosts",
						  .y = PER_MESSAGE};
static const struct repro_experiment fan_short = {.name = "onetomany-fan-short",
						  .steps = short_steps,
						  .rounds = {3, 9},
						  .seconds = {8, 200},
						  .x = "message, bytes",
						  .y = PER_MESSAGE};
static const struct repro_experiment fan_long = {.name = "onetomany-fan-long",
						 .steps = long_steps,
						 .rounds = {3, 9},
						 .seconds = {12, 300},
						 .x = "message, bytes",
						 .y = PER_MESSAGE,
						 .log_x = true,
						 .log_y = true};

static const struct repro_claim fig3[] = {
	{"1 to 15 takes less for each message than host to host, RC, every size", "lower",
	 "times, the worst size", REPRO_MOST, "n = 15, rc-send", "n = 1, rc-send", 0, 0,
	 REPRO_AT_MOST, NAN, 0, 1},
	{"... and UD", "lower", "times, the worst size", REPRO_MOST, "n = 15, ud-send",
	 "n = 1, ud-send", 0, 0, REPRO_AT_MOST, NAN, 0, 1},
	{0},
};
static const struct repro_claim fig5[] = {
	{"1 to 15 has more bandwidth than host to host, 1 MB", "higher", "times", REPRO_RATIO,
	 "n = 1, rc-send", "n = 15, rc-send", 1048576, 1048576, REPRO_AT_LEAST, NAN, 0, 1},
	{0},
};
#define SEVERAL(type, text)                                                                        \
	{                                                                                          \
		"Several messages at once beat one, n = 10, " text, "decreasing", "of n = 1",      \
			REPRO_RATIO, type, type, 10, 1, REPRO_AT_MOST, NAN, 0, 1                   \
	}
#define BEST(type, text)                                                                           \
	{                                                                                          \
		"The best n, " text, "around 10", "hosts", REPRO_LOWEST, type, NULL, 0, 0,         \
			REPRO_ABOUT, 10, 0.5, NAN                                                  \
	}
static const struct repro_claim fig6[] = {
	SEVERAL("rc-send", "RC"),
	BEST("rc-send", "RC"),
	BEST("rc-write", "RC, RDMA write"),
	{"UD: ever falling, to the largest n", "decreasing", "of n = 1", REPRO_RISE, "ud-send",
	 NULL, 0, 0, REPRO_AT_MOST, NAN, 0, 1},
	{"Multicast: ever falling, to the largest n", "decreasing", "of n = 1", REPRO_RISE,
	 "ud-mcast", NULL, 0, 0, REPRO_AT_MOST, NAN, 0, 1},
	{0},
};
static const struct repro_claim fig7[] = {
	SEVERAL("rc-send", "RC, 1 MB"),
	BEST("rc-send", "RC, 1 MB"),
	{0},
};

#define HERE                                                                                       \
	"the software RNIC; a few processes play all of the hosts, in a network namespace of "     \
	"their "                                                                                   \
	"own"

const struct repro_figure repro_onetomany[] = {
	{"onetomany/fig1", "The receive buffer of node 0.", NULL,
	 "a drawing: nothing in it is measured"},
	{"onetomany/fig2", "Latency between two hosts against the message size, up to 1 KB.",
	 &by_size, NULL,
	 "the software RNIC between two hosts of a lab; medians of many messages, not single ones",
	 fig2},
	{"onetomany/fig3", "1 to 15: latencies of a message are lower than from host to host.",
	 &fan_short, NULL, HERE, fig3},
	{"onetomany/fig4", "Bandwidth between two hosts against the message size, up to 1 MB.",
	 &stream, NULL,
	 "a stream of messages, where the paper divides a size by the latency of one message",
	 fig4},
	{"onetomany/fig5", "1 to 15: bandwidth is higher than from host to host.", &fan_long, NULL,
	 HERE "; times, of which bandwidth is the inverse", fig5},
	{"onetomany/fig6",
	 "Latency of one byte against the number of hosts: least around n = 10, or ever falling "
	 "(UD, "
	 "multicast).",
	 &fan, NULL, HERE, fig6},
	{"onetomany/fig7", "Latency of 1 MB against the number of hosts: the same.", &fan_large,
	 NULL, HERE, fig7},
	{0},
};
