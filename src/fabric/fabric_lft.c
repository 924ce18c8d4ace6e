/* Writing for OpenSM. */
#include "fabric_lft.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_text.h"

static uint32_t last_lid(const struct fabric_pgft *t, uint32_t lmc)
{
	return fabric_lid(t, lmc, fabric_nodes(t) - 1);
}

static int check_port(const struct fabric_tree *tree, uint32_t node, uint32_t port, char *why,
		      size_t why_size)
{
	char name[FABRIC_TREE_NAME_MAX];

	if (port <= FABRIC_LFT_PORT_MAX)
		return 0;
	fabric_tree_name(tree, node, name);
	return fabric_refuse(why, why_size,
			     "switch %s has a port %u; in InfiniBand, the last one is %u",
			     fabric_quote(name).text, port, FABRIC_LFT_PORT_MAX);
}

static int check_guid(const struct fabric_tree *tree, uint32_t node, char *why, size_t why_size)
{
	char name[FABRIC_TREE_NAME_MAX];

	if (!fabric_tree_has_node(tree, node) || fabric_tree_port_guid(tree, node))
		return 0;
	fabric_tree_name(tree, node, name);
	return fabric_refuse(why, why_size, "the port GUID of %s is not known; OpenSM needs it",
			     fabric_quote(name).text);
}

int fabric_lft_check(const struct fabric_tree *tree, uint32_t lmc, char *why, size_t why_size)
{
	const struct fabric_pgft *t = &tree->pgft;
	uint64_t lids =
		((uint64_t)(fabric_hosts(t) + 1) << lmc) + fabric_nodes(t) - fabric_hosts(t) - 1;
	int ret = 0;

	if (lids > FABRIC_LID_MAX)
		return fabric_refuse(why, why_size,
				     "%u hosts with %u addresses each and %u switches need LIDs up "
				     "to %" PRIu64 "; InfiniBand has them up to %u",
				     fabric_hosts(t), 1u << lmc, fabric_nodes(t) - fabric_hosts(t),
				     lids, FABRIC_LID_MAX);
	if (fabric_up_ports(t, 0) != 1)
		return fabric_refuse(why, why_size,
				     "each host has %u cables; to OpenSM each port is a host of "
				     "its own, so tables need hosts with one cable",
				     fabric_up_ports(t, 0));
	for (uint32_t node = 0; !ret && node < fabric_nodes(t); node++)
		ret = check_guid(tree, node, why, why_size);
	for (uint32_t cable = 0; !ret && cable < fabric_cables(t); cable++) {
		struct fabric_cable c = fabric_cable(t, cable);

		if (!fabric_tree_has_cable(tree, cable))
			continue;
		ret = check_port(tree, fabric_number(t, c.upper),
				 fabric_tree_upper_port(tree, cable), why, why_size);
		if (!ret && c.lower.level > 0)
			ret = check_port(tree, fabric_number(t, c.lower),
					 fabric_tree_lower_port(tree, cable), why, why_size);
	}
	return ret;
}

/* ---- ways to switches ---- */

#define NO_PORT 255

struct switches {
	const struct fabric_tree *tree;
	const struct fabric_pgft *t;
	uint32_t first, count;
	/* By cable from level 1 on: the switch above, or FABRIC_NONE, and both ports. */
	uint32_t *upper;
	uint8_t *up_port, *down_port;
	uint8_t *port; /* by source, by destination */
};

static uint8_t *way(const struct switches *s, uint32_t from, uint32_t to)
{
	return &s->port[(size_t)from * s->count + to];
}

static uint32_t cable_of(const struct switches *s, struct fabric_node n, uint32_t q)
{
	return s->t->first_cable[n.level + 1] - s->t->first_cable[2] +
	       n.index * fabric_up_ports(s->t, n.level) + q;
}

