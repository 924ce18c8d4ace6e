/* What nodes and cables are called, and how they are found by that. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_text.h"
#include "fabric_tree_in.h"

void fabric_tree_name(const struct fabric_tree *t, uint32_t node, char name[FABRIC_TREE_NAME_MAX])
{
	const struct fabric_net_node *n = t->net ? fabric_tree_net_node(t, node) : NULL;

	if (!n)
		fabric_name(fabric_node(&t->pgft, node), name);
	else if (t->by_port && node < fabric_hosts(&t->pgft) && n->count > 1)
		snprintf(name, FABRIC_TREE_NAME_MAX, "%.72s/%u", n->name, t->lower_port[node]);
	else
		snprintf(name, FABRIC_TREE_NAME_MAX, "%s", n->name);
}

/* As they are printed, a name is cut off at FABRIC_TREE_NAME_MAX. */
static int compare_names(const char *a, const char *b)
{
	return strncmp(a, b, FABRIC_TREE_NAME_MAX - 1);
}

static int by_name(const void *a, const void *b)
{
	const struct tree_name *x = a, *y = b;
	int c = compare_names(x->name, y->name);

	return c ? c : (x->node > y->node) - (x->node < y->node);
}

static int by_guid(const void *a, const void *b)
{
	const struct tree_guid *x = a, *y = b;

	if (x->guid != y->guid)
		return (x->guid > y->guid) - (x->guid < y->guid);
	return (x->node > y->node) - (x->node < y->node);
}

void fabric_tree_free_index(struct fabric_tree *t)
{
	if (t->index) {
		free(t->index->names);
		free(t->index->guids);
		free(t->index->machines);
	}
	free(t->index);
}

struct machine {
	const char *name;
	uint32_t host;
};

static int by_machine(const void *a, const void *b)
{
	const struct machine *x = a, *y = b;
	int c = compare_names(x->name, y->name);

	return c ? c : (x->host > y->host) - (x->host < y->host);
}

static int index_machines(struct fabric_tree *t)
{
	uint32_t hosts = fabric_hosts(&t->pgft), n = 0;
	struct machine *machines = malloc(hosts * sizeof(*machines));

	t->index->machines = malloc(hosts * sizeof(*t->index->machines));
	if (!machines || !t->index->machines) {
		free(machines);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < hosts; i++)
		if (fabric_tree_net_node(t, i))
			machines[n++] = (struct machine){fabric_tree_net_node(t, i)->host, i};
	qsort(machines, n, sizeof(*machines), by_machine);
	for (uint32_t i = 0; i < n; i++)
		t->index->machines[i] = machines[i].host;
	t->index->n_machines = n;
	free(machines);
	return 0;
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
		const struct fabric_net_node *node = fabric_tree_net_node(t, i);
		uint64_t port = node ? fabric_tree_port_guid(t, i) : 0;

		if (!node)
			continue;
		x->names[x->n_names++] = (struct tree_name){node->name, i};
		x->guids[x->n_guids++] = (struct tree_guid){node->guid, i};
		if (port && port != node->guid)
			x->guids[x->n_guids++] = (struct tree_guid){port, i};
	}
	qsort(x->names, x->n_names, sizeof(*x->names), by_name);
	qsort(x->guids, x->n_guids, sizeof(*x->guids), by_guid);
	return index_machines(t);
}

