/* What is different from the rule where something is missing.
 *
 * First of all switches, to which hosts they have no way (fabric_routes_gaps.c). Then, switch by
 * switch, for which destinations the cable of the rule is missing or leads to a switch that has no
 * way there: only where a cable of its own is missing, or in the gaps of its parents. Those get
 * another cable (fabric_routes_spread.c). All else is as the rule says, and not stored: one switch
 * less costs about one detour per host of the whole tree. */
#include "fabric_routes_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct around {
	struct fabric_routes *r;
	struct fabric_around *out;
	const struct fabric_pgft *t;
	struct fabric_rule rule; /* of the level in hand */
	struct fabric_alike alike;
	/* Of the switch in hand. */
	struct fabric_node n;
	uint32_t sw, first, end, up; /* its number, the hosts below, the up-going ports */
	uint8_t *open;               /* by up-going port: is there a cable? */
	uint32_t *load;              /* by port: destinations */
	/* Who lost the way: of all that have the same parents and all their cables; of one with
	 * cables of its own missing; and without those that are below the switch in hand. */
	struct fabric_losses shared, own, mine;
	/* Whose `own` is: of those with the same parents, all that have just these cables. */
	uint8_t *own_open;
	bool own_known;
	uint32_t *level_load; /* by up-going port, of all hosts; of the level in hand */
};

void *fabric_grow(void *at, size_t n, size_t *room, size_t size)
{
	void *more = at;

	if (n < *room)
		return at;
	more = realloc(at, (*room ? 2 * *room : 256) * size);
	if (more)
		*room = *room ? 2 * *room : 256;
	return more;
}

static int put_detour(struct around *x, uint32_t entry, uint32_t port)
{
	struct fabric_around *o = x->out;
	void *at = fabric_grow(o->detours, o->n_detours, &o->room_detours, sizeof(*o->detours));

	if (!at)
		return -ENOMEM;
	o->detours = at;
	o->detours[o->n_detours++] = (struct fabric_detour){entry, (uint16_t)port};
	return 0;
}

/* ---- the rule, counted ---- */

/* What keeps the cable of the rule. D-Mod-K has the same ports on all switches of a level, so that
 * they are counted once, and only what is not there is taken away. */
static void count_kept(struct around *x)
{
	const struct fabric_around_switch *of = &x->out->of[x->sw];
	const struct fabric_gap *gaps = x->out->gaps + of->gap;
	uint32_t hosts = fabric_hosts(x->t);

	if (x->r->rule.kind == FABRIC_RANDOM) {
		memset(x->load, 0, x->up * sizeof(*x->load));
		fabric_rule_count(&x->rule, x->n, 0, x->first, 1, x->load);
		fabric_rule_count(&x->rule, x->n, x->end, hosts, 1, x->load);
	} else {
		memcpy(x->load, x->level_load, x->up * sizeof(*x->load));
		fabric_rule_count(&x->rule, x->n, x->first, x->end, UINT32_MAX, x->load);
	}
	for (uint32_t i = 0; i < of->n_gaps; i++) {
		uint32_t first = gaps[i].first, end = gaps[i].end;

		fabric_rule_count(&x->rule, x->n, first, end < x->first ? end : x->first,
				  UINT32_MAX, x->load);
		fabric_rule_count(&x->rule, x->n, first > x->end ? first : x->end, end, UINT32_MAX,
				  x->load);
	}
	for (size_t i = 0; i < x->mine.n; i++)
		x->load[x->mine.at[i].q]--;
}

/* ---- down ---- */

/* Of the cables to one child, the first with the least load after that of the rule. */
static uint32_t other_down(const struct around *x, uint32_t cable, uint32_t k)
{
	uint32_t p = x->t->p[x->n.level], w = x->t->w[x->n.level], best = FABRIC_NONE;

	for (uint32_t i = 1; i < p; i++) {
		uint32_t at = k + i < p ? k + i : k + i - p;

		if (fabric_tree_has_cable(x->r->tree, cable + at * w) &&
		    (best == FABRIC_NONE || x->load[at] < x->load[best]))
			best = at;
	}
	return best;
}

/* All cables to a child lead to the same hosts: the one with the fewest is best. `again`: those
 * that keep theirs are counted already. */
