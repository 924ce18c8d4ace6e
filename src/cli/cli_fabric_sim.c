/* weft fabric sim: traffic on a fabric, packet by packet. */
#include "cli_fabric_sim.h"

#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "cli_fabric_stripe.h"
#include "fabric_sim_stripe.h"
#include "fabric_text.h"

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
	"  --order random:A..B   one simulation for each of these seeds: the median, and from "
	"where\n"
	"                     to where it reaches\n"
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
	"                     several paths; may be given again, to compare. Links are of 2000 "
	"MB/s\n"
	"                     then, hosts of 1500. Policies: single (or original), even:N,\n"
	"                     roundrobin:N, weighted:W,W,..., hsam:N, bss:N,BATCH, pull:N,\n"
	"                     pull:N,BATCH, hop:N\n"
	"  --ranks N          of the first N hosts of the order (all)\n"
	"  --paths P          with --stripe: distinct (if not given), each pair's drawn among the\n"
	"                     ways of dmodk; or hashed: ways that know nothing of each other.\n"
	"                     original has one such path for each pair, as a hash or an LMC gives "
	"it,\n"
	"                     which is not that of dmodk\n"
	"  --addresses N      with --stripe: of each host, for each a way (as many as the tree "
	"has,\n"
	"                     at most 16). 1: original is plain dmodk\n"
	"  --rounds N         with --stripe: so often, with what was learnt before (10)\n"
	"  -h, --help         this text\n"
	"\n"
	"Examples:\n"
	"  weft fabric sim --pgft \"2;18,18;1,9;1,2\" --cps shift --order random:1 --stages 32\n"
	"  weft fabric sim --pgft \"3;18,18,6;1,18,3;1,1,6\" --cps ring --order adversarial\n"
	"  weft fabric sim --pgft \"2;12,12;1,12;1,1\" --ranks 48 --stripe original --stripe "
	"bss:12,3\n";

static int stripe(struct cli_fabric_args *a, struct cli_fabric_sim *r, struct cli_fabric_stripe *s)
{
	uint64_t step;

	if (r->traffic.stages)
		return cli_error("--stages is not for --stripe, which does all of them");
	if (a->cps && (strncmp(a->cps, "drc:", 4) != 0 || fabric_decimal(a->cps + 4, &step) ||
		       !step || step > UINT32_MAX))
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
	ADDRESSES,
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
					{"addresses", required_argument, NULL, ADDRESSES},
					{"quiet", no_argument, NULL, 'q'},
					{0}};

static const char *name_of(int opt)
{
	for (const struct option *o = options; o->name; o++)
		if (o->val == opt)
			return o->name;
	return "";
}

/* A number of an option, with K, M or G if it is not a seed. */
static int number(int opt, uint64_t most, uint64_t *value)
{
	if (!(opt == SEED ? util_decimal : util_size)(optarg, value) && *value <= most)
		return CLI_OK;
	return cli_error("--%s is a number up to %" PRIu64 ", not %s", name_of(opt), most,
			 fabric_quote(optarg).text);
}

static int progress(struct cli_fabric_sim *r)
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

static int take(struct cli_fabric_sim *r, int opt)
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

static int take_stripe(struct cli_fabric_args *a, struct cli_fabric_stripe *s, int opt)
{
	char why[512];
	uint64_t v;
	int code;

	if (opt == PATHS) {
		s->paths = true;
		s->hashed = !strcmp(optarg, "hashed");
		return s->hashed || !strcmp(optarg, "distinct")
			       ? CLI_OK
			       : cli_error("--paths is distinct or hashed, not %s",
					   fabric_quote(optarg).text);
	}
	if (opt == STRIPE) {
		if (s->n == CLI_FABRIC_POLICIES_MAX)
			return cli_error("--stripe was given too often");
		return stripe_parse(&s->policy[s->n++], optarg, why, sizeof(why))
			       ? cli_error("--stripe: %s", why)
			       : CLI_OK;
	}
	code = number(opt, opt == ROUNDS ? 10000 : UINT32_MAX, &v);
	if (!code && !v)
		code = cli_error("--%s is at least 1", name_of(opt));
	if (!code)
		*(opt == ROUNDS  ? &s->rounds
		  : opt == RANKS ? &a->ranks
				 : &s->addresses) = (uint32_t)v;
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
	struct cli_fabric_stripe stripes = {0};
	struct cli_fabric_sim r = {.traffic = {.bytes = 65536}, .config = *base(argc, argv)};
	struct cli_fabric_args a = {0};
	int opt, code = CLI_OK;

	r.config.seed = 1;
	while (!code && (opt = cli_fabric_option(argc, argv, "hq", options, STRIPE)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		}
		if (opt == 'q')
			r.quiet = true;
		else if (opt >= STRIPE)
			code = take_stripe(&a, &stripes, opt);
		else if (opt >= BYTES)
			code = take(&r, opt);
		else if (!cli_fabric_take(&a, opt))
			return cli_try_help();
	}
	if (!code)
		code = cli_fabric_end(argc, argv);
	if (!code && !stripes.n && (stripes.paths || stripes.rounds || stripes.addresses))
		code = cli_error("--paths, --rounds and --addresses are for --stripe");
	if (code)
		return code;
	if (!stripes.rounds)
		stripes.rounds = 10;
	return stripes.n ? stripe(&a, &r, &stripes) : cli_fabric_sim_run(&a, &r);
}
