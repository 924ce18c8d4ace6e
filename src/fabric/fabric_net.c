#include "fabric_net_int.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Everything is found by sorting: no file, however made, takes more than n·log n. */

/* ---- the text ---- */

static int no_memory(const struct net_reader *r)
{
	fabric_refuse(r->why, r->why_size, "no memory to read %s", r->file);
	return -ENOMEM;
}

static int read_text(struct net_reader *r, FILE *from)
{
	size_t size = 0, room = 1 << 16, n;
	char *text = malloc(room), *more;
	int ret;

	while (text && (n = fread(text + size, 1, room - size - 1, from)) > 0) {
		size += n;
		if (size > FABRIC_NET_TEXT_MAX) {
			free(text);
			return fabric_refuse(r->why, r->why_size,
					     "%s is longer than %u bytes; expected a topology",
					     r->file, FABRIC_NET_TEXT_MAX);
		}
		if (size < room - 1)
			continue;
		room *= 2;
		more = realloc(text, room);
		if (!more)
			free(text);
		text = more;
	}
	if (!text)
		return no_memory(r);
	text[size] = 0;
	r->net.text = text;
	if (ferror(from)) {
		ret = errno ? -errno : -EIO;
		fabric_refuse(r->why, r->why_size, "can not read %s: %s", r->file, strerror(-ret));
		return ret;
	}
	if (strlen(text) == size)
		return 0;
	r->line = 1;
	for (const char *s = text; *s; s++)
		r->line += *s == '\n';
	return net_refuse(r, r->line, "a zero byte; expected a text file");
}

/* ---- nodes by their ids ---- */

static int by_id(const void *a, const void *b)
{
	const struct fabric_net_node *x = *(struct fabric_net_node *const *)a;
	const struct fabric_net_node *y = *(struct fabric_net_node *const *)b;
	int c = strcmp(x->id, y->id);

	return c ? c : NET_ORDER(x->line, y->line);
}

static int by_guid(const void *a, const void *b)
{
	const struct fabric_net_node *x = *(struct fabric_net_node *const *)a;
	const struct fabric_net_node *y = *(struct fabric_net_node *const *)b;

	return x->guid != y->guid ? NET_ORDER(x->guid, y->guid) : NET_ORDER(x->line, y->line);
}

static int no_twins(struct net_reader *r, struct fabric_net_node **nodes)
{
	uint32_t n = r->net.n_nodes;

	qsort(nodes, n, sizeof(*nodes), by_guid);
	for (uint32_t i = 1; i < n; i++)
		if (nodes[i]->guid == nodes[i - 1]->guid &&
		    strcmp(nodes[i]->id, nodes[i - 1]->id) != 0)
			return net_refuse(r, nodes[i]->line,
					  "the GUID 0x%" PRIx64 " is that of %s in line %u already",
					  nodes[i]->guid, fabric_quote(nodes[i - 1]->id).text,
					  nodes[i - 1]->line);
	qsort(nodes, n, sizeof(*nodes), by_id);
	for (uint32_t i = 1; i < n; i++)
		if (!strcmp(nodes[i]->id, nodes[i - 1]->id))
			return net_refuse(r, nodes[i]->line,
					  "%s is described in line %u already; a node may be "
					  "described once",
					  fabric_quote(nodes[i]->id).text, nodes[i - 1]->line);
	return 0;
}

static int find_peers(struct net_reader *r, struct fabric_net_node **nodes)
{
	for (size_t i = 0; i < r->n_ends; i++) {
		struct net_end *e = &r->ends[i];
		struct fabric_net_node **found;
		uint32_t lo = 0, hi = r->net.n_nodes;

		while (lo < hi) {
			uint32_t mid = lo + (hi - lo) / 2;

			if (strcmp(nodes[mid]->id, e->peer_id) < 0)
				lo = mid + 1;
			else
				hi = mid;
		}
		found = lo < r->net.n_nodes ? &nodes[lo] : NULL;
		if (!found || strcmp((*found)->id, e->peer_id) != 0)
			return net_refuse(r, e->line,
					  "%s is described nowhere in this file; is it cut off?",
					  fabric_quote(e->peer_id).text);
		e->peer = (uint32_t)(*found - r->net.nodes);
		if (e->peer_port > (*found)->n_ports)
			return net_refuse(
				r, e->line, "port %u of %s, which has %u port%s (line %u)",
				e->peer_port, fabric_quote(e->peer_id).text, (*found)->n_ports,
				(*found)->n_ports == 1 ? "" : "s", (*found)->line);
		if (e->peer == e->node && e->peer_port == e->port)
			return net_refuse(r, e->line, "port %u of %s is joined with itself",
					  e->port, fabric_quote(e->peer_id).text);
	}
	return 0;
}

