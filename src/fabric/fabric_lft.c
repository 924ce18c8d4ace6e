/* Writing for OpenSM. */
#include "fabric_lft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_lft_ways.h"
#include "fabric_text.h"

static uint32_t lid_of(const struct fabric_lft_ways *w, uint32_t to)
{
	if (to < w->tree_first)
		return (uint32_t)fabric_lid_beside(w->tree, &w->beside, w->lmc, false,
						   w->tree_first - 1 - to);
	if (to < w->n)
		return fabric_lid(&w->tree->pgft, w->lmc,
				  w->tree->pgft.first[1] + to - w->tree_first);
	return (uint32_t)fabric_lid_beside(w->tree, &w->beside, w->lmc, true,
					   (to - w->n) >> w->lmc) +
	       ((to - w->n) & ((1u << w->lmc) - 1));
}

/* ---- tables ---- */

struct writer {
	const struct fabric_routes *r;
	const struct fabric_pgft *t;
	struct fabric_lft_ways ways;
	uint16_t *row;
	char **tails; /* by node, then by destination beside the tree: the line from the port on */
	FILE *to;
};

static char *tail(bool host, uint64_t guid, const char *name)
{
	char text[FABRIC_TREE_NAME_MAX + 64], shown[FABRIC_TREE_NAME_MAX];

	snprintf(shown, sizeof(shown), "%s", name);
	snprintf(text, sizeof(text), " # %s portguid 0x%016" PRIx64 ": '%s'\n",
		 host ? "Channel Adapter" : "Switch", guid, fabric_mask(shown));
	return strdup(text);
}

/* GUID and name of a switch or an end-port beside the tree. */
static uint64_t guid_beside(const struct fabric_lft_ways *w, uint32_t to, const char **name)
{
	const struct fabric_net *net = w->tree->net;
	const struct fabric_net_port *p;

	if (to < w->n) {
		uint32_t node = w->beside.switches[w->tree_first - 1 - to];

		*name = net->nodes[node].name;
		return net->nodes[node].guid;
	}
	p = &net->ports[w->beside.ports[(to - w->n) >> w->lmc]];
	*name = net->nodes[net->ports[fabric_net_find_port(net, p->peer, p->peer_port)].peer].name;
	return p->guid;
}

static char **tail_of(const struct writer *w, uint32_t to)
{
	const struct fabric_lft_ways *s = &w->ways;

	if (to >= s->tree_first && to < s->n)
		return &w->tails[w->t->first[1] + to - s->tree_first];
	if (to < s->tree_first)
		return &w->tails[fabric_nodes(w->t) + to];
	return &w->tails[fabric_nodes(w->t) + s->tree_first + ((to - s->n) >> s->lmc)];
}

static size_t n_tails(const struct writer *w)
{
	return (size_t)fabric_nodes(w->t) + w->ways.tree_first + w->ways.beside.n_ports;
}

static int make_tails(struct writer *w, bool guids)
{
	const struct fabric_lft_ways *s = &w->ways;
	bool ok = true;

	w->tails = calloc(n_tails(w), sizeof(*w->tails));
	if (!w->tails)
		return -ENOMEM;
	for (uint32_t node = 0; guids && node < fabric_nodes(w->t); node++) {
		char name[FABRIC_TREE_NAME_MAX];

		if (!fabric_tree_has_node(w->r->tree, node))
			continue;
		fabric_tree_name(w->r->tree, node, name);
		w->tails[node] = tail(node < fabric_hosts(w->t),
				      fabric_tree_port_guid(w->r->tree, node), name);
		ok &= w->tails[node] != NULL;
	}
	for (uint32_t to = 0; guids && to < s->n_to; to += to < s->n ? 1 : 1u << s->lmc) {
		const char *name;
		uint64_t guid;

		if (to >= s->tree_first && to < s->n)
			continue;
		guid = guid_beside(s, to, &name);
		*tail_of(w, to) = tail(to >= s->n, guid, name);
		ok &= *tail_of(w, to) != NULL;
	}
	return ok ? 0 : -ENOMEM;
}

