/* What the files of fabric_routes share among themselves. */
#ifndef WEFT_FABRIC_ROUTES_IN_H
#define WEFT_FABRIC_ROUTES_IN_H

#include "fabric_routes.h"

/* What D-Mod-K is applied to in place of the host. */
static inline uint32_t fabric_key(const struct fabric_routes *r, uint32_t host)
{
	return r->index && r->index[host] != FABRIC_NONE ? r->index[host] : host;
}

/* By how much an address turns the up-going port at a level: its digit of that level. */
static inline uint32_t fabric_turn(const struct fabric_pgft *t, uint32_t level, uint32_t address)
{
	for (uint32_t below = 0; below < level; below++)
		address /= fabric_up_ports(t, below);
	return address % fabric_up_ports(t, level);
}

/* The up-going port of D-Mod-K. */
uint32_t fabric_climb(const struct fabric_routes *r, uint32_t level, uint32_t host,
		      uint32_t address);

/* ---- the rule, for many hosts in a row ---- */

/* What ⌊key / W_l⌋ mod (up-going ports of level l) becomes, for each address. */
struct fabric_choices {
	uint32_t run, ports; /* W_l, and how many are chosen from */
	uint32_t addresses;
	uint16_t *out; /* by choice, then by address */
};

/* The rule of the switches of a level. */
struct fabric_rule {
	const struct fabric_routes *r;
	uint32_t level;
	struct fabric_choices up, down;
};

/* 0 or -ENOMEM. */
int fabric_rule_init(struct fabric_rule *x, const struct fabric_routes *r, uint32_t level);
void fabric_rule_free(struct fabric_rule *x);
/* For hosts that are not below the switch: the up-going port. For hosts below one child of it:
 * which of the parallel cables. One for each address. */
void fabric_rule_up(const struct fabric_rule *x, struct fabric_node n, uint32_t first,
		    uint32_t hosts, uint16_t *out);
void fabric_rule_down(const struct fabric_rule *x, struct fabric_node n, uint32_t first,
		      uint32_t hosts, uint16_t *out);

/* Adds `by` to load[q] for each entry of hosts first … end−1, which are not below. */
void fabric_rule_count(const struct fabric_rule *x, struct fabric_node n, uint32_t first,
		       uint32_t end, uint32_t by, uint32_t *load);
#define FABRIC_CHUNK 4096 /* entries that are looked at in one go; more than 2^lmc */

/* The table of a switch by the formula, as if the tree were whole. What is written for down-going
 * port r is port[r], for up-going port q port[down ports + q]. 0 or -ENOMEM. */
int fabric_routes_formula(const struct fabric_routes *r, struct fabric_node n, const uint16_t *port,
			  uint16_t *out);

/* ---- around what is missing ---- */

/* Hosts first … end−1, to which a switch has no way. */
struct fabric_gap {
	uint32_t first, end;
};

/* Where a switch can not follow the rule. The port is r for down-going, down ports + q for up-going
 * ones. */
struct fabric_detour {
	uint32_t entry;
	uint16_t port;
};

/* What is different from the rule, by switch (numbers from the first switch on). Lists are sorted;
 * switches that have the same may share one. */
struct fabric_around {
	struct fabric_gap *gaps;
	struct fabric_detour *detours;
	size_t n_gaps, n_detours, room_gaps, room_detours;
	struct fabric_around_switch {
		size_t gap, detour; /* the first of each */
		uint32_t n_gaps, n_detours;
	} * of;
	uint32_t switches;
};

/* Makes r->around. 0 or -ENOMEM. */
int fabric_routes_around(struct fabric_routes *r);
void fabric_around_free(struct fabric_around *x);

/* The gaps of all switches. 0 or -ENOMEM. */
int fabric_gaps_make(struct fabric_around *x, const struct fabric_tree *tree);

static inline bool fabric_around_gone(const struct fabric_around *x, uint32_t sw, uint32_t host)
{
	const struct fabric_gap *g = x->gaps + x->of[sw].gap;
	uint32_t lo = 0, hi = x->of[sw].n_gaps;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (g[mid].end <= host)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->of[sw].n_gaps && g[lo].first <= host;
}

/* The port; FABRIC_NONE: that of the rule. */
static inline uint32_t fabric_around_port(const struct fabric_around *x, uint32_t sw,
					  uint32_t entry)
{
	const struct fabric_detour *d = x->detours + x->of[sw].detour;
	uint32_t lo = 0, hi = x->of[sw].n_detours;

	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;

		if (d[mid].entry < entry)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < x->of[sw].n_detours && d[lo].entry == entry ? d[lo].port : FABRIC_NONE;
}

/* Room for one more of this size: NULL, or where they are now. */
void *fabric_grow(void *at, size_t n, size_t *room, size_t size);

/* ---- spreading ---- */

/* Destinations of a switch that can not have the cable of the rule. Those of the same kind are
 * led to by the same cables. */
struct fabric_lost {
	uint32_t entry, kind;
	uint16_t q, to; /* the up-going port of the rule, and the one that it gets */
};

struct fabric_losses {
	struct fabric_lost *at; /* by entry, ascending */
	size_t n, room;
	uint8_t *lead; /* by kind and up-going port: does it lead there? */
	uint32_t kinds, kind_room, up;
	uint32_t *points; /* for finding them */
	size_t n_points, points_room;
};

/* Of the switch n, whose up-going cables are those that are open; also among the hosts that are
 * below it, for others with the same parents. 0 or -ENOMEM. */
int fabric_losses_find(struct fabric_losses *l, const struct fabric_around *x,
		       const struct fabric_rule *rule, struct fabric_node n, const uint8_t *open);
int fabric_losses_put(struct fabric_losses *l, const struct fabric_lost *one);
void fabric_losses_free(struct fabric_losses *l);

/* What all alike switches of a level (the same b) know, so that they agree on detours. */
struct fabric_alike {
	const struct fabric_routes *r;
	const struct fabric_rule *rule;
	struct fabric_node n; /* the switch in hand */
	uint16_t *detour;     /* by entry, 1 + the up-going port that one has found; 0: none yet */
	uint32_t *agreed;     /* by up-going port, how many of these there are */
	uint32_t *down;       /* by sub-tree, by up-going port: destinations that come down there */
	uint8_t *known;       /* by sub-tree: is that counted? */
};

/* 0 or -ENOMEM. */
int fabric_alike_init(struct fabric_alike *a, const struct fabric_routes *r);
void fabric_alike_free(struct fabric_alike *a);
/* Now comes this switch. If it is not like the one before, all is forgotten. */
void fabric_alike_begin(struct fabric_alike *a, const struct fabric_rule *rule,
			struct fabric_node n);
/* The cable that others have taken for a destination (FABRIC_NONE: none yet); what it costs to take
 * one, less is better; it is taken. */
uint32_t fabric_alike_agreed(const struct fabric_alike *a, const struct fabric_lost *e);
uint64_t fabric_alike_cost(struct fabric_alike *a, const struct fabric_lost *e, uint32_t q);
void fabric_alike_take(struct fabric_alike *a, const struct fabric_lost *e, uint32_t q);

/* Gives each of `lost` (which are some of `all`) a cable, so that the most that any of these cables
 * gets is as little as can be, and within that the one that was agreed on or costs the least.
 * load: by up-going port, the destinations that it has already, and after this has. 0 or -ENOMEM.
 */
int fabric_spread(struct fabric_losses *lost, const struct fabric_losses *all, uint32_t *load,
		  struct fabric_alike *alike);

#endif
