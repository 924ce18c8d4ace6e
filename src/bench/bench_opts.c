#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_opts.h"
#include "bench_number.h"

#define NAME "weft-perf"

static const char usage[] =
	"Usage: weft-perf COMMAND [OPTION]... [HOST]\n"
	"\n"
	"Measures raw sockets and verbs side by side, between two processes. Start\n"
	"`weft-perf server` at one end, then one of the others at the other end. Rounds of\n"
	"all kinds alternate on connections that stay open, so that a noisy machine\n"
	"disturbs them alike; ratios are taken round by round. Raw kinds need no device;\n"
	"for the others start both ends with `weft verbs weft-perf ...`, or use hardware.\n"
	"\n"
	"Commands:\n"
	"  server          serve one client, then exit\n"
	"  lat HOST        latency: ping-pong, both sides polling\n"
	"  bw HOST         bandwidth and message rate: a stream from client to server\n"
	"  peers HOST      memory and sockets per RC connection, 1, 2, 4, ... connections;\n"
	"                  with -k rd per peer of one RD queue pair\n"
	"  idle HOST       CPU time that open, idle queue pairs cost\n"
	"  reg             registering memory of 4K to 64M with the device, and a copy of it; "
	"alone\n"
	"  mpi FILE...     what weft-mpi-perf measured on several MPI stacks, side by side; the\n"
	"                  files are its JSON, named SERIES.STACK.ROUND.json\n"
	"  report FILE...  the targets in JSON files of the commands above, met or missed\n"
	"  plot FILE       the results in a JSON file as columns for a plotting program\n"
	"  kinds           the kinds that -k takes\n"
	"\n"
	"Options of client commands:\n"
	"  -k, --kinds=LIST     kinds to measure (default tcp,udp); `all` for every kind\n"
	"  -s, --sizes=LIST     message sizes, with K and M (lat: 8; bw: 8,64,...,1M; reg:\n"
	"                       4K,8K,...,64M)\n"
	"  -n, --iters=N        round trips of each kind in a round (lat, default 2000)\n"
	"  -r, --rounds=N       rounds (default 10)\n"
	"  -t, --round-ms=MS    length of one stream (bw, default 100)\n"
	"      --max-seconds=N  stop after so long, with the rounds that there are (600)\n"
	"      --depth=N        send requests in flight (default 64)\n"
	"      --signal=N       signal one request in N (default 16)\n"
	"      --ud-max=BYTES   longest UD message (default: the port's MTU)\n"
	"      --ud-window=BYTES  UD data in flight in a stream (default 256K)\n"
	"      --step-ms=MS     longest time that one step may take (default 10000)\n"
	"      --max-peers=N    connections or peers to go up to (peers, default 512)\n"
	"      --seconds=N      how long to sleep (idle, default 10)\n"
	"  -j, --json=FILE      write results as JSON; `-` prints it instead of tables\n"
	"\n"
	"Options of both sides:\n"
	"  -p, --port=PORT      control connection (default 18615)\n"
	"      --wait=MS        client: how long to wait for the server (default 10000)\n"
	"      --bind=ADDR      server: listen on this address only\n"
	"      --keep           server: serve clients until killed\n"
	"      --cpu=N          run on this CPU (default: client on the first that is\n"
	"                       allowed, server on the second)\n"
	"      --no-pin         let the scheduler choose\n"
	"  -d, --dev=NAME       verbs device (default: the first)\n"
	"      --ib-port=N      its port (default 1)\n"
	"      --gid-index=N    its GID (default 0)\n"
	"  -q, --quiet          no progress lines on standard error\n"
	"      --busy           mpi: say that other work was running at the same time\n"
	"      --strict         report: exit with 3 when a target is missed\n"
	"  -h, --help           this text\n"
	"\n"
	"Latencies are half a round trip in microseconds (reads: the whole of it);\n"
	"bandwidths are 10^6 bytes of payload per second.\n"
	"Exit status: 0 measured, 1 something could not be measured, 2 wrong usage,\n"
	"3 a target was missed (with --strict).\n";

enum {
	OPT_MAX_SECONDS = 256,
	OPT_DEPTH,
	OPT_SIGNAL,
	OPT_UD_MAX,
	OPT_UD_WINDOW,
	OPT_STEP_MS,
	OPT_MAX_PEERS,
	OPT_SECONDS,
	OPT_WAIT,
	OPT_BIND,
	OPT_KEEP,
	OPT_CPU,
	OPT_NO_PIN,
	OPT_IB_PORT,
	OPT_GID_INDEX,
	OPT_STRICT,
	OPT_BUSY,
};

