#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "explore.h"

/* ---- states that were met -------------------------------------------------------------------- */

static uint64_t hash(const uint8_t *p, size_t n)
{
	uint64_t h = UINT64_C(0x9E3779B97F4A7C15) + n;

	while (n) {
		uint64_t word = 0;
		size_t part = n < 8 ? n : 8;

		memcpy(&word, p, part);
		h = (h ^ word) * UINT64_C(0xBF58476D1CE4E5B9);
		h ^= h >> 29;
		h *= UINT64_C(0x94D049BB133111EB);
		h ^= h >> 32;
		p += part;
		n -= part;
	}
	return h ? h : 1;
}

static bool met_put(struct met *met, uint64_t h);

static void met_grow(struct met *met)
{
	struct met old = *met;

	met->cap = old.cap ? 4 * old.cap : 1 << 14;
	met->slot = calloc(met->cap, sizeof(*met->slot));
	assert_non_null(met->slot);
	met->n = 0;
	for (size_t i = 0; i < old.cap; i++)
		if (old.slot[i])
			met_put(met, old.slot[i]);
	free(old.slot);
}

/* Whether it is new. */
static bool met_put(struct met *met, uint64_t h)
{
	size_t i;

	if (2 * met->n >= met->cap)
		met_grow(met);
	for (i = h & (met->cap - 1); met->slot[i]; i = (i + 1) & (met->cap - 1))
		if (met->slot[i] == h)
			return false;
	met->slot[i] = h;
	met->n++;
	return true;
}

/* ---- the search ------------------------------------------------------------------------------ */

static void walk(struct search *s)
{
	struct world *w = &s->w;
	const struct prog *p = w->prog;
	enum mutant mutant = w->mutant;
	bool reduce = w->reduce;

	world_free(w);
	world_init(w, p, mutant, reduce);
	for (unsigned int i = 0; i < s->depth; i++)
		world_step(w, s->path[i]);
}

static bool seen_before(struct search *s)
{
	uint8_t bytes[WORLD_BYTES];

	return !met_put(&s->met, hash(bytes, world_bytes(&s->w, bytes)));
}

static void count_end(struct search *s)
{
	uint8_t bytes[WORLD_BYTES];

	s->ends++;
	s->ends_hash += hash(bytes, world_bytes(&s->w, bytes));
	for (unsigned int i = 0; i < SENDERS; i++) {
		for (unsigned int j = 0; j < s->w.sender[i].sent; j++) {
			s->puts += s->w.sender[i].msg[j].kind == PUT;
		}
	}
}

/* Asking is never necessary, so this is an end if that is all that can be done. */
static void check_end(struct search *s, const struct step *choice, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		if (choice[i].kind != ASK)
			return;
	world_end(&s->w);
	count_end(s);
}

static void explore(struct search *s)
{
	struct step choice[MAX_CHOICES];
	unsigned int n = world_choices(&s->w, choice);

	check_end(s, choice, n);
	assert_true(s->depth < MAX_STEPS);
	for (unsigned int i = 0; i < n && !s->w.bad; i++) {
		if (i)
			walk(s);
		s->path[s->depth++] = choice[i];
		world_step(&s->w, choice[i]);
		if (!s->w.bad && !seen_before(s))
			explore(s);
		if (s->w.bad)
			return;
		s->depth--;
	}
}

void search_print(struct search *s)
{
	unsigned int n = s->depth;

	s->depth = 0;
	walk(s);
	printf("%s: %s, after\n", s->w.prog->name, s->bad);
	for (unsigned int i = 0; i < n; i++) {
		world_step(&s->w, s->path[i]);
		step_print(&s->w, s->path[i]);
	}
}

void search_run(struct search *s, const struct prog *p, enum mutant mutant, bool reduce)
{
	memset(s, 0, sizeof(*s));
	world_init(&s->w, p, mutant, reduce);
	explore(s);
	s->bad = s->w.bad;
}

void search_free(struct search *s)
{
	world_free(&s->w);
	free(s->met.slot);
}
