/* What the tests of the simulator share: a tree with its routes, and traffic from a list that
 * checks what arrives. */
#ifndef WEFT_TEST_FABRIC_SIM_H
#define WEFT_TEST_FABRIC_SIM_H

#include "test_fabric.h"

#include "fabric_sim.h"

struct world {
	struct fabric_tree tree;
	struct fabric_routes routes;
};

static inline void world_make(struct world *w, const char *tuple, struct fabric_routing rule)
{
	struct fabric_pgft t = tree(tuple);

	fabric_tree_init(&w->tree, &t);
	assert_int_equal(fabric_routes_make(&w->routes, &w->tree, &rule, NULL), 0);
}

static inline uint32_t links_between(const struct world *w, uint32_t from, uint32_t to,
				     uint32_t address)
{
	uint32_t n = 0;

	for (uint32_t node = from; node != to; n++) {
		bool up;
		uint32_t cable = fabric_routes_step(&w->routes, node, to, address, &up);
		struct fabric_cable c = fabric_cable(&w->tree.pgft, cable);

		assert_true(n < 100);
		node = fabric_number(&w->tree.pgft, up ? c.upper : c.lower);
	}
	return n;
}

static inline void world_free(struct world *w)
{
	fabric_routes_free(&w->routes);
	fabric_tree_free(&w->tree);
}

/* Messages by rank and stage. Rank r is on host r. */
#define RANKS  64
#define STAGES 8

struct list {
	uint32_t ranks, stages, parts;
	struct fabric_sim_part part[RANKS][STAGES][FABRIC_SIM_PARTS_MAX];
	uint64_t arrived[RANKS][STAGES][FABRIC_SIM_PARTS_MAX]; /* bytes */
	uint64_t ps[RANKS][STAGES][FABRIC_SIM_PARTS_MAX];      /* 0: not complete */
	uint32_t hosts[RANKS];
};

static inline uint32_t list_send(void *ctx, uint32_t rank, uint32_t stage,
				 struct fabric_sim_part part[FABRIC_SIM_PARTS_MAX])
{
	struct list *l = ctx;

	memcpy(part, l->part[rank][stage], l->parts * sizeof(*part));
	return l->parts;
}

static inline uint32_t list_expects(void *ctx, uint32_t rank, uint32_t stage)
{
	const struct list *l = ctx;
	uint32_t n = 0;

	for (uint32_t r = 0; r < l->ranks; r++)
		n += l->part[r][stage][0].bytes > 0 && l->part[r][stage][0].to == rank && r != rank;
	return n;
}

static inline void list_packet(void *ctx, uint32_t rank, uint32_t stage, uint32_t part,
			       uint64_t offset, uint32_t bytes)
{
	struct list *l = ctx;

	assert_int_equal(offset, l->arrived[rank][stage][part]);
	assert_int_equal(l->ps[rank][stage][part], 0);
	l->arrived[rank][stage][part] += bytes;
}

static inline void list_arrived(void *ctx, uint32_t rank, uint32_t stage, uint32_t part,
				uint64_t posted, uint64_t now)
{
	struct list *l = ctx;

	assert_int_equal(l->arrived[rank][stage][part], l->part[rank][stage][part].bytes);
	assert_int_equal(l->ps[rank][stage][part], 0);
	l->ps[rank][stage][part] = now - posted;
}

static inline struct list *list_make(uint32_t ranks, uint32_t stages)
{
	struct list *l = calloc(1, sizeof(*l));

	assert_non_null(l);
	assert_true(ranks <= RANKS && stages <= STAGES);
	l->ranks = ranks;
	l->stages = stages;
	l->parts = 1;
	for (uint32_t r = 0; r < ranks; r++)
		l->hosts[r] = r;
	return l;
}

static inline void list_put(struct list *l, uint32_t from, uint32_t stage, uint32_t to,
			    uint64_t bytes)
{
	l->part[from][stage][0] = (struct fabric_sim_part){.to = to, .bytes = bytes};
}

static inline int list_try(struct list *l, const struct world *w, const struct fabric_sim_config *c,
			   struct fabric_sim_result *r, char why[256])
{
	struct fabric_sim_traffic t = {
		.ranks = l->ranks,
		.hosts = l->hosts,
		.stages = l->stages,
		.ctx = l,
		.send = list_send,
		.expects = list_expects,
		.arrived = list_arrived,
		.packet = list_packet,
	};

	memset(l->arrived, 0, sizeof(l->arrived));
	memset(l->ps, 0, sizeof(l->ps));
	return fabric_sim(&w->routes, c, &t, r, why, 256);
}

/* Everything must arrive, once and in order. */
static inline struct fabric_sim_result list_run(struct list *l, const struct world *w,
						const struct fabric_sim_config *c)
{
	struct fabric_sim_result r = {0};
	uint64_t bytes = 0;
	char why[256] = "";

	if (list_try(l, w, c, &r, why))
		fail_msg("%s", why);
	for (uint32_t i = 0; i < l->ranks; i++)
		for (uint32_t s = 0; s < l->stages; s++)
			for (uint32_t p = 0; p < l->parts; p++) {
				const struct fabric_sim_part *part = &l->part[i][s][p];
				uint64_t want = part->to == i ? 0 : part->bytes;

				assert_int_equal(l->arrived[i][s][p], want);
				assert_true(!want == !l->ps[i][s][p]);
				bytes += want;
			}
	assert_int_equal(r.bytes, bytes);
	return r;
}

static const struct fabric_routing dmodk = {.kind = FABRIC_DMODK};

static inline void assert_near(double got, double want, double part)
{
	if (got < want * (1 - part) || got > want * (1 + part))
		fail_msg("%g, expected %g within %g %%", got, want, 100 * part);
}

#endif
