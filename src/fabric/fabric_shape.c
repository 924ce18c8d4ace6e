#include "fabric_beside.h"
#include "fabric_shape_int.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- what the parts share ---- */

uint32_t *shape_array(size_t n, bool none)
{
	uint32_t *a = calloc(n ? n : 1, sizeof(*a));

	if (a && none)
		memset(a, 0xff, n * sizeof(*a));
	return a;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

int fabric_shape_compare(const char *a, const char *b)
{
	while (*a && *b) {
		size_t x, y;
		int c;

		if (!is_digit(*a) || !is_digit(*b)) {
			if (*a != *b)
				return (unsigned char)*a < (unsigned char)*b ? -1 : 1;
			a++, b++;
			continue;
		}
		a += strspn(a, "0");
		b += strspn(b, "0");
		x = strspn(a, "0123456789");
		y = strspn(b, "0123456789");
		c = x != y ? (x < y ? -1 : 1) : strncmp(a, b, x);
		if (c)
			return c;
		a += x, b += y;
	}
	return *a ? 1 : *b ? -1 : 0;
}

int shape_order(const struct shape *s, uint32_t v, uint32_t u)
{
	int c = fabric_shape_compare(s->net->nodes[s->node[v]].desc,
				     s->net->nodes[s->node[u]].desc);

	return c ? c : (v > u) - (v < u);
}

int shape_defect(struct shape *s, const char *fmt, ...)
{
	struct fabric_defects *d = &s->defects;
	char text[320];
	va_list ap;

	d->count++;
	if (d->kept == FABRIC_DEFECTS_KEPT)
		return 0;
	if (!d->text)
		d->text = calloc(FABRIC_DEFECTS_KEPT, sizeof(*d->text));
	if (!d->text)
		return -ENOMEM;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* Names come from outside; nothing in them is for a terminal to obey. */
	for (char *c = text; *c; c++)
		if (*c < ' ' || *c >= 0x7f)
			*c = '?';
	d->text[d->kept] = strdup(text);
	return d->text[d->kept] ? d->kept++, 0 : -ENOMEM;
}

void fabric_defects_free(struct fabric_defects *d)
{
	for (uint32_t i = 0; i < d->kept; i++)
		free(d->text[i]);
	free(d->text);
	*d = (struct fabric_defects){0};
}

/* ---- the graph ---- */

/* By place of a port in the network, its vertex. */
static int find_vertices(struct shape *s, uint32_t *vertex)
{
	const struct fabric_net *net = s->net;
	int ret = 0;

	for (uint32_t i = 0; !ret && i < net->n_nodes; i++) {
		const struct fabric_net_node *n = &net->nodes[i];
		bool several = s->by_port && n->kind != FABRIC_NET_SWITCH;

		if (fabric_beside_is_inside(n))
			continue;
		if (n->count == 0)
			ret = shape_defect(s, "%s %s has no cable: left out",
					   n->kind == FABRIC_NET_SWITCH ? "switch" : "host",
					   n->name);
		for (uint32_t k = 0; k < n->count; k++) {
			/* What leads to nothing but such adapters counts as nothing. */
			if (fabric_beside_is_inside(&net->nodes[net->ports[n->first + k].peer]))
				continue;
			if (several || s->n == 0 || s->node[s->n - 1] != i)
				s->node[s->n++] = i;
			vertex[n->first + k] = s->n - 1;
		}
	}
	return ret;
}

static int make_links(struct shape *s, const uint32_t *vertex)
{
	const struct fabric_net *net = s->net;

	s->links = malloc((net->n_ports / 2 + 1) * sizeof(*s->links));
	s->adj_first = shape_array((size_t)s->n + 1, false);
	s->adj = shape_array(net->n_ports, false);
	if (!s->links || !s->adj_first || !s->adj)
		return -ENOMEM;
	for (uint32_t i = 0; i < net->n_ports; i++) {
		const struct fabric_net_port *p = &net->ports[i];
		uint32_t other = fabric_net_find_port(net, p->peer, p->peer_port);

		if (other < i || other == FABRIC_NONE || vertex[i] == FABRIC_NONE ||
		    vertex[other] == FABRIC_NONE)
			continue;
		s->adj_first[vertex[i] + 1]++;
		s->adj_first[vertex[other] + 1]++;
		s->links[s->n_links++] =
			(struct shape_link){{vertex[i], vertex[other]}, {i, other}};
	}
	for (uint32_t v = 0; v < s->n; v++)
		s->adj_first[v + 1] += s->adj_first[v];
	return 0;
}

/* Entries of a vertex in the order of its ports, which is that of places. */
static int sort_links(struct shape *s)
{
	uint32_t *entry = shape_array(s->net->n_ports, true), *next = shape_array(s->n, false);
	int ret = entry && next ? 0 : -ENOMEM;

	for (uint32_t i = 0; !ret && i < s->n_links; i++) {
		entry[s->links[i].place[0]] = 2 * i;
		entry[s->links[i].place[1]] = 2 * i + 1;
	}
	for (uint32_t i = 0; !ret && i < s->net->n_ports; i++) {
		uint32_t v;

		if (entry[i] == FABRIC_NONE)
			continue;
		v = s->links[entry[i] / 2].end[entry[i] % 2];
		s->adj[s->adj_first[v] + next[v]++] = entry[i];
	}
	free(entry);
	free(next);
	return ret;
}

static int make_graph(struct shape *s)
{
	uint32_t *vertex = shape_array(s->net->n_ports, true);
	int ret = -ENOMEM;

	s->node = shape_array(s->net->n_ports, false);
	if (vertex && s->node)
		ret = find_vertices(s, vertex);
	if (!ret && s->n == 0)
		ret = shape_refuse(s, s->net->n_nodes ? s->net->nodes[0].line : 1,
				   "the network has no cables");
	if (!ret)
		ret = make_links(s, vertex);
	if (!ret)
		ret = sort_links(s);
	free(vertex);
	s->level = shape_array(s->n, true);
	s->order = shape_array(s->n, false);
	s->group = shape_array(s->n, true);
	s->upper_of = shape_array(s->n, true);
	s->lower_of = shape_array(s->n, true);
	s->b = shape_array(s->n, true);
	s->number = shape_array(s->n, true);
	s->is_leaf = calloc(s->n + 1, 1);
	s->stray = calloc(s->n + 1, 1);
	if (!s->is_leaf || !s->stray || !s->level || !s->order || !s->group || !s->upper_of ||
	    !s->lower_of || !s->b || !s->number)
		return -ENOMEM;
	return ret;
}

static void free_shape(struct shape *s)
{
	uint32_t *const arrays[] = {s->node,  s->adj_first, s->adj,      s->level,
				    s->order, s->group,     s->upper_of, s->lower_of,
				    s->b,     s->number,    s->vertex};

	for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
		free(arrays[i]);
	free(s->links);
	free(s->is_leaf);
	free(s->stray);
	for (uint32_t l = 0; l <= FABRIC_LEVELS_MAX; l++) {
		struct shape_groups *g = &s->groups[l];
		uint32_t *const of_level[] = {
			g->parent,          g->children,       g->size,
			g->first,           g->position,       g->path,
			s->blocks[l].group, s->blocks[l].base, s->blocks[l].uppers};

		for (size_t i = 0; i < sizeof(of_level) / sizeof(of_level[0]); i++)
			free(of_level[i]);
	}
}

/* ---- the tree ---- */

static int make_tree(struct shape *s, struct fabric_tree *t)
{
	fabric_tree_init(t, &s->pgft);
	t->net = s->net;
	t->by_port = s->by_port;
	t->net_node = shape_array(fabric_nodes(&s->pgft), true);
	t->lower_port = calloc(fabric_cables(&s->pgft), sizeof(*t->lower_port));
	t->upper_port = calloc(fabric_cables(&s->pgft), sizeof(*t->upper_port));
	t->port_cable = shape_array(s->net->n_ports, true);
	if (!t->net_node || !t->lower_port || !t->upper_port || !t->port_cable)
		return -ENOMEM;
	return shape_cables(s, t);
}

static int try(struct fabric_tree *tree, struct fabric_net *net, struct shape s,
	       struct fabric_defects *defects)
{
	int ret;

	s.net = net;
	ret = make_graph(&s);
	*tree = (struct fabric_tree){0};
	if (!ret)
		ret = shape_levels(&s);
	if (!ret)
		ret = shape_groups(&s);
	if (!ret)
		ret = shape_tuple(&s);
	if (!ret)
		ret = shape_digits(&s);
	if (!ret)
		ret = make_tree(&s, tree);
	if (!ret)
		ret = fabric_tree_make_index(tree);
	free_shape(&s);
	*defects = s.defects;
	if (ret == 0)
		return 0;
	tree->net = NULL;
	fabric_tree_free(tree);
	fabric_defects_free(defects);
	if (ret == -ENOMEM)
		fabric_refuse(s.why, s.why_size, "no memory for the tree of %u nodes",
			      net->n_nodes);
	return ret;
}

static bool has_several_ports(const struct fabric_net *net)
{
	for (uint32_t i = 0; i < net->n_nodes; i++)
		if (net->nodes[i].kind != FABRIC_NET_SWITCH && net->nodes[i].count > 1)
			return true;
	return false;
}

/* Another way to see it, if it fits better than what there is. */
static int try_other(struct fabric_tree *tree, struct fabric_net *net, struct shape how,
		     struct fabric_defects *defects, int ret)
{
	struct fabric_defects other_defects;
	struct fabric_tree other;
	char why[8];

	how.why = why;
	how.why_size = sizeof(why);
	if (try(&other, net, how, &other_defects))
		return ret;
	if (ret || other_defects.count < defects->count) {
		if (!ret) {
			tree->net = NULL;
			fabric_tree_free(tree);
			fabric_defects_free(defects);
		}
		*tree = other;
		*defects = other_defects;
		return 0;
	}
	other.net = NULL;
	fabric_tree_free(&other);
	fabric_defects_free(&other_defects);
	return ret;
}

/* Whichever way fits better; if several do, adapters are one host each, and who has hosts is a
 * leaf unless it is joined with leaves. */
int fabric_shape(struct fabric_tree *tree, struct fabric_net *net, struct fabric_defects *defects,
		 char *why, size_t why_size)
{
	int ret = try(tree, net, (struct shape){.why = why, .why_size = why_size}, defects);

	for (int i = 1; i < 4; i++) {
		struct shape how = {.by_port = i & 1, .by_rivals = i & 2};

		if (ret == -ENOMEM || (!ret && defects->count == 0))
			return ret;
		if (!how.by_port || has_several_ports(net))
			ret = try_other(tree, net, how, defects, ret);
	}
	return ret;
}
