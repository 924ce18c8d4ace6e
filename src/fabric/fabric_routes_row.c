/* The table of one switch by the formula, at the speed of memory.
 *
 * For a switch of level l, ⌊j / W_l⌋ mod (w_l+1·p_l+1) is constant for runs of W_l hosts and
 * repeats after all up-going ports had their run. So runs are filled, the first period is
 * repeated, and nothing is divided. Only the compact index, which is any sequence, and the random
 * table, which draws each entry, are computed one by one. */
#include "fabric_routes_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_mod.h"
#include "util_rand.h"

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* Repeats the first `done` entries until there are `all`. Large blocks come from the beginning
 * each time, so that what is read stays in the nearest cache. */
static void repeat(uint16_t *out, size_t done, size_t all)
{
	size_t block = done;

	while (done < all) {
		size_t n = (size_t)least(block, all - done);

		memcpy(out + done, out, n * sizeof(*out));
		done += n;
		if (block < 8192)
			block = done;
	}
}

static uint16_t *fill(uint16_t *out, const struct fabric_choices *c, uint32_t choice, size_t hosts)
{
	const uint16_t *value = c->out + (size_t)choice * c->addresses;
	size_t n = hosts * c->addresses;

	if (c->addresses == 1) {
		uint16_t v = *value;

		for (size_t i = 0; i < n; i++)
			out[i] = v;
	} else {
		memcpy(out, value, c->addresses * sizeof(*out));
		repeat(out, c->addresses, n);
	}
	return out + n;
}

/* The hosts from `first` on. */
static void fill_runs(uint16_t *out, const struct fabric_choices *c, uint32_t first, uint32_t hosts)
{
	uint64_t period = least((uint64_t)c->run * c->ports, hosts), left = period;
	uint32_t choice = first / c->run % c->ports, in_run = c->run - first % c->run;
	uint16_t *at = out;

	while (left) {
		uint32_t n = (uint32_t)least(in_run, left);

		at = fill(at, c, choice, n);
		left -= n;
		in_run = c->run;
		choice = choice + 1 < c->ports ? choice + 1 : 0;
	}
	repeat(out, period * c->addresses, (size_t)hosts * c->addresses);
}

static void fill_keys(uint16_t *out, const struct fabric_choices *c, const struct fabric_routes *r,
		      uint32_t first, uint32_t hosts)
{
	for (uint32_t j = first; j < first + hosts; j++)
		out = fill(out, c, fabric_key(r, j) / c->run % c->ports, 1);
}

static void fill_hosts(uint16_t *out, const struct fabric_choices *c, const struct fabric_routes *r,
		       uint32_t first, uint32_t hosts)
{
	if (r->index)
		fill_keys(out, c, r, first, hosts);
	else
		fill_runs(out, c, first, hosts);
}

static int choices_init(struct fabric_choices *c, const struct fabric_routes *r, uint32_t level)
{
	const struct fabric_pgft *t = &r->tree->pgft;

	c->run = t->W[level];
	c->ports = fabric_up_ports(t, level);
	c->addresses = 1u << r->rule.lmc;
	c->out = malloc((size_t)c->ports * c->addresses * sizeof(*c->out));
	return c->out ? 0 : -ENOMEM;
}

/* Up-going ports; what is written for them, or NULL: themselves. */
static void choose_up(struct fabric_choices *c, const struct fabric_pgft *t, uint32_t level,
		      const uint16_t *up)
{
	for (uint32_t a = 0; a < c->addresses; a++) {
		uint32_t turn = fabric_turn(t, level, a);

		for (uint32_t q = 0; q < c->ports; q++) {
			uint32_t to = (q + turn) % c->ports;

			c->out[(size_t)q * c->addresses + a] = up ? up[to] : (uint16_t)to;
		}
	}
}

/* The cables to one child: that by which a climb to it would come. What is written for them, each
 * m after the one before, or NULL: their numbers. */
