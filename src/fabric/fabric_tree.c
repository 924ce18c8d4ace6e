#include "fabric_tree.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_net.h"

void fabric_tree_init(struct fabric_tree *t, const struct fabric_pgft *pgft)
{
	*t = (struct fabric_tree){.pgft = *pgft};
}

/* ---- what is missing ---- */

static bool test_and_set(uint8_t *map, uint32_t n)
{
	bool was = map[n / 8] >> n % 8 & 1;

	map[n / 8] |= (uint8_t)(1u << n % 8);
	return was;
}

static int make_map(uint8_t **map, uint32_t n)
{
	if (!*map)
		*map = calloc(n / 8 + 1, 1);
	return *map ? 0 : -ENOMEM;
}

int fabric_tree_cut(struct fabric_tree *t, uint32_t cable)
{
	int ret = make_map(&t->cables_gone, fabric_cables(&t->pgft));

	if (!ret)
		t->n_cables_gone += !test_and_set(t->cables_gone, cable);
	return ret;
}

int fabric_tree_remove(struct fabric_tree *t, uint32_t node)
{
	const struct fabric_pgft *g = &t->pgft;
	struct fabric_node n = fabric_node(g, node);
	struct fabric_cable c;
	int ret = make_map(&t->nodes_gone, fabric_nodes(g));

	/* First its cables: if there is no memory it is still there. */
	for (uint32_t q = 0; !ret && q < fabric_up_ports(g, n.level); q++) {
		c = fabric_cable_up(g, n, q);
		ret = fabric_tree_cut(t, fabric_cable_number(g, &c));
	}
	for (uint32_t r = 0; !ret && r < fabric_down_ports(g, n.level); r++) {
		c = fabric_cable_down(g, n, r);
		ret = fabric_tree_cut(t, fabric_cable_number(g, &c));
	}
	if (!ret)
		t->n_nodes_gone += !test_and_set(t->nodes_gone, node);
	return ret;
}

/* ---- ports ---- */

uint32_t fabric_tree_lower_port(const struct fabric_tree *t, uint32_t cable)
{
	struct fabric_cable c;

	if (t->lower_port)
		return t->lower_port[cable];
	c = fabric_cable(&t->pgft, cable);
	return 1 + fabric_down_ports(&t->pgft, c.lower.level) + c.q;
}

uint32_t fabric_tree_upper_port(const struct fabric_tree *t, uint32_t cable)
{
	if (t->upper_port)
		return t->upper_port[cable];
	return 1 + fabric_cable(&t->pgft, cable).r;
}

static uint32_t tuple_cable_at(const struct fabric_pgft *g, uint32_t node, uint32_t port)
{
	struct fabric_node n = fabric_node(g, node);
	uint32_t down = fabric_down_ports(g, n.level), up = fabric_up_ports(g, n.level);
	struct fabric_cable c;

	if (port < 1 || port - 1 >= down + up)
		return FABRIC_NONE;
	c = port - 1 < down ? fabric_cable_down(g, n, port - 1)
			    : fabric_cable_up(g, n, port - 1 - down);
	return fabric_cable_number(g, &c);
}

static uint32_t net_cable_at(const struct fabric_tree *t, uint32_t node, uint32_t port)
{
	uint32_t place = t->net_node[node], cable;

	if (place != FABRIC_NONE)
		place = fabric_net_find_port(t->net, place, port);
	cable = place != FABRIC_NONE ? t->port_cable[place] : FABRIC_NONE;
	/* Hosts that are ports of one adapter have a cable each. */
	if (cable != FABRIC_NONE && t->by_port && node < fabric_hosts(&t->pgft) &&
	    fabric_cable(&t->pgft, cable).lower.index != node)
		return FABRIC_NONE;
	return cable;
}

uint32_t fabric_tree_cable_at(const struct fabric_tree *t, uint32_t node, uint32_t port)
{
	uint32_t cable =
		t->net ? net_cable_at(t, node, port) : tuple_cable_at(&t->pgft, node, port);

	return cable != FABRIC_NONE && fabric_tree_has_cable(t, cable) ? cable : FABRIC_NONE;
}

/* ---- GUIDs and LIDs ---- */

#define TUPLE_GUID UINT64_C(0x0002c90000000000)

static const struct fabric_net_node *net_node(const struct fabric_tree *t, uint32_t node)
{
	return t->net_node[node] != FABRIC_NONE ? &t->net->nodes[t->net_node[node]] : NULL;
}