static int index_nodes(struct net_reader *r)
{
	struct fabric_net_node **nodes = malloc(r->net.n_nodes * sizeof(*nodes));
	int ret;

	if (!nodes)
		return no_memory(r);
	for (uint32_t i = 0; i < r->net.n_nodes; i++)
		nodes[i] = &r->net.nodes[i];
	ret = no_twins(r, nodes);
	if (!ret)
		ret = find_peers(r, nodes);
	free(nodes);
	return ret;
}

/* ---- cables, from both ends ---- */

static int by_port(const void *a, const void *b)
{
	const struct net_end *x = a, *y = b;

	if (x->node != y->node)
		return NET_ORDER(x->node, y->node);
	return x->port != y->port ? NET_ORDER(x->port, y->port) : NET_ORDER(x->line, y->line);
}

static struct net_end *find_end(const struct net_reader *r, uint32_t node, uint16_t port)
{
	size_t lo = 0, hi = r->n_ends;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		const struct net_end *e = &r->ends[mid];

		if (e->node < node || (e->node == node && e->port < port))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < r->n_ends && r->ends[lo].node == node && r->ends[lo].port == port ? &r->ends[lo]
										      : NULL;
}

/* Two lines that speak of the same port, the later one second. */
static int disagree(const struct net_reader *r, const struct net_end *a, const struct net_end *b)
{
	const struct fabric_net_node *nodes = r->net.nodes;

	return net_refuse(r, b->line,
			  "port %u of %s goes to port %u of %s here, but to port %u of %s in line "
			  "%u",
			  b->port, fabric_quote(nodes[b->node].id).text, b->peer_port,
			  fabric_quote(nodes[b->peer].id).text, a->peer_port,
			  fabric_quote(nodes[a->peer].id).text, a->line);
}

static struct net_end turned(const struct net_end *e)
{
	return (struct net_end){
		.guid = e->peer_guid,
		.peer_guid = e->guid,
		.node = e->peer,
		.peer = e->node,
		.line = e->line,
		.port = e->peer_port,
		.peer_port = e->port,
		.lid = e->peer_lid,
	};
}

/* What the other end's line says must be the same; what only one of them says holds for both. */
static int compare_ends(const struct net_reader *r, struct net_end *e, struct net_end *other)
{
	struct net_end mirror = turned(e);

	if (other->peer != mirror.peer || other->peer_port != mirror.peer_port)
		return e->line > other->line ? disagree(r, other, &mirror)
					     : disagree(r, &mirror, other);
	if (other->guid && mirror.guid && other->guid != mirror.guid)
		return net_refuse(r, e->line,
				  "the GUID of port %u of %s is 0x%" PRIx64 " here, but 0x%" PRIx64
				  " in line %u",
				  other->port, fabric_quote(r->net.nodes[other->node].id).text,
				  mirror.guid, other->guid, other->line);
	if (!other->guid)
		other->guid = mirror.guid;
	if (!other->lid)
		other->lid = mirror.lid;
	return 0;
}

static int sort_ends(struct net_reader *r)
{
	if (r->n_ends)
		qsort(r->ends, r->n_ends, sizeof(*r->ends), by_port);
	for (size_t i = 1; i < r->n_ends; i++) {
		const struct net_end *a = &r->ends[i - 1], *b = &r->ends[i];

		if (a->node != b->node || a->port != b->port)
			continue;
		if (a->peer != b->peer || a->peer_port != b->peer_port)
			return disagree(r, a, b);
		return net_refuse(r, b->line, "port %u of %s is in line %u already", b->port,
				  fabric_quote(r->net.nodes[b->node].id).text, a->line);
	}
	return 0;
}

/* Afterwards each cable has two ends. */
static int join_ends(struct net_reader *r)
{
	size_t listed = r->n_ends, added = 0;
	struct net_end *ends;
	int ret = sort_ends(r);

	for (size_t i = 0; !ret && i < listed; i++) {
		struct net_end *other = find_end(r, r->ends[i].peer, r->ends[i].peer_port);

		added += !other;
		if (other)
			ret = compare_ends(r, &r->ends[i], other);
	}
	if (ret || !added)
		return ret;
	ends = realloc(r->ends, (listed + added) * sizeof(*ends));
	if (!ends)
		return no_memory(r);
	r->ends = ends;
	for (size_t i = 0, at = listed; i < listed; i++)
		if (!find_end(r, ends[i].peer, ends[i].peer_port))
			ends[at++] = turned(&ends[i]);
	r->n_ends += added;
	return sort_ends(r);
}

