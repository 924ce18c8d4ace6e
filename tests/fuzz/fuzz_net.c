/* The text of a network, and the fat tree in it. What is accepted must hang together; a tree that
 * is recognised must be true to the network, and read the same again after it was written. */
#include <errno.h>

#include "fabric_shape.h"
#include "fuzz.h"

/* One sentence: not empty, not cut off, nothing in it that a terminal would obey. */
static void check_sentence(const char *why)
{
	HOLDS(strlen(why) > 10 && strlen(why) < 511);
	for (; *why; why++)
		HOLDS(*why >= ' ' && *why < 0x7f);
}

static int read_bytes(const uint8_t *data, size_t size, struct fabric_net *net)
{
	FILE *f = fmemopen((void *)data, size, "r");
	char why[512] = "";
	int r;

	HOLDS(f);
	r = fabric_net_read(net, f, "corpus", why, sizeof(why));
	fclose(f);
	HOLDS(r == 0 || r == -EINVAL);
	if (r)
		check_sentence(why);
	return r;
}

/* Ports are in order, and every cable has two ends. */
static void check_net(const struct fabric_net *net)
{
	uint32_t ports = 0;

	HOLDS(net->n_nodes > 0);
	for (uint32_t i = 0; i < net->n_nodes; i++) {
		const struct fabric_net_node *n = &net->nodes[i];

		HOLDS(n->guid && *n->id && *n->name && n->n_ports >= 1);
		HOLDS(n->count <= n->n_ports && (n->count == 0 || n->first == ports));
		ports += n->count;
		for (uint32_t k = 0; k < n->count; k++) {
			const struct fabric_net_port *p = &net->ports[n->first + k], *other;

			HOLDS(p->number >= 1 && p->number <= n->n_ports);
			HOLDS(k == 0 || p[-1].number < p->number);
			HOLDS(fabric_net_find_port(net, i, p->number) == n->first + k);
			HOLDS(p->peer < net->n_nodes);
			HOLDS(fabric_net_find_port(net, p->peer, p->peer_port) != UINT32_MAX);
			other = &net->ports[fabric_net_find_port(net, p->peer, p->peer_port)];
			HOLDS(other->peer == i && other->peer_port == p->number && other != p);
		}
	}
	HOLDS(ports == net->n_ports);
}

static void check_tree(const struct fabric_tree *t)
{
	const struct fabric_pgft *g = &t->pgft;
	uint32_t nodes = 0, cables = 0;

	for (uint32_t i = 0; i < fabric_nodes(g); i++) {
		HOLDS(fabric_tree_has_node(t, i) == (t->net_node[i] != FABRIC_NONE));
		nodes += fabric_tree_has_node(t, i);
	}
	HOLDS(nodes == fabric_nodes(g) - t->n_nodes_gone);
	for (uint32_t i = 0; i < fabric_cables(g); i++) {
		struct fabric_cable c = fabric_cable(g, i);
		uint32_t lower = fabric_number(g, c.lower), upper = fabric_number(g, c.upper), at;

		if (!fabric_tree_has_cable(t, i))
			continue;
		cables++;
		at = fabric_net_find_port(t->net, t->net_node[lower], fabric_tree_lower_port(t, i));
		HOLDS(at != UINT32_MAX && t->port_cable[at] == i);
		HOLDS(t->net->ports[at].peer == t->net_node[upper]);
		HOLDS(t->net->ports[at].peer_port == fabric_tree_upper_port(t, i));
		HOLDS(fabric_tree_cable_at(t, lower, fabric_tree_lower_port(t, i)) == i);
		HOLDS(fabric_tree_cable_at(t, upper, fabric_tree_upper_port(t, i)) == i);
	}
	HOLDS(cables == fabric_cables(g) - t->n_cables_gone);
}

/* Written and read again, it has the same nodes and cables, those that have a place. */
static void check_written(const struct fabric_tree *t)
{
	struct fabric_net again;
	char *text;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	HOLDS(f && fabric_net_write(t, f) == 0);
	fclose(f);
	/* Descriptions may say what an id is made of, GUIDs may be those of others: no more
	 * than that it is accepted can be asked for. */
	HOLDS(!read_bytes((uint8_t *)text, size, &again));
	HOLDS(again.n_ports == 2 * (fabric_cables(&t->pgft) - t->n_cables_gone));
	fabric_net_free(&again);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fabric_net *net;
	struct fabric_defects d;
	struct fabric_tree t;
	char why[512] = "";
	int r;

	if (size == 0)
		return 0; /* fmemopen has no empty files */
	net = malloc(sizeof(*net));
	HOLDS(net);
	if (read_bytes(data, size, net)) {
		free(net);
		return 0;
	}
	check_net(net);
	r = fabric_shape(&t, net, &d, why, sizeof(why));
	HOLDS(r == 0 || r == -EINVAL);
	if (r) {
		check_sentence(why);
		fabric_net_free(net);
		free(net);
		return 0;
	}
	HOLDS((d.count == 0) <= fabric_tree_whole(&t));
	check_tree(&t);
	check_written(&t);
	fabric_defects_free(&d);
	fabric_tree_free(&t);
	return 0;
}