/* The port by which a host is addressed: the first that has a cable, gone by now or not. */
static const struct fabric_net_port *host_port(const struct fabric_tree *t, uint32_t host)
{
	uint32_t ports = fabric_up_ports(&t->pgft, 0), number = 0, place;

	if (t->net_node[host] == FABRIC_NONE)
		return NULL;
	for (uint32_t q = 0; q < ports; q++) {
		uint32_t p = t->lower_port[host * ports + q];

		number = p && (!number || p < number) ? p : number;
	}
	place = number ? fabric_net_find_port(t->net, t->net_node[host], number) : FABRIC_NONE;
	return place != FABRIC_NONE ? &t->net->ports[place] : NULL;
}

uint64_t fabric_tree_guid(const struct fabric_tree *t, uint32_t node)
{
	struct fabric_node n;

	if (t->net)
		return net_node(t, node) ? net_node(t, node)->guid : 0;
	n = fabric_node(&t->pgft, node);
	return TUPLE_GUID | (uint64_t)n.level << 32 | ((uint64_t)n.index + 1) << 4;
}

uint64_t fabric_tree_port_guid(const struct fabric_tree *t, uint32_t node)
{
	const struct fabric_net_port *port;

	if (node >= fabric_hosts(&t->pgft))
		return fabric_tree_guid(t, node);
	if (!t->net)
		return fabric_tree_guid(t, node) + 1;
	port = host_port(t, node);
	return port ? port->guid : 0;
}

uint32_t fabric_tree_lid(const struct fabric_tree *t, uint32_t node, uint32_t *lmc)
{
	const struct fabric_net_node *n = t->net ? net_node(t, node) : NULL;
	const struct fabric_net_port *port;

	*lmc = 0;
	if (!n)
		return 0;
	if (node >= fabric_hosts(&t->pgft)) {
		*lmc = n->lmc;
		return n->lid;
	}
	port = host_port(t, node);
	*lmc = port ? port->lmc : 0;
	return port ? port->lid : 0;
}

uint32_t fabric_tree_ports(const struct fabric_tree *t, uint32_t node)
{
	struct fabric_node n;

	if (t->net && net_node(t, node))
		return net_node(t, node)->n_ports;
	n = fabric_node(&t->pgft, node);
	return fabric_down_ports(&t->pgft, n.level) + fabric_up_ports(&t->pgft, n.level);
}

/* ---- names ---- */

void fabric_tree_name(const struct fabric_tree *t, uint32_t node, char name[FABRIC_TREE_NAME_MAX])
{
	const struct fabric_net_node *n = t->net ? net_node(t, node) : NULL;

	if (!n)
		fabric_name(fabric_node(&t->pgft, node), name);
	else if (t->by_port && node < fabric_hosts(&t->pgft) && n->count > 1)
		snprintf(name, FABRIC_TREE_NAME_MAX, "%.72s/%u", n->name, t->lower_port[node]);
	else
		snprintf(name, FABRIC_TREE_NAME_MAX, "%s", n->name);
}

struct name_entry {
	const char *name;
	uint32_t node;
};

struct guid_entry {
	uint64_t guid;
	uint32_t node;
};

struct fabric_tree_index {
	struct name_entry *names;
	struct guid_entry *guids;
	uint32_t n_names, n_guids;
};

/* As they are printed, a name is cut off at FABRIC_TREE_NAME_MAX. */
static int compare_names(const char *a, const char *b)
{
	return strncmp(a, b, FABRIC_TREE_NAME_MAX - 1);
}

static int by_name(const void *a, const void *b)
{
	const struct name_entry *x = a, *y = b;
	int c = compare_names(x->name, y->name);

	return c ? c : (x->node > y->node) - (x->node < y->node);
}

static int by_guid(const void *a, const void *b)
{
	const struct guid_entry *x = a, *y = b;

	if (x->guid != y->guid)
		return (x->guid > y->guid) - (x->guid < y->guid);
	return (x->node > y->node) - (x->node < y->node);
}

