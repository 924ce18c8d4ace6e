/* What the tests of recognising share: networks made from tuples, by other code than
 * fabric_net_write, and whether a tree is true to its network. */
#ifndef WEFT_TEST_FABRIC_SHAPE_H
#define WEFT_TEST_FABRIC_SHAPE_H

#include "test_fabric.h"

#include "fabric_shape.h"
#include "util_rand.h"

/* ---- networks ---- */

struct scramble {
	uint64_t seed;
	bool nodes, ports, names; /* what is shuffled */
};

struct plan {
	struct fabric_tree t; /* what is missing is taken away here */
	struct scramble how;
	/* By cable: to whom it goes instead; FABRIC_NONE: where it should. Swaps upper ends. */
	uint32_t *upper_as;
	uint32_t spare;    /* more ports of each switch */
	const char *extra; /* more text */
};

static inline struct plan plan(const char *text, struct scramble how)
{
	struct plan p = {.how = how};
	struct fabric_pgft g = tree(text);

	fabric_tree_init(&p.t, &g);
	p.upper_as = malloc(fabric_cables(&g) * sizeof(*p.upper_as));
	for (uint32_t i = 0; i < fabric_cables(&g); i++)
		p.upper_as[i] = i;
	return p;
}

static inline void free_plan(struct plan *p)
{
	free(p->upper_as);
	fabric_tree_free(&p->t);
}

static inline void shuffled(struct util_rand *r, bool on, uint32_t *a, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		a[i] = i;
	if (on)
		util_rand_shuffle(r, a, n);
}

/* The port that tuple port `port` of a node has become: a permutation for each node. */
static inline uint32_t renamed_port(const struct plan *p, uint32_t node, uint32_t port)
{
	uint32_t n = fabric_tree_ports(&p->t, node), a[256];
	struct util_rand r;

	if (!p->how.ports)
		return port;
	assert_true(n <= COUNT(a));
	util_rand_seed(&r, p->how.seed * 1000003 + node);
	shuffled(&r, true, a, n);
	return a[port - 1] + 1;
}

static inline void node_words(const struct plan *p, const uint32_t *names, uint32_t node, char *id,
			      char *name)
{
	bool host = node < fabric_hosts(&p->t.pgft);

	sprintf(id, "%c-%016x", host ? 'H' : 'S', 0x1000 + names[node] * 16);
	sprintf(name, "%s%u", host ? "host" : "sw", names[node]);
}

static inline void write_plan(const struct plan *p, FILE *f)
{
	const struct fabric_pgft *g = &p->t.pgft;
	uint32_t n = fabric_nodes(g), *order = malloc(n * 4), *names = malloc(n * 4);
	uint32_t *lower_of = malloc(fabric_cables(g) * 4); /* upper_as, the other way round */
	char id[32], name[32];
	struct util_rand r;

	util_rand_seed(&r, p->how.seed);
	shuffled(&r, p->how.nodes, order, n);
	shuffled(&r, p->how.names, names, n);
	for (uint32_t i = 0; i < fabric_cables(g); i++)
		lower_of[p->upper_as[i]] = i;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t node = order[i], ports = fabric_tree_ports(&p->t, node);

		if (!fabric_tree_has_node(&p->t, node))
			continue;
		node_words(p, names, node, id, name);
		fprintf(f, "\n%s\t%u \"%s\"\t# \"%s\"\n", id[0] == 'H' ? "Ca" : "Switch",
			ports + p->spare, id, name);
		for (uint32_t port = 1; port <= ports; port++) {
			uint32_t cable = fabric_tree_cable_at(&p->t, node, port), other, other_port;
			struct fabric_cable c;

			if (cable == FABRIC_NONE)
				continue;
			c = fabric_cable(g, cable);
			if (fabric_number(g, c.lower) == node) {
				other = fabric_number(g, fabric_cable(g, p->upper_as[cable]).upper);
				other_port = fabric_tree_upper_port(&p->t, p->upper_as[cable]);
			} else {
				other = fabric_number(g, fabric_cable(g, lower_of[cable]).lower);
				other_port = fabric_tree_lower_port(&p->t, lower_of[cable]);
			}
			node_words(p, names, other, id, name);
			fprintf(f, "[%u]\t\"%s\"[%u]\n", renamed_port(p, node, port), id,
				renamed_port(p, other, other_port));
		}
	}
	fputs(p->extra ? p->extra : "", f);
	free(order);
	free(names);
	free(lower_of);
}

