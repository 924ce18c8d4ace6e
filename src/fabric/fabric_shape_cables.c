#include "fabric_shape_int.h"

#include <errno.h>
#include <stdlib.h>

struct cables {
	struct shape *s;
	struct fabric_tree *tree;
	uint8_t *link_used; /* by link: one of those below */
	uint32_t *have;     /* of one lower node, cables by parent */
	uint32_t extras;    /* so far */
};

/* Beyond so many cables that are too many nobody asks which of them it is. */
#define EXTRAS_MAX 1000

enum { USED = 1, NAMED = 2, EXTRA = 3 };

/* ---- which cable is which ---- */

/* Which of its parents a node has at the other end; FABRIC_NONE: that is no parent of it. */
static uint32_t which_parent(const struct shape *s, uint32_t v, uint32_t u)
{
	const struct fabric_pgft *g = &s->pgft;
	struct fabric_node lower = fabric_node(g, s->number[v]), upper;
	uint32_t which;

	if (s->number[u] == FABRIC_NONE)
		return FABRIC_NONE;
	upper = fabric_node(g, s->number[u]);
	if (upper.level != lower.level + 1)
		return FABRIC_NONE;
	which = upper.index % g->W[upper.level] / g->W[lower.level];
	return fabric_cable_up(g, lower, which).upper.index == upper.index ? which : FABRIC_NONE;
}

/* How many cables of a parent are at the port that this one has at its lower end. */
static uint32_t alike(const struct shape *s, uint32_t entry)
{
	uint32_t u = shape_peer(s, entry), port = shape_port(s, entry, 0), n = 0;

	for (uint32_t i = s->adj_first[u]; i < s->adj_first[u + 1]; i++)
		n += shape_port(s, s->adj[i], 1) == port;
	return n;
}

/* One cable too many to a parent: the one whose port is the least usual for that parent. */
static void leave_out(struct cables *c, uint32_t v, uint32_t which)
{
	const struct shape *s = c->s;
	uint32_t least = UINT32_MAX, worst = 0;

	for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
		uint32_t n;

		if (c->link_used[s->adj[i] / 2] == EXTRA ||
		    which_parent(s, v, shape_peer(s, s->adj[i])) != which)
			continue;
		n = alike(s, s->adj[i]);
		if (n <= least) {
			least = n;
			worst = s->adj[i] / 2;
		}
	}
	c->link_used[worst] = EXTRA;
}

static void leave_out_extras(struct cables *c, uint32_t v, uint32_t w, uint32_t p)
{
	const struct shape *s = c->s;

	for (uint32_t k = 0; k < w; k++)
		c->have[k] = 0;
	for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
		uint32_t which = which_parent(s, v, shape_peer(s, s->adj[i]));

		if (which == FABRIC_NONE || ++c->have[which] <= p)
			continue;
		if (c->extras++ < EXTRAS_MAX)
			leave_out(c, v, which);
		else
			c->link_used[s->adj[i] / 2] = EXTRA;
	}
}

/* Parallel cables are numbered in the order of the lower node's ports. */
static void map_node(struct cables *c, uint32_t v)
{
	struct shape *s = c->s;
	struct fabric_node n = fabric_node(&s->pgft, s->number[v]);
	uint32_t w = s->pgft.w[n.level + 1], p = s->pgft.p[n.level + 1];
	uint32_t first = s->pgft.first_cable[n.level + 1] + n.index * w * p;

	leave_out_extras(c, v, w, p);
	for (uint32_t k = 0; k < w; k++)
		c->have[k] = 0;
	for (uint32_t i = s->adj_first[v]; i < s->adj_first[v + 1]; i++) {
		const struct shape_link *link = &s->links[s->adj[i] / 2];
		uint32_t own = s->adj[i] % 2, cable;
		uint32_t which = which_parent(s, v, link->end[1 - own]);

		if (which == FABRIC_NONE || c->link_used[s->adj[i] / 2] == EXTRA)
			continue;
		cable = first + which + c->have[which]++ * w;
		c->tree->lower_port[cable] = s->net->ports[link->place[own]].number;
		c->tree->upper_port[cable] = s->net->ports[link->place[1 - own]].number;
		c->tree->port_cable[link->place[0]] = cable;
		c->tree->port_cable[link->place[1]] = cable;
		c->link_used[s->adj[i] / 2] = USED;
	}
}

static int take_away(struct cables *c)
{
	const struct fabric_pgft *g = &c->s->pgft;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < fabric_nodes(g); i++)
		if (c->s->vertex[i] == FABRIC_NONE)
			ret = fabric_tree_remove(c->tree, i);
	for (uint32_t i = 0; !ret && i < fabric_cables(g); i++)
		if (!c->tree->lower_port[i])
			ret = fabric_tree_cut(c->tree, i);
	return ret;
}

static int map_cables(struct cables *c)
{
	struct shape *s = c->s;

	for (uint32_t v = 0; v < s->n; v++) {
		if (s->number[v] == FABRIC_NONE)
			continue;
		c->tree->net_node[s->number[v]] = s->node[v];
		if (s->level[v] < s->h)
			map_node(c, v);
	}
	return take_away(c);
}