/* There are millions of these: printf would take most of the time. */
static void put_entry(const struct writer *w, const char *rest, uint32_t lid, uint32_t port)
{
	static const char hex[] = "0123456789abcdef";
	char line[] = "0x0000 000";

	for (int i = 5; i >= 2; i--, lid >>= 4)
		line[i] = hex[lid & 15];
	for (int i = 9; i >= 7; i--, port /= 10)
		line[i] = (char)('0' + port % 10);
	fwrite(line, 1, sizeof(line) - 1, w->to);
	fputs(rest ? rest : "\n", w->to);
}

/* What the routes do not have: ways of others by the hub, and all of a switch beside the tree,
 * which go as to the leaf. */
static void fill_row(const struct writer *w, uint32_t from, uint16_t *row)
{
	const struct fabric_lft_ways *s = &w->ways;
	uint32_t lmc = s->lmc;

	for (uint32_t host = 0; s->hub != FABRIC_NONE && host < fabric_hosts(w->t); host++) {
		struct fabric_cable c = fabric_cable_up(w->t, (struct fabric_node){0, host}, 0);
		uint32_t leaf = fabric_lft_ways_switch(s, fabric_number(w->t, c.upper)), port;

		if (!fabric_tree_has_cable(w->r->tree, fabric_cable_number(w->t, &c)) ||
		    (from >= s->tree_first && fabric_lft_ways_direct(s, from, leaf)))
			continue;
		port = fabric_lft_ways_detour(s, from, leaf);
		for (uint32_t a = 0; port != FABRIC_NO_PORT && a < 1u << lmc; a++)
			if (!row[(host << lmc) + a])
				row[(host << lmc) + a] = (uint16_t)port;
	}
}

static int find_row(const struct writer *w, uint32_t from)
{
	size_t n = fabric_routes_entries(w->r);
	int ret = 0;

	if (from < w->ways.tree_first)
		memset(w->row, 0, n * sizeof(*w->row));
	else
		ret = fabric_routes_row(w->r, w->t->first[1] + from - w->ways.tree_first, w->row);
	if (!ret)
		fill_row(w, from, w->row);
	return ret;
}

static void put_head(const struct writer *w, uint32_t from)
{
	char name[FABRIC_TREE_NAME_MAX];
	uint32_t node = w->t->first[1] + from - w->ways.tree_first;
	const char *other;
	uint64_t guid;

	if (from < w->ways.tree_first) {
		guid = guid_beside(&w->ways, from, &other);
		snprintf(name, sizeof(name), "%s", other);
	} else {
		guid = fabric_tree_guid(w->r->tree, node);
		fabric_tree_name(w->r->tree, node, name);
	}
	fprintf(w->to, "Unicast lids [0-%u] of switch Lid %u guid 0x%016" PRIx64 " ('%s'):\n",
		(uint32_t)fabric_lid_last(w->r->tree, &w->ways.beside, w->ways.lmc),
		lid_of(&w->ways, from), guid, fabric_mask(name));
}

static int put_table(const struct writer *w, uint32_t from)
{
	uint32_t lmc = w->r->rule.lmc, lids = 0;
	const struct fabric_lft_ways *s = &w->ways;
	int ret = find_row(w, from);

	if (ret)
		return ret;
	put_head(w, from);
	for (size_t e = 0; e < fabric_routes_entries(w->r); e++) {
		if (!w->row[e])
			continue;
		put_entry(w, w->tails[e >> lmc], (uint32_t)e + (1u << lmc), w->row[e]);
		lids++;
	}
	/* In the order of LIDs: those of the tree, and then those beside it, the nearest first. */
	for (uint32_t i = 0; i < s->n_to; i++) {
		uint32_t in_tree = s->n - s->tree_first;
		uint32_t to = i < in_tree ? s->tree_first + i : i < s->n ? s->n - 1 - i : i;
		uint32_t port = fabric_lft_ways_port(s, from, to);

		if (port == FABRIC_NO_PORT)
			continue;
		put_entry(w, *tail_of(w, to), lid_of(s, to), port);
		lids++;
	}
	fprintf(w->to, "%u lids dumped\n", lids);
	return 0;
}

