/* The adversary of section II: a ring in which every leaf's flows meet on one up-going port.
 *
 * By D-Mod-K, the leaf and the up-going port by which a destination j is climbed to depend on
 * j mod (w_1·w_2·p_2) only: its class. So each leaf is given a class, and as many destinations of
 * that class as it has hosts, in other leaves. Leaf a takes them from the leaves a+1, a+2, … on:
 * on a full tree that divides each class among the leaves that have it without a remainder, and
 * without anybody's own leaf, if only there are more leaves than a leaf has hosts.
 *
 * That says to whom a leaf sends, and any of its hosts may send to any of these. So the many
 * rings that it is at first become one by exchanging destinations within leaves.
 */
#include "fabric_order_in.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Hosts are meant by their place in the set. */
struct worst {
	const struct fabric_pgft *t;
	const struct fabric_set *set;
	uint32_t classes;
	uint32_t *by_class; /* places, by class and then ascending */
	uint32_t *begin;    /* of each class in by_class */
	uint32_t *free;     /* by place in by_class: itself, or one behind it, is free */
	uint32_t *next;     /* the ring */
	uint32_t *ring;     /* union-find: which hosts are on the same ring */
};

static uint32_t leaf_of(const struct worst *w, uint32_t place)
{
	return w->set->hosts[place] / w->t->m[1];
}

static uint32_t class_of(const struct worst *w, uint32_t place)
{
	return w->set->hosts[place] % w->classes;
}

/* Follows links up to one that leads to itself, and shortens the way for the next. */
static uint32_t find(uint32_t *links, uint32_t i)
{
	while (links[i] != i) {
		links[i] = links[links[i]];
		i = links[i];
	}
	return i;
}

static void sort_by_class(struct worst *w)
{
	uint32_t n = w->set->count;

	for (uint32_t i = 0; i < n; i++)
		w->begin[class_of(w, i) + 1]++;
	for (uint32_t c = 0; c < w->classes; c++)
		w->begin[c + 1] += w->begin[c];
	/* Filling moves each begin to its end, which is the next one's begin. */
	for (uint32_t i = 0; i < n; i++)
		w->by_class[w->begin[class_of(w, i)]++] = i;
	memmove(w->begin + 1, w->begin, w->classes * sizeof(*w->begin));
	w->begin[0] = 0;
	for (uint32_t i = 0; i <= n; i++)
		w->free[i] = i;
}

/* The first place of the class in a leaf behind this one. */
static uint32_t behind(const struct worst *w, uint32_t class, uint32_t leaf)
{
	uint32_t low = w->begin[class], high = w->begin[class + 1];

	while (low < high) {
		uint32_t mid = low + (high - low) / 2;

		if (leaf_of(w, w->by_class[mid]) > leaf)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

/* Gives the free ones of by_class[from … to−1] that are not in the leaf to hosts from i on, up to
 * last. Returns the first host that has none yet. */
static uint32_t give(struct worst *w, uint32_t from, uint32_t to, uint32_t leaf, uint32_t i,
		     uint32_t last)
{
	for (uint32_t at = find(w->free, from); i < last && at < to; at = find(w->free, at + 1)) {
		if (leaf_of(w, w->by_class[at]) == leaf)
			continue;
		w->next[i++] = w->by_class[at];
		w->free[at] = at + 1;
	}
	return i;
}

static void give_leaves(struct worst *w)
{
	uint32_t n = w->set->count, last;

	for (uint32_t i = 0; i < n; i = last) {
		uint32_t leaf = leaf_of(w, i), class = leaf % w->classes;
		uint32_t start = behind(w, class, leaf);

		for (last = i; last < n && leaf_of(w, last) == leaf;)
			last++;
		i = give(w, start, w->begin[class + 1], leaf, i, last);
		give(w, w->begin[class], start, leaf, i, last);
	}
}

/* Who has no destination yet gets what is left, be it in the own leaf. */
static void give_rest(struct worst *w)
{
	uint32_t n = w->set->count, at = find(w->free, 0);

	for (uint32_t i = 0; i < n; i++) {
		if (w->next[i] != FABRIC_NONE)
			continue;
		w->next[i] = w->by_class[at];
		at = find(w->free, at + 1);
	}
}

/* If they are on different rings, these become one. */
static void join(struct worst *w, uint32_t a, uint32_t b)
{
	uint32_t x = find(w->ring, a), y = find(w->ring, b), next = w->next[a];

	if (x == y)
		return;
	w->ring[x] = y;
	w->next[a] = w->next[b];
	w->next[b] = next;
}

static void join_rings(struct worst *w)
{
	uint32_t n = w->set->count;

	for (uint32_t i = 0; i < n; i++)
		w->ring[i] = i;
	for (uint32_t i = 0; i < n; i++)
		w->ring[find(w->ring, i)] = find(w->ring, w->next[i]);
	for (uint32_t i = 1; i < n; i++)
		if (leaf_of(w, i - 1) == leaf_of(w, i))
			join(w, i - 1, i);
	/* Leaves that nothing joins so far. */
	for (uint32_t i = 1; i < n; i++)
		join(w, i - 1, i);
}

int fabric_order_worst(const struct fabric_pgft *t, const struct fabric_set *set, uint32_t *order)
{
	struct worst w = {.t = t, .set = set, .classes = t->w[1] * t->w[2] * t->p[2]};
	size_t n = set->count;
	uint32_t *all = malloc((4 * n + 1) * sizeof(*all));
	int ret = -ENOMEM;

	/* More classes than hosts are no more than one for each. */
	if (w.classes > fabric_hosts(t))
		w.classes = fabric_hosts(t);
	w.begin = calloc((size_t)w.classes + 1, sizeof(*w.begin));
	if (all && w.begin) {
		w.by_class = all;
		w.next = all + n;
		w.ring = all + 2 * n;
		w.free = all + 3 * n; /* one more */
		memset(w.next, 0xff, n * sizeof(*w.next));
		sort_by_class(&w);
		give_leaves(&w);
		give_rest(&w);
		join_rings(&w);
		for (uint32_t i = 0, at = 0; i < n; i++, at = w.next[at])
			order[i] = set->hosts[at];
		ret = 0;
	}
	free(all);
	free(w.begin);
	return ret;
}
