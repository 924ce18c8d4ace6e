/* The tree is tsearch(3), which is a red-black tree in glibc. In both, a look is a use: it finds
 * the buffer and counts. Addresses are those of buffers of 64 bytes to 8 KB that lie back to back;
 * nobody looks at what is there. They come into both in one order, and are looked for in another,
 * at random. */
#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_search.h"
#include "bench_sample.h"
#include "bench_time.h"
#include "msg_reuse.h"

enum { MOST = 1000000, LEAST = 10, FACTOR = 10 };

struct buffer {
	uintptr_t addr; /* first: the key of the tree */
	uint32_t len;
	uint32_t uses;
};

struct search {
	struct buffer *all;
	size_t n;
	void *tree;
	struct msg_reuse table;
	const struct buffer **looks; /* in which order */
	size_t n_looks;
	double *hash, *in_tree; /* nanoseconds of a look, one for each round */
};

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static int by_addr(const void *a, const void *b)
{
	uintptr_t x = ((const struct buffer *)a)->addr, y = ((const struct buffer *)b)->addr;

	return (x > y) - (x < y);
}

static void place(struct search *s)
{
	uintptr_t at = 0x10000000;
	uint64_t seed = 1;

	for (size_t i = 0; i < s->n; i++) {
		s->all[i] = (struct buffer){.addr = at, .len = 64u << (i % 8)};
		at += s->all[i].len;
	}
	for (size_t i = s->n - 1; i > 0; i--) {
		size_t k = next_random(&seed) % (i + 1);
		struct buffer b = s->all[i];

		s->all[i] = s->all[k];
		s->all[k] = b;
	}
	for (size_t i = 0; i < s->n_looks; i++)
		s->looks[i] = &s->all[next_random(&seed) % s->n];
}

/* All are frequent at once, so that the table grows as long as it may. */
static int insert(struct search *s)
{
	uint32_t least[MSG_COSTS_CLASSES];

	for (int i = 0; i < MSG_COSTS_CLASSES; i++)
		least[i] = 1;
	msg_reuse_init(&s->table, least, true);
	for (size_t i = 0; i < s->n; i++) {
		struct buffer *b = &s->all[i];

		if (!tsearch(b, &s->tree, by_addr))
			return -ENOMEM;
		if (s->table.state == MSG_REUSE_GROWS)
			msg_reuse_use(&s->table, (void *)b->addr, b->len);
	}
	return 0;
}

static double look_in_table(struct search *s)
{
	uint64_t from = bench_now();

	for (size_t i = 0; i < s->n_looks; i++)
		msg_reuse_use(&s->table, (void *)s->looks[i]->addr, s->looks[i]->len);
	return (double)(bench_now() - from) / (double)s->n_looks;
}

static double look_in_tree(struct search *s)
{
	uint64_t from = bench_now();

	for (size_t i = 0; i < s->n_looks; i++) {
		struct buffer key = {.addr = s->looks[i]->addr}, **b;

		b = tfind(&key, &s->tree, by_addr);
		(*b)->uses++;
	}
	return (double)(bench_now() - from) / (double)s->n_looks;
}

static void report(struct search *s, size_t rounds)
{
	static const char *const states[] = {"off", "grows", "stopped", "rests"};
	struct bench_summary hash, tree;

	bench_summarize(s->hash, rounds, &hash);
	bench_summarize(s->in_tree, rounds, &tree);
	printf("%-10zu %10u %8s %10zu %10.1f %10.1f\n", s->n, s->table.n, states[s->table.state],
	       msg_reuse_bytes(&s->table), hash.median, tree.median);
}

static void keep(void *buffer)
{
	(void)buffer; /* it is one of all */
}

static int measure(struct search *s, size_t rounds)
{
	int ret;

	place(s);
	ret = insert(s);
	for (size_t i = 0; i < rounds && !ret; i++) {
		s->hash[i] = look_in_table(s);
		s->in_tree[i] = look_in_tree(s);
	}
	if (!ret)
		report(s, rounds);
	msg_reuse_free(&s->table);
	tdestroy(s->tree, keep);
	s->tree = NULL;
	return ret;
}

int bench_search(size_t rounds, size_t looks)
{
	struct search s = {.all = calloc(MOST, sizeof(*s.all)),
			   .looks = calloc(looks, sizeof(const struct buffer *)),
			   .n_looks = looks,
			   .hash = calloc(rounds, sizeof(double)),
			   .in_tree = calloc(rounds, sizeof(double))};
	int ret = s.all && s.looks && s.hash && s.in_tree ? 0 : -ENOMEM;

	printf("# looking for a buffer, nanoseconds, medians of %zu rounds in turn; the table has "
	       "at "
	       "most\n# %d of them, and gives up where it finds few\n"
	       "#%-9s %10s %8s %10s %10s %10s\n",
	       rounds, MSG_REUSE_MOST, "buffers", "in table", "state", "bytes", "hash", "tree");
	for (s.n = LEAST; s.n <= MOST && !ret; s.n *= FACTOR)
		ret = measure(&s, rounds);
	free(s.all);
	free(s.looks);
	free(s.hash);
	free(s.in_tree);
	return ret;
}
