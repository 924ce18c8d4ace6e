#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "fan_opts.h"
#include "bench_number.h"

#define NAME "weft bench verbs"

static const char usage[] =
	"Usage: weft bench verbs KIND [OPTIONS]\n"
	"\n"
	"Measures a verbs device, the software RNIC or hardware, in the way of Hoefler et al.:\n"
	"node 0 sends to n peers, all answer, and every packet is timed by itself. The peers are\n"
	"started here, on a second host that is a network namespace, or are servers elsewhere.\n"
	"\n"
	"Kinds:\n"
	"  list       the transport types, and why some combinations do not exist\n"
	"  pingpong   1:n n:1 ping-pong of every transport type; reads in two stages: node 0\n"
	"             reads from all, then all read from node 0. Says which n is best\n"
	"  conns      many connections between two processes: latency, and throughput both ways\n"
	"  overhead   what posting a send, posting a receive and polling a CQ cost, empty and "
	"full\n"
	"  reg        registering and deregistering memory\n"
	"  serve      be peers for a `weft bench verbs --peers` elsewhere, then exit\n"
	"\n"
	"Options:\n"
	"  -t, --types LIST     transport types, as rc-send,ud-mcast (default: all that exist;\n"
	"                       conns: rc-send,rc-write,rd-send)\n"
	"  -n, --nodes LIST     how many peers, at most 1024 (pingpong: 1,2,4,...,64; conns:\n"
	"                       1,2,4,...,512)\n"
	"  -s, --sizes LIST     message sizes, with K and M (pingpong: 1,1K,64K; conns: 8,4K,64K;\n"
	"                       overhead: 8,1K; reg: 4K,...,64M)\n"
	"      --passes N       times that everything is measured in turn (default 8); n is\n"
	"                       compared pass by pass\n"
	"      --rounds N       most rounds of one step (default 200)\n"
	"      --step-ms MS     after which no further round of a step begins (default 100)\n"
	"      --max-seconds N  stop after so long, with what there is (default 600)\n"
	"      --procs N        processes that play the peers (default: one for each core but\n"
	"                       the first); with more than that, those that wait sleep\n"
	"      --net NET        hosts: the peers are in a network namespace of their own;\n"
	"                       loopback; auto (the default): hosts where that is allowed\n"
	"      --peers HOST,... the peers are `weft bench verbs serve` on these hosts\n"
	"  -p, --port PORT      of the servers (default 18616)\n"
	"      --bind ADDRESS   serve: listen on this address only\n"
	"      --keep           serve: go on until killed\n"
	"  -d, --dev NAME       verbs device (default: the first), hardware included\n"
	"      --ib-port N      its port (default 1)\n"
	"      --gid-index N    its GID (default 0)\n"
	"      --no-pin         let the scheduler choose the cores\n"
	"      --quick          fewer sizes and shorter steps\n"
	"  -j, --json FILE      every sample and what it was measured on; `-`: standard output\n"
	"                       instead of tables. Written after every pass, whole or not at all\n"
	"      --csv FILE       the same samples, a row for each\n"
	"  -q, --quiet          no progress lines on standard error\n"
	"  -h, --help           this text\n"
	"\n"
	"Latencies are half of a round, from the first send to the last answer; reads and\n"
	"atomics: the whole of it. per-msg is that divided by n, in microseconds.\n"
	"\n"
	"Examples:\n"
	"  weft bench verbs pingpong --quick\n"
	"  weft bench verbs pingpong -t rc-send,rc-write -n 1,2,4,8,10,16 -s 1,1M --json out.json\n"
	"  weft bench verbs pingpong --dev mlx5_0 --peers node2,node3\n"
	"\n"
	"Exit status: 0 measured; 1 something could not be measured; 2 wrong usage; 128 and the\n"
	"signal's number when it was told to end: what was measured is printed and kept.\n";

enum {
	OPT_PASSES = 256,
	OPT_ROUNDS,
	OPT_STEP_MS,
	OPT_MAX_SECONDS,
	OPT_PROCS,
	OPT_NET,
	OPT_PEERS,
	OPT_BIND,
	OPT_KEEP,
	OPT_IB_PORT,
	OPT_GID_INDEX,
	OPT_NO_PIN,
	OPT_QUICK,
	OPT_CSV,
};