/* ---- what is wrong ---- */

static const char *plural(uint32_t n)
{
	return n == 1 ? "" : "s";
}

/* Nodes of the network without a place in the tree. */
static int name_strangers(struct cables *c)
{
	struct shape *s = c->s;
	int ret = 0;

	for (uint32_t v = 0; !ret && v < s->n; v++) {
		uint32_t leaf = shape_peer(s, s->adj[s->adj_first[v]]), group, hosts;

		/* What is at switches that are no leaves is beside the tree. */
		if (s->number[v] != FABRIC_NONE || s->level[v] == FABRIC_NONE)
			continue;
		group = s->level[v] == 0 && s->lower_of[v] != FABRIC_NONE
				? s->blocks[1].group[s->lower_of[v]]
				: FABRIC_NONE;
		hosts = group != FABRIC_NONE ? s->groups[1].children[group] : 0;
		if (hosts > s->pgft.m[1])
			ret = shape_defect(s,
					   "leaf %s has %u hosts, the others %u: host %s is left "
					   "out",
					   shape_name(s, leaf), hosts, s->pgft.m[1],
					   shape_name(s, v));
		else
			ret = shape_defect(s, "%s %s has no place in the tree: left out",
					   s->level[v] ? "switch" : "host", shape_name(s, v));
	}
	return ret;
}

/* A node that is there, above or below one that is not; FABRIC_NONE: none. */
static uint32_t neighbour(const struct shape *s, struct fabric_node n, bool up)
{
	const struct fabric_pgft *g = &s->pgft;
	uint32_t ports = up ? fabric_up_ports(g, n.level) : fabric_down_ports(g, n.level);

	for (uint32_t i = 0; i < ports; i++) {
		struct fabric_node other =
			up ? fabric_cable_up(g, n, i).upper : fabric_cable_down(g, n, i).lower;
		uint32_t v = s->vertex[fabric_number(g, other)];

		if (v != FABRIC_NONE)
			return v;
	}
	return FABRIC_NONE;
}

static int name_missing_switch(struct shape *s, struct fabric_node n)
{
	uint32_t child = neighbour(s, n, false), parent = neighbour(s, n, true);

	if (child != FABRIC_NONE && (n.level > 1 || parent == FABRIC_NONE))
		return shape_defect(s, "a switch of level %u is missing above %s", n.level,
				    shape_name(s, child));
	if (parent != FABRIC_NONE)
		return shape_defect(s, "a switch of level %u is missing below %s", n.level,
				    shape_name(s, parent));
	return shape_defect(s, "a switch of level %u is missing", n.level);
}

/* Of hosts one hears from their leaf. */
static int name_missing_hosts(struct shape *s, struct fabric_node leaf)
{
	uint32_t a = leaf.index / s->pgft.W[1], first = a * s->pgft.m[1], hosts = 0;
	uint32_t v = s->vertex[fabric_number(&s->pgft, leaf)];

	/* The first of the leaves of these hosts speaks for all. */
	for (uint32_t i = a * s->pgft.W[1]; i < leaf.index; i++)
		if (s->vertex[s->pgft.first[1] + i] != FABRIC_NONE)
			return 0;
	for (uint32_t i = 0; i < s->pgft.m[1]; i++)
		hosts += s->vertex[first + i] != FABRIC_NONE;
	if (hosts == s->pgft.m[1])
		return 0;
	return shape_defect(s, "leaf %s has %u host%s, the others %u", shape_name(s, v), hosts,
			    plural(hosts), s->pgft.m[1]);
}

static int name_missing_nodes(struct cables *c)
{
	struct shape *s = c->s;
	int ret = 0;

	for (uint32_t i = s->pgft.first[1]; !ret && i < fabric_nodes(&s->pgft); i++) {
		struct fabric_node n = fabric_node(&s->pgft, i);

		if (s->vertex[i] == FABRIC_NONE)
			ret = name_missing_switch(s, n);
		else if (n.level == 1)
			ret = name_missing_hosts(s, n);
	}
	return ret;
}

/* The cables that a node lacks to parents that are there, one after the other. */
struct lack {
	uint32_t which, left; /* to this parent, so many are missing still */
	uint32_t upper;
};

/* False: nothing more is lacking. */
static bool next_lack(const struct cables *c, uint32_t v, struct lack *l)
{
	const struct shape *s = c->s;
	struct fabric_node n = fabric_node(&s->pgft, s->number[v]);
	uint32_t w = s->pgft.w[n.level + 1], p = s->pgft.p[n.level + 1];
	uint32_t first = s->pgft.first_cable[n.level + 1] + n.index * w * p;

	while (l->left == 0) {
		if (++l->which >= w)
			return false;
		l->upper = s->vertex[fabric_number(&s->pgft,
						   fabric_cable_up(&s->pgft, n, l->which).upper)];
		for (uint32_t k = 0; l->upper != FABRIC_NONE && k < p; k++)
			l->left += !c->tree->lower_port[first + l->which + k * w];
	}
	return true;
}