/* ---- recognising them ---- */

static inline struct fabric_net *read_text(const char *text, size_t size)
{
	FILE *f = fmemopen((void *)text, size, "r");
	struct fabric_net *net = malloc(sizeof(*net));
	char why[256] = "";

	assert_non_null(f);
	if (fabric_net_read(net, f, "test", why, sizeof(why)))
		fail_msg("%s", why);
	fclose(f);
	return net;
}

static inline struct fabric_net *net_of(const struct plan *p)
{
	struct fabric_net *net;
	size_t size;
	char *text;
	FILE *f = open_memstream(&text, &size);

	write_plan(p, f);
	fclose(f);
	net = read_text(text, size);
	free(text);
	return net;
}

/* Every cable that the tree says is there goes where the tuple says; each cable of the network is
 * one of these, but `unused`; each node is one of the tree's, but `strangers`. */
static inline void check_tree(const struct fabric_tree *t, uint32_t unused, uint32_t strangers)
{
	const struct fabric_pgft *g = &t->pgft;
	uint32_t cables = 0, gone = 0, nodes = 0;
	uint8_t *seen = calloc(t->net->n_nodes, 1);

	for (uint32_t i = 0; i < fabric_nodes(g); i++) {
		assert_int_equal(t->net_node[i] != FABRIC_NONE, fabric_tree_has_node(t, i));
		if (t->net_node[i] == FABRIC_NONE)
			continue;
		if (!t->by_port)
			assert_int_equal(seen[t->net_node[i]]++, 0);
		assert_int_equal(t->net->nodes[t->net_node[i]].kind == FABRIC_NET_SWITCH,
				 i >= fabric_hosts(g));
		nodes++;
	}
	for (uint32_t i = 0; i < fabric_cables(g); i++) {
		struct fabric_cable c = fabric_cable(g, i);
		uint32_t lower = fabric_number(g, c.lower), upper = fabric_number(g, c.upper);
		uint32_t place;

		if (!fabric_tree_has_cable(t, i)) {
			assert_int_equal(t->lower_port[i], 0);
			gone++;
			continue;
		}
		place = fabric_net_find_port(t->net, t->net_node[lower],
					     fabric_tree_lower_port(t, i));
		assert_int_not_equal(place, UINT32_MAX);
		assert_int_equal(t->net->ports[place].peer, t->net_node[upper]);
		assert_int_equal(t->net->ports[place].peer_port, fabric_tree_upper_port(t, i));
		assert_int_equal(fabric_tree_cable_at(t, lower, fabric_tree_lower_port(t, i)), i);
		assert_int_equal(fabric_tree_cable_at(t, upper, fabric_tree_upper_port(t, i)), i);
		cables++;
	}
	assert_int_equal(gone, t->n_cables_gone);
	assert_int_equal(nodes, fabric_nodes(g) - t->n_nodes_gone);
	assert_int_equal(2 * (cables + unused), t->net->n_ports);
	if (!t->by_port)
		assert_int_equal(nodes + strangers, t->net->n_nodes);
	free(seen);
}

static inline struct fabric_tree shape(struct fabric_net *net, struct fabric_defects *d)
{
	struct fabric_tree t;
	char why[256] = "";

	if (fabric_shape(&t, net, d, why, sizeof(why)))
		fail_msg("%s", why);
	return t;
}

static inline void check_tuple(const struct fabric_tree *t, const char *want)
{
	char text[FABRIC_TUPLE_MAX];

	fabric_pgft_print(&t->pgft, text);
	assert_string_equal(text, want);
}

#endif
