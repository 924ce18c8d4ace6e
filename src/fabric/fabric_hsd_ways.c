/* The ways of flows, as fast as their routes allow. */
#include "fabric_hsd_in.h"

#include <errno.h>
#include <stdlib.h>

#include "fabric_routes_in.h"
#include "util_rand.h"

int fabric_hsd_way(const struct fabric_routes *r, uint32_t from, uint32_t to, uint32_t address,
		   uint32_t links[FABRIC_HOPS_MAX])
{
	const struct fabric_pgft *t = &r->tree->pgft;
	uint32_t at = from;
	int n = 0;

	while (at != to) {
		bool up;
		uint32_t cable = fabric_routes_step(r, at, to, address, &up);
		struct fabric_cable c;

		if (cable == FABRIC_NONE || n == FABRIC_HOPS_MAX)
			return -ENETUNREACH;
		c = fabric_cable(t, cable);
		at = fabric_number(t, up ? c.upper : c.lower);
		links[n++] = fabric_link(cable, up);
	}
	return n;
}

/* ---- up and then down ---- */

/* A draw of the random table (fabric_route.h); 0 if there is no choice. */
static inline uint32_t draw(const struct fabric_ways *w, const struct fabric_mod *mod,
			    uint32_t node, uint32_t entry)
{
	const struct fabric_routes *r = w->job->routes;
	struct util_rand rand;

	if (mod->by < 2)
		return 0;
	util_rand_seed(&rand, r->rule.seed);
	util_rand_skip(&rand, node * w->entries + entry);
	return (uint32_t)fabric_mod_of(mod, util_rand_next(&rand));
}

static inline uint32_t detour(const struct fabric_routes *r, uint32_t node, uint32_t entry)
{
	return r->around ? fabric_around_port(r->around, node - r->tree->pgft.first[1], entry)
			 : FABRIC_NONE;
}

/* The up-going port of a node; to: what its rank has. FABRIC_NONE: there is no way, which a host
 * finds out, and then no switch does. */
static uint32_t port_up(const struct fabric_ways *w, uint32_t l, uint32_t node, uint32_t entry,
			const uint32_t *to)
{
	const struct fabric_routes *r = w->job->routes;
	uint32_t port;
	bool up;

	if (l == 0 && r->around) {
		port = fabric_routes_step(r, node, entry >> r->rule.lmc, w->job->address, &up);
		return port == FABRIC_NONE ? port : port - node * fabric_up_ports(w->t, 0);
	}
	port = l > 0 ? detour(r, node, entry) : FABRIC_NONE;
	if (port != FABRIC_NONE)
		return port - fabric_down_ports(w->t, l);
	if (r->rule.kind == FABRIC_RANDOM)
		return draw(w, &w->up[l], node, entry);
	return to[w->t->h + l];
}

/* Which of the parallel cables to a child. */
static uint32_t cable_down(const struct fabric_ways *w, uint32_t l, uint32_t node, uint32_t entry,
			   const uint32_t *to)
{
	const struct fabric_routes *r = w->job->routes;
	uint32_t port;

	if (w->t->p[l] == 1)
		return 0;
	port = detour(r, node, entry);
	if (port != FABRIC_NONE)
		return port / w->t->m[l];
	if (r->rule.kind == FABRIC_RANDOM)
		return draw(w, &w->down[l], node, entry);
	return to[w->t->h + l - 1] / w->t->w[l];
}