static int name_lack(struct shape *s, uint32_t v, const struct lack *l)
{
	uint32_t p = s->pgft.p[s->level[v] + 1], have = p - l->left;

	if (have == 0 && p == 1)
		return shape_defect(s, "no cable from %s to %s", shape_name(s, v),
				    shape_name(s, l->upper));
	if (have == 0)
		return shape_defect(s, "no cable from %s to %s, the others have %u",
				    shape_name(s, v), shape_name(s, l->upper), p);
	return shape_defect(s, "%u cable%s from %s to %s, the others have %u", have, plural(have),
			    shape_name(s, v), shape_name(s, l->upper), p);
}

/* Cables of a node that go where none should go stand for those that it lacks. */
static int name_node(struct cables *c, uint32_t v)
{
	struct shape *s = c->s;
	struct lack l = {.which = UINT32_MAX};
	int ret = 0;

	for (uint32_t i = s->adj_first[v]; !ret && i < s->adj_first[v + 1]; i++) {
		uint32_t link = s->adj[i] / 2, u = shape_peer(s, s->adj[i]);

		if (c->link_used[link] == USED || s->level[u] == 0 || s->level[u] == FABRIC_NONE ||
		    !next_lack(c, v, &l))
			continue;
		ret = shape_defect(s, "port %u of %s goes to %s where %s was expected: mis-cabled",
				   shape_port(s, s->adj[i], 0), shape_name(s, v), shape_name(s, u),
				   shape_name(s, l.upper));
		c->link_used[link] = NAMED;
		l.left--;
	}
	while (!ret && next_lack(c, v, &l)) {
		ret = name_lack(s, v, &l);
		l.left = 0;
	}
	return ret;
}

static int name_cables(struct cables *c, uint32_t *unused)
{
	struct shape *s = c->s;
	int ret = 0;

	for (uint32_t v = 0; !ret && v < s->n; v++)
		if (s->number[v] != FABRIC_NONE && s->level[v] < s->h)
			ret = name_node(c, v);
	*unused = 0;
	for (uint32_t i = 0; !ret && i < s->n_links; i++) {
		uint32_t v = s->links[i].end[0], u = s->links[i].end[1];

		if (c->link_used[i] == USED || s->number[v] == FABRIC_NONE ||
		    s->number[u] == FABRIC_NONE)
			continue;
		++*unused;
		if (c->link_used[i] != NAMED)
			ret = shape_defect(s,
					   "the cable from port %u of %s to port %u of %s has no "
					   "place: left out",
					   shape_port(s, 2 * i, 0), shape_name(s, v),
					   shape_port(s, 2 * i, 1), shape_name(s, u));
	}
	return ret;
}

/* ---- whether that is a fat tree still ---- */

/* A line that is concerned: of a node or of a cable without a place. */
static uint32_t concerned(const struct cables *c)
{
	const struct shape *s = c->s;

	for (uint32_t v = 0; v < s->n; v++)
		if (s->number[v] == FABRIC_NONE && s->level[v] != FABRIC_NONE)
			return shape_line(s, v);
	for (uint32_t i = 0; i < s->n_links; i++)
		if (c->link_used[i] != USED)
			return s->net->ports[s->links[i].place[0]].line;
	return shape_line(s, 0);
}

static int judge(struct cables *c, uint32_t unused)
{
	const struct shape *s = c->s;
	uint32_t between = fabric_cables(&s->pgft) - s->pgft.cables[1];
	uint32_t strange = 0, cut = c->tree->n_cables_gone, gone = c->tree->n_nodes_gone;
	char tuple[FABRIC_TUPLE_MAX];

	for (uint32_t v = 0; v < s->n; v++)
		strange += s->number[v] == FABRIC_NONE && s->level[v] != FABRIC_NONE;
	if ((unused <= 2 || unused <= between / 4) && strange <= s->n / 4 &&
	    cut <= fabric_cables(&s->pgft) / 2 && gone <= fabric_nodes(&s->pgft) / 2)
		return 0;
	fabric_pgft_print(&s->pgft, tuple);
	return shape_refuse(s, concerned(c), "no fat tree: the closest is %s, but %s", tuple,
			    s->defects.kept ? s->defects.text[0] : "little of it is there");
}

int shape_cables(struct shape *s, struct fabric_tree *tree)
{
	struct cables c = {.s = s, .tree = tree, .link_used = calloc(s->n_links + 1, 1)};
	uint32_t most = 0, unused = 0;
	int ret;

	for (uint32_t l = 1; l <= s->h; l++)
		most = s->pgft.w[l] > most ? s->pgft.w[l] : most;
	c.have = shape_array(most, false);
	ret = c.link_used && c.have ? map_cables(&c) : -ENOMEM;
	if (!ret)
		ret = name_strangers(&c);
	if (!ret)
		ret = name_missing_nodes(&c);
	if (!ret)
		ret = name_cables(&c, &unused);
	if (!ret)
		ret = judge(&c, unused);
	free(c.link_used);
	free(c.have);
	return ret;
}
