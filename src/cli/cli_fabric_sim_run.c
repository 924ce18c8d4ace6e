/* weft fabric sim: the simulation of a collective, and what is said of it. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli_fabric_sim.h"
#include "fabric_text.h"
#include "util_clock.h"

/* ---- how long it takes ---- */

/* A day, with ten million per second. */
#define EVENTS_MAX 1e12

int cli_fabric_sim_bound(const struct cli_fabric *f, const struct fabric_sim_config *c,
			 double messages, uint64_t bytes)
{
	double events = fabric_sim_events(&f->tree.pgft, c, messages, bytes);

	if (events <= EVENTS_MAX)
		return CLI_OK;
	return cli_error("this is about %.0e events, some %.0f days of computing; fewer --bytes or "
			 "--stages, or a larger --aggregate, are less",
			 events, events / EVENTS_MAX);
}

static double messages(const struct fabric_cps *c, uint32_t stages)
{
	double all = c->flows ? (double)c->first[c->stages] : (double)c->n * c->stages;

	return c->stages ? all * stages / c->stages : 0;
}

/* ---- one simulation ---- */

struct run {
	struct fabric_sim_cps traffic; /* first: what the callbacks get */
	const struct cli_fabric *f;
	const struct cli_fabric_sim *wish;
	struct cli_fabric_progress shown;
	uint32_t *senders;        /* by stage and rank, for exchanges */
	uint32_t orders, n_order; /* how many, and which it is */
};

struct outcome {
	struct fabric_sim_result sim;
	double seconds;
	uint64_t seed; /* of the order, if there are several */
};

