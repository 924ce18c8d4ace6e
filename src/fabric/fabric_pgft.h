/* Parallel-ports generalized fat trees, PGFT(h; m; w; p) of Zahavi's paper on fat-tree routing.
 *
 * Hosts ("end-ports") are level 0, switches are levels 1 … h. A node of level l−1 has w_l
 * parents, a node of level l has m_l children, and p_l parallel cables join each such pair.
 * With M_l = m_1·…·m_l and W_l = w_1·…·w_l:
 *
 * A node of level l is named by its level and an index. The index is made of two parts:
 *
 *	index = b + W_l · a      b = the digits b_l…b_1 (b_i < w_i): which of the alike switches
 *	                         a = the digits a_h…a_l+1 (a_i < m_i): which sub-tree
 *
 * so hosts have b = 0 and a = their number, and the ancestors of host j at level l are
 * those with a = ⌊j / M_l⌋.
 *
 * Up-going port q of a node leads to the parent with b_l+1 = q mod w_l+1 by cable
 * k = ⌊q / w_l+1⌋, and arrives there at down-going port r = a_l+1 + k·m_l+1.
 *
 * Everything here is a pure function of the tuple: no graph is ever built, so a tree of a
 * million hosts costs nothing.
 */
#ifndef WEFT_FABRIC_PGFT_H
#define WEFT_FABRIC_PGFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FABRIC_LEVELS_MAX 8
#define FABRIC_HOSTS_MAX  (1u << 24)
#define FABRIC_NODES_MAX  (1u << 28) /* hosts and switches */
#define FABRIC_CABLES_MAX (1u << 28) /* and no number of a tuple is more */
#define FABRIC_TUPLE_MAX  256        /* characters of a tuple as text, with the final zero */

struct fabric_pgft {
	uint32_t h;
	/* Indexed by level, 1 … h. */
	uint32_t m[FABRIC_LEVELS_MAX + 1];
	uint32_t w[FABRIC_LEVELS_MAX + 1];
	uint32_t p[FABRIC_LEVELS_MAX + 1];
	/* Products, indexed by level, 0 … h. */
	uint32_t M[FABRIC_LEVELS_MAX + 1];
	uint32_t W[FABRIC_LEVELS_MAX + 1];
	/* Nodes of each level, and the first of each level when all are numbered level by
	 * level, hosts first. first[h + 1] is the number of all nodes. */
	uint32_t nodes[FABRIC_LEVELS_MAX + 1];
	uint32_t first[FABRIC_LEVELS_MAX + 2];
	/* Cables between level l−1 and l, and the first of each when all are numbered. */
	uint32_t cables[FABRIC_LEVELS_MAX + 1];
	uint32_t first_cable[FABRIC_LEVELS_MAX + 2];
};

struct fabric_node {
	uint32_t level;
	uint32_t index;
};

/* A cable. Up-going port q of `lower` and down-going port r of `upper`. */
struct fabric_cable {
	struct fabric_node lower, upper;
	uint32_t q, r;
};

/* Parses "h;m_1,…,m_h;w_1,…,w_h;p_1,…,p_h"; blanks between numbers and signs are ignored,
 * "PGFT(…)" is accepted. Returns 0, or -EINVAL with one sentence in why, *t unchanged. */
int fabric_pgft_parse(struct fabric_pgft *t, const char *text, char *why, size_t why_size);

/* The tuple as text, without blanks. */
void fabric_pgft_print(const struct fabric_pgft *t, char text[FABRIC_TUPLE_MAX]);

static inline uint32_t fabric_hosts(const struct fabric_pgft *t)
{
	return t->nodes[0];
}

/* Hosts and switches. */
static inline uint32_t fabric_nodes(const struct fabric_pgft *t)
{
	return t->first[t->h + 1];
}

static inline uint32_t fabric_cables(const struct fabric_pgft *t)
{
	return t->first_cable[t->h + 1];
}

/* The number of a node among all, hosts first, and back. */
static inline uint32_t fabric_number(const struct fabric_pgft *t, struct fabric_node n)
{
	return t->first[n.level] + n.index;
}

struct fabric_node fabric_node(const struct fabric_pgft *t, uint32_t number);

/* "h7" is a host, "s2.5" a switch of level 2. Names are the same in every tool. */
#define FABRIC_NAME_MAX 24
void fabric_name(struct fabric_node n, char name[FABRIC_NAME_MAX]);
/* 0, or -ENOENT for what is not the name of a node of this tree. */
int fabric_find(const struct fabric_pgft *t, const char *name, struct fabric_node *n);

static inline uint32_t fabric_up_ports(const struct fabric_pgft *t, uint32_t level)
{
	return level < t->h ? t->w[level + 1] * t->p[level + 1] : 0;
}

static inline uint32_t fabric_down_ports(const struct fabric_pgft *t, uint32_t level)
{
	return level > 0 ? t->m[level] * t->p[level] : 0;
}

/* Is host j below this node (or this node itself)? */
bool fabric_is_below(const struct fabric_pgft *t, struct fabric_node n, uint32_t host);

/* The cable at an up-going or a down-going port, which must exist. */
struct fabric_cable fabric_cable_up(const struct fabric_pgft *t, struct fabric_node n, uint32_t q);
struct fabric_cable fabric_cable_down(const struct fabric_pgft *t, struct fabric_node n,
				      uint32_t r);

/* Cables are numbered level by level, then by lower node, then by its port. */
struct fabric_cable fabric_cable(const struct fabric_pgft *t, uint32_t number);
uint32_t fabric_cable_number(const struct fabric_pgft *t, const struct fabric_cable *c);

/* "h7-s1.0"; where there are parallel cables, "s1.0-s2.5:1" with the number of the cable. */
#define FABRIC_CABLE_NAME_MAX (2 * FABRIC_NAME_MAX + 12)
void fabric_cable_name(const struct fabric_pgft *t, const struct fabric_cable *c,
		       char name[FABRIC_CABLE_NAME_MAX]);
/* Either end may be named first; of a single cable, ":0" may be left out. 0, or -ENOENT. */
int fabric_find_cable(const struct fabric_pgft *t, const char *name, struct fabric_cable *c);

#endif
