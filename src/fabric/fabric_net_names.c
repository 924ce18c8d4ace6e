#include "fabric_net_int.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	const struct fabric_net_node *x = *(struct fabric_net_node *const *)a;
	const struct fabric_net_node *y = *(struct fabric_net_node *const *)b;

	return strcmp(x->name, y->name);
}

/* Of the form "node17 HCA-1". Machines that were not told their name yet are not the same one. */
static bool is_adapter(const struct fabric_net_node *n)
{
	size_t word = strcspn(n->desc, " \t");

	return n->kind != FABRIC_NET_SWITCH && word && n->desc[word] == ' ' && n->desc[word + 1] &&
	       !strpbrk(n->desc + word + 1, " \t/") && strncmp(n->desc, "localhost ", 10) != 0 &&
	       strncmp(n->desc, "(none) ", 7) != 0;
}

/* Nodes that are called the same get another name: all of the description, and at last the id. An
 * adapter stays one of its machine, even where its name is another's or is the id. */
static void part_names(struct fabric_net_node **nodes, uint32_t n, bool last, char **at)
{
	uint32_t from = 0;

	qsort(nodes, n, sizeof(*nodes), by_name);
	for (uint32_t i = 1; i <= n; i++) {
		if (i < n && !strcmp(nodes[i]->name, nodes[from]->name))
			continue;
		/* The name is written over only when the last of them has been compared. */
		for (uint32_t k = from; k < i && (i - from > 1 || !*nodes[from]->name); k++) {
			struct fabric_net_node *node = nodes[k];

			if (last || !is_adapter(node)) {
				node->name = last ? node->id : node->desc;
				node->host = is_adapter(node) ? node->host : node->name;
				continue;
			}
			node->name = strcpy(*at, node->desc);
			(*at)[strcspn(*at, " ")] = '/';
			*at += strlen(*at) + 1;
		}
		from = i;
	}
}

int net_name_nodes(struct net_reader *r)
{
	struct fabric_net_node **nodes = malloc(r->net.n_nodes * sizeof(*nodes));
	size_t room = 1;
	char *at;

	for (uint32_t i = 0; i < r->net.n_nodes; i++)
		room += 2 * (strlen(r->net.nodes[i].desc) + 1);
	at = r->net.names = malloc(room);
	if (!nodes || !at) {
		free(nodes);
		return -ENOMEM;
	}
	for (uint32_t i = 0; i < r->net.n_nodes; i++) {
		struct fabric_net_node *n = nodes[i] = &r->net.nodes[i];
		size_t word = strcspn(n->desc, " \t");

		n->name = n->host = n->desc;
		if (n->kind == FABRIC_NET_SWITCH || !n->desc[word])
			continue;
		n->name = n->host = memcpy(at, n->desc, word);
		at[word] = 0;
		at += word + 1;
	}
	part_names(nodes, r->net.n_nodes, false, &at);
	part_names(nodes, r->net.n_nodes, true, &at);
	free(nodes);
	return 0;
}
