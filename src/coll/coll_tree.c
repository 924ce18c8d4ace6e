#include "coll_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX (1u << 24)

/* ---- the order of places ---- */

struct keyed {
	struct coll_place place;
	uint32_t member, levels;
};

static int by_number(uint32_t a, uint32_t b)
{
	return a < b ? -1 : a > b;
}

/* Far levels first, so that each sub-tree is a run. */
static int by_place(const void *a, const void *b)
{
	const struct keyed *x = a, *y = b;
	int way = 0;

	for (uint32_t l = x->levels; l-- > 0 && !way;)
		way = by_number(x->place.group[l], y->place.group[l]);
	if (!way)
		way = by_number(x->place.number, y->place.number);
	return way ? way : by_number(x->member, y->member);
}

static struct keyed *sorted(uint32_t n, const struct coll_place *places, uint32_t levels)
{
	struct keyed *keys = calloc(n, sizeof(*keys));

	if (!keys)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		keys[i].member = i;
		keys[i].levels = levels;
		if (places)
			keys[i].place = places[i];
	}
	qsort(keys, n, sizeof(*keys), by_place);
	return keys;
}

/* ---- joining cubes ---- */

/* A sub-tree while the cube is built: 2^bits members from work[first] on, which stand for all of
 * it, and any of its members, which tells where it is. */
struct part {
	uint32_t first, bits, key;
};

struct builder {
	struct coll_tree *t;
	const struct keyed *keys;
	uint32_t *work;  /* the cubes of all parts, one after the other */
	uint32_t *freed; /* by member, the first stage in which it can receive or give */
	struct part *parts;
	uint32_t n_parts;
	uint32_t base, last; /* first stage of this level, and of the next */
};

static uint32_t log2_of(uint32_t v)
{
	return 31 - (uint32_t)__builtin_clz(v);
}

static void fold(struct builder *b, uint32_t from, uint32_t to)
{
	struct coll_fold *f = &b->t->given[b->t->n_given++];
	uint32_t stage = b->base;

	/* It has to have all that was given to it, and nobody receives twice in a stage. */
	if (stage < b->freed[from])
		stage = b->freed[from];
	if (stage < b->freed[to])
		stage = b->freed[to];
	*f = (struct coll_fold){.from = from, .to = to, .stage = stage};
	b->freed[to] = stage + 1;
	if (b->last < stage + 1)
		b->last = stage + 1;
}

/* How many bits of each child's cube are used: with more of them fewer children have as many, and
 * the joint cube is to be the largest. Of equal ones, the one with larger children. */
static uint32_t best_bits(const struct part *child, uint32_t n, uint32_t *joint)
{
	uint32_t have[32] = {0}, best = 0, count = 0;

	for (uint32_t i = 0; i < n; i++)
		have[child[i].bits]++;
	*joint = 0;
	for (uint32_t bits = 32; bits-- > 0;) {
		count += have[bits];
		if (count && bits + log2_of(count) > *joint) {
			*joint = bits + log2_of(count);
			best = bits;
		}
	}
	return best;
}

/* The first 2^(joint − bits) children with enough bits are the core; `core` gets where each begins.
 * What they have beyond is folded within them, and all other children onto them in turn. */
static void join(struct builder *b, const struct part *child, uint32_t n, uint32_t *core,
		 struct part *out)
{
	uint32_t joint, bits = best_bits(child, n, &joint), wide = 1u << (joint - bits);
	uint32_t mask = (1u << bits) - 1, cores = 0, others = 0;

	for (uint32_t i = 0; i < n && cores < wide; i++)
		if (child[i].bits >= bits)
			core[cores++] = child[i].first;
	cores = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool in = child[i].bits >= bits && cores < wide;
		uint32_t onto = in ? child[i].first : core[others % wide];

		for (uint32_t c = in ? 1u << bits : 0; c < 1u << child[i].bits; c++)
			fold(b, b->work[child[i].first + c], b->work[onto + (c & mask)]);
		cores += in;
		others += !in;
	}
	/* The cubes of the core follow one another; they only ever move to the front. */
	for (uint32_t i = 0; i < wide; i++)
		memmove(b->work + out->first + ((size_t)i << bits), b->work + core[i],
			sizeof(*b->work) << bits);
	out->bits = joint;
}

/* In one sub-tree of this level? Also if numbers are used again elsewhere above. */
static bool together(const struct builder *b, const struct part *x, const struct part *y,
		     uint32_t level, uint32_t levels)
{
	for (uint32_t l = level; l < levels; l++)
		if (b->keys[x->key].place.group[l] != b->keys[y->key].place.group[l])
			return false;
	return true;
}

/* Joins the parts of each sub-tree of a level; level = levels: all. */
static void join_level(struct builder *b, uint32_t level, uint32_t levels, uint32_t *core)
{
	uint32_t n = 0;

	b->base = b->last;
	for (uint32_t i = 0, end; i < b->n_parts; i = end) {
		struct part out = {.first = b->parts[i].first, .key = b->parts[i].key};

		for (end = i + 1; end < b->n_parts; end++)
			if (!together(b, &b->parts[i], &b->parts[end], level, levels))
				break;
		join(b, b->parts + i, end - i, core, &out);
		b->parts[n++] = out;
	}
	b->n_parts = n;
}

static int by_stage(const void *a, const void *b)
{
	const struct coll_fold *x = a, *y = b;
	int way = by_number(x->stage, y->stage);

	return way ? way : by_number(x->from, y->from);
}