static bool going(void *ctx, double done)
{
	struct run *r = ctx;

	cli_fabric_progress(&r->shown, (r->n_order + done) / r->orders);
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

static int simulate(struct run *r, struct outcome *o)
{
	struct fabric_sim_traffic traffic = {.ranks = r->f->ranks, .hosts = r->f->order};
	uint64_t start = util_now_ns();
	char why[512] = "";
	int err;

	cli_fabric_progress_begin(&r->shown);
	r->shown.show &= !r->wish->quiet;
	fabric_sim_cps(&traffic, &r->traffic);
	traffic.going = going;
	traffic.expects = r->senders ? expects : NULL;
	err = fabric_sim(&r->f->routes, &r->wish->config, &traffic, &o->sim, why, sizeof(why));
	cli_fabric_progress_end(&r->shown);
	o->seconds = (double)(util_now_ns() - start) / 1e9;
	return err ? cli_failed(err, "%s", *why ? why : strerror(-err)) : CLI_OK;
}

/* ---- what came out ---- */

/* What all simulations together were. */
static struct outcome total(const struct outcome *o, uint32_t n)
{
	struct outcome t = {0};

	for (uint32_t i = 0; i < n; i++) {
		t.sim.packets += o[i].sim.packets;
		t.sim.events += o[i].sim.events;
		t.seconds += o[i].seconds;
	}
	return t;
}

static json_t *outcome_json(const struct run *r, const struct outcome *o, struct outcome all)
{
	const struct fabric_sim_result *s = &o->sim;

	return json_pack("{s:I, s:I, s:I, s:f, s:f, s:I, s:I, s:I, s:f}", "ranks",
			 (json_int_t)r->f->ranks, "stages", (json_int_t)r->traffic.stages,
			 "message_bytes", (json_int_t)r->traffic.bytes, "us", (double)s->ps / 1e6,
			 "bandwidth", s->bandwidth, "bytes", (json_int_t)s->bytes, "packets",
			 (json_int_t)all.sim.packets, "events", (json_int_t)all.sim.events,
			 "seconds", all.seconds);
}

/* JSON's numbers are signed here: larger ones are texts. */
static json_t *seed_json(uint64_t seed)
{
	char text[24];

	if (seed <= INT64_MAX)
		return json_integer((json_int_t)seed);
	snprintf(text, sizeof(text), "%" PRIu64, seed);
	return json_string(text);
}

static int by_bandwidth(const void *a, const void *b)
{
	const struct outcome *x = a, *y = b;

	if (x->sim.bandwidth != y->sim.bandwidth)
		return x->sim.bandwidth > y->sim.bandwidth ? 1 : -1;
	return (x->seed > y->seed) - (x->seed < y->seed);
}

/* Of several orders, the lower of the two in the middle if their number is even: so it is the
 * outcome of one of them, and what is said of it fits together. */
static void print_json(const struct run *r, const struct outcome *o, uint32_t n)
{
	const struct outcome *median = &o[(n - 1) / 2];
	json_t *j = outcome_json(r, median, total(o, n)), *list;

	if (n > 1) {
		list = json_array();
		for (uint32_t i = 0; i < n; i++)
			json_array_append_new(list, json_pack("{s:o, s:f, s:f}", "seed",
							      seed_json(o[i].seed), "us",
							      (double)o[i].sim.ps / 1e6,
							      "bandwidth", o[i].sim.bandwidth));
		json_object_set_new(j, "bandwidth_min", json_real(o[0].sim.bandwidth));
		json_object_set_new(j, "bandwidth_max", json_real(o[n - 1].sim.bandwidth));
		json_object_set_new(j, "orders", list);
	}
	cli_print_json(j, JSON_REAL_PRECISION(15));
}

static void print_text(const struct run *r, const struct outcome *o, uint32_t n)
{
	const struct outcome *median = &o[(n - 1) / 2];
	struct outcome all = total(o, n);

	printf("%u ranks, %u of %u stages, %" PRIu64 " bytes each: %.1f us, %.1f %% of the hosts' "
	       "bandwidth\n",
	       r->f->ranks, r->traffic.stages, r->f->cps.stages, r->traffic.bytes,
	       (double)median->sim.ps / 1e6, 100 * median->sim.bandwidth);
	if (n > 1)
		printf("this is the median of %u orders%s, from %.1f %% (random:%" PRIu64
		       ") to %.1f %% (random:%" PRIu64 ")\n",
		       n, n % 2 ? "" : " (the lower of the two in the middle)",
		       100 * o[0].sim.bandwidth, o[0].seed, 100 * o[n - 1].sim.bandwidth,
		       o[n - 1].seed);
	printf("%" PRIu64 " packets, %" PRIu64 " events in %.1f s (%.1f million per second)\n",
	       all.sim.packets, all.sim.events, all.seconds,
	       (double)all.sim.events / all.seconds / 1e6);
}

/* ---- orders ---- */

#define ORDERS_MAX 10000

/* random:A..B; otherwise *n is 0. */
static int parse_orders(const char *text, uint64_t *first, uint32_t *n)
{
	const char *dots = text ? strstr(text, "..") : NULL;
	char from[32] = "";
	uint64_t last;

	*n = 0;
	if (!dots || strncmp(text, "random:", 7) != 0)
		return CLI_OK;
	if (dots - text - 7 < (int)sizeof(from))
		memcpy(from, text + 7, (size_t)(dots - text - 7));
	if (util_decimal(from, first) || util_decimal(dots + 2, &last) || last < *first ||
	    last - *first >= ORDERS_MAX)
		return cli_error("%s are no orders; expected random:A..B with at most %u seeds, "
				 "such as random:1..8",
				 fabric_quote(text).text, ORDERS_MAX);
	*n = (uint32_t)(last - *first + 1);
	return CLI_OK;
}

static int shuffle(struct cli_fabric *f, uint64_t seed)
{
	char text[32], why[512] = "";
	uint32_t count;
	int err;

	snprintf(text, sizeof(text), "random:%" PRIu64, seed);
	err = fabric_order_of(&f->tree, &f->set, text, f->order, &count, why, sizeof(why));
	return err ? cli_failed(err, "%s", *why ? why : strerror(-err)) : CLI_OK;
}

static int run_all(struct cli_fabric *f, struct run *r, uint64_t first, bool several, bool json)
{
	struct outcome *o = calloc(r->orders, sizeof(*o));
	int code = o ? CLI_OK : cli_failed(-ENOMEM, "%s", strerror(ENOMEM));

	for (uint32_t i = 0; !code && i < r->orders; i++) {
		r->n_order = i;
		o[i].seed = first + i;
		if (several)
			code = shuffle(f, first + i);
		if (!code)
			code = simulate(r, &o[i]);
	}
	if (!code) {
		qsort(o, r->orders, sizeof(*o), by_bandwidth);
		(json ? print_json : print_text)(r, o, r->orders);
	}
	free(o);
	return code;
}

static int prepare(struct run *r, const struct cli_fabric *f, const struct cli_fabric_sim *s)
{
	r->f = f;
	r->wish = s;
	r->traffic = s->traffic;
	r->traffic.cps = &f->cps;
	if (!r->traffic.stages || r->traffic.stages > f->cps.stages)
		r->traffic.stages = f->cps.stages;
	if (s->config.progress == FABRIC_SIM_EXCHANGE) {
		r->senders = count_senders(r);
		if (!r->senders)
			return cli_failed(-ENOMEM, "%s", strerror(ENOMEM));
	}
	return cli_fabric_sim_bound(f, &s->config, r->orders * messages(&f->cps, r->traffic.stages),
				    s->traffic.bytes);
}

int cli_fabric_sim_run(const struct cli_fabric_args *a, const struct cli_fabric_sim *s)
{
	struct cli_fabric_args one = *a;
	struct cli_fabric f = {0};
	struct run r = {.orders = 1};
	uint64_t first = 0;
	uint32_t n;
	int code = parse_orders(a->order, &first, &n);

	if (n) {
		r.orders = n;
		one.order = "routing"; /* until they are shuffled */
	}
	if (!code)
		code = cli_fabric_ready(&f, &one, true);
	if (!code)
		code = prepare(&r, &f, s);
	if (!code)
		code = run_all(&f, &r, first, n, a->json);
	free(r.senders);
	cli_fabric_close(&f);
	return code;
}
