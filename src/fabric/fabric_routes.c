#include "fabric_routes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_routes_in.h"

#define TABLE_MAX ((uint64_t)1 << 31) /* entries: four gigabytes */

/* ---- making ---- */

/* Physical ports of a network may be any; the largest says how much room the links need. */
static uint32_t max_port(const struct fabric_tree *tree)
{
	const struct fabric_pgft *t = &tree->pgft;
	uint32_t max = 0;

	for (uint32_t cable = 0; cable < fabric_cables(t); cable++) {
		uint32_t lower, upper;

		if (!fabric_tree_has_cable(tree, cable))
			continue;
		lower = cable < t->first_cable[2] ? 0 : fabric_tree_lower_port(tree, cable);
		upper = fabric_tree_upper_port(tree, cable);
		max = lower > max ? lower : max;
		max = upper > max ? upper : max;
	}
	return max;
}

static uint32_t *link_at(const struct fabric_routes *r, uint32_t node, uint32_t port)
{
	size_t row = node - r->tree->pgft.first[1];

	return &r->links[row * (r->max_port + 1) + port];
}

static void note_links(struct fabric_routes *r)
{
	const struct fabric_pgft *t = &r->tree->pgft;

	for (uint32_t cable = 0; cable < fabric_cables(t); cable++) {
		struct fabric_cable c = fabric_cable(t, cable);

		if (!fabric_tree_has_cable(r->tree, cable))
			continue;
		*link_at(r, fabric_number(t, c.upper), fabric_tree_upper_port(r->tree, cable)) =
			fabric_link(cable, false);
		if (c.lower.level > 0)
			*link_at(r, fabric_number(t, c.lower),
				 fabric_tree_lower_port(r->tree, cable)) = fabric_link(cable, true);
	}
}

static bool too_wide(const struct fabric_pgft *t)
{
	for (uint32_t l = 1; l <= t->h; l++)
		if ((uint64_t)fabric_down_ports(t, l) + fabric_up_ports(t, l) >
		    FABRIC_ROUTES_PORTS_MAX)
			return true;
	return false;
}

int fabric_routes_empty(struct fabric_routes *r, const struct fabric_tree *tree, uint32_t lmc)
{
	const struct fabric_pgft *t = &tree->pgft;
	uint32_t switches = fabric_nodes(t) - fabric_hosts(t);
	uint64_t entries;
	size_t links;

	*r = (struct fabric_routes){.tree = tree, .rule = {.lmc = lmc}};
	if (too_wide(t))
		return -ERANGE;
	r->max_port = max_port(tree);
	if (r->max_port > UINT16_MAX)
		return -ERANGE;
	entries = (uint64_t)switches * fabric_routes_entries(r);
	links = (size_t)switches * (r->max_port + 1);
	if (entries > TABLE_MAX || links > TABLE_MAX)
		return -ENOMEM;
	r->table = calloc(entries, sizeof(*r->table));
	r->links = malloc(links * sizeof(*r->links));
	if (!r->table || !r->links) {
		fabric_routes_free(r);
		return -ENOMEM;
	}
	for (size_t i = 0; i < links; i++)
		r->links[i] = FABRIC_NONE;
	note_links(r);
	return 0;
}

int fabric_routes_make(struct fabric_routes *r, const struct fabric_tree *tree,
		       const struct fabric_routing *rule, const uint32_t *index)
{
	int ret;

	*r = (struct fabric_routes){.tree = tree, .rule = *rule, .index = index};
	if (rule->kind == FABRIC_ECMP)
		return -EINVAL;
	if (fabric_tree_whole(tree))
		return 0;
	if (too_wide(&tree->pgft))
		return -ERANGE;
	ret = fabric_routes_around(r);
	if (ret)
		fabric_routes_free(r);
	return ret;
}

void fabric_routes_free(struct fabric_routes *r)
{
	free(r->table);
	free(r->links);
	fabric_around_free(r->around);
	r->table = NULL;
	r->links = NULL;
	r->around = NULL;
}

bool fabric_routes_by_rule(const struct fabric_routes *r, uint32_t node)
{
	const struct fabric_around_switch *of;

	if (r->table || !r->around)
		return !r->table;
	of = &r->around->of[node - r->tree->pgft.first[1]];
	return !of->n_gaps && !of->n_detours;
}

/* Lists with the same contents need not be one list. */
static bool same_around(const struct fabric_around *x, const struct fabric_around_switch *a,
			const struct fabric_around_switch *b)
{
	if (a->n_gaps != b->n_gaps || a->n_detours != b->n_detours)
		return false;
	if (a->gap != b->gap &&
	    memcmp(x->gaps + a->gap, x->gaps + b->gap, a->n_gaps * sizeof(*x->gaps)) != 0)
		return false;
	for (uint32_t i = 0; a->detour != b->detour && i < a->n_detours; i++) {
		const struct fabric_detour *p = &x->detours[a->detour + i];
		const struct fabric_detour *q = &x->detours[b->detour + i];

		if (p->entry != q->entry || p->port != q->port)
			return false;
	}
	return true;
}

bool fabric_routes_same(const struct fabric_routes *r, uint32_t a, uint32_t b)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	struct fabric_node x = fabric_node(t, a), y = fabric_node(t, b);

	if (r->table || r->rule.kind != FABRIC_DMODK || x.level != y.level ||
	    x.index / t->W[x.level] != y.index / t->W[y.level])
		return a == b;
	return !r->around || same_around(r->around, &r->around->of[a - t->first[1]],
					 &r->around->of[b - t->first[1]]);
}