int fabric_lft_write(const struct fabric_routes *r, bool guids, FILE *to)
{
	struct writer w = {.r = r, .t = &r->tree->pgft, .to = to};
	int ret = fabric_lft_ways_make(&w.ways, r->tree, r->rule.lmc);

	if (ret)
		return ret;
	ret = make_tails(&w, guids);
	w.row = malloc(fabric_routes_entries(r) * sizeof(*w.row));
	if (!w.row)
		ret = -ENOMEM;
	for (uint32_t i = 0; !ret && i < w.ways.n; i++) {
		uint32_t first = w.ways.tree_first, in_tree = w.ways.n - first;

		if (i >= in_tree)
			ret = put_table(&w, w.ways.n - 1 - i);
		else if (fabric_tree_has_node(r->tree, w.t->first[1] + i))
			ret = put_table(&w, first + i);
	}
	for (size_t i = 0; w.tails && i < n_tails(&w); i++)
		free(w.tails[i]);
	free(w.tails);
	free(w.row);
	fabric_lft_ways_free(&w.ways);
	return ret ? ret : fabric_flush(to);
}

int fabric_lft_lost(const struct fabric_tree *tree, uint32_t lmc, struct fabric_lft_lost *lost)
{
	struct fabric_lft_ways w;
	int ret = fabric_lft_ways_make(&w, tree, lmc);

	*lost = (struct fabric_lft_lost){0};
	if (ret)
		return ret;
	lost->beside = fabric_lft_ways_lost(&w);
	lost->switches = fabric_lft_ways_unmanaged(&w);
	fabric_lft_ways_free(&w);
	return 0;
}

/* ---- the other files ---- */

static void put_lids(FILE *to, uint64_t guid, uint32_t first, uint32_t last)
{
	fprintf(to, "0x%016" PRIx64 " 0x%04x 0x%04x\n\n", guid, first, last);
}

int fabric_lft_write_lids(const struct fabric_tree *tree, uint32_t lmc, FILE *to)
{
	const struct fabric_pgft *t = &tree->pgft;
	struct fabric_beside b;
	int ret = fabric_beside_find(&b, tree);

	if (ret)
		return ret;
	for (uint32_t node = 0; node < fabric_nodes(t); node++) {
		uint32_t lid = fabric_lid(t, lmc, node);
		uint32_t last = node < fabric_hosts(t) ? lid + (1u << lmc) - 1 : lid;

		if (fabric_tree_has_node(tree, node))
			put_lids(to, fabric_tree_port_guid(tree, node), lid, last);
	}
	for (uint32_t i = 0; i < b.n_switches; i++) {
		uint32_t lid = (uint32_t)fabric_lid_beside(tree, &b, lmc, false, i);

		put_lids(to, tree->net->nodes[b.switches[i]].guid, lid, lid);
	}
	for (uint32_t i = 0; i < b.n_ports; i++) {
		uint32_t lid = (uint32_t)fabric_lid_beside(tree, &b, lmc, true, i);

		put_lids(to, tree->net->ports[b.ports[i]].guid, lid, lid + (1u << lmc) - 1);
	}
	fabric_beside_free(&b);
	return fabric_flush(to);
}

int fabric_lft_write_roots(const struct fabric_tree *tree, FILE *to)
{
	const struct fabric_pgft *t = &tree->pgft;

	for (uint32_t node = t->first[t->h]; node < fabric_nodes(t); node++)
		if (fabric_tree_has_node(tree, node))
			fprintf(to, "0x%016" PRIx64 "\n", fabric_tree_guid(tree, node));
	return fabric_flush(to);
}

int fabric_lft_write_hosts(const struct fabric_tree *tree, FILE *to)
{
	for (uint32_t node = 0; node < fabric_hosts(&tree->pgft); node++)
		if (fabric_tree_has_node(tree, node))
			fprintf(to, "0x%016" PRIx64 "\n", fabric_tree_port_guid(tree, node));
	return fabric_flush(to);
}