/* All that are above a switch come down the cable they first were reached by. */
static void ways_down(struct switches *s, uint32_t to)
{
	const struct fabric_pgft *t = s->t;

	*way(s, to, to) = 0;
	for (uint32_t l = fabric_node(t, s->first + to).level; l < t->h; l++) {
		uint32_t ports = fabric_up_ports(t, l);

		for (uint32_t i = 0; i < t->nodes[l]; i++) {
			struct fabric_node n = {l, i};

			if (*way(s, t->first[l] + i - s->first, to) == NO_PORT)
				continue;
			for (uint32_t k = 0; k < ports; k++) {
				uint32_t c = cable_of(s, n, (to + k) % ports);

				if (s->upper[c] != FABRIC_NONE &&
				    *way(s, s->upper[c], to) == NO_PORT)
					*way(s, s->upper[c], to) = s->down_port[c];
			}
		}
	}
}

static void ways_up(struct switches *s, uint32_t to)
{
	const struct fabric_pgft *t = s->t;

	for (uint32_t l = t->h - 1; l >= 1; l--) {
		uint32_t ports = fabric_up_ports(t, l);

		for (uint32_t i = 0; i < t->nodes[l]; i++) {
			uint8_t *port = way(s, t->first[l] + i - s->first, to);
			struct fabric_node n = {l, i};

			for (uint32_t k = 0; *port == NO_PORT && k < ports; k++) {
				uint32_t c = cable_of(s, n, (to + k) % ports);

				if (s->upper[c] != FABRIC_NONE &&
				    *way(s, s->upper[c], to) != NO_PORT)
					*port = s->up_port[c];
			}
		}
	}
}

static void switches_free(struct switches *s)
{
	free(s->upper);
	free(s->up_port);
	free(s->down_port);
	free(s->port);
}

static int switches_init(struct switches *s, const struct fabric_tree *tree)
{
	const struct fabric_pgft *t = &tree->pgft;
	uint32_t cables = fabric_cables(t) - t->first_cable[2];

	*s = (struct switches){.tree = tree, .t = t, .first = t->first[1]};
	s->count = fabric_nodes(t) - s->first;
	s->upper = malloc((cables + 1) * sizeof(*s->upper));
	s->up_port = malloc(cables + 1);
	s->down_port = malloc(cables + 1);
	s->port = malloc((size_t)s->count * s->count);
	if (!s->upper || !s->up_port || !s->down_port || !s->port) {
		switches_free(s);
		return -ENOMEM;
	}
	memset(s->port, NO_PORT, (size_t)s->count * s->count);
	for (uint32_t i = 0; i < cables; i++) {
		uint32_t cable = t->first_cable[2] + i;
		bool here = fabric_tree_has_cable(tree, cable);

		s->upper[i] = here ? fabric_number(t, fabric_cable(t, cable).upper) - s->first
				   : FABRIC_NONE;
		s->up_port[i] = (uint8_t)(here ? fabric_tree_lower_port(tree, cable) : 0);
		s->down_port[i] = (uint8_t)(here ? fabric_tree_upper_port(tree, cable) : 0);
	}
	for (uint32_t to = 0; to < s->count; to++) {
		if (!fabric_tree_has_node(tree, s->first + to))
			continue;
		ways_down(s, to);
		ways_up(s, to);
	}
	return 0;
}

/* ---- tables ---- */

struct writer {
	const struct fabric_routes *r;
	const struct fabric_pgft *t;
	struct switches ways;
	uint16_t *row;
	char **tails; /* by node: the rest of the line, from the port on */
	FILE *to;
};

static int make_tails(struct writer *w, bool guids)
{
	w->tails = calloc(fabric_nodes(w->t), sizeof(*w->tails));
	if (!w->tails)
		return -ENOMEM;
	for (uint32_t node = 0; guids && node < fabric_nodes(w->t); node++) {
		char name[FABRIC_TREE_NAME_MAX], tail[FABRIC_TREE_NAME_MAX + 64];

		if (!fabric_tree_has_node(w->r->tree, node))
			continue;
		fabric_tree_name(w->r->tree, node, name);
		snprintf(tail, sizeof(tail), " # %s portguid 0x%016" PRIx64 ": '%s'\n",
			 node < fabric_hosts(w->t) ? "Channel Adapter" : "Switch",
			 fabric_tree_port_guid(w->r->tree, node), fabric_mask(name));
		w->tails[node] = strdup(tail);
		if (!w->tails[node])
			return -ENOMEM;
	}
	return 0;
}