/* ---- one step ---- */

uint32_t fabric_climb(const struct fabric_routes *r, uint32_t level, uint32_t host,
		      uint32_t address)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	uint32_t ports = fabric_up_ports(t, level);

	return (fabric_key(r, host) / t->W[level] % ports + fabric_turn(t, level, address)) % ports;
}

/* Only the index makes a difference to fabric_route. */
static struct fabric_ports rule_ports(const struct fabric_routes *r, struct fabric_node n,
				      uint32_t host, uint32_t address)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	struct fabric_ports p;

	if (!r->index || r->rule.kind != FABRIC_DMODK)
		return fabric_route(t, &r->rule, n, host, address);
	p = (struct fabric_ports){.up = !fabric_is_below(t, n, host), .stride = 1, .count = 1};
	if (p.up)
		p.first = fabric_climb(r, n.level, host, address);
	else if (n.level > 0)
		p.first =
			host / t->M[n.level - 1] % t->m[n.level] +
			fabric_climb(r, n.level - 1, host, address) / t->w[n.level] * t->m[n.level];
	else
		p.count = 0;
	return p;
}

static uint32_t cable_at(const struct fabric_pgft *t, struct fabric_node n, uint32_t port, bool up)
{
	struct fabric_cable c = up ? fabric_cable_up(t, n, port) : fabric_cable_down(t, n, port);

	return fabric_cable_number(t, &c);
}

static uint32_t rule_step(const struct fabric_routes *r, struct fabric_node n, uint32_t host,
			  uint32_t address, bool *up)
{
	struct fabric_ports p = rule_ports(r, n, host, address);

	*up = p.up;
	return p.count ? cable_at(&r->tree->pgft, n, p.first, p.up) : FABRIC_NONE;
}

/* The rule, but for what is different. */
static uint32_t around_step(const struct fabric_routes *r, uint32_t node, uint32_t host,
			    uint32_t address, bool *up)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	struct fabric_node n = fabric_node(t, node);
	uint32_t sw = node - t->first[1], down = fabric_down_ports(t, n.level), port;

	if (fabric_around_gone(r->around, sw, host))
		return FABRIC_NONE;
	port = fabric_around_port(r->around, sw, (host << r->rule.lmc) + address);
	if (port == FABRIC_NONE)
		return rule_step(r, n, host, address, up);
	*up = port >= down;
	return cable_at(t, n, *up ? port - down : port, *up);
}

static uint16_t entry(const struct fabric_routes *r, uint32_t node, uint32_t host, uint32_t address)
{
	size_t row = node - r->tree->pgft.first[1];

	return r->table[row * fabric_routes_entries(r) + ((size_t)host << r->rule.lmc) + address];
}

/* The cable at an up-going port of a host, if it leads to the destination. */
static uint32_t host_try(const struct fabric_routes *r, uint32_t from, uint32_t q, uint32_t host,
			 uint32_t address)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	struct fabric_cable c = fabric_cable_up(t, (struct fabric_node){0, from}, q);
	uint32_t cable = fabric_cable_number(t, &c), leaf = fabric_number(t, c.upper);
	bool way = r->table ? entry(r, leaf, host, address)
			    : !fabric_around_gone(r->around, leaf - t->first[1], host);

	return way && fabric_tree_has_cable(r->tree, cable) ? cable : FABRIC_NONE;
}

/* Hosts have no tables: where they have a choice, that of the rule if it leads there, and one
 * after the other of those that do for those destinations that have to do without. */
static uint32_t host_step(const struct fabric_routes *r, uint32_t from, uint32_t host,
			  uint32_t address)
{
	struct fabric_node n = {0, from};
	uint32_t ports = fabric_up_ports(&r->tree->pgft, 0), leading = 0, which, cable;

	if (from == host)
		return FABRIC_NONE;
	cable = host_try(r, from, rule_ports(r, n, host, address).first, host, address);
	if (cable != FABRIC_NONE || ports == 1)
		return cable;
	for (uint32_t q = 0; q < ports; q++)
		leading += host_try(r, from, q, host, address) != FABRIC_NONE;
	if (!leading)
		return FABRIC_NONE;
	which = (fabric_key(r, host) / ports + address) % leading;
	for (uint32_t q = 0;; q++) {
		cable = host_try(r, from, q, host, address);
		if (cable != FABRIC_NONE && which-- == 0)
			return cable;
	}
}

uint32_t fabric_routes_step(const struct fabric_routes *r, uint32_t node, uint32_t host,
			    uint32_t address, bool *up)
{
	uint32_t link;

	if (!r->table && !r->around)
		return rule_step(r, fabric_node(&r->tree->pgft, node), host, address, up);
	*up = true;
	if (node < fabric_hosts(&r->tree->pgft))
		return host_step(r, node, host, address);
	if (!r->table)
		return around_step(r, node, host, address, up);
	link = entry(r, node, host, address);
	link = link && link <= r->max_port ? *link_at(r, node, link) : FABRIC_NONE;
	if (link == FABRIC_NONE)
		return FABRIC_NONE;
	*up = link % 2 == 0;
	return link / 2;
}
