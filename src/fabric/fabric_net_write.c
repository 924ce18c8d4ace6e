#include "fabric_net.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "fabric_beside.h"
#include "fabric_text.h"
#include "fabric_tree.h"

/* A host that was made from a tuple has room for this many GUIDs of ports. */
#define HOST_PORTS_MAX 15

struct writer {
	const struct fabric_tree *t;
	FILE *to;
	/* Of a network: by node, is it written? By place of a port, has it a cable beside the
	 * tree? */
	uint8_t *done, *beside;
};

static bool is_host(const struct writer *w, uint32_t node)
{
	return node < fabric_hosts(&w->t->pgft);
}

/* What a node calls itself: of a network, all of its description. */
static const char *describe(const struct writer *w, uint32_t node, char name[FABRIC_TREE_NAME_MAX])
{
	const struct fabric_net *net = w->t->net;

	if (net && *net->nodes[w->t->net_node[node]].desc)
		return net->nodes[w->t->net_node[node]].desc;
	fabric_tree_name(w->t, node, name);
	return name;
}

static uint64_t port_guid(const struct writer *w, uint32_t node, uint32_t port)
{
	const struct fabric_net *net = w->t->net;
	uint32_t place;

	if (!net)
		return fabric_tree_guid(w->t, node) + port;
	place = fabric_net_find_port(net, w->t->net_node[node], port);
	return place != UINT32_MAX ? net->ports[place].guid : 0;
}

static uint32_t port_lid(const struct writer *w, uint32_t node, uint32_t port, uint32_t *lmc)
{
	const struct fabric_net *net = w->t->net;
	uint32_t place = FABRIC_NONE;

	if (net && is_host(w, node))
		place = fabric_net_find_port(net, w->t->net_node[node], port);
	if (place == FABRIC_NONE)
		return fabric_tree_lid(w->t, node, lmc);
	*lmc = net->ports[place].lmc;
	return net->ports[place].lid;
}

/* Of a host's port, if it has one. */
static void write_guid(const struct writer *w, uint32_t node, uint32_t port)
{
	uint64_t guid = is_host(w, node) ? port_guid(w, node, port) : 0;

	if (guid)
		fprintf(w->to, "(%" PRIx64 ") ", guid);
}

static void write_id(const struct writer *w, uint32_t node)
{
	const struct fabric_net *net = w->t->net;
	char kind = is_host(w, node) ? 'H' : 'S';

	if (net && net->nodes[w->t->net_node[node]].kind == FABRIC_NET_ROUTER)
		kind = 'R';
	fprintf(w->to, "\"%c-%016" PRIx64 "\"", kind, fabric_tree_guid(w->t, node));
}

static void write_port(const struct writer *w, uint32_t node, uint32_t port, uint32_t cable)
{
	struct fabric_cable c = fabric_cable(&w->t->pgft, cable);
	uint32_t lower = fabric_number(&w->t->pgft, c.lower);
	uint32_t upper = fabric_number(&w->t->pgft, c.upper);
	uint32_t peer = node == upper ? lower : upper, peer_port, lid, lmc;
	char name[FABRIC_TREE_NAME_MAX];

	peer_port = peer == upper ? fabric_tree_upper_port(w->t, cable)
				  : fabric_tree_lower_port(w->t, cable);
	fprintf(w->to, "[%u]", port);
	write_guid(w, node, port);
	fputc('\t', w->to);
	write_id(w, peer);
	fprintf(w->to, "[%u]", peer_port);
	write_guid(w, peer, peer_port);
	fprintf(w->to, "\t\t# ");
	if (is_host(w, node)) {
		lid = port_lid(w, node, port, &lmc);
		fprintf(w->to, "lid %u lmc %u ", lid, lmc);
	}
	lid = port_lid(w, peer, peer_port, &lmc);
	fprintf(w->to, "\"%s\" lid %u 4xSDR\n", describe(w, peer, name), lid);
}