static const struct option options[] = {
	{"kinds", required_argument, NULL, 'k'},
	{"sizes", required_argument, NULL, 's'},
	{"iters", required_argument, NULL, 'n'},
	{"rounds", required_argument, NULL, 'r'},
	{"round-ms", required_argument, NULL, 't'},
	{"max-seconds", required_argument, NULL, OPT_MAX_SECONDS},
	{"depth", required_argument, NULL, OPT_DEPTH},
	{"signal", required_argument, NULL, OPT_SIGNAL},
	{"ud-max", required_argument, NULL, OPT_UD_MAX},
	{"ud-window", required_argument, NULL, OPT_UD_WINDOW},
	{"step-ms", required_argument, NULL, OPT_STEP_MS},
	{"max-peers", required_argument, NULL, OPT_MAX_PEERS},
	{"seconds", required_argument, NULL, OPT_SECONDS},
	{"json", required_argument, NULL, 'j'},
	{"port", required_argument, NULL, 'p'},
	{"wait", required_argument, NULL, OPT_WAIT},
	{"bind", required_argument, NULL, OPT_BIND},
	{"keep", no_argument, NULL, OPT_KEEP},
	{"cpu", required_argument, NULL, OPT_CPU},
	{"no-pin", no_argument, NULL, OPT_NO_PIN},
	{"dev", required_argument, NULL, 'd'},
	{"ib-port", required_argument, NULL, OPT_IB_PORT},
	{"gid-index", required_argument, NULL, OPT_GID_INDEX},
	{"quiet", no_argument, NULL, 'q'},
	{"strict", no_argument, NULL, OPT_STRICT},
	{"busy", no_argument, NULL, OPT_BUSY},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int parse_kinds(struct bench_opts *o, char *list)
{
	int n = 0;

	if (!strcmp(list, "all")) {
		for (; bench_kinds[n]; n++)
			o->kinds[n] = bench_kinds[n];
		o->kinds[n] = NULL;
		o->all_kinds = true;
		return 0;
	}
	o->all_kinds = false;
	for (char *save, *tok = strtok_r(list, ",", &save); tok; tok = strtok_r(NULL, ",", &save)) {
		const struct bench_kind *kind = bench_kind_find(tok);

		if (!kind || n == BENCH_MAX_KINDS) {
			fprintf(stderr,
				"weft-perf: --kinds: `%s` is unknown or one too many; "
				"`weft-perf kinds` lists them\n",
				tok);
			return -EINVAL;
		}
		o->kinds[n++] = kind;
	}
	o->kinds[n] = NULL;
	return 0;
}

static int parse_sizes(struct bench_opts *o, char *list)
{
	o->n_sizes = 0;
	for (char *save, *tok = strtok_r(list, ",", &save); tok; tok = strtok_r(NULL, ",", &save)) {
		uint64_t v;

		if (o->n_sizes == BENCH_MAX_SIZES) {
			fprintf(stderr, "weft-perf: --sizes: at most %d of them\n",
				BENCH_MAX_SIZES);
			return -EINVAL;
		}
		if (bench_number(NAME, "--sizes", tok, 1, 64 << 20, &v))
			return -EINVAL;
		o->sizes[o->n_sizes++] = (size_t)v;
	}
	return 0;
}

static int parse_client(struct bench_opts *o, int c)
{
	uint64_t v;
	int ret = 0;

	switch (c) {
	case 'k':
		return parse_kinds(o, optarg);
	case 's':
		return parse_sizes(o, optarg);
	case 'n':
		return bench_number(NAME, "--iters", optarg, 1, 10000000, &o->iters);
	case 'r':
		return bench_number(NAME, "--rounds", optarg, 1, 10000, &o->rounds);
	case 't':
		return bench_number(NAME, "--round-ms", optarg, 1, 10000, &o->round_ms);
	case OPT_MAX_SECONDS:
		return bench_number(NAME, "--max-seconds", optarg, 1, 86400, &o->max_seconds);
	case OPT_DEPTH:
		return bench_number(NAME, "--depth", optarg, 4, 128, &o->conf.depth);
	case OPT_SIGNAL:
		return bench_number(NAME, "--signal", optarg, 1, 128, &o->conf.signal_every);
	case OPT_UD_MAX:
		return bench_number(NAME, "--ud-max", optarg, 8, 65507, &o->conf.ud_max);
	case OPT_UD_WINDOW:
		return bench_number(NAME, "--ud-window", optarg, 1, 64 << 20, &o->conf.ud_window);
	case OPT_STEP_MS:
		return bench_number(NAME, "--step-ms", optarg, 100, 600000, &o->conf.step_ms);
	case OPT_MAX_PEERS:
		ret = bench_number(NAME, "--max-peers", optarg, 1, 4096, &v);
		o->max_peers = ret ? 0 : (unsigned int)v;
		return ret;
	default: /* OPT_SECONDS */
		ret = bench_number(NAME, "--seconds", optarg, 1, 600, &v);
		o->seconds = ret ? 0 : (unsigned int)v;
		return ret;
	}
}

static int parse_one(struct bench_opts *o, int c)
{
	switch (c) {
	case 'j':
		o->json = optarg;
		return 0;
	case 'p':
		return bench_whole(NAME, "--port", optarg, 1, 65535, &o->port);
	case OPT_WAIT:
		return bench_whole(NAME, "--wait", optarg, 0, 600000, &o->wait_ms);
	case OPT_BIND:
		o->bind = optarg;
		return 0;
	case OPT_KEEP:
		o->keep = true;
		return 0;
	case OPT_CPU:
		return bench_whole(NAME, "--cpu", optarg, 0, 4095, &o->cpu);
	case OPT_NO_PIN:
		o->pin = false;
		return 0;
	case 'd':
		o->dev = optarg;
		return 0;
	case OPT_IB_PORT:
		return bench_whole(NAME, "--ib-port", optarg, 1, 255, &o->ib_port);
	case OPT_GID_INDEX:
		return bench_whole(NAME, "--gid-index", optarg, 0, 255, &o->gid_index);
	case 'q':
		o->quiet = true;
		return 0;
	case OPT_STRICT:
		o->strict = true;
		return 0;
	case OPT_BUSY:
		o->busy = true;
		return 0;
	case '?':
		fputs("Try `weft-perf --help`.\n", stderr);
		return -EINVAL;
	default:
		return parse_client(o, c);
	}
}

static void defaults(struct bench_opts *o)
{
	*o = (struct bench_opts){
		.port = 18615,
		.wait_ms = 10000,
		.cpu = -1,
		.pin = true,
		.ib_port = 1,
		.kinds = {&bench_kind_tcp, &bench_kind_udp},
		.iters = 2000,
		.rounds = 10,
		.round_ms = 100,
		.max_seconds = 600,
		.max_peers = 512,
		.seconds = 10,
		.conf = {.depth = 64, .signal_every = 16, .ud_window = 256 << 10, .step_ms = 10000},
	};
}

static void default_sizes(struct bench_opts *o)
{
	static const size_t bw[] = {8, 64, 512, 4096, 16384, 65536, 262144, 1048576};

	if (!o->n_sizes && o->command && !strcmp(o->command, "bw")) {
		memcpy(o->sizes, bw, sizeof(bw));
		o->n_sizes = sizeof(bw) / sizeof(bw[0]);
	}
	if (!o->n_sizes && o->command && !strcmp(o->command, "reg"))
		for (size_t s = 4096; s <= 64 << 20; s *= 2)
			o->sizes[o->n_sizes++] = s;
	if (!o->n_sizes)
		o->sizes[o->n_sizes++] = 8;
	for (size_t i = 0; i < o->n_sizes; i++)
		if (o->conf.max_size < o->sizes[i])
			o->conf.max_size = o->sizes[i];
}

int bench_opts_parse(struct bench_opts *o, int argc, char **argv)
{
	int c;

	defaults(o);
	while ((c = getopt_long(argc, argv, "k:s:n:r:t:j:p:d:qh", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (parse_one(o, c))
			return -EINVAL;
	}
	if (optind == argc) {
		fputs("weft-perf: which command? Try `weft-perf --help`.\n", stderr);
		return -EINVAL;
	}
	o->command = argv[optind];
	o->args = argv + optind + 1;
	o->n_args = argc - optind - 1;
	if (o->conf.signal_every > o->conf.depth) {
		fprintf(stderr,
			"weft-perf: --signal=%llu: must not exceed --depth=%llu, "
			"or the send queue fills up without a completion\n",
			(unsigned long long)o->conf.signal_every,
			(unsigned long long)o->conf.depth);
		return -EINVAL;
	}
	default_sizes(o);
	return 0;
}
