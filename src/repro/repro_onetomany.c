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

#define NO_FAN                                                                                     \
	"needs one host that sends to n at a time, and times each message; this version of weft "  \
	"has "                                                                                     \
	"no such measurement"

const struct repro_figure repro_onetomany[] = {
	{"onetomany/fig1", "The receive buffer of node 0.", NULL,
	 "a drawing: nothing in it is measured"},
	{"onetomany/fig2", "Latency between two hosts against the message size, up to 1 KB.",
	 &by_size, NULL,
	 "the software RNIC between two hosts of a lab; medians of many messages, not single ones",
	 fig2},
	{"onetomany/fig3", "1 to 15: latencies of a message are lower than from host to host.",
	 NULL, NO_FAN},
	{"onetomany/fig4", "Bandwidth between two hosts against the message size, up to 1 MB.",
	 &stream, NULL,
	 "a stream of messages, where the paper divides a size by the latency of one message",
	 fig4},
	{"onetomany/fig5", "1 to 15: bandwidth is higher than from host to host.", NULL, NO_FAN},
	{"onetomany/fig6",
	 "Latency of one byte against the number of hosts: least around n = 10, or ever falling "
	 "(UD, "
	 "multicast).",
	 NULL, NO_FAN},
	{"onetomany/fig7", "Latency of 1 MB against the number of hosts: the same.", NULL, NO_FAN},
	{0},
};