static int write_head(const struct writer *w, uint32_t node)
{
	const struct fabric_net *net = w->t->net;
	bool router = net && net->nodes[w->t->net_node[node]].kind == FABRIC_NET_ROUTER;
	uint64_t guid = fabric_tree_guid(w->t, node);
	uint32_t ports = fabric_tree_ports(w->t, node), lid, lmc;
	char name[FABRIC_TREE_NAME_MAX];

	if (ports > FABRIC_NET_PORTS_MAX || (!net && is_host(w, node) && ports > HOST_PORTS_MAX))
		return -ERANGE;
	fprintf(w->to, "\nvendid=0x2c9\ndevid=%s\nsysimgguid=0x%" PRIx64 "\n",
		is_host(w, node) ? "0x673c" : "0xbd36", guid);
	if (is_host(w, node)) {
		fprintf(w->to, "%sguid=0x%" PRIx64 "\n%s\t%u ", router ? "rt" : "ca", guid,
			router ? "Rt" : "Ca", ports);
		write_id(w, node);
		fprintf(w->to, "\t\t# \"%s\"\n", describe(w, node, name));
		return 0;
	}
	fprintf(w->to, "switchguid=0x%" PRIx64 "(%" PRIx64 ")\nSwitch\t%u ", guid, guid, ports);
	write_id(w, node);
	lid = fabric_tree_lid(w->t, node, &lmc);
	fprintf(w->to, "\t\t# \"%s\" base port 0 lid %u lmc %u\n", describe(w, node, name), lid,
		lmc);
	return 0;
}

static int write_tuple_node(const struct writer *w, uint32_t node)
{
	int ret = write_head(w, node);

	for (uint32_t port = 1; !ret && port <= fabric_tree_ports(w->t, node); port++) {
		uint32_t cable = fabric_tree_cable_at(w->t, node, port);

		if (cable != FABRIC_NONE)
			write_port(w, node, port, cable);
	}
	return ret;
}

/* ---- beside the tree, as the network has it ---- */

static void write_node_id(const struct writer *w, const struct fabric_net_node *n)
{
	static const char kinds[] = {
		[FABRIC_NET_CA] = 'H', [FABRIC_NET_SWITCH] = 'S', [FABRIC_NET_ROUTER] = 'R'};

	fprintf(w->to, "\"%c-%016" PRIx64 "\"", kinds[n->kind], n->guid);
}

static uint32_t other_end(const struct fabric_net *net, uint32_t place)
{
	return fabric_net_find_port(net, net->ports[place].peer, net->ports[place].peer_port);
}

static void write_port_beside(const struct writer *w, uint32_t place)
{
	const struct fabric_net *net = w->t->net;
	const struct fabric_net_port *p = &net->ports[place],
				     *q = &net->ports[other_end(net, place)];
	const struct fabric_net_node *n = &net->nodes[q->peer], *peer = &net->nodes[p->peer];

	fprintf(w->to, "[%u]", p->number);
	if (p->guid)
		fprintf(w->to, "(%" PRIx64 ") ", p->guid);
	fputc('\t', w->to);
	write_node_id(w, peer);
	fprintf(w->to, "[%u]", q->number);
	if (q->guid)
		fprintf(w->to, "(%" PRIx64 ") ", q->guid);
	fprintf(w->to, "\t\t# ");
	if (n->kind != FABRIC_NET_SWITCH)
		fprintf(w->to, "lid %u lmc %u ", p->lid, p->lmc);
	fprintf(w->to, "\"%s\" lid %u 4xSDR\n", *peer->desc ? peer->desc : peer->name,
		peer->kind == FABRIC_NET_SWITCH ? peer->lid : q->lid);
}

static void write_node_beside(const struct writer *w, uint32_t node)
{
	const struct fabric_net_node *n = &w->t->net->nodes[node];
	const char *name = *n->desc ? n->desc : n->name;
	bool router = n->kind == FABRIC_NET_ROUTER;

	if (w->done[node])
		return;
	w->done[node] = 1;
	fprintf(w->to, "\nvendid=0x2c9\ndevid=%s\nsysimgguid=0x%" PRIx64 "\n",
		n->kind == FABRIC_NET_SWITCH ? "0xbd36" : "0x673c", n->guid);
	if (n->kind == FABRIC_NET_SWITCH)
		fprintf(w->to, "switchguid=0x%" PRIx64 "(%" PRIx64 ")\nSwitch\t%u ", n->guid,
			n->guid, n->n_ports);
	else
		fprintf(w->to, "%sguid=0x%" PRIx64 "\n%s\t%u ", router ? "rt" : "ca", n->guid,
			router ? "Rt" : "Ca", n->n_ports);
	write_node_id(w, n);
	if (n->kind == FABRIC_NET_SWITCH)
		fprintf(w->to, "\t\t# \"%s\" base port 0 lid %u lmc %u\n", name, n->lid, n->lmc);
	else
		fprintf(w->to, "\t\t# \"%s\"\n", name);
	for (uint32_t i = n->first; i < n->first + n->count; i++)
		if (w->beside[i])
			write_port_beside(w, i);
}