/* The first in machines that comes behind all before the name, or behind all of the name, too. */
static uint32_t find_machine(const struct fabric_tree *t, const char *name, bool behind)
{
	const struct fabric_tree_index *x = t->index;
	uint32_t lo = 0, hi = x->n_machines;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (compare_names(fabric_tree_net_node(t, x->machines[mid])->host, name) < behind)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

uint32_t fabric_tree_machine(const struct fabric_tree *t, const char *name, const uint32_t **hosts)
{
	uint32_t first;

	*hosts = NULL;
	if (!t->index)
		return 0;
	first = find_machine(t, name, false);
	*hosts = t->index->machines + first;
	return find_machine(t, name, true) - first;
}

void fabric_tree_machine_name(const struct fabric_tree *t, uint32_t host,
			      char name[FABRIC_TREE_NAME_MAX])
{
	const struct fabric_net_node *n = t->net ? fabric_tree_net_node(t, host) : NULL;

	if (n)
		snprintf(name, FABRIC_TREE_NAME_MAX, "%s", n->host);
	else
		fabric_tree_name(t, host, name);
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
		if ((guid ^ FABRIC_TREE_GUID) >> 40 || n.level > t->pgft.h || index == 0 ||
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

/* By what the text of the network quotes, S-0002c90100000040, or by all of a description. There
 * is no index of these: they are for people, who give a few. */
static uint32_t find_text(const struct fabric_tree *t, const char *text)
{
	uint32_t found = FABRIC_NONE, of_net = FABRIC_NONE;

	for (uint32_t i = 0; i < fabric_nodes(&t->pgft); i++) {
		const struct fabric_net_node *n = fabric_tree_net_node(t, i);

		if (!n || t->net_node[i] == of_net)
			continue;
		if (!strcmp(n->id, text))
			return i;
		if (strcmp(n->desc, text) != 0)
			continue;
		/* Two of them: it does not say which. */
		if (found != FABRIC_NONE)
			return FABRIC_NONE;
		found = i;
		of_net = t->net_node[i];
	}
	return found;
}

/* "node17 HCA-1", as the description has it, is called node17/HCA-1 where there are several. */
static uint32_t find_words(const struct fabric_tree *t, const char *text)
{
	char name[FABRIC_TREE_NAME_MAX];
	char *blank;

	snprintf(name, sizeof(name), "%s", text);
	blank = strchr(name, ' ');
	if (!blank)
		return FABRIC_NONE;
	*blank = '/';
	return find_name(t->index, name);
}

int fabric_tree_find(const struct fabric_tree *t, const char *name, uint32_t *node)
{
	struct fabric_node n;
	uint32_t found = FABRIC_NONE;

	if (t->net) {
		found = find_name(t->index, name);
		if (found == FABRIC_NONE)
			found = find_words(t, name);
		if (found != FABRIC_NONE)
			found = t->index->names[found].node;
		else
			found = find_name_of_port(t, name);
	}
	if (found == FABRIC_NONE)
		found = find_guid(t, name);
	if (found == FABRIC_NONE && t->net)
		found = find_text(t, name);
	if (found == FABRIC_NONE && !fabric_find(&t->pgft, name, &n)) {
		found = fabric_number(&t->pgft, n);
		if (t->net && !fabric_tree_net_node(t, found))
			found = FABRIC_NONE;
	}
	if (found == FABRIC_NONE)
		return -ENOENT;
	*node = found;
	return 0;
}

/* ---- cables ---- */

size_t fabric_tree_split_end(const char *text, uint64_t *port)
{
	size_t len = strlen(text);
	bool bracket = len && text[len - 1] == ']';
	size_t last = bracket ? len - 1 : len, at = last;
	char number[24];

	while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9')
		at--;
	if (at < 2 || last - at >= sizeof(number) || text[at - 1] != (bracket ? '[' : ':'))
		return 0;
	memcpy(number, text + at, last - at);
	number[last - at] = 0;
	return fabric_decimal(number, port) ? 0 : at - 1;
}

static int find_end(const struct fabric_tree *t, const char *text, uint32_t *cable, char *why,
		    size_t why_size)
{
	char name[256];
	uint32_t node;
	uint64_t port = 0;
	size_t len = fabric_tree_split_end(text, &port);

	if (!len || len >= sizeof(name))
		return fabric_refuse(why, why_size, "there is no node or cable %s",
				     fabric_quote(text).text);
	memcpy(name, text, len);
	name[len] = 0;
	if (fabric_tree_find(t, name, &node))
		return fabric_refuse(why, why_size, "there is no node %s, and no node or cable %s",
				     fabric_quote(name).text, fabric_quote(text).text);
	*cable = port <= UINT32_MAX ? fabric_tree_cable_of(t, node, (uint32_t)port) : FABRIC_NONE;
	if (*cable == FABRIC_NONE)
		return fabric_refuse(why, why_size,
				     "port %" PRIu64 " of %s has no cable of the tree", port,
				     fabric_quote(name).text);
	return 0;
}

int fabric_tree_find_cable(const struct fabric_tree *t, const char *text, uint32_t *cable,
			   char *why, size_t why_size)
{
	struct fabric_cable c;

	if (fabric_find_cable(&t->pgft, text, &c))
		return find_end(t, text, cable, why, why_size);
	*cable = fabric_cable_number(&t->pgft, &c);
	return 0;
}