/* There are millions of these: printf would take most of the time. */
static void put_entry(const struct writer *w, uint32_t node, uint32_t lid, uint32_t port)
{
	static const char hex[] = "0123456789abcdef";
	char line[] = "0x0000 000";

	for (int i = 5; i >= 2; i--, lid >>= 4)
		line[i] = hex[lid & 15];
	for (int i = 9; i >= 7; i--, port /= 10)
		line[i] = (char)('0' + port % 10);
	fwrite(line, 1, sizeof(line) - 1, w->to);
	fputs(w->tails[node] ? w->tails[node] : "\n", w->to);
}

static int put_table(const struct writer *w, uint32_t node)
{
	uint32_t lmc = w->r->rule.lmc, lids = 0;
	char name[FABRIC_TREE_NAME_MAX];
	int ret = fabric_routes_row(w->r, node, w->row);

	if (ret)
		return ret;
	fabric_tree_name(w->r->tree, node, name);
	fprintf(w->to, "Unicast lids [0-%u] of switch Lid %u guid 0x%016" PRIx64 " ('%s'):\n",
		last_lid(w->t, lmc), fabric_lid(w->t, lmc, node),
		fabric_tree_guid(w->r->tree, node), fabric_mask(name));
	for (size_t e = 0; e < fabric_routes_entries(w->r); e++) {
		if (!w->row[e])
			continue;
		put_entry(w, (uint32_t)(e >> lmc), (uint32_t)e + (1u << lmc), w->row[e]);
		lids++;
	}
	for (uint32_t to = 0; to < w->ways.count; to++) {
		uint8_t port = *way(&w->ways, node - w->ways.first, to);

		if (port == NO_PORT)
			continue;
		put_entry(w, w->ways.first + to, fabric_lid(w->t, lmc, w->ways.first + to), port);
		lids++;
	}
	fprintf(w->to, "%u lids dumped\n", lids);
	return 0;
}

int fabric_lft_write(const struct fabric_routes *r, bool guids, FILE *to)
{
	struct writer w = {.r = r, .t = &r->tree->pgft, .to = to};
	int ret = switches_init(&w.ways, r->tree);

	if (ret)
		return ret;
	ret = make_tails(&w, guids);
	w.row = malloc(fabric_routes_entries(r) * sizeof(*w.row));
	if (!w.row)
		ret = -ENOMEM;
	for (uint32_t node = w.ways.first; !ret && node < fabric_nodes(w.t); node++)
		if (fabric_tree_has_node(r->tree, node))
			ret = put_table(&w, node);
	for (uint32_t node = 0; w.tails && node < fabric_nodes(w.t); node++)
		free(w.tails[node]);
	free(w.tails);
	free(w.row);
	switches_free(&w.ways);
	return ret ? ret : fabric_flush(to);
}

/* ---- the other files ---- */

int fabric_lft_write_lids(const struct fabric_tree *tree, uint32_t lmc, FILE *to)
{
	const struct fabric_pgft *t = &tree->pgft;

	for (uint32_t node = 0; node < fabric_nodes(t); node++) {
		uint32_t lid = fabric_lid(t, lmc, node);
		uint32_t last = node < fabric_hosts(t) ? lid + (1u << lmc) - 1 : lid;

		if (fabric_tree_has_node(tree, node))
			fprintf(to, "0x%016" PRIx64 " 0x%04x 0x%04x\n\n",
				fabric_tree_port_guid(tree, node), lid, last);
	}
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