static const struct option options[] = {
	{"types", required_argument, NULL, 't'},
	{"nodes", required_argument, NULL, 'n'},
	{"sizes", required_argument, NULL, 's'},
	{"passes", required_argument, NULL, OPT_PASSES},
	{"rounds", required_argument, NULL, OPT_ROUNDS},
	{"step-ms", required_argument, NULL, OPT_STEP_MS},
	{"max-seconds", required_argument, NULL, OPT_MAX_SECONDS},
	{"procs", required_argument, NULL, OPT_PROCS},
	{"net", required_argument, NULL, OPT_NET},
	{"peers", required_argument, NULL, OPT_PEERS},
	{"port", required_argument, NULL, 'p'},
	{"bind", required_argument, NULL, OPT_BIND},
	{"keep", no_argument, NULL, OPT_KEEP},
	{"dev", required_argument, NULL, 'd'},
	{"ib-port", required_argument, NULL, OPT_IB_PORT},
	{"gid-index", required_argument, NULL, OPT_GID_INDEX},
	{"no-pin", no_argument, NULL, OPT_NO_PIN},
	{"quick", no_argument, NULL, OPT_QUICK},
	{"json", required_argument, NULL, 'j'},
	{"csv", required_argument, NULL, OPT_CSV},
	{"quiet", no_argument, NULL, 'q'},
	{"help", no_argument, NULL, 'h'},
	{0},
};

