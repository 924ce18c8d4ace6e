/* weft fabric sim: traffic on a fabric, packet by packet. */
#include "cli_fabric.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli_fabric_stripe.h"
#include "fabric_sim_cps.h"
#include "fabric_sim_stripe.h"
#include "fabric_text.h"
#include "util_clock.h"

static const char help[] =
	"Usage: weft fabric sim --pgft SPEC | --topology FILE --cps NAME [OPTIONS]\n"
	"\n"
	"Simulates a collective packet by packet on a lossless cut-through network with credits "
	"and\n"
	"finite buffers, as InfiniBand is: what hot spots do to the bandwidth, with blocking of\n"
	"flows that have nothing to do with them. Links are of 4000 MB/s, hosts of 3250 MB/s, "
	"unless\n"
	"told otherwise. The result is relative to what the hosts could send.\n"
	"\n"
	"Options:\n" CLI_FABRIC_TREE_HELP CLI_FABRIC_ROUTE_HELP CLI_FABRIC_JOB_HELP
	"  --bytes N          of each message, with K or M (64K)\n"
	"  --stages N         simulate N of the stages, evenly spread (all)\n"
	"  --progress P       async (if not given): a rank goes on when its message is on the "
	"wire;\n"
	"                     step: when everybody's has arrived; exchange: when its own have\n"
	"  --seed N           of the times at which ranks begin (1)\n"
	"  --start NS         ranks begin at random within so many nanoseconds (0)\n"
	"  --link MBPS, --host MBPS   bandwidth of links, and of hosts\n"
	"  --mtu N            bytes of a packet (2048)\n"
	"  --buffer N         bytes of each input of a switch\n"
	"  --fifo             inputs are one queue each, as of simple switches\n"
	"  --aggregate N      so many packets travel as one: faster, but coarser (1)\n"
	"  -q, --quiet        do not show progress\n"
	"  --stripe POLICY    instead, an alltoall (or --cps drc:S) of messages that are divided "
	"over\n"
	"                     several paths: original, hsam:PATHS or bss:PATHS,BATCH; may be "
	"given\n"
	"                     again, to compare. Links are of 2000 MB/s then, hosts of 1500\n"
	"  --paths P          distinct (if not given), or hashed: ways that know nothing of each "
	"other\n"
	"  --ranks N          of the first N hosts of the order\n"
	"  --rounds N         so often, with what was learnt before (10)\n"
	"  -h, --help         this text\n"
	"\n"
	"Examples:\n"
	"  weft fabric sim --pgft \"2;18,18;1,9;1,2\" --cps shift --order random:1 --stages 32\n"
	"  weft fabric sim --pgft \"3;18,18,6;1,18,3;1,1,6\" --cps ring --order adversarial\n"
	"  weft fabric sim --pgft \"2;12,12;1,12;1,1\" --ranks 48 --stripe original --stripe "
	"bss:12,3\n";

struct run {
	struct fabric_sim_cps traffic; /* first: what the callbacks get */
	const struct cli_fabric *f;
	struct fabric_sim_config config;
	struct cli_fabric_progress shown;
	uint32_t *senders; /* by stage and rank, for exchanges */
};

static bool going(void *ctx, double done)
{
	struct run *r = ctx;

	cli_fabric_progress(&r->shown, done);
	return true;
}

/* In an exchange: how many send to a rank in a stage. Patterns of files may have several. */
static uint32_t *count_senders(const struct run *r)
{
	uint32_t n = r->f->ranks, stages = r->traffic.stages;
	uint32_t *count = calloc((size_t)n * stages + 1, sizeof(*count));

	for (uint32_t s = 0; count && s < stages; s++)
		for (uint32_t i = 0; i < n; i++) {
			uint32_t to = fabric_cps_to(
				&r->f->cps, fabric_sim_sample(s, stages, r->f->cps.stages), i);

			if (to != FABRIC_NONE && to != i)
				count[(size_t)s * n + to]++;
		}
	return count;
}

static uint32_t expects(void *ctx, uint32_t rank, uint32_t stage)
{
	const struct run *r = ctx;

	return r->senders[(size_t)stage * r->f->ranks + rank];
}

