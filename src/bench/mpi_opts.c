/* The command line of weft-mpi-perf. */
#include "mpi_perf.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char mp_usage[] =
	"Usage: mpirun -n RANKS weft-mpi-perf KIND [OPTIONS]\n"
	"\n"
	"Kinds, with the number of ranks:\n"
	"  latency        2  half a round trip\n"
	"  put, get       2  MPI_Put or MPI_Get of rank 0, and MPI_Win_fence behind it. Open MPI's "
	"go\n"
	"                    by messages (osc pt2pt) or by libfabric's one-sided operations (osc "
	"rdma,\n"
	"                    see fi_weft(7)); MPICH's by those of libfabric or UCX, as it was "
	"built\n"
	"  spectrum       2  of 1,000 buffers the i-th is used i times, in an order that is always "
	"the\n"
	"                    same and mixes them; each on pages of its own, or back to back\n"
	"  reuse          2  a ping-pong of which 0, 50 or 100 % of the messages use the buffer of "
	"the\n"
	"                    one before, and the others one that is new\n"
	"  bw, bibw       2  windows of non-blocking messages, one way and both ways at once\n"
	"  bidir          2  the same in turn: a window there, and then one back\n"
	"  multi-lat     >1  ping-pong of several pairs at once, rank i with rank i + half of "
	"them\n"
	"  multi-bw      >1  windows of messages of several pairs at once, what all carry "
	"together\n"
	"  regcache       2  a ping-pong from buffers that are new, known, and others at the same\n"
	"                    address: what a cache of registrations is worth, and whether it is "
	"right\n"
	"  usage          2  a rendezvous of which the receive comes first in 0 to 100 % of the "
	"messages\n"
	"  trace          2  messages one after another, a row for each, until -T is over\n"
	"  pingpong-late  2  a ping-pong, and receives that come after the send: for the overhead\n"
	"                    of speculation where it can not profit\n"
	"  overlap        2  how much of a transfer is hidden by computation, see below\n"
	"  progress       2  latency when one side makes no call of MPI for a delay\n"
	"  exchange      >1  time per iteration of programs that compute and exchange\n"
	"  drc           >1  displaced ring: in step k all send to rank + k, bandwidth per rank\n"
	"  alltoall      >1  MPI_Alltoall in a loop\n"
	"  allgather     >1  MPI_Allgather in a loop\n"
	"  bcast         >1  MPI_Bcast, and MPI_Barrier behind each, which is not timed\n"
	"  scatter       >1  MPI_Scatter, likewise\n"
	"  allreduce     >1  MPI_Allreduce in a loop, sums of doubles\n"
	"  barrier       >1  MPI_Barrier in a loop\n"
	"  arrival       >1  a collective whose processes arrive at different times, see below\n"
	"  memory        >1  memory per process after a message to everyone\n"
	"\n"
	"Options:\n"
	"  -i N              iterations that are timed, at most\n"
	"  -w N              iterations before them, at least 1\n"
	"  -m MIN:MAX[:F]    sizes: MIN, MIN x F, ... up to MAX; or a single one; K and M are "
	"powers\n"
	"                    of two (F: 2, or what the kind has). A,B,...: these\n"
	"  -T SECONDS        stop measuring after so long; iterations are cut to fit (120)\n"
	"  -W N              messages in a window (64; drc: 4)\n"
	"  --steps A[-B]     drc: only these steps (1 to ranks - 1)\n"
	"  -d USEC           how far apart the early and the late side are (1000); exchange: what\n"
	"                    computation is a multiple of (the time that an iteration takes "
	"without)\n"
	"  --model N         exchange: only model 1 (receives first) or 2 (sends first)\n"
	"  --test[=USEC]     call MPI_Test every so often during computation (20)\n"
	"  --copy            latency, put, get: also what a copy of the message costs, in the "
	"caches\n"
	"  --buffers N       spectrum: so many, 2 to 4000 (1000); regcache (64)\n"
	"  --by WAY          spectrum: send (a ping-pong), put or get, with a fence (send)\n"
	"  --layout WHAT     spectrum: only packed (back to back) or pages (each on its own)\n"
	"  --percent N       reuse, usage: only so many percent, 0 to 100\n"
	"  --op NAME         arrival: alltoall, allgather, allreduce, reduce_scatter, "
	"bcast, scatter\n"
	"                    or barrier (alltoall)\n"
	"  --mif N[,N]...    arrival: maximum imbalance factors, 1 to 100000 (1,32,128,512)\n"
	"  --late PERCENT    arrival: so many come late by MIF times a message, the others at "
	"once\n"
	"  --own             arrival: in turn by MPI_ and PMPI_ names: with an interposer, and "
	"without\n"
	"  --wait HOW        arrival: sleep or spin before a call (sleep where ranks share cores)\n"
	"  --sync            arrival: compare clocks on one machine, too\n"
	"  --json            print JSON instead of a table\n"
	"  -h, --help        this text\n"
	"\n"
	"Overlap: one side posts a non-blocking operation, computes without a call of MPI, and\n"
	"waits; the other is in a blocking call. \"Early\" is who posts the delay -d ahead. The "
	"time\n"
	"begins when the late side posts: waiting for it is no communication. In turn are "
	"measured\n"
	"T_comm, the transfer without computation, C, the computation alone (a fixed amount of "
	"work\n"
	"a tenth longer than T_comm), and T_total, both together. Of the medians:\n"
	"  overlap = 1 - (T_total - C) / T_comm, not below 0 nor above 1;\n"
	"  overlap_1.5: the same with 1.5 times the computation;\n"
	"  moved: with the time that the computation took beside the transfer instead of C; "
	"processor\n"
	"         time that was taken from it then does not count.\n"
	"Rank 0 is the side that computes, in both of the rows.\n"
	"\n"
	"A link that is shaped by a token bucket lets a burst through at once, and the bucket is "
	"full\n"
	"again after a computation: sizes that are not well above it measure the bucket.\n"
	"\n"
	"Arrival: before each call a rank computes for a random time below MIF times the time of "
	"a\n"
	"message, which is measured, or given by -d. Means over all ranks, medians over all "
	"calls:\n"
	"  p50:    from the arrival of a rank to its end of the call (mean: of calls, too);\n"
	"  bound:  from its arrival to that of the last one, which nobody can beat;\n"
	"  beyond: what is left without it, with its percentiles p10 and p90;\n"
	"  total:  from the beginning of the computation to the end of the last rank.\n"
	"With --own, each size has 40 calls by its MPI_ name before: there an interposer may try "
	"ways.\n"
	"\n"
	"Progress: left is what remains of the latency when the delay is over.\n"
	"Exit status: 0 measured, 1 a message was wrong, 2 wrong usage.\n";

