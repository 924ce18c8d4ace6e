/* What the tests of theorems share: jobs on trees, and every RLFT that can be built. */
#ifndef WEFT_TEST_FABRIC_THEOREMS_H
#define WEFT_TEST_FABRIC_THEOREMS_H

#include "test_fabric.h"

#include "fabric_hsd.h"
#include "fabric_order.h"
#include "fabric_rlft.h"

static const char *const table3[] = {"2;12,12;1,6;1,2", "2;18,18;1,9;1,2",
				     "3;12,12,12;1,12,6;1,1,2", "3;18,18,6;1,18,3;1,1,6"};

/* Sequences that are free of contention as shift is. */
static const char *const along[] = {"ring",     "dissemination", "tournament",
				    "binomial", "topo-recdbl",   "topo-rechalv"};

/* Sanitizers make this ten to thirty times slower. They look for other faults than the theorems',
 * and get every seventh tree, stage or set where there are thousands. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { THIN = 7 };
#else
enum { THIN = 1 };
#endif

/* ---- a job ---- */

struct scene {
	struct fabric_tree tree;
	struct fabric_routes routes;
	struct fabric_set set;
	uint32_t *hosts, *index, n;
};

static inline void route(struct scene *s, const char *routing, bool compact)
{
	struct fabric_routing rule;
	char why[256] = "";

	if (fabric_routing_parse(&rule, routing, why, sizeof(why)))
		fail_msg("%s", why);
	if (compact)
		assert_non_null(s->index = fabric_set_index(&s->set, &s->tree));
	assert_int_equal(fabric_routes_make(&s->routes, &s->tree, &rule, s->index), 0);
}

static inline void place(struct scene *s, const char *order)
{
	char why[256] = "";

	if (fabric_order_of(&s->tree, &s->set, order, s->hosts, &s->n, why, sizeof(why)))
		fail_msg("%s", why);
}

/* All hosts, or without K:SEED. D-Mod-K on their numbers, ranks ascending. */
static inline void build(struct scene *s, const struct fabric_pgft *t, const char *exclude,
			 bool compact)
{
	char why[256] = "";

	*s = (struct scene){0};
	fabric_tree_init(&s->tree, t);
	if (exclude ? fabric_set_exclude(&s->set, &s->tree, exclude, why, sizeof(why))
		    : fabric_set_all(&s->set, &s->tree))
		fail_msg("%s", why);
	s->hosts = malloc(fabric_hosts(t) * sizeof(*s->hosts));
	assert_non_null(s->hosts);
	route(s, "dmodk", compact);
	place(s, "routing");
}

/* The same with any set of hosts. */
static inline void build_set(struct scene *s, const struct fabric_pgft *t, const uint32_t *hosts,
			     uint32_t n, bool compact)
{
	*s = (struct scene){0};
	fabric_tree_init(&s->tree, t);
	s->set.hosts = malloc(n * sizeof(*hosts));
	s->hosts = malloc(n * sizeof(*hosts));
	assert_true(s->set.hosts && s->hosts);
	memcpy(s->set.hosts, hosts, n * sizeof(*hosts));
	s->set.count = n;
	route(s, "dmodk", compact);
	place(s, "compact");
}

static inline void drop(struct scene *s)
{
	fabric_routes_free(&s->routes);
	fabric_set_free(&s->set);
	fabric_tree_free(&s->tree);
	free(s->hosts);
	free(s->index);
}

static inline struct fabric_hsd hsd_every(struct scene *s, const char *sequence, uint32_t stride)
{
	struct fabric_hsd_job job = {.routes = &s->routes, .hosts = s->hosts, .stride = stride};
	struct fabric_cps c;
	struct fabric_hsd r;
	char why[320] = "";

	if (fabric_cps_parse(&c, sequence, s->n, &s->tree.pgft, why, sizeof(why)))
		fail_msg("%s", why);
	job.cps = &c;
	assert_int_equal(fabric_hsd(&job, &r), 0);
	assert_int_equal(r.worst.lost, 0);
	fabric_cps_free(&c);
	return r;
}

static inline struct fabric_hsd hsd(struct scene *s, const char *sequence)
{
	return hsd_every(s, sequence, 0);
}

static inline void check_one(struct scene *s, const char *sequence)
{
	struct fabric_hsd r = hsd(s, sequence);
	char text[FABRIC_TUPLE_MAX];

	fabric_pgft_print(&s->tree.pgft, text);
	if (r.worst.all > 1)
		fail_msg("%s, %u ranks: %s has degree %u", text, s->n, sequence, r.worst.all);
}

/* ---- every RLFT ---- */

enum { HOSTS_MAX = 4096 };

typedef void visit(const struct fabric_pgft *t);

/* Level l of a tree whose levels below have m, and the cables to them p. With K ports down and K
 * up, p_l divides K; at the top there are 2K ports down. */
static inline uint32_t enumerate(uint32_t K, uint32_t l, uint32_t hosts, struct fabric_pgft *t,
				 uint32_t thin, visit *see)
{
	char text[FABRIC_TUPLE_MAX];
	uint32_t count = 0;

	for (uint32_t p = 1; p <= (l == 1 ? 1 : K); p++) {
		if (K % p)
			continue;
		t->p[l] = p;
		t->w[l] = l == 1 ? 1 : K / p;
		t->m[l] = 2 * K / p;
		if (hosts * t->m[l] <= HOSTS_MAX) {
			struct fabric_pgft whole;

			t->h = l;
			fabric_pgft_print(t, text);
			whole = tree(text);
			if (count++ % thin == 0)
				see(&whole);
		}
		/* Levels that join nothing, m_l = 1, could be stacked for ever. */
		t->m[l] = K / p;
		if (t->m[l] > 1 && l < FABRIC_LEVELS_MAX && hosts * t->m[l] <= HOSTS_MAX)
			count += enumerate(K, l + 1, hosts * t->m[l], t, thin, see);
	}
	return count;
}

static inline uint32_t every_rlft(const uint32_t *radices, size_t n, uint32_t thin, visit *see)
{
	uint32_t count = 0;

	for (size_t i = 0; i < n; i++) {
		struct fabric_pgft t = {0};

		count += enumerate(radices[i] / 2, 1, 1, &t, thin, see);
	}
	return count;
}

/* Switches that few trees can be made of, and those that hundreds can. */
static const uint32_t few[] = {4, 6, 10, 18}, many[] = {8, 12, 24, 36};

#endif