static int by_value(const void *a, const void *b)
{
	const struct fabric_net_port *x = *(struct fabric_net_port *const *)a;
	const struct fabric_net_port *y = *(struct fabric_net_port *const *)b;

	return x->guid != y->guid ? NET_ORDER(x->guid, y->guid) : NET_ORDER(x->line, y->line);
}

static int no_port_twins(struct net_reader *r)
{
	struct fabric_net_port **ports = malloc((r->n_ends + 1) * sizeof(*ports));
	size_t n = 0;
	int ret = 0;

	if (!ports)
		return no_memory(r);
	for (uint32_t i = 0; i < r->net.n_ports; i++)
		if (r->net.ports[i].guid)
			ports[n++] = &r->net.ports[i];
	qsort(ports, n, sizeof(*ports), by_value);
	for (size_t i = 1; !ret && i < n; i++)
		if (ports[i]->guid == ports[i - 1]->guid)
			ret = net_refuse(r, ports[i]->line,
					 "the GUID 0x%" PRIx64
					 " is that of another port already, see line %u",
					 ports[i]->guid, ports[i - 1]->line);
	free(ports);
	return ret;
}

static int keep_ports(struct net_reader *r)
{
	struct fabric_net *net = &r->net;

	net->ports = malloc((r->n_ends + 1) * sizeof(*net->ports));
	if (!net->ports)
		return no_memory(r);
	net->n_ports = (uint32_t)r->n_ends;
	for (uint32_t i = 0; i < net->n_ports; i++) {
		const struct net_end *e = &r->ends[i];
		struct fabric_net_node *n = &net->nodes[e->node];
		bool is_switch = n->kind == FABRIC_NET_SWITCH;

		if (n->count++ == 0)
			n->first = i;
		if (is_switch && !n->lid)
			n->lid = e->lid;
		net->ports[i] = (struct fabric_net_port){
			/* ibsim counts on from the node's, if no other is given. */
			.guid = is_switch ? 0
				: e->guid ? e->guid
					  : n->guid + e->port,
			.peer = e->peer,
			.line = e->line,
			.number = e->port,
			.peer_port = e->peer_port,
			.lid = is_switch ? n->lid : e->lid,
			.lmc = is_switch ? n->lmc : e->lmc,
		};
	}
	return no_port_twins(r);
}

/* ---- all of it ---- */

int fabric_net_read(struct fabric_net *net, FILE *from, const char *name, char *why,
		    size_t why_size)
{
	struct net_reader r = {.file = name, .why = why, .why_size = why_size};
	struct fabric_quote quoted = fabric_quote(name);
	int ret;

	for (const char *s = name; *s; s++)
		if (*s < ' ' || *s >= 0x7f || s - name > 100)
			r.file = quoted.text;
	ret = read_text(&r, from);
	if (!ret)
		ret = net_parse(&r);
	if (!ret)
		ret = index_nodes(&r);
	if (!ret)
		ret = join_ends(&r);
	if (!ret)
		ret = keep_ports(&r);
	if (!ret)
		ret = net_name_nodes(&r);
	if (!ret) {
		r.net.file = strdup(r.file);
		ret = r.net.file ? 0 : -ENOMEM;
	}
	if (ret == -ENOMEM)
		no_memory(&r);
	free(r.ends);
	if (ret)
		fabric_net_free(&r.net);
	else
		*net = r.net;
	return ret;
}

void fabric_net_free(struct fabric_net *net)
{
	free(net->nodes);
	free(net->ports);
	free(net->text);
	free(net->names);
	free(net->file);
	*net = (struct fabric_net){0};
}

uint32_t fabric_net_find_port(const struct fabric_net *net, uint32_t node, uint32_t number)
{
	const struct fabric_net_node *n = &net->nodes[node];
	const struct fabric_net_port *ports = net->ports + n->first;
	uint32_t lo = 0, hi = n->count, guess;

	if (n->count == 0 || number < ports[0].number)
		return UINT32_MAX;
	/* Mostly all ports from some number on are there. */
	guess = number - ports[0].number;
	if (guess < n->count && ports[guess].number == number)
		return n->first + guess;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (ports[mid].number < number)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < n->count && ports[lo].number == number ? n->first + lo : UINT32_MAX;
}