enum {
	OPT_TEST = 256,
	OPT_MODEL,
	OPT_STEPS,
	OPT_COPY,
	OPT_BUFFERS,
	OPT_BY,
	OPT_LAYOUT,
	OPT_PERCENT,
	OPT_OP,
	OPT_MIF,
	OPT_LATE,
	OPT_OWN,
	OPT_WAIT,
	OPT_SYNC,
	OPT_JSON
};

static const struct option options[] = {
	{"test", optional_argument, NULL, OPT_TEST},
	{"model", required_argument, NULL, OPT_MODEL},
	{"steps", required_argument, NULL, OPT_STEPS},
	{"copy", no_argument, NULL, OPT_COPY},
	{"buffers", required_argument, NULL, OPT_BUFFERS},
	{"by", required_argument, NULL, OPT_BY},
	{"layout", required_argument, NULL, OPT_LAYOUT},
	{"percent", required_argument, NULL, OPT_PERCENT},
	{"op", required_argument, NULL, OPT_OP},
	{"mif", required_argument, NULL, OPT_MIF},
	{"late", required_argument, NULL, OPT_LATE},
	{"own", no_argument, NULL, OPT_OWN},
	{"wait", required_argument, NULL, OPT_WAIT},
	{"sync", no_argument, NULL, OPT_SYNC},
	{"json", no_argument, NULL, OPT_JSON},
	{"help", no_argument, NULL, 'h'},
	{0},
};

static int parse_int(const char *text, int low, int high, int *out)
{
	char *end;
	long v = strtol(text, &end, 10);

	*out = (int)v;
	return end == text || *end || v < low || v > high;
}

static int parse_real(const char *text, double low, double high, double scale, double *out)
{
	char *end;
	double v = strtod(text, &end);

	*out = v * scale;
	return end == text || *end || !(v >= low && v <= high);
}

/* A size; *end is what follows it. */
static int parse_size(const char *text, char **end, size_t *out)
{
	unsigned long long v = strtoull(text, end, 10);
	int shift = **end == 'K' || **end == 'k' ? 10 : **end == 'M' || **end == 'm' ? 20 : 0;

	if (*end == text || *text == '-' || v > (unsigned long long)INT_MAX >> shift)
		return 1;
	if (shift)
		++*end;
	*out = (size_t)(v << shift);
	return 0;
}

/* "4,256,8K": ascending, so that the last one is what room is needed for. */
static int parse_list(const char *text, struct mp_opts *o)
{
	char *end;
	int n = 0;

	do {
		if (n == MP_LIST - 1 || parse_size(text, &end, &o->list[n]) ||
		    o->list[n] <= (n ? o->list[n - 1] : 0))
			return 1;
		n++;
		text = end + 1;
	} while (*end == ',');
	o->list[n] = 0;
	o->max = o->list[n - 1];
	return *end != '\0';
}

