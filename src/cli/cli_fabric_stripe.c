/* weft fabric sim --stripe: messages divided over several paths. */
#include "cli_fabric_stripe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli_fabric_sim.h"
#include "fabric_sim_stripe.h"

/* Addresses of each host that the paths are among: 2^4. */
#define LMC 4

struct result {
	double first, last; /* us */
};

static int routes(struct cli_fabric *f, const struct cli_fabric_stripe *s)
{
	struct fabric_routing rule = {.kind = s->hashed ? FABRIC_RANDOM : FABRIC_DMODK,
				      .seed = s->config.seed,
				      .lmc = LMC};
	int err = fabric_routes_make(&f->routes, &f->tree, &rule, NULL);

	return err ? cli_fabric_no_routes(err) : CLI_OK;
}

/* Of a host, that paths are among: as many as the policy with the most of them needs. */
static uint32_t addresses(const struct cli_fabric_stripe *s)
{
	uint32_t most = 0;

	for (unsigned int i = 0; i < s->n; i++)
		most = s->policy[i].paths > most ? s->policy[i].paths : most;
	return most;
}

static int run(const struct cli_fabric *f, const struct cli_fabric_stripe *s,
	       const struct stripe_conf *policy, struct result *r)
{
	uint64_t *ps = calloc(s->rounds, sizeof(*ps));
	struct fabric_sim_stripes what = {.rings = s->step != 0,
					  .step = s->step,
					  .ranks = f->ranks,
					  .hosts = f->order,
					  .bytes = s->bytes,
					  .policy = *policy,
					  .draw = !s->hashed,
					  .seed = s->config.seed,
					  .addresses = addresses(s),
					  .rounds = s->rounds};
	char why[512] = "";
	int err;

	if (!ps)
		return cli_failed(-ENOMEM, "%s", strerror(ENOMEM));
	err = fabric_sim_stripes(&f->routes, &s->config, &what, ps, NULL, why, sizeof(why));
	if (!err)
		*r = (struct result){(double)ps[0] / 1e6, (double)ps[s->rounds - 1] / 1e6};
	free(ps);
	return err ? cli_failed(err, "%s", *why ? why : strerror(-err)) : CLI_OK;
}

static void print(const struct stripe_conf *policy, const struct result *r, double original,
		  json_t *list)
{
	char name[STRIPE_NAME_MAX];

	stripe_print(policy, name);
	if (list)
		json_array_append_new(list,
				      json_pack("{s:s, s:f, s:f, s:f}", "policy", name,
						"first_round_us", r->first, "last_round_us",
						r->last, "to_first_policy", r->last / original));
	else
		printf("%-12s %14.1f %14.1f %10.2f\n", name, r->first, r->last, r->last / original);
}

static int all(struct cli_fabric *f, const struct cli_fabric_stripe *s, bool json)
{
	json_t *list = json ? json_array() : NULL;
	struct result r = {0}, original = {0};
	int code = routes(f, s);

	if (!code && !json)
		printf("# %u ranks, %u rounds, %s paths; times in us\n%-12s %14s %14s %10s\n",
		       f->ranks, s->rounds, s->hashed ? "hashed" : "distinct", "#policy",
		       "first round", "last round", "ratio");
	for (unsigned int i = 0; !code && i < s->n; i++) {
		code = run(f, s, &s->policy[i], &r);
		if (!i)
			original = r;
		if (!code)
			print(&s->policy[i], &r, original.last, list);
	}
	if (!code && json)
		cli_print_json(list, JSON_REAL_PRECISION(15));
	else
		json_decref(list);
	return code;
}

int cli_fabric_stripe(const struct cli_fabric_args *a, const struct cli_fabric_stripe *s)
{
	struct cli_fabric f = {0};
	int code;

	if (a->routing)
		return cli_error("--stripe has routes of its own; --paths says which");
	code = cli_fabric_open(&f, a);
	if (!code)
		code = cli_fabric_take_part(&f, a);
	if (!code)
		code = cli_fabric_ranks(&f, a);
	if (!code)
		code = cli_fabric_sim_bound(
			&f, &s->config,
			(double)f.ranks * (s->step ? 1 : f.ranks) * s->rounds * s->n, s->bytes);
	if (!code)
		code = all(&f, s, a->json);
	cli_fabric_close(&f);
	return code ? code : cli_finish(CLI_OK);
}
