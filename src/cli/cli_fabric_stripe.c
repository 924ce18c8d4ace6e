/* weft fabric sim --stripe: messages divided over several paths. */
#include "cli_fabric_stripe.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "cli_fabric_sim.h"
#include "fabric_sim_stripe.h"

/* Addresses of each host that the paths are among: at most 2^4. */
#define LMC           4
#define ADDRESSES_MAX (1u << LMC)

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

/* Different ways from a host up to the roots, as far as there are addresses for them. */
static uint32_t ways(const struct fabric_pgft *t)
{
	uint32_t n = 1;

	for (uint32_t l = 0; l < t->h && n < ADDRESSES_MAX; l++)
		n *= fabric_up_ports(t, l) < ADDRESSES_MAX ? fabric_up_ports(t, l) : ADDRESSES_MAX;
	return n < ADDRESSES_MAX ? n : ADDRESSES_MAX;
}

/* The same number for all policies: what one of them takes must not depend on the others. */
static int set_addresses(const struct cli_fabric *f, struct cli_fabric_stripe *s)
{
	uint32_t have = ways(&f->tree.pgft), most = s->hashed ? ADDRESSES_MAX : have;
	char name[STRIPE_NAME_MAX];

	if (s->addresses > most)
		return cli_error("--addresses %u: the most is %u%s", s->addresses, most,
				 s->hashed ? "" : ", one for each way up that the tree has");
	if (!s->addresses)
		s->addresses = have;
	for (unsigned int i = 0; i < s->n; i++) {
		stripe_print(&s->policy[i], name);
		if (s->policy[i].paths > s->addresses)
			return cli_error("--stripe %s has more paths than a host has addresses, %u",
					 name, s->addresses);
	}
	return CLI_OK;
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
					  .addresses = s->addresses,
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
		printf("# %u ranks, %u rounds, %s paths, %u addresses; times in us\n"
		       "%-12s %14s %14s %10s\n",
		       f->ranks, s->rounds, s->hashed ? "hashed" : "distinct", s->addresses,
		       "#policy", "first round", "last round", "ratio");
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

int cli_fabric_stripe(const struct cli_fabric_args *a, struct cli_fabric_stripe *s)
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
		code = set_addresses(&f, s);
	if (!code)
		code = cli_fabric_sim_bound(
			&f, &s->config,
			(double)f.ranks * (s->step ? 1 : f.ranks) * s->rounds * s->n, s->bytes);
	if (!code)
		code = all(&f, s, a->json);
	cli_fabric_close(&f);
	return code ? code : cli_finish(CLI_OK);
}