/* On the way down the digits b are those of the way up. */
static int climb(const struct fabric_ways *w, struct fabric_flow flow,
		 uint32_t links[FABRIC_HOPS_MAX])
{
	const struct fabric_pgft *t = w->t;
	const uint32_t *from = w->of + (size_t)flow.from * 2 * t->h;
	const uint32_t *to = w->of + (size_t)flow.to * 2 * t->h;
	uint32_t entry = (w->job->hosts[flow.to] << w->job->routes->rule.lmc) + w->job->address;
	uint32_t b[FABRIC_LEVELS_MAX + 1] = {0}, digit[FABRIC_LEVELS_MAX + 1], l = 0;
	int n = 0;

	for (; l < t->h && from[l] != to[l]; l++) {
		uint32_t index = b[l] + t->W[l] * from[l];
		uint32_t q = port_up(w, l, t->first[l] + index, entry, to);

		if (q == FABRIC_NONE)
			return -ENETUNREACH;
		links[n++] = fabric_link(t->first_cable[l + 1] + index * fabric_up_ports(t, l) + q,
					 true);
		digit[l + 1] = t->p[l + 1] == 1 ? q : q % t->w[l + 1];
		b[l + 1] = b[l] + t->W[l] * digit[l + 1];
	}
	for (; l > 0; l--) {
		uint32_t tree = l < t->h ? to[l] : 0, index = b[l - 1] + t->W[l - 1] * to[l - 1];
		uint32_t node = t->first[l] + b[l] + t->W[l] * tree;
		uint32_t q = digit[l] + t->w[l] * cable_down(w, l, node, entry, to);

		links[n++] = fabric_link(t->first_cable[l] + index * fabric_up_ports(t, l - 1) + q,
					 false);
	}
	return n;
}

/* ---- tables ---- */

static int look_up(const struct fabric_ways *w, uint32_t from, uint32_t to,
		   uint32_t links[FABRIC_HOPS_MAX])
{
	const struct fabric_routes *r = w->job->routes;
	size_t entries = fabric_routes_entries(r), ports = r->max_port + 1;
	size_t entry = ((size_t)to << r->rule.lmc) + w->job->address;
	uint32_t at = from, cable;
	bool up;
	int n = 0;

	while (at != to) {
		uint32_t link;

		if (at < fabric_hosts(w->t)) {
			cable = fabric_routes_step(r, at, to, w->job->address, &up);
			link = cable == FABRIC_NONE ? FABRIC_NONE : fabric_link(cable, up);
		} else {
			size_t row = at - w->t->first[1];
			uint32_t port = r->table[row * entries + entry];

			link = port && port < ports ? r->links[row * ports + port] : FABRIC_NONE;
		}
		if (link == FABRIC_NONE || n == FABRIC_HOPS_MAX)
			return -ENETUNREACH;
		links[n++] = link;
		at = w->next[link];
	}
	return n;
}

/* ---- all ---- */

static bool by_sums(const struct fabric_ways *w, struct fabric_flow flow)
{
	return !w->odd || !(w->odd[flow.to] & FABRIC_ODD_TO || w->odd[flow.from] & FABRIC_ODD_FROM);
}

int fabric_ways_of(const struct fabric_ways *w, struct fabric_flow flow,
		   uint32_t links[FABRIC_HOPS_MAX])
{
	if (w->next)
		return look_up(w, w->job->hosts[flow.from], w->job->hosts[flow.to], links);
	if (w->sums.of && by_sums(w, flow))
		return fabric_sums_way(&w->sums, flow, links);
	return climb(w, flow, links);
}

/* Those that go by the rule to the front. Returns how many. */
static uint32_t sort_flows(const struct fabric_ways *w, struct fabric_flow *flows, uint32_t n)
{
	uint32_t plain = 0;

	if (!w->sums.of)
		return 0;
	if (!w->odd)
		return n;
	for (uint32_t i = 0; i < n; i++)
		if (by_sums(w, flows[i])) {
			struct fabric_flow f = flows[i];

			flows[i] = flows[plain];
			flows[plain++] = f;
		}
	return plain;
}

uint64_t fabric_ways_count(const struct fabric_ways *w, struct fabric_flow *flows, uint32_t n,
			   uint32_t *degree)
{
	uint32_t links[FABRIC_HOPS_MAX], plain = sort_flows(w, flows, n);
	uint64_t lost = 0;

	fabric_sums_count(&w->sums, flows, plain, degree);
	for (uint32_t i = plain; i < n; i++) {
		int hops = fabric_ways_of(w, flows[i], links);

		for (int k = 0; k < hops; k++)
			degree[links[k]]++;
		lost += hops < 0;
	}
	return lost;
}

/* ---- making ---- */