static void print(const struct run *r, const struct fabric_sim_result *s, double seconds, bool json)
{
	json_t *j;

	if (!json) {
		printf("%u ranks, %u of %u stages, %" PRIu64 " bytes each: %.1f us, %.1f %% of the "
		       "hosts' bandwidth\n",
		       r->f->ranks, r->traffic.stages, r->f->cps.stages, r->traffic.bytes,
		       (double)s->ps / 1e6, 100 * s->bandwidth);
		printf("%" PRIu64 " packets, %" PRIu64
		       " events in %.1f s (%.1f million per second)\n",
		       s->packets, s->events, seconds, (double)s->events / seconds / 1e6);
		return;
	}
	j = json_pack("{s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:f}", "ranks",
		      (json_int_t)r->f->ranks, "stages", (json_int_t)r->traffic.stages,
		      "message_bytes", (json_int_t)r->traffic.bytes, "us", (double)s->ps / 1e6,
		      "bandwidth", s->bandwidth, "bytes", (json_int_t)s->bytes, "packets",
		      (json_int_t)s->packets, "events", (json_int_t)s->events, "seconds", seconds);
	cli_fabric_print_json(j, JSON_REAL_PRECISION(15));
}

static int simulate(const struct cli_fabric *f, struct run *r, bool json)
{
	struct fabric_sim_traffic traffic = {.ranks = f->ranks, .hosts = f->order};
	struct fabric_sim_result s = {0};
	uint64_t start = util_now_ns();
	char why[512] = "";
	int err;

	r->f = f;
	r->traffic.cps = &f->cps;
	if (!r->traffic.stages || r->traffic.stages > f->cps.stages)
		r->traffic.stages = f->cps.stages;
	fabric_sim_cps(&traffic, &r->traffic);
	traffic.going = going;
	if (r->config.progress == FABRIC_SIM_EXCHANGE) {
		r->senders = count_senders(r);
		if (!r->senders)
			return cli_error("%s", strerror(ENOMEM));
		traffic.expects = expects;
	}
	err = fabric_sim(&f->routes, &r->config, &traffic, &s, why, sizeof(why));
	free(r->senders);
	cli_fabric_progress_end(&r->shown);
	if (err)
		return cli_error("%s", *why ? why : strerror(-err));
	print(r, &s, (double)(util_now_ns() - start) / 1e9, json);
	return cli_finish(CLI_OK);
}

static int sim(const struct cli_fabric_args *a, struct run *r)
{
	struct cli_fabric f = {0};
	int code = cli_fabric_ready(&f, a, true);

	if (!code)
		code = simulate(&f, r, a->json);
	cli_fabric_close(&f);
	return code;
}

static int stripe(struct cli_fabric_args *a, struct run *r, struct cli_fabric_stripe *s)
{
	uint64_t step;

	if (a->cps && (strncmp(a->cps, "drc:", 4) || fabric_decimal(a->cps + 4, &step) || !step ||
		       step > UINT32_MAX))
		return cli_error("--stripe is for an alltoall, or for --cps drc:S");
	s->step = a->cps ? (uint32_t)step : 0;
	s->config = r->config;
	s->bytes = r->traffic.bytes;
	return cli_fabric_stripe(a, s);
}

enum own {
	BYTES = CLI_FABRIC_OWN,
	STAGES,
	PROGRESS,
	SEED,
	START,
	LINK,
	HOST,
	MTU,
	BUFFER,
	FIFO,
	AGGREGATE,
	STRIPE,
	PATHS,
	RANKS,
	ROUNDS,
};

static const struct option options[] = {CLI_FABRIC_TREE_OPTIONS,
					CLI_FABRIC_ROUTE_OPTIONS,
					CLI_FABRIC_JOB_OPTIONS,
					{"bytes", required_argument, NULL, BYTES},
					{"stages", required_argument, NULL, STAGES},
					{"progress", required_argument, NULL, PROGRESS},
					{"seed", required_argument, NULL, SEED},
					{"start", required_argument, NULL, START},
					{"link", required_argument, NULL, LINK},
					{"host", required_argument, NULL, HOST},
					{"mtu", required_argument, NULL, MTU},
					{"buffer", required_argument, NULL, BUFFER},
					{"fifo", no_argument, NULL, FIFO},
					{"aggregate", required_argument, NULL, AGGREGATE},
					{"stripe", required_argument, NULL, STRIPE},
					{"paths", required_argument, NULL, PATHS},
					{"ranks", required_argument, NULL, RANKS},
					{"rounds", required_argument, NULL, ROUNDS},
					{"quiet", no_argument, NULL, 'q'},
					{0}};

