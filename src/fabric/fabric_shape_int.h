/* Between the parts of fabric_shape. Each step fills in more of struct shape. */
#ifndef WEFT_FABRIC_SHAPE_INT_H
#define WEFT_FABRIC_SHAPE_INT_H

#include "fabric_shape.h"
#include "fabric_text.h"

/* A cable. Ends are vertices: switches and hosts. */
struct shape_link {
	uint32_t end[2];
	uint32_t place[2]; /* of its ports in the network */
};

/* Sub-trees of one level. Those of level 0 are hosts. */
struct shape_groups {
	uint32_t n;
	uint32_t *parent;   /* sub-tree of the next level; FABRIC_NONE: it has none */
	uint32_t *children; /* how many */
	uint32_t *size;     /* nodes in it */
	uint32_t *first;    /* by names, the first of its leaves, as a vertex */
	uint32_t *position; /* among those of its parent: the digit a */
	uint32_t *path;     /* all digits from here to the top */
};

/* Blocks between level l−1 and l: by block, the sub-tree of level l that it belongs to, the digits
 * b that its lower nodes have in common, and how many upper nodes there are. */
struct shape_blocks {
	uint32_t n;
	uint32_t *group, *base, *uppers;
};

struct shape {
	struct fabric_net *net;
	bool by_port;
	bool by_rivals; /* leaves are those that most others agree with (fabric_shape_rivals.c) */
	/* The graph. */
	uint32_t n, n_links;
	uint32_t *node; /* by vertex: place in the network */
	struct shape_link *links;
	uint32_t *adj_first, *adj; /* by vertex, in the order of ports: 2·link + own end */
	/* Levels. Vertices in order of level. */
	uint32_t h;
	uint32_t *level; /* FABRIC_NONE: beside the tree */
	uint8_t *is_leaf;
	uint8_t *stray; /* switches beside the tree */
	uint32_t *order, first[FABRIC_LEVELS_MAX + 2];
	/* By vertex: its sub-tree; the blocks that it is an upper and a lower node of; its digits
	 * b. */
	uint32_t *group, *upper_of, *lower_of, *b;
	struct shape_groups groups[FABRIC_LEVELS_MAX + 1];
	struct shape_blocks blocks[FABRIC_LEVELS_MAX + 1];
	struct fabric_pgft pgft;
	uint32_t *number; /* by vertex: of the node in the tree */
	uint32_t *vertex; /* and back */
	struct fabric_defects defects;
	char *why;
	size_t why_size;
};

static inline bool shape_is_host(const struct shape *s, uint32_t v)
{
	return s->net->nodes[s->node[v]].kind != FABRIC_NET_SWITCH;
}

static inline const char *shape_name(const struct shape *s, uint32_t v)
{
	return s->net->nodes[s->node[v]].name;
}

/* Where it is in the text. */
static inline uint32_t shape_line(const struct shape *s, uint32_t v)
{
	return s->net->nodes[s->node[v]].line;
}

/* "FILE:LINE: …"; returns -EINVAL. */
#define shape_refuse(s, line, fmt, ...)                                                            \
	fabric_refuse((s)->why, (s)->why_size, "%s:%u: " fmt, (s)->net->file, line, ##__VA_ARGS__)

/* The other end of an entry of adj. */
static inline uint32_t shape_peer(const struct shape *s, uint32_t entry)
{
	return s->links[entry / 2].end[1 - entry % 2];
}

static inline uint32_t shape_port(const struct shape *s, uint32_t entry, uint32_t other)
{
	return s->net->ports[s->links[entry / 2].place[(entry % 2) ^ other]].number;
}

/* Zeroed or filled with FABRIC_NONE; never of size 0. */
uint32_t *shape_array(size_t n, bool none);

/* By name, those of the same name by their place in the text. */
int shape_order(const struct shape *s, uint32_t v, uint32_t u);

int shape_defect(struct shape *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* fabric_shape_leaves.c. Hosts that have a cable to a leaf are level 0; others are beside the
 * tree. */
uint32_t shape_hosts_at(const struct shape *s, uint32_t v);
int shape_choose_hosts(struct shape *s);
void shape_add_hosts(struct shape *s);
/* The only switch that all cables of a switch lead to; FABRIC_NONE: there are others, or none. */
uint32_t shape_only_neighbour(const struct shape *s, uint32_t v);

/* Given hosts by vertex, of switches that may be leaves, fills in which are; hosts of others become
 * 0. (fabric_shape_rivals.c) */
int shape_rivals(const struct shape *s, uint32_t *hosts, uint8_t *is_leaf);

/* fabric_shape_strays.c. Given levels, switches that hang on one other, or with hosts on a few, are
 * left out, if that is unusual; more may do so then. */
int shape_leave_out_strays(struct shape *s, bool *found);

int shape_levels(struct shape *s); /* fabric_shape_levels.c */

/* The parts of a bipartite graph that would be joined completely, by majority: fills the part of
 * each on the left and right, FABRIC_NONE for what has no edge. (fabric_shape_parts.c) */
struct shape_edge {
	uint32_t left, right;
};
int shape_parts(const struct shape_edge *edges, size_t n_edges, uint32_t n_left, uint32_t n_right,
		uint32_t *left, uint32_t *right, uint32_t *n_parts);

int shape_groups(struct shape *s); /* fabric_shape_groups.c: sub-trees and blocks */
int shape_tuple(struct shape *s);  /* and the tuple that most of them have */
int shape_digits(struct shape *s); /* fabric_shape_digits.c: numbers all nodes */

/* fabric_shape_cables.c: ports and cables of the tree, and what is wrong. */
int shape_cables(struct shape *s, struct fabric_tree *tree);

#endif
