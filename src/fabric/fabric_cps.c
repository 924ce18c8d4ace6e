#include "fabric_cps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_text.h"

/* ---- one stage ---- */

static inline uint32_t step_to(const struct fabric_step *s, uint32_t n, uint32_t i)
{
	uint32_t x;

	switch (s->kind) {
	case FABRIC_STEP_TURN:
		return i < n - s->d ? i + s->d : i - (n - s->d);
	case FABRIC_STEP_MEET:
		return i % (2 * s->d) == s->d ? i - s->d : FABRIC_NONE;
	case FABRIC_STEP_SPREAD:
		return i < s->d && i + s->d < n ? i + s->d : FABRIC_NONE;
	case FABRIC_STEP_FOLD:
		return i % s->span >= s->d ? i - s->d : FABRIC_NONE;
	case FABRIC_STEP_UNFOLD:
		return i % s->span + s->d < s->span && i + s->d < n ? i + s->d : FABRIC_NONE;
	case FABRIC_STEP_FLIP:
		x = i % s->span;
		if (x >= s->edge)
			return FABRIC_NONE;
		if (x / s->d & 1)
			return i - s->d;
		return i + s->d < n ? i + s->d : FABRIC_NONE;
	}
	return FABRIC_NONE;
}

static struct fabric_step step_of(const struct fabric_cps *c, uint32_t stage)
{
	if (c->shift)
		return (struct fabric_step){.kind = FABRIC_STEP_TURN, .d = stage + 1};
	return c->steps[stage];
}

static uint32_t listed_to(const struct fabric_cps *c, uint32_t stage, uint32_t rank, uint32_t k)
{
	const struct fabric_flow *flows = c->flows + c->first[stage];
	uint64_t count = c->first[stage + 1] - c->first[stage], low = 0, high = count;

	if (count == c->n && !c->several)
		return k ? FABRIC_NONE : flows[rank].to;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (flows[mid].from < rank)
			low = mid + 1;
		else
			high = mid;
	}
	low += k;
	return low < count && flows[low].from == rank ? flows[low].to : FABRIC_NONE;
}

uint32_t fabric_cps_nth(const struct fabric_cps *c, uint32_t stage, uint32_t rank, uint32_t k)
{
	struct fabric_step s;

	if (c->flows)
		return listed_to(c, stage, rank, k);
	s = step_of(c, stage);
	return k ? FABRIC_NONE : step_to(&s, c->n, rank);
}

uint32_t fabric_cps_to(const struct fabric_cps *c, uint32_t stage, uint32_t rank)
{
	return fabric_cps_nth(c, stage, rank, 0);
}

uint32_t fabric_cps_flows(const struct fabric_cps *c, uint32_t stage, struct fabric_flow *flows)
{
	struct fabric_step s;
	uint32_t count = 0;

	if (c->flows) {
		count = (uint32_t)(c->first[stage + 1] - c->first[stage]);
		memcpy(flows, c->flows + c->first[stage], count * sizeof(*flows));
		return count;
	}
	s = step_of(c, stage);
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t to = step_to(&s, c->n, i);

		if (to != FABRIC_NONE)
			flows[count++] = (struct fabric_flow){i, to};
	}
	return count;
}

/* ---- sequences by name ---- */

/* Whatever the step, rank 0 is part of a flow if any is, and its other end is rank d. */
static void add(struct fabric_cps *c, struct fabric_step s)
{
	if (s.d < c->n)
		c->steps[c->stages++] = s;
}

static uint32_t log2_of(uint32_t v)
{
	return 31 - (uint32_t)__builtin_clz(v);
}

/* Distances 1, 2, 4 … below n: of these there are ⌈log2 n⌉. */
static void add_powers(struct fabric_cps *c, enum fabric_step_kind kind)
{
	for (uint32_t d = 1; d < c->n; d *= 2)
		add(c, (struct fabric_step){.kind = kind, .d = d});
}

/* Doubling along one digit, which has m values and weight low, with those beyond the largest
 * power of two folded onto others before and served by them after. */
static void add_digit(struct fabric_cps *c, uint32_t low, uint32_t m, bool halving)
{
	uint32_t bits = log2_of(m), edge = low << bits, span = low * m;
	struct fabric_step fold = {.kind = FABRIC_STEP_FOLD, .d = edge, .span = span};
	struct fabric_step unfold = {.kind = FABRIC_STEP_UNFOLD, .d = edge, .span = span};

	if (edge < span)
		add(c, fold);
	for (uint32_t k = 0; k < bits; k++)
		add(c, (struct fabric_step){.kind = FABRIC_STEP_FLIP,
					    .d = low << (halving ? bits - 1 - k : k),
					    .edge = edge,
					    .span = span});
	if (edge < span)
		add(c, unfold);
}

static void make_shift(struct fabric_cps *c, const struct fabric_pgft *t)
{
	(void)t;
	c->shift = true;
	c->stages = c->n - 1;
}

static void make_ring(struct fabric_cps *c, const struct fabric_pgft *t)
{
	(void)t;
	add(c, (struct fabric_step){.kind = FABRIC_STEP_TURN, .d = 1});
}