static void note_cable(const struct writer *w, uint32_t place)
{
	w->beside[place] = 1;
	w->beside[other_end(w->t->net, place)] = 1;
}

/* Which cables lead to what is beside the tree. */
static void note_cables(const struct writer *w, const struct fabric_beside *b)
{
	const struct fabric_net *net = w->t->net;

	for (uint32_t i = 0; i < b->n_ports; i++)
		note_cable(w, b->ports[i]);
	for (uint32_t s = 0; s < b->n_switches; s++) {
		const struct fabric_net_node *n = &net->nodes[b->switches[s]];

		for (uint32_t i = n->first; i < n->first + n->count; i++)
			if (b->number[net->ports[i].peer] != FABRIC_NONE &&
			    fabric_tree_has_port(w->t, i))
				note_cable(w, i);
	}
}

static void write_beside(const struct writer *w, const struct fabric_beside *b)
{
	const struct fabric_net *net = w->t->net;

	for (uint32_t i = 0; i < b->n_switches; i++)
		write_node_beside(w, b->switches[i]);
	for (uint32_t i = 0; i < b->n_ports; i++)
		write_node_beside(w, net->ports[other_end(net, b->ports[i])].peer);
}

/* ---- nodes of the tree in a network ---- */

static uint32_t lower_end(const struct writer *w, uint32_t cable)
{
	return fabric_number(&w->t->pgft, fabric_cable(&w->t->pgft, cable).lower);
}

/* An adapter that is several hosts is written once, with the first of them. */
static int write_net_node(const struct writer *w, uint32_t node)
{
	const struct fabric_net_node *n = &w->t->net->nodes[w->t->net_node[node]];
	bool shared = w->t->by_port && is_host(w, node);
	int ret;

	for (uint32_t i = n->first; shared && i < n->first + n->count; i++) {
		uint32_t cable = w->t->port_cable[i], host;

		host = cable != FABRIC_NONE ? lower_end(w, cable) : FABRIC_NONE;
		if (host < node && fabric_tree_has_node(w->t, host))
			return 0;
	}
	w->done[w->t->net_node[node]] = 1;
	ret = write_head(w, node);
	for (uint32_t i = n->first; !ret && i < n->first + n->count; i++) {
		uint32_t cable = w->t->port_cable[i];

		if (w->beside[i])
			write_port_beside(w, i);
		else if (cable != FABRIC_NONE && fabric_tree_has_cable(w->t, cable))
			write_port(w, shared ? lower_end(w, cable) : node,
				   w->t->net->ports[i].number, cable);
	}
	return ret;
}

static int write_all(const struct writer *w)
{
	const struct fabric_tree *t = w->t;
	uint32_t nodes = fabric_nodes(&t->pgft), hosts = fabric_hosts(&t->pgft);
	char tuple[FABRIC_TUPLE_MAX];
	int ret = 0;

	fabric_pgft_print(&t->pgft, tuple);
	fprintf(w->to, "# PGFT(%s)\n", tuple);
	/* Switches first, as ibnetdiscover has it. */
	for (uint32_t i = 0; !ret && i < nodes; i++) {
		uint32_t node = (i + hosts) % nodes;

		if (!fabric_tree_has_node(t, node))
			continue;
		ret = t->net ? write_net_node(w, node) : write_tuple_node(w, node);
	}
	return ret;
}

int fabric_net_write(const struct fabric_tree *tree, FILE *to)
{
	struct writer w = {.t = tree, .to = to};
	struct fabric_beside b;
	int ret = fabric_beside_find(&b, tree);

	if (!ret && tree->net) {
		w.done = calloc(tree->net->n_nodes, 1);
		w.beside = calloc(tree->net->n_ports + 1, 1);
		ret = w.done && w.beside ? 0 : -ENOMEM;
		if (!ret)
			note_cables(&w, &b);
	}
	if (!ret)
		ret = write_all(&w);
	if (!ret)
		write_beside(&w, &b);
	fabric_beside_free(&b);
	free(w.done);
	free(w.beside);
	return ret ? ret : fabric_flush(to);
}