static int build_cube(struct coll_tree *t, const struct keyed *keys, uint32_t levels)
{
	uint32_t n = t->n, *core = calloc(n, sizeof(*core));
	struct builder b = {.t = t, .keys = keys, .n_parts = n};
	int ret = -ENOMEM;

	b.work = calloc(n, sizeof(*b.work));
	b.freed = calloc(n, sizeof(*b.freed));
	b.parts = calloc(n, sizeof(*b.parts));
	if (!core || !b.work || !b.freed || !b.parts)
		goto out;
	for (uint32_t i = 0; i < n; i++) {
		b.work[i] = t->order[i];
		b.parts[i] = (struct part){.first = i, .key = i};
	}
	for (uint32_t l = 0; l <= levels; l++)
		join_level(&b, l, levels, core);
	t->bits = b.parts[0].bits;
	t->folds = b.last;
	for (uint32_t c = 0; c < 1u << t->bits; c++) {
		t->cube[c] = b.work[c];
		t->coordinate[b.work[c]] = c;
	}
	qsort(t->given, t->n_given, sizeof(*t->given), by_stage);
	ret = 0;
out:
	free(core);
	free(b.work);
	free(b.freed);
	free(b.parts);
	return ret;
}

int coll_tree_make(struct coll_tree *t, uint32_t n, const struct coll_place *places,
		   uint32_t levels)
{
	struct keyed *keys;
	int ret = -ENOMEM;

	*t = (struct coll_tree){.n = n};
	if (n < 1 || n > MEMBERS_MAX || levels > COLL_LEVELS_MAX)
		return -EINVAL;
	if (!places)
		levels = 0;
	keys = sorted(n, places, levels);
	t->order = calloc(n, sizeof(*t->order));
	t->position = calloc(n, sizeof(*t->position));
	t->cube = calloc(n, sizeof(*t->cube));
	t->coordinate = malloc(n * sizeof(*t->coordinate));
	t->given = calloc(n, sizeof(*t->given));
	if (!keys || !t->order || !t->position || !t->cube || !t->coordinate || !t->given)
		goto out;
	for (uint32_t i = 0; i < n; i++) {
		t->order[i] = keys[i].member;
		t->position[keys[i].member] = i;
		t->coordinate[i] = COLL_NONE;
	}
	ret = build_cube(t, keys, levels);
out:
	free(keys);
	if (ret)
		coll_tree_free(t);
	return ret;
}

void coll_tree_free(struct coll_tree *t)
{
	free(t->order);
	free(t->position);
	free(t->cube);
	free(t->coordinate);
	free(t->given);
	*t = (struct coll_tree){0};
}

/* ---- a member's part in it ---- */

/* The fold of a stage that a member has a part in. */
static const struct coll_fold *fold_of(const struct coll_tree *t, uint32_t member, uint32_t stage)
{
	for (uint32_t i = 0; i < t->n_given; i++)
		if (t->given[i].stage == stage &&
		    (t->given[i].from == member || t->given[i].to == member))
			return &t->given[i];
	return NULL;
}

struct coll_step coll_tree_step(const struct coll_tree *t, uint32_t member, uint32_t stage)
{
	struct coll_step none = {.kind = COLL_STEP_NONE, .peer = COLL_NONE};
	bool before = stage < t->folds, after = stage >= t->folds + t->bits;
	const struct coll_fold *f;
	uint32_t c;

	if (stage >= coll_tree_stages(t))
		return none;
	if (!before && !after) {
		c = t->coordinate[member];
		if (c == COLL_NONE)
			return none;
		c ^= 1u << (stage - t->folds);
		return (struct coll_step){.kind = COLL_STEP_SWAP, .peer = t->cube[c]};
	}
	f = fold_of(t, member, before ? stage : coll_tree_stages(t) - 1 - stage);
	if (!f)
		return none;
	if (f->from == member)
		return (struct coll_step){before ? COLL_STEP_SEND : COLL_STEP_TAKE, f->to};
	return (struct coll_step){before ? COLL_STEP_ADD : COLL_STEP_SEND, f->from};
}

struct coll_part coll_tree_part(const struct coll_tree *t, uint32_t member, uint32_t k,
				size_t count)
{
	struct coll_part p = {.first = 0, .count = count};

	for (uint32_t i = 0; i < k; i++) {
		size_t low = p.count - p.count / 2;

		if (t->coordinate[member] >> i & 1) {
			p.first += low;
			p.count -= low;
		} else {
			p.count = low;
		}
	}
	return p;
}

/* ---- broadcasts ---- */

static uint32_t behind_root(const struct coll_tree *t, uint32_t root, uint32_t member)
{
	return (t->position[member] + t->n - t->position[root]) % t->n;
}

static uint32_t member_behind(const struct coll_tree *t, uint32_t root, uint32_t behind)
{
	return t->order[(t->position[root] + behind) % t->n];
}

uint32_t coll_tree_parent(const struct coll_tree *t, uint32_t root, uint32_t member)
{
	uint32_t at = behind_root(t, root, member);

	return at ? member_behind(t, root, at & (at - 1)) : COLL_NONE;
}

uint32_t coll_tree_child(const struct coll_tree *t, uint32_t root, uint32_t member, uint32_t k)
{
	uint32_t at = behind_root(t, root, member);
	/* Steps below the lowest bit of its place; the root has all. */
	uint32_t bit = at ? (uint32_t)__builtin_ctz(at) : 25;

	while (bit-- > 0)
		if (at + (1u << bit) < t->n && k-- == 0)
			return member_behind(t, root, at + (1u << bit));
	return COLL_NONE;
}