static void make_dissemination(struct fabric_cps *c, const struct fabric_pgft *t)
{
	(void)t;
	add_powers(c, FABRIC_STEP_TURN);
}

static void make_tournament(struct fabric_cps *c, const struct fabric_pgft *t)
{
	(void)t;
	add_powers(c, FABRIC_STEP_MEET);
}

static void make_binomial(struct fabric_cps *c, const struct fabric_pgft *t)
{
	(void)t;
	add_powers(c, FABRIC_STEP_SPREAD);
}

/* All ranks are one digit of n values. */
static void make_recdbl(struct fabric_cps *c, const struct fabric_pgft *t)
{
	(void)t;
	add_digit(c, 1, c->n, false);
}

static void make_rechalv(struct fabric_cps *c, const struct fabric_pgft *t)
{
	(void)t;
	add_digit(c, 1, c->n, true);
}

static void make_topo_recdbl(struct fabric_cps *c, const struct fabric_pgft *t)
{
	for (uint32_t l = 1; l <= t->h; l++)
		add_digit(c, t->M[l - 1], t->m[l], false);
}

static void make_topo_rechalv(struct fabric_cps *c, const struct fabric_pgft *t)
{
	for (uint32_t l = t->h; l >= 1; l--)
		add_digit(c, t->M[l - 1], t->m[l], true);
}

static const struct sequence {
	const char *name;
	void (*make)(struct fabric_cps *c, const struct fabric_pgft *t);
	bool one_step; /* NAME:S is one stage of it */
	bool tree;     /* follows the tree */
} sequences[] = {
	{.name = "shift", .make = make_shift, .one_step = true},
	{.name = "ring", .make = make_ring},
	{.name = "dissemination", .make = make_dissemination},
	{.name = "tournament", .make = make_tournament},
	{.name = "binomial", .make = make_binomial},
	{.name = "recdbl", .make = make_recdbl},
	{.name = "rechalv", .make = make_rechalv},
	{.name = "topo-recdbl", .make = make_topo_recdbl, .tree = true},
	{.name = "topo-rechalv", .make = make_topo_rechalv, .tree = true},
	{.name = "drc", .make = make_shift, .one_step = true},
};

static const struct sequence *find_sequence(const char *text, size_t len)
{
	for (size_t i = 0; i < sizeof(sequences) / sizeof(sequences[0]); i++)
		if (strlen(sequences[i].name) == len && !memcmp(sequences[i].name, text, len))
			return &sequences[i];
	return NULL;
}

static int make_step(struct fabric_cps *c, const char *name, const char *text, char *why,
		     size_t why_size)
{
	uint64_t step;

	if (fabric_decimal(text, &step) || step < 1 || step >= c->n)
		return fabric_refuse(why, why_size,
				     "%s is no step of %.*s with %u ranks; expected a number from "
				     "1 to %u",
				     fabric_quote(text).text, (int)(text - name - 1), name, c->n,
				     c->n - 1);
	add(c, (struct fabric_step){.kind = FABRIC_STEP_TURN, .d = (uint32_t)step});
	return 0;
}

static int parse_name(struct fabric_cps *c, const char *text, const struct fabric_pgft *t,
		      char *why, size_t why_size)
{
	size_t len = strcspn(text, ":");
	const struct sequence *s = find_sequence(text, len);

	if (!s || (text[len] && !s->one_step))
		return fabric_refuse(why, why_size,
				     "%s is no sequence; known are shift, ring, dissemination, "
				     "tournament, binomial, recdbl, rechalv, topo-recdbl, "
				     "topo-rechalv, drc, shift:S, drc:S and file:F",
				     fabric_quote(text).text);
	if (text[len])
		return make_step(c, text, text + len + 1, why, why_size);
	if (s->tree && !t)
		return fabric_refuse(why, why_size, "%s follows a tree, and none is given",
				     s->name);
	if (s->tree && c->n > fabric_hosts(t))
		return fabric_refuse(why, why_size,
				     "%s of %u ranks needs as many hosts; the tree has %u", s->name,
				     c->n, fabric_hosts(t));
	s->make(c, t);
	return 0;
}

static int parse_file(struct fabric_cps *c, const char *path, uint32_t n, char *why,
		      size_t why_size)
{
	FILE *f;
	int ret = fabric_open(&f, path, why, why_size);

	if (ret)
		return ret;
	ret = fabric_cps_read(c, f, fabric_file_name(path), n, why, why_size);
	fabric_close(f);
	return ret;
}

int fabric_cps_parse(struct fabric_cps *c, const char *text, uint32_t n,
		     const struct fabric_pgft *t, char *why, size_t why_size)
{
	*c = (struct fabric_cps){.n = n, .widest = n};
	if (n < 1 || n > FABRIC_HOSTS_MAX)
		return fabric_refuse(why, why_size, "%u ranks; expected 1 to %u", n,
				     FABRIC_HOSTS_MAX);
	if (!strncmp(text, "file:", 5))
		return parse_file(c, text + 5, n, why, why_size);
	return parse_name(c, text, t, why, why_size);
}

void fabric_cps_free(struct fabric_cps *c)
{
	free(c->flows);
	free(c->first);
	*c = (struct fabric_cps){0};
}