void fan_progress(const struct fan_opts *o, const char *fmt, ...)
{
	va_list ap;

	if (o->quiet)
		return;
	fflush(stdout);
	fputs(NAME ": ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}

uint64_t fan_most(const uint64_t *list, size_t n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = list[i] > most ? list[i] : most;
	return most;
}

static int list(const char *what, char *text, uint64_t hi, uint64_t *out, size_t *n)
{
	*n = 0;
	for (char *save, *tok = strtok_r(text, ",", &save); tok; tok = strtok_r(NULL, ",", &save)) {
		if (*n == FAN_MAX_LIST) {
			fprintf(stderr, NAME ": %s: at most %d of them\n", what, FAN_MAX_LIST);
			return -EINVAL;
		}
		if (bench_number(NAME, what, tok, 1, hi, &out[(*n)++]))
			return -EINVAL;
	}
	if (*n)
		return 0;
	fprintf(stderr, NAME ": %s: the list is empty\n", what);
	return -EINVAL;
}

static int parse_types(struct fan_opts *o, char *text)
{
	int n = 0;

	for (char *save, *tok = strtok_r(text, ",", &save); tok; tok = strtok_r(NULL, ",", &save)) {
		const struct fan_type *type = fan_type_find(tok);

		if (!type || n == FAN_MAX_TYPES) {
			fprintf(stderr,
				NAME ": --types: `%s` is unknown or one too many; `" NAME
				     " list` has them\n",
				tok);
			return -EINVAL;
		}
		if (type->why) {
			fprintf(stderr, NAME ": --types: there is no %s: %s\n", tok, type->why);
			return -EINVAL;
		}
		o->types[n++] = type;
	}
	o->types[n] = NULL;
	return 0;
}

static int parse_net(struct fan_opts *o, const char *text)
{
	static const char *const names[] = {"auto", "hosts", "loopback"};

	for (int i = 0; i < 3; i++)
		if (!strcmp(text, names[i])) {
			o->net = (enum fan_net)i;
			return 0;
		}
	fprintf(stderr, NAME ": --net: `%s` is not hosts, loopback or auto\n", text);
	return -EINVAL;
}

static int parse_numbers(struct fan_opts *o, int c)
{
	switch (c) {
	case OPT_PASSES:
		return bench_number(NAME, "--passes", optarg, 1, 1000, &o->passes);
	case OPT_ROUNDS:
		return bench_number(NAME, "--rounds", optarg, 1, 4096, &o->rounds);
	case OPT_STEP_MS:
		return bench_number(NAME, "--step-ms", optarg, 1, 10000, &o->step_ms);
	case OPT_MAX_SECONDS:
		return bench_number(NAME, "--max-seconds", optarg, 1, 86400, &o->max_seconds);
	case OPT_PROCS:
		return bench_number(NAME, "--procs", optarg, 1, FAN_MAX_PROCS, &o->procs);
	case OPT_IB_PORT:
		return bench_whole(NAME, "--ib-port", optarg, 1, 255, &o->ib_port);
	case OPT_GID_INDEX:
		return bench_whole(NAME, "--gid-index", optarg, 0, 255, &o->gid_index);
	default: /* 'p' */
		return bench_whole(NAME, "--port", optarg, 1, 65535, &o->port);
	}
}

static int parse_one(struct fan_opts *o, int c)
{
	switch (c) {
	case 't':
		return parse_types(o, optarg);
	case 'n':
		return list("--nodes", optarg, FAN_MAX_N, o->ns, &o->n_ns);
	case 's':
		return list("--sizes", optarg, 64 << 20, o->sizes, &o->n_sizes);
	case OPT_NET:
		return parse_net(o, optarg);
	case OPT_PEERS:
		o->peers = optarg;
		return 0;
	case OPT_BIND:
		o->bind = optarg;
		return 0;
	case OPT_KEEP:
		o->keep = true;
		return 0;
	case 'd':
		o->dev = optarg;
		return 0;
	case OPT_NO_PIN:
		o->pin = false;
		return 0;
	case OPT_QUICK:
		o->quick = true;
		return 0;
	case 'j':
		o->json = optarg;
		return 0;
	case OPT_CSV:
		o->csv = optarg;
		return 0;
	case 'q':
		o->quiet = true;
		return 0;
	case '?':
		fputs("Try `" NAME " --help`.\n", stderr);
		return -EINVAL;
	default:
		return parse_numbers(o, c);
	}
}

static void doubling(uint64_t from, uint64_t to, uint64_t *out, size_t *n)
{
	for (uint64_t v = from; v <= to; v *= 2)
		out[(*n)++] = v;
}

static void default_sizes(struct fan_opts *o)
{
	static const uint64_t pingpong[] = {1, 1024, 65536}, conns[] = {8, 4096, 65536},
			      overhead[] = {8, 1024};
	const uint64_t *from = pingpong;
	size_t n = o->quick ? 2 : 3;

	if (!strcmp(o->kind, "reg")) {
		doubling(4096, o->quick ? 4 << 20 : 64 << 20, o->sizes, &o->n_sizes);
		return;
	}
	if (!strcmp(o->kind, "conns"))
		from = conns;
	if (!strcmp(o->kind, "overhead")) {
		from = overhead;
		n = 2;
	}
	memcpy(o->sizes, from, n * sizeof(*from));
	o->n_sizes = n;
}

static void default_types(struct fan_opts *o)
{
	static const char *const conns[] = {"rc-send", "rc-write", "rd-send"};
	int n = 0;

	if (!strcmp(o->kind, "conns")) {
		for (; n < 3; n++)
			o->types[n] = fan_type_find(conns[n]);
		return;
	}
	for (const struct fan_type *t = fan_types; t->name; t++)
		if (!t->why && (strcmp(o->kind, "overhead") != 0 || t->func == FAN_SEND))
			o->types[n++] = t;
}

static void fill_in(struct fan_opts *o)
{
	if (!o->types[0])
		default_types(o);
	if (!o->n_sizes)
		default_sizes(o);
	if (!o->n_ns && !strcmp(o->kind, "conns"))
		doubling(1, o->quick ? 128 : 512, o->ns, &o->n_ns);
	else if (!o->n_ns)
		doubling(1, o->quick ? 16 : 64, o->ns, &o->n_ns);
	if (!o->step_ms)
		o->step_ms = o->quick ? 20 : 100;
	if (!o->rounds)
		o->rounds = o->quick ? 100 : 200;
}

static void keep_command(struct fan_opts *o, int argc, char **argv)
{
	size_t at = (size_t)snprintf(o->command, sizeof(o->command), "%s", NAME);

	for (int i = 1; i < argc && at < sizeof(o->command); i++)
		at += (size_t)snprintf(o->command + at, sizeof(o->command) - at, " %s", argv[i]);
}

static int check(const struct fan_opts *o)
{
	if (!strcmp(o->kind, "reg"))
		return 0;
	for (size_t i = 0; i < o->n_sizes; i++)
		if (o->sizes[i] > FAN_MAX_SIZE) {
			fprintf(stderr, NAME ": --sizes: `%llu` is not a number from 1 to %u\n",
				(unsigned long long)o->sizes[i], FAN_MAX_SIZE);
			return -EINVAL;
		}
	for (int i = 0; !strcmp(o->kind, "overhead") && o->types[i]; i++)
		if (o->types[i]->func != FAN_SEND) {
			fprintf(stderr, NAME ": overhead: of sends only, and not %s\n",
				o->types[i]->name);
			return -EINVAL;
		}
	for (int i = 0; !strcmp(o->kind, "conns") && o->types[i]; i++)
		if (fan_is_lossy(o->types[i]) || fan_is_full_trip(o->types[i])) {
			fprintf(stderr,
				NAME ": conns: sends and writes of RC and RD, and not %s: a "
				     "stream of it has nothing that paces it\n",
				o->types[i]->name);
			return -EINVAL;
		}
	return 0;
}

int fan_opts_parse(struct fan_opts *o, int argc, char **argv)
{
	int c;

	*o = (struct fan_opts){
		.passes = 8, .max_seconds = 600, .port = 18616, .ib_port = 1, .pin = true};
	keep_command(o, argc, argv);
	while ((c = getopt_long(argc, argv, "t:n:s:p:d:j:qh", options, NULL)) != -1) {
		if (c == 'h') {
			fputs(usage, stdout);
			return 1;
		}
		if (parse_one(o, c))
			return -EINVAL;
	}
	if (argc - optind != 1) {
		if (optind == argc)
			fputs(NAME ": which kind? Try `" NAME " --help`.\n", stderr);
		else
			fprintf(stderr, NAME ": one kind at a time, and not `%s` too\n",
				argv[optind + 1]);
		return -EINVAL;
	}
	o->kind = argv[optind];
	fill_in(o);
	return check(o);
}