static void choose_down(struct fabric_choices *c, const struct fabric_pgft *t, uint32_t level,
			const uint16_t *down)
{
	if (t->p[level] == 1) /* all choices are the same: one will do */
		c->run = fabric_hosts(t), c->ports = 1;
	for (uint32_t a = 0; a < c->addresses; a++) {
		uint32_t turn = fabric_turn(t, level - 1, a);

		for (uint32_t q = 0; q < c->ports; q++) {
			uint32_t k = (q + turn) % c->ports / t->w[level];

			c->out[(size_t)q * c->addresses + a] =
				down ? down[k * t->m[level]] : (uint16_t)k;
		}
	}
}

/* Where the destination is not below. */
static int climb_row(const struct fabric_routes *r, struct fabric_node n, const uint16_t *up,
		     uint16_t *out)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	uint32_t below = n.index / t->W[n.level] * t->M[n.level], above = below + t->M[n.level];
	struct fabric_choices c;

	if (choices_init(&c, r, n.level))
		return -ENOMEM;
	choose_up(&c, t, n.level, up);
	fill_hosts(out, &c, r, 0, below);
	fill_hosts(out + (size_t)above * c.addresses, &c, r, above, fabric_hosts(t) - above);
	free(c.out);
	return 0;
}

/* Where it is: the child is given. */
static int descend_row(const struct fabric_routes *r, struct fabric_node n, const uint16_t *down,
		       uint16_t *out)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	uint32_t below = n.index / t->W[n.level] * t->M[n.level], hosts = t->M[n.level - 1];
	struct fabric_choices c;

	if (choices_init(&c, r, n.level - 1))
		return -ENOMEM;
	for (uint32_t child = 0; child < t->m[n.level]; child++, below += hosts) {
		choose_down(&c, t, n.level, down + child);
		fill_hosts(out + (size_t)below * c.addresses, &c, r, below, hosts);
	}
	free(c.out);
	return 0;
}

/* ---- random ---- */

/* The entries of a row are successive numbers of the generator: those of these hosts, modulo the
 * number of choices. */
static void draw(const struct fabric_routes *r, struct fabric_node n, uint32_t first,
		 uint32_t hosts, uint32_t choices, uint16_t *out)
{
	size_t entries = (size_t)hosts << r->rule.lmc;
	uint64_t row = fabric_number(&r->tree->pgft, n) * (uint64_t)fabric_routes_entries(r);
	struct fabric_mod mod;
	struct util_rand rand;

	if (choices < 2) {
		memset(out, 0, entries * sizeof(*out));
		return;
	}
	mod = fabric_mod(choices);
	util_rand_seed(&rand, r->rule.seed);
	util_rand_skip(&rand, row + ((uint64_t)first << r->rule.lmc));
	for (size_t e = 0; e < entries; e++)
		out[e] = (uint16_t)fabric_mod_of(&mod, util_rand_next(&rand));
}

static void draw_ports(const struct fabric_routes *r, struct fabric_node n, uint32_t first,
		       uint32_t hosts, uint32_t choices, const uint16_t *port, uint32_t stride,
		       uint16_t *out)
{
	size_t entries = (size_t)hosts << r->rule.lmc;

	out += (size_t)first << r->rule.lmc;
	draw(r, n, first, hosts, choices, out);
	for (size_t e = 0; e < entries; e++)
		out[e] = port[out[e] * stride];
}

static void random_row(const struct fabric_routes *r, struct fabric_node n, const uint16_t *port,
		       uint16_t *out)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	const uint16_t *up_port = port + fabric_down_ports(t, n.level);
	uint32_t up = fabric_up_ports(t, n.level), m = t->m[n.level], hosts = t->M[n.level - 1];
	uint32_t below = n.index / t->W[n.level] * t->M[n.level], above = below + t->M[n.level];

	draw_ports(r, n, 0, below, up, up_port, 1, out);
	for (uint32_t child = 0; child < m; child++)
		draw_ports(r, n, below + child * hosts, hosts, t->p[n.level], port + child, m, out);
	draw_ports(r, n, above, fabric_hosts(t) - above, up, up_port, 1, out);
}

/* ---- the rule ---- */

int fabric_rule_init(struct fabric_rule *x, const struct fabric_routes *r, uint32_t level)
{
	const struct fabric_pgft *t = &r->tree->pgft;

	*x = (struct fabric_rule){.r = r, .level = level};
	if (choices_init(&x->down, r, level - 1) ||
	    (level < t->h && choices_init(&x->up, r, level)))
		return -ENOMEM;
	choose_down(&x->down, t, level, NULL);
	if (level < t->h)
		choose_up(&x->up, t, level, NULL);
	return 0;
}