/* By host: is it in a gap, or has it a detour, of any switch that is there? Is a cable of its own
 * missing? */
static void mark_odd(const struct fabric_ways *w, uint8_t *odd)
{
	const struct fabric_routes *r = w->job->routes;
	const struct fabric_around *x = r->around;
	uint32_t lmc = r->rule.lmc;

	for (uint32_t sw = 0; sw < x->switches; sw++) {
		const struct fabric_around_switch *of = &x->of[sw];

		if (!fabric_tree_has_node(r->tree, w->t->first[1] + sw))
			continue;
		for (uint32_t i = 0; i < of->n_gaps; i++)
			for (uint32_t j = x->gaps[of->gap + i].first; j < x->gaps[of->gap + i].end;
			     j++)
				odd[j] = FABRIC_ODD_TO;
		for (uint32_t i = 0; i < of->n_detours; i++)
			odd[x->detours[of->detour + i].entry >> lmc] = FABRIC_ODD_TO;
	}
	for (uint32_t i = 0; i < w->t->cables[1]; i++)
		if (!fabric_tree_has_cable(r->tree, i))
			odd[i / fabric_up_ports(w->t, 0)] |= FABRIC_ODD_FROM;
}

static int make_odd(struct fabric_ways *w)
{
	const struct fabric_hsd_job *job = w->job;
	uint8_t *odd = calloc(fabric_hosts(w->t), 1);

	w->odd = malloc(job->cps->n);
	if (odd && w->odd) {
		mark_odd(w, odd);
		for (uint32_t i = 0; i < job->cps->n; i++)
			w->odd[i] = odd[job->hosts[i]];
	}
	free(odd);
	return odd && w->odd ? 0 : -ENOMEM;
}

static int make_climb(struct fabric_ways *w)
{
	const struct fabric_hsd_job *job = w->job;
	const struct fabric_pgft *t = w->t;

	for (uint32_t l = 0; l < t->h; l++) {
		if (fabric_up_ports(t, l) > 1)
			w->up[l] = fabric_mod(fabric_up_ports(t, l));
		if (t->p[l + 1] > 1)
			w->down[l + 1] = fabric_mod(t->p[l + 1]);
	}
	w->of = malloc((size_t)job->cps->n * 2 * t->h * sizeof(*w->of));
	if (!w->of)
		return -ENOMEM;
	for (uint32_t i = 0; i < job->cps->n; i++) {
		uint32_t *of = w->of + (size_t)i * 2 * t->h;

		for (uint32_t l = 0; l < t->h; l++) {
			of[l] = job->hosts[i] / t->M[l];
			of[t->h + l] = fabric_climb(job->routes, l, job->hosts[i], job->address);
		}
	}
	return 0;
}

static int make_next(struct fabric_ways *w)
{
	uint32_t cables = fabric_cables(w->t);

	w->next = malloc(2 * (size_t)cables * sizeof(*w->next));
	for (uint32_t i = 0; w->next && i < cables; i++) {
		struct fabric_cable c = fabric_cable(w->t, i);

		w->next[fabric_link(i, true)] = fabric_number(w->t, c.upper);
		w->next[fabric_link(i, false)] = fabric_number(w->t, c.lower);
	}
	return w->next ? 0 : -ENOMEM;
}

int fabric_ways_make(struct fabric_ways *w, const struct fabric_hsd_job *job)
{
	const struct fabric_routes *r = job->routes;
	int ret = 0;

	*w = (struct fabric_ways){
		.job = job, .t = &r->tree->pgft, .entries = fabric_routes_entries(r)};
	if (r->table)
		return make_next(w);
	if (r->rule.kind == FABRIC_DMODK)
		ret = fabric_sums_make(&w->sums, job);
	if (!ret && r->around && w->sums.of)
		ret = make_odd(w);
	if (!ret && (r->around || !w->sums.of))
		ret = make_climb(w);
	return ret;
}

void fabric_ways_free(struct fabric_ways *w)
{
	free(w->sums.of);
	free(w->odd);
	free(w->of);
	free(w->next);
}