int fabric_tree_make_index(struct fabric_tree *t)
{
	uint32_t n = fabric_nodes(&t->pgft);
	struct fabric_tree_index *x = calloc(1, sizeof(*x));

	t->index = x;
	if (!x)
		return -ENOMEM;
	x->names = malloc(n * sizeof(*x->names));
	x->guids = malloc(2 * (size_t)n * sizeof(*x->guids));
	if (!x->names || !x->guids)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const struct fabric_net_node *node = net_node(t, i);
		uint64_t port = node ? fabric_tree_port_guid(t, i) : 0;

		if (!node)
			continue;
		x->names[x->n_names++] = (struct name_entry){node->name, i};
		x->guids[x->n_guids++] = (struct guid_entry){node->guid, i};
		if (port && port != node->guid)
			x->guids[x->n_guids++] = (struct guid_entry){port, i};
	}
	qsort(x->names, x->n_names, sizeof(*x->names), by_name);
	qsort(x->guids, x->n_guids, sizeof(*x->guids), by_guid);
	return 0;
}

/* The first of that name, FABRIC_NONE: none. */
static uint32_t find_name(const struct fabric_tree_index *x, const char *name)
{
	uint32_t lo = 0, hi = x->n_names;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (compare_names(x->names[mid].name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->n_names && !compare_names(x->names[lo].name, name) ? lo : FABRIC_NONE;
}

/* node17/2: by adapter and port. */
static uint32_t find_name_of_port(const struct fabric_tree *t, const char *text)
{
	const char *slash = strrchr(text, '/');
	char name[FABRIC_TREE_NAME_MAX], again[FABRIC_TREE_NAME_MAX];
	uint32_t at;

	if (!t->by_port || !slash || slash - text >= FABRIC_TREE_NAME_MAX)
		return FABRIC_NONE;
	snprintf(name, sizeof(name), "%.*s", (int)(slash - text), text);
	at = find_name(t->index, name);
	for (; at < t->index->n_names && !compare_names(t->index->names[at].name, name); at++) {
		fabric_tree_name(t, t->index->names[at].node, again);
		if (!strcmp(again, text))
			return t->index->names[at].node;
	}
	return FABRIC_NONE;
}

static uint32_t find_guid(const struct fabric_tree *t, const char *text)
{
	const struct fabric_tree_index *x = t->index;
	uint64_t guid;
	char *end;
	struct fabric_node n;

	if (text[0] != '0' || (text[1] != 'x' && text[1] != 'X') || text[2] == '-')
		return FABRIC_NONE;
	errno = 0;
	guid = strtoull(text, &end, 16);
	if (errno || *end || end == text + 2 || !guid)
		return FABRIC_NONE;
	if (!t->net) {
		uint64_t index = (guid & UINT32_MAX) >> 4, port = guid & 15;

		n.level = guid >> 32 & 0xff;
		n.index = (uint32_t)index - 1;
		if ((guid ^ TUPLE_GUID) >> 40 || n.level > t->pgft.h || index == 0 ||
		    n.index >= t->pgft.nodes[n.level] || port > (n.level ? 0 : 1))
			return FABRIC_NONE;
		return fabric_number(&t->pgft, n);
	}
	for (uint32_t lo = 0, hi = x->n_guids; lo < hi;) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (x->guids[mid].guid == guid && (mid == lo || x->guids[mid - 1].guid != guid))
			return x->guids[mid].node;
		if (x->guids[mid].guid < guid)
			lo = mid + 1;
		else
			hi = mid;
	}
	return FABRIC_NONE;
}

int fabric_tree_find(const struct fabric_tree *t, const char *name, uint32_t *node)
{
	struct fabric_node n;
	uint32_t found = FABRIC_NONE;

	if (t->net) {
		found = find_name(t->index, name);
		if (found != FABRIC_NONE)
			found = t->index->names[found].node;
		else
			found = find_name_of_port(t, name);
	}
	if (found == FABRIC_NONE)
		found = find_guid(t, name);
	if (found == FABRIC_NONE && !fabric_find(&t->pgft, name, &n)) {
		found = fabric_number(&t->pgft, n);
		if (t->net && !net_node(t, found))
			found = FABRIC_NONE;
	}
	if (found == FABRIC_NONE)
		return -ENOENT;
	*node = found;
	return 0;
}

void fabric_tree_free(struct fabric_tree *t)
{
	if (t->net)
		fabric_net_free(t->net);
	free(t->net);
	free(t->net_node);
	free(t->lower_port);
	free(t->upper_port);
	free(t->port_cable);
	free(t->nodes_gone);
	free(t->cables_gone);
	if (t->index) {
		free(t->index->names);
		free(t->index->guids);
	}
	free(t->index);
	*t = (struct fabric_tree){0};
}
