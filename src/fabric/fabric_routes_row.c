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

#include "util_rand.h"

/* What ⌊key / W_l⌋ mod (up-going ports of level l) becomes, for each address. */
struct choices {
	uint32_t run, ports; /* W_l, and how many are chosen from */
	uint32_t addresses;
	uint16_t *out; /* by choice, then by address */
};

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

static uint16_t *fill(uint16_t *out, const struct choices *c, uint32_t choice, size_t hosts)
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
static void fill_runs(uint16_t *out, const struct choices *c, uint32_t first, uint32_t hosts)
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

static void fill_keys(uint16_t *out, const struct choices *c, const struct fabric_routes *r,
		      uint32_t first, uint32_t hosts)
{
	for (uint32_t j = first; j < first + hosts; j++)
		out = fill(out, c, fabric_key(r, j) / c->run % c->ports, 1);
}

static void fill_hosts(uint16_t *out, const struct choices *c, const struct fabric_routes *r,
		       uint32_t first, uint32_t hosts)
{
	out += (size_t)first * c->addresses;
	if (r->index)
		fill_keys(out, c, r, first, hosts);
	else
		fill_runs(out, c, first, hosts);
}

static int choices_init(struct choices *c, const struct fabric_routes *r, uint32_t level)
{
	const struct fabric_pgft *t = &r->tree->pgft;

	c->run = t->W[level];
	c->ports = fabric_up_ports(t, level);
	c->addresses = 1u << r->rule.lmc;
	c->out = malloc((size_t)c->ports * c->addresses * sizeof(*c->out));
	return c->out ? 0 : -ENOMEM;
}

/* Where the destination is not below. */
static int climb_row(const struct fabric_routes *r, struct fabric_node n, const uint16_t *up,
		     uint16_t *out)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	uint32_t below = n.index / t->W[n.level] * t->M[n.level], above = below + t->M[n.level];
	struct choices c;

	if (choices_init(&c, r, n.level))
		return -ENOMEM;
	for (uint32_t a = 0; a < c.addresses; a++) {
		uint32_t turn = fabric_turn(t, n.level, a);

		for (uint32_t q = 0; q < c.ports; q++)
			c.out[(size_t)q * c.addresses + a] = up[(q + turn) % c.ports];
	}
	fill_hosts(out, &c, r, 0, below);
	fill_hosts(out, &c, r, above, fabric_hosts(t) - above);
	free(c.out);
	return 0;
}

/* Where it is: the child is given, the cable is that by which a climb to it would come. */
static int descend_row(const struct fabric_routes *r, struct fabric_node n, const uint16_t *down,
		       uint16_t *out)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	uint32_t below = n.index / t->W[n.level] * t->M[n.level], hosts = t->M[n.level - 1];
	uint32_t m = t->m[n.level], w = t->w[n.level];
	struct choices c;

	if (choices_init(&c, r, n.level - 1))
		return -ENOMEM;
	if (t->p[n.level] == 1) /* all choices are the same: one will do */
		c.run = fabric_hosts(t), c.ports = 1;
	for (uint32_t child = 0; child < m; child++, below += hosts) {
		for (uint32_t a = 0; a < c.addresses; a++) {
			uint32_t turn = fabric_turn(t, n.level - 1, a);

			for (uint32_t q = 0; q < c.ports; q++)
				c.out[(size_t)q * c.addresses + a] =
					down[child + (q + turn) % c.ports / w * m];
		}
		fill_hosts(out, &c, r, below, hosts);
	}
	free(c.out);
	return 0;
}

/* The entries of a row are successive numbers of the generator. */
static void random_row(const struct fabric_routes *r, struct fabric_node n, const uint16_t *port,
		       uint16_t *out)
{
	const struct fabric_pgft *t = &r->tree->pgft;
	uint32_t down = fabric_down_ports(t, n.level), up = fabric_up_ports(t, n.level);
	uint32_t m = t->m[n.level], p = t->p[n.level];
	struct util_rand rand;

	util_rand_seed(&rand, r->rule.seed);
	util_rand_skip(&rand, fabric_number(t, n) * (uint64_t)fabric_routes_entries(r));
	for (uint32_t j = 0; j < fabric_hosts(t); j++) {
		uint32_t child = j / t->M[n.level - 1] % m;
		bool below = fabric_is_below(t, n, j);

		for (uint32_t a = 0; a < 1u << r->rule.lmc; a++) {
			uint64_t x = util_rand_next(&rand);

			*out++ = below ? port[child + x % p * m] : port[down + x % up];
		}
	}
}

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
	free(port);
	return ret;
}
