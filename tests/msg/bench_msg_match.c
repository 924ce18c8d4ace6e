/* What a match costs, by the length of the queue: nanoseconds, hot in the cache as far as the
 * queue fits in there. One round takes an element out, a random one unless the name of the line
 * says which, and puts it in again at the end, so that the length stays. Masks are such as Open
 * MPI uses. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "msg_match.h"
#include "util_rand.h"

#define MOST   10000
#define ROUNDS 200000
#define IGNORE (UINT64_C(1) << 62)

static struct msg_match m;
static struct msg_recv recvs[MOST];
static struct msg_unexp unexps[MOST];
static uint32_t which[ROUNDS]; /* elements, at random */
static uint32_t mixed[MOST];   /* where in memory the i-th element is; or lists would be arrays */
static unsigned int length;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

static void need(bool ok)
{
	if (ok)
		return;
	fprintf(stderr, "bench_msg_match: a match went wrong\n");
	exit(1);
}

/* ---- what is measured ------------------------------------------------------------------------ */

struct load {
	const char *name;
	void (*fill)(void);
	void (*once)(uint32_t i); /* i: some element */
	bool walks;               /* the cost grows with the length, so fewer rounds will do */
};

static void post_all(uint32_t src, bool many_tags)
{
	for (uint32_t i = 0; i < length; i++) {
		struct msg_recv *r = &recvs[mixed[i]];

		*r = (struct msg_recv){.tag = many_tags ? i : 0, .ignore = IGNORE, .src = src};
		need(!msg_match_post(&m, r));
	}
}

static void fill_tags(void)
{
	post_all(1, true);
}

static void fill_same(void)
{
	post_all(1, false);
}

static void fill_any(void)
{
	post_all(MSG_ANY_SRC, true);
}

/* Half of them name their source, a few any tag of a peer that is silent: three classes. */
static void fill_mixed(void)
{
	for (uint32_t i = 0; i < length; i++) {
		struct msg_recv *r = &recvs[mixed[i]];

		*r = (struct msg_recv){.tag = i, .ignore = IGNORE, .src = i % 2 ? 1 : MSG_ANY_SRC};
		if (i % 16 == 15) {
			r->src = 2 + i;
			r->ignore = UINT64_MAX;
		}
		need(!msg_match_post(&m, r));
	}
}

/* Others have taken all classes, so these are in the plain list. */
static void fill_plain(void)
{
	static struct msg_recv others[MSG_MATCH_CLASSES];

	for (uint32_t i = 0; i < MSG_MATCH_CLASSES; i++) {
		others[i] = (struct msg_recv){.tag = 0, .ignore = (uint64_t)i << 32, .src = 2};
		need(!msg_match_post(&m, &others[i]));
	}
	post_all(1, true);
}

static void once_recv(uint32_t i)
{
	struct msg_recv *r;

	r = msg_match_take(&m, recvs[i].src < MSG_ANY_SRC ? recvs[i].src : 1, recvs[i].tag);
	need(r);
	need(!msg_match_post(&m, r));
}

static void once_none(uint32_t i)
{
	need(!msg_match_take(&m, 1, MOST + i));
}

static void once_ahead(uint32_t i)
{
	need(msg_match_ahead(&m, &recvs[i]).clear);
}

static void store_all(bool many_sources)
{
	for (uint32_t i = 0; i < length; i++) {
		struct msg_unexp *u = &unexps[mixed[i]];

		*u = (struct msg_unexp){.tag = i, .src = many_sources ? i : 1};
		need(!msg_match_store(&m, u));
	}
}

static void fill_sources(void)
{
	store_all(true);
}

static void fill_source(void)
{
	store_all(false);
}

static void find_again(uint32_t src, uint64_t tag)
{
	struct msg_unexp *u = msg_match_find(&m, src, tag, IGNORE);

	need(u);
	msg_match_drop(&m, u);
	need(!msg_match_store(&m, u));
}

static void once_named(uint32_t i)
{
	find_again(unexps[i].src, unexps[i].tag);
}

static void once_any(uint32_t i)
{
	find_again(MSG_ANY_SRC, unexps[i].tag);
}

/* The last one is found, and stays the last. */
static void once_last(uint32_t i)
{
	i = mixed[length - 1];
	find_again(unexps[i].src, unexps[i].tag);
}

static void once_last_any(uint32_t i)
{
	find_again(MSG_ANY_SRC, unexps[mixed[length - 1]].tag);
	(void)i;
}

static void once_oldest_any(uint32_t i)
{
	struct msg_unexp *u = msg_match_find(&m, MSG_ANY_SRC, i, UINT64_MAX);

	need(u);
	msg_match_drop(&m, u);
	need(!msg_match_store(&m, u));
}

static const struct load loads[] = {
	{"posted: different tags", fill_tags, once_recv, false},
	{"posted: same tag", fill_same, once_recv, false},
	{"posted: any source", fill_any, once_recv, false},
	{"posted: three classes", fill_mixed, once_recv, false},
	{"posted: plain list", fill_plain, once_recv, true},
	{"posted: none matches", fill_mixed, once_none, false},
	{"posted: what is ahead", fill_same, once_ahead, false},
	{"unexpected: a source each", fill_sources, once_named, false},
	{"unexpected: one source", fill_source, once_named, true},
	{"unexpected: one, the last", fill_source, once_last, true},
	{"unexpected: any, any tag", fill_sources, once_oldest_any, false},
	{"unexpected: any source", fill_sources, once_any, true},
	{"unexpected: any, the last", fill_sources, once_last_any, true},
};

/* ---- measuring ------------------------------------------------------------------------------- */

static double seconds_per_match(const struct load *l)
{
	unsigned int rounds = l->walks ? 2000000 / (length + 100) : ROUNDS;
	double best = 1e9;

	for (int attempt = 0; attempt < 5; attempt++) {
		double t = now();

		for (unsigned int i = 0; i < rounds; i++)
			l->once(which[i]);
		t = (now() - t) / rounds;
		if (t < best)
			best = t;
	}
	return best;
}

static void prepare(struct util_rand *r)
{
	for (uint32_t i = 0; i < ROUNDS; i++)
		which[i] = (uint32_t)util_rand_below(r, length);
	for (uint32_t i = 0; i < length; i++)
		mixed[i] = i;
	util_rand_shuffle(r, mixed, length);
}

int main(void)
{
	static const unsigned int lengths[] = {1, 3, 10, 30, 100, 300, 1000, 3000, 10000};
	struct util_rand r;

	util_rand_seed(&r, 1);
	printf("%-26s", "ns per match");
	for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++)
		printf(" %7u", lengths[k]);
	printf("\n");
	for (const struct load *l = loads; l < loads + sizeof(loads) / sizeof(loads[0]); l++) {
		printf("%-26s", l->name);
		for (size_t k = 0; k < sizeof(lengths) / sizeof(lengths[0]); k++) {
			length = lengths[k];
			prepare(&r);
			need(!msg_match_init(&m));
			l->fill();
			printf(" %7.1f", seconds_per_match(l) * 1e9);
			fflush(stdout);
			msg_match_free(&m);
		}
		printf("\n");
	}
	return 0;
}