/* A number of an option, with K, M or G if it is one of bytes. */
static int number(int opt, uint64_t most, uint64_t *value)
{
	static const char units[] = "KMG";
	const char *name = "";
	size_t n = strlen(optarg);
	char text[32];
	unsigned int shift = 0;

	for (const struct option *o = options; o->name; o++)
		if (o->val == opt)
			name = o->name;
	if (n && n < sizeof(text)) {
		const char *unit = strchr(units, optarg[n - 1]);

		shift = unit && opt != SEED ? 10 * (unsigned int)(unit - units + 1) : 0;
		memcpy(text, optarg, n + 1);
		if (shift)
			text[n - 1] = 0;
		if (!fabric_decimal(text, value) && *value <= most >> shift) {
			*value <<= shift;
			return CLI_OK;
		}
	}
	return cli_error("--%s is a number up to %" PRIu64 ", not %s", name, most,
			 fabric_quote(optarg).text);
}

static int progress(struct run *r)
{
	static const char *const names[] = {"async", "step", "exchange"};

	for (unsigned int i = 0; i < 3; i++)
		if (!strcmp(optarg, names[i])) {
			r->config.progress = (enum fabric_sim_progress)i;
			return CLI_OK;
		}
	return cli_error("--progress is async, step or exchange, not %s",
			 fabric_quote(optarg).text);
}

static int take(struct run *r, int opt)
{
	uint64_t v = 0, most = opt == BYTES ? UINT64_C(1) << 40 : UINT32_MAX;
	int code;

	if (opt == FIFO) {
		r->config.fifo = true;
		return CLI_OK;
	}
	if (opt == PROGRESS)
		return progress(r);
	code = number(opt, opt == SEED ? UINT64_MAX : most, &v);
	switch (opt) {
	case BYTES:
		r->traffic.bytes = v;
		break;
	case STAGES:
		r->traffic.stages = (uint32_t)v;
		break;
	case SEED:
		r->config.seed = v;
		break;
	case START:
		r->config.start_ns = (uint32_t)v;
		break;
	case LINK:
		r->config.link_mbs = (uint32_t)v;
		break;
	case HOST:
		r->config.host_mbs = (uint32_t)v;
		break;
	case MTU:
		r->config.mtu = (uint32_t)v;
		break;
	case BUFFER:
		r->config.buffer = (uint32_t)v;
		break;
	default:
		r->config.aggregate = (uint32_t)v;
	}
	return code;
}

static int take_stripe(struct cli_fabric_stripe *s, int opt)
{
	char why[512];
	uint64_t v;
	int code;

	if (opt == PATHS) {
		s->hashed = !strcmp(optarg, "hashed");
		return s->hashed || !strcmp(optarg, "distinct")
			       ? CLI_OK
			       : cli_error("--paths is distinct or hashed, not %s",
					   fabric_quote(optarg).text);
	}
	if (opt == STRIPE) {
		if (s->n == CLI_FABRIC_POLICIES_MAX)
			return cli_error("--stripe was given too often");
		return fabric_stripe_parse(&s->policy[s->n++], optarg, why, sizeof(why))
			       ? cli_error("--stripe: %s", why)
			       : CLI_OK;
	}
	code = number(opt, opt == ROUNDS ? 10000 : UINT32_MAX, &v);
	if (!code && !v)
		code = cli_error("--%s is at least 1", opt == ROUNDS ? "rounds" : "ranks");
	if (!code)
		*(opt == ROUNDS ? &s->rounds : &s->ranks) = (uint32_t)v;
	return code;
}

/* The network of the paper that the traffic is of, before options change it. */
static const struct fabric_sim_config *base(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!strncmp(argv[i], "--stripe", 8))
			return &fabric_sim_ddr;
	return &fabric_sim_paper;
}

int cli_fabric_sim(int argc, char **argv)
{
	struct cli_fabric_stripe stripes = {.rounds = 10};
	struct run r = {.traffic = {.bytes = 65536}, .config = *base(argc, argv)};
	struct cli_fabric_args a = {0};
	int opt, code = CLI_OK;

	r.config.seed = 1;
	cli_fabric_progress_begin(&r.shown);
	while (!code && (opt = getopt_long(argc, argv, "hq", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		}
		if (opt == 'q')
			r.shown.show = false;
		else if (opt >= STRIPE)
			code = take_stripe(&stripes, opt);
		else if (opt >= BYTES)
			code = take(&r, opt);
		else if (!cli_fabric_take(&a, opt))
			return cli_try_help();
	}
	if (!code)
		code = cli_fabric_end(argc, argv);
	if (code)
		return code;
	return stripes.n ? stripe(&a, &r, &stripes) : sim(&a, &r);
}