static int parse_sizes(const char *text, struct mp_opts *o)
{
	char *end;

	if (strchr(text, ','))
		return parse_list(text, o);
	if (parse_size(text, &end, &o->min))
		return 1;
	o->list[0] = 0;
	o->max = o->min;
	if (*end == ':' && parse_size(end + 1, &end, &o->max))
		return 1;
	if (*end == ':' && parse_size(end + 1, &end, &o->factor))
		return 1;
	return *end || o->min < 1 || o->max < o->min || o->factor == 1;
}

/* "12", "1-23" */
static int parse_steps(const char *text, struct mp_opts *o)
{
	char first[16];
	size_t n = strcspn(text, "-");

	if (n >= sizeof(first))
		return 1;
	memcpy(first, text, n);
	first[n] = '\0';
	return parse_int(first, 1, 1000000, &o->first_step) ||
	       parse_int(text[n] ? text + n + 1 : first, o->first_step, 1000000, &o->last_step);
}

/* One of two or three words. */
static int parse_word(const char *text, const char *const *words, int n, const char **out)
{
	*out = text;
	while (n > 0 && strcmp(words[n - 1], text) != 0)
		n--;
	return n == 0;
}

/* Of kinds with many buffers. */
static int parse_buffers(struct mp_opts *o, int c)
{
	switch (c) {
	case OPT_BUFFERS:
		return parse_int(optarg, 2, 4000, &o->buffers);
	case OPT_BY:
		return parse_word(optarg, mp_ways, MP_WAYS, &o->by);
	case OPT_LAYOUT:
		return parse_word(optarg, mp_layouts, MP_LAYOUTS, &o->layout);
	case OPT_PERCENT:
		return parse_int(optarg, 0, 100, &o->percent);
	default: /* OPT_COPY */
		o->copy = true;
		return 0;
	}
}

/* "1,32" */
static int parse_mifs(const char *text, struct mp_opts *o)
{
	char *end = NULL;
	int n = 0;

	do {
		long v = strtol(text, &end, 10);

		if (end == text || v < 1 || v > 100000 || n == MP_MIFS - 1)
			return 1;
		o->mif[n++] = (int)v;
		text = end + 1;
	} while (*end == ',');
	o->mif[n] = 0;
	return *end != '\0';
}

/* Of arrival. */
static int parse_arrival(struct mp_opts *o, int c)
{
	static const char *const waits[] = {"sleep", "spin"};

	switch (c) {
	case OPT_OP:
		o->op = optarg;
		return mp_coll_find(optarg) == NULL;
	case OPT_MIF:
		return parse_mifs(optarg, o);
	case OPT_LATE:
		return parse_int(optarg, 0, 100, &o->late);
	case OPT_WAIT:
		return parse_word(optarg, waits, 2, &o->wait);
	case OPT_OWN:
		o->own = true;
		return 0;
	case OPT_SYNC:
		o->sync = true;
		return 0;
	default:
		return parse_buffers(o, c);
	}
}

/* Non-zero: the value is none. */
static int parse_one(struct mp_opts *o, int c)
{
	switch (c) {
	case 'i':
		return parse_int(optarg, 1, 10000000, &o->iterations);
	case 'w':
		return parse_int(optarg, 1, 10000000, &o->warmup);
	case 'm':
		return parse_sizes(optarg, o);
	case 'T':
		return parse_real(optarg, 0.1, 86400, 1, &o->bound);
	case 'W':
		return parse_int(optarg, 1, MP_WINDOW_MOST, &o->window);
	case 'd':
		return parse_real(optarg, 0, 1e6, 1e-6, &o->delay);
	case OPT_MODEL:
		return parse_int(optarg, 1, 2, &o->model);
	case OPT_STEPS:
		return parse_steps(optarg, o);
	case OPT_TEST:
		o->test = 20e-6;
		return optarg ? parse_real(optarg, 1, 1e6, 1e-6, &o->test) : 0;
	case OPT_JSON:
		o->json = true;
		return 0;
	case 'h':
		o->help = true;
		return 0;
	default:
		return parse_arrival(o, c);
	}
}

static int refuse(bool speaks, const char *what, const char *value)
{
	if (speaks)
		fprintf(stderr, "weft-mpi-perf: %s '%s'; try --help\n", what, value);
	return 2;
}

int mp_opts_parse(struct mp_opts *o, int argc, char **argv, bool speaks)
{
	int c;

	*o = (struct mp_opts){.iterations = -1,
			      .warmup = -1,
			      .bound = 120,
			      .delay = -1,
			      .percent = -1,
			      .late = -1};
	opterr = 0;
	while ((c = getopt_long(argc, argv, "i:w:m:T:W:d:h", options, NULL)) != -1) {
		if (c == '?')
			return refuse(speaks, "not understood:", argv[optind - 1]);
		if (parse_one(o, c))
			return refuse(speaks, "not a value that is possible:", optarg);
	}
	if (o->help)
		return 0;
	if (optind == argc)
		return refuse(speaks, "which kind, after", argv[0]);
	if (optind < argc - 1)
		return refuse(speaks, "one kind, and not also", argv[optind + 1]);
	o->kind = argv[optind];
	return 0;
}