void fabric_rule_free(struct fabric_rule *x)
{
	free(x->up.out);
	free(x->down.out);
}

void fabric_rule_up(const struct fabric_rule *x, struct fabric_node n, uint32_t first,
		    uint32_t hosts, uint16_t *out)
{
	if (x->r->rule.kind == FABRIC_RANDOM)
		draw(x->r, n, first, hosts, x->up.ports, out);
	else
		fill_hosts(out, &x->up, x->r, first, hosts);
}

void fabric_rule_down(const struct fabric_rule *x, struct fabric_node n, uint32_t first,
		      uint32_t hosts, uint16_t *out)
{
	if (x->r->rule.kind == FABRIC_RANDOM)
		draw(x->r, n, first, hosts, x->r->tree->pgft.p[n.level], out);
	else
		fill_hosts(out, &x->down, x->r, first, hosts);
}

void fabric_rule_count(const struct fabric_rule *x, struct fabric_node n, uint32_t first,
		       uint32_t end, uint32_t by, uint32_t *load)
{
	uint32_t lmc = x->r->rule.lmc, step = FABRIC_CHUNK >> lmc;
	uint16_t q[FABRIC_CHUNK];

	for (uint32_t j = first; j < end; j += step) {
		uint32_t hosts = end - j < step ? end - j : step;

		fabric_rule_up(x, n, j, hosts, q);
		for (uint32_t e = 0; e < hosts << lmc; e++)
			load[q[e]] += by;
	}
}

/* ---- a row ---- */

int fabric_routes_formula(const struct fabric_routes *r, struct fabric_node n, const uint16_t *port,
			  uint16_t *out)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	int ret = 0;

	if (r->rule.kind == FABRIC_RANDOM) {
		random_row(r, n, port, out);
		return 0;
	}
	if (n.level < t->h)
		ret = climb_row(r, n, port + fabric_down_ports(t, n.level), out);
	return ret ? ret : descend_row(r, n, port, out);
}

/* What is different from the formula. */
static void correct(const struct fabric_routes *r, uint32_t sw, const uint16_t *port, uint16_t *out)
{
	const struct fabric_around *x = r->around;
	const struct fabric_around_switch *of = &x->of[sw];
	uint32_t lmc = r->rule.lmc;

	for (uint32_t i = 0; i < of->n_gaps; i++) {
		const struct fabric_gap *g = &x->gaps[of->gap + i];

		memset(out + ((size_t)g->first << lmc), 0,
		       ((size_t)(g->end - g->first) << lmc) * sizeof(*out));
	}
	for (uint32_t i = 0; i < of->n_detours; i++)
		out[x->detours[of->detour + i].entry] = port[x->detours[of->detour + i].port];
}

int fabric_routes_row(const struct fabric_routes *r, uint32_t node, uint16_t *ports)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	struct fabric_node n = fabric_node(t, node);
	uint32_t down = fabric_down_ports(t, n.level), all = down + fabric_up_ports(t, n.level);
	uint16_t *port;
	int ret = 0;

	if (r->table) {
		memcpy(ports, r->table + (node - t->first[1]) * fabric_routes_entries(r),
		       fabric_routes_entries(r) * sizeof(*ports));
		return 0;
	}
	port = malloc(all * sizeof(*port));
	if (!port)
		return -ENOMEM;
	for (uint32_t i = 0; i < all; i++) {
		struct fabric_cable c =
			i < down ? fabric_cable_down(t, n, i) : fabric_cable_up(t, n, i - down);
		uint32_t cable = fabric_cable_number(t, &c);
		uint32_t p = i < down ? fabric_tree_upper_port(r->tree, cable)
				      : fabric_tree_lower_port(r->tree, cable);

		if (p > UINT16_MAX)
			ret = -ERANGE;
		port[i] = (uint16_t)p;
	}
	if (!ret)
		ret = fabric_routes_formula(r, n, port, ports);
	if (!ret && r->around)
		correct(r, node - t->first[1], port, ports);
	free(port);
	return ret;
}