static int part_down(struct around *x, uint32_t child, uint32_t cable, bool again)
{
	uint32_t lmc = x->r->rule.lmc, step = FABRIC_CHUNK >> lmc, m = x->t->m[x->n.level];
	uint32_t w = x->t->w[x->n.level], hosts = x->t->M[x->n.level - 1];
	uint32_t first = x->first + child * hosts;
	uint16_t cable_k[FABRIC_CHUNK];

	for (uint32_t j = first; j < first + hosts; j += step) {
		uint32_t n = first + hosts - j < step ? first + hosts - j : step;

		fabric_rule_down(&x->rule, x->n, j, n, cable_k);
		for (uint32_t e = 0; e < n << lmc; e++) {
			uint32_t k = cable_k[e];
			bool kept = fabric_tree_has_cable(x->r->tree, cable + k * w);

			if (again == kept || fabric_around_gone(x->out, x->sw, j + (e >> lmc)))
				continue;
			if (again)
				k = other_down(x, cable, k);
			x->load[k]++;
			if (again && put_detour(x, (j << lmc) + e, child + k * m))
				return -ENOMEM;
		}
	}
	return 0;
}

static int go_down(struct around *x)
{
	const struct fabric_pgft *t = x->t;
	uint32_t l = x->n.level, p = t->p[l];

	for (uint32_t i = 0; p > 1 && i < t->m[l]; i++) {
		struct fabric_cable c = fabric_cable_down(t, x->n, i);
		uint32_t cable = fabric_cable_number(t, &c), open = 0;

		for (uint32_t k = 0; k < p; k++)
			open += fabric_tree_has_cable(x->r->tree, cable + k * t->w[l]);
		if (open == 0 || open == p)
			continue;
		memset(x->load, 0, p * sizeof(*x->load));
		if (part_down(x, i, cable, false) || part_down(x, i, cable, true))
			return -ENOMEM;
	}
	return 0;
}

/* ---- up ---- */

/* Those of a list that are not below. */
static int take_mine(struct around *x, const struct fabric_losses *l)
{
	uint32_t lmc = x->r->rule.lmc;

	x->mine.n = 0;
	for (size_t i = 0; i < l->n; i++) {
		uint32_t host = l->at[i].entry >> lmc;

		if ((host < x->first || host >= x->end) && fabric_losses_put(&x->mine, &l->at[i]))
			return -ENOMEM;
	}
	return 0;
}

static int spread(struct around *x, const struct fabric_losses *l)
{
	if (!x->mine.n)
		return 0;
	fabric_alike_begin(&x->alike, &x->rule, x->n);
	count_kept(x);
	return fabric_spread(&x->mine, l, x->load, &x->alike);
}

static bool look_up(struct around *x)
{
	uint32_t cable = x->t->first_cable[x->n.level + 1] + x->n.index * x->up;
	bool all = true;

	for (uint32_t q = 0; q < x->up; q++) {
		x->open[q] = fabric_tree_has_cable(x->r->tree, cable + q);
		all &= x->open[q];
	}
	return all;
}

/* ---- all ---- */

static int put_up(struct around *x, bool before)
{
	uint32_t down = fabric_down_ports(x->t, x->n.level), lmc = x->r->rule.lmc;

	for (size_t i = 0; i < x->mine.n; i++)
		if ((x->mine.at[i].entry >> lmc < x->first) == before &&
		    put_detour(x, x->mine.at[i].entry, down + x->mine.at[i].to))
			return -ENOMEM;
	return 0;
}

/* Switches with the same parents often have the same detours. */
static void share(struct fabric_around *o, struct fabric_around_switch *of)
{
	size_t n = o->n_detours - of->detour;

	of->n_detours = (uint32_t)n;
	if (n > of->detour)
		return;
	for (size_t i = 0; i < n; i++)
		if (o->detours[of->detour - n + i].entry != o->detours[of->detour + i].entry ||
		    o->detours[of->detour - n + i].port != o->detours[of->detour + i].port)
			return;
	o->n_detours = of->detour;
	of->detour -= n;
}

/* A parent that is missing is missing to all its children. */
static int find_own(struct around *x)
{
	if (x->own_known && !memcmp(x->own_open, x->open, x->up))
		return 0;
	memcpy(x->own_open, x->open, x->up);
	x->own_known = x->r->rule.kind != FABRIC_RANDOM;
	return fabric_losses_find(&x->own, x->out, &x->rule, x->n, x->open);
}

/* fresh: it is the first that has these parents. */
static int go_up(struct around *x, bool fresh, bool *again)
{
	struct fabric_losses *l = &x->shared;
	int ret = 0;

	x->mine.n = 0;
	*again |= fresh;
	if (!x->up)
		return 0;
	if (!look_up(x) || x->r->rule.kind == FABRIC_RANDOM) {
		l = &x->own;
		ret = find_own(x);
	} else if (*again) {
		ret = fabric_losses_find(l, x->out, &x->rule, x->n, x->open);
		*again = false;
	}
	if (!ret)
		ret = take_mine(x, l);
	return ret ? ret : spread(x, l);
}

static int one(struct around *x, uint32_t index, bool fresh, bool *again)
{
	const struct fabric_pgft *t = x->t;
	uint32_t l = x->n.level;
	struct fabric_around_switch *of;
	int ret;

	x->n.index = index;
	x->sw = fabric_number(t, x->n) - t->first[1];
	x->first = index / t->W[l] * t->M[l];
	x->end = x->first + t->M[l];
	of = &x->out->of[x->sw];
	of->detour = x->out->n_detours;
	x->own_known &= !fresh;
	if (!fabric_tree_has_node(x->r->tree, fabric_number(t, x->n))) {
		*again |= fresh;
		return 0;
	}
	ret = go_up(x, fresh, again);
	if (!ret)
		ret = put_up(x, true);
	if (!ret)
		ret = go_down(x);
	if (!ret)
		ret = put_up(x, false);
	share(x->out, of);
	return ret;
}

static int level(struct around *x, uint32_t l)
{
	const struct fabric_pgft *t = x->t;
	uint32_t siblings = l < t->h ? t->m[l + 1] : 1;
	bool again = true;
	int ret = 0;

	x->n = (struct fabric_node){l, 0};
	x->up = fabric_up_ports(t, l);
	memset(x->level_load, 0, x->up * sizeof(*x->level_load));
	if (x->up && x->r->rule.kind != FABRIC_RANDOM)
		fabric_rule_count(&x->rule, x->n, 0, fabric_hosts(t), 1, x->level_load);
	for (uint32_t b = 0; b < t->W[l]; b++)
		for (uint32_t a = 0; !ret && a < t->nodes[l] / t->W[l]; a++)
			ret = one(x, b + t->W[l] * a, a % siblings == 0, &again);
	return ret;
}

static int alloc(struct around *x)
{
	size_t ports = 1;

	for (uint32_t l = 1; l <= x->t->h; l++) {
		size_t up = fabric_up_ports(x->t, l), most = up > x->t->p[l] ? up : x->t->p[l];

		ports = most > ports ? most : ports;
	}
	x->open = calloc(ports, sizeof(*x->open));
	x->own_open = calloc(ports, sizeof(*x->own_open));
	x->load = calloc(ports, sizeof(*x->load));
	x->level_load = calloc(ports, sizeof(*x->level_load));
	if (!x->open || !x->own_open || !x->load || !x->level_load)
		return -ENOMEM;
	return fabric_alike_init(&x->alike, x->r);
}

static void release(struct around *x)
{
	free(x->open);
	free(x->own_open);
	free(x->load);
	free(x->level_load);
	fabric_losses_free(&x->shared);
	fabric_losses_free(&x->own);
	fabric_losses_free(&x->mine);
	fabric_alike_free(&x->alike);
}

void fabric_around_free(struct fabric_around *x)
{
	if (!x)
		return;
	free(x->gaps);
	free(x->detours);
	free(x->of);
	free(x);
}

static struct fabric_around *around_new(const struct fabric_pgft *t)
{
	struct fabric_around *x = calloc(1, sizeof(*x));

	if (!x)
		return NULL;
	x->switches = fabric_nodes(t) - fabric_hosts(t);
	x->of = calloc(x->switches, sizeof(*x->of));
	/* Never NULL, so that lists without anything are somewhere, too. */
	x->room_gaps = x->room_detours = 64;
	x->gaps = malloc(x->room_gaps * sizeof(*x->gaps));
	x->detours = malloc(x->room_detours * sizeof(*x->detours));
	if (x->of && x->gaps && x->detours)
		return x;
	fabric_around_free(x);
	return NULL;
}

int fabric_routes_around(struct fabric_routes *r)
{
	struct around x = {.r = r, .t = &r->tree->pgft};
	int ret;

	r->around = x.out = around_new(x.t);
	if (!x.out)
		return -ENOMEM;
	ret = alloc(&x);
	if (!ret)
		ret = fabric_gaps_make(x.out, r->tree);
	for (uint32_t l = 1; !ret && l <= x.t->h; l++) {
		ret = fabric_rule_init(&x.rule, r, l);
		if (!ret)
			ret = level(&x, l);
		fabric_rule_free(&x.rule);
	}
	release(&x);
	return ret;
}
