/* Hot-spot degree: against a walker that goes from node to node by the paper's equations. */
#include "test_fabric.h"

#include "fabric_hsd.h"
#include "fabric_order.h"

/* Everything that a case needs. */
struct scene {
	struct fabric_tree tree;
	struct fabric_routes routes;
	struct fabric_cps cps;
	uint32_t *hosts, n;
	uint32_t *index;
	struct fabric_hsd_job job;
};

static void cut_some(struct scene *s, uint32_t cuts, uint64_t seed)
{
	for (uint32_t i = 0; i < cuts; i++)
		assert_int_equal(
			fabric_tree_cut(&s->tree, (uint32_t)(splitmix64(&seed) %
							     fabric_cables(&s->tree.pgft))),
			0);
}

/* exclude may be NULL; then all take part. Otherwise routes are by the compact index. */
static void build(struct scene *s, const char *tuple, const char *routing, const char *exclude,
		  const char *order, const char *sequence, uint32_t cuts)
{
	struct fabric_pgft t = tree(tuple);
	struct fabric_routing rule;
	struct fabric_set set;
	char why[320] = "";

	*s = (struct scene){0};
	fabric_tree_init(&s->tree, &t);
	cut_some(s, cuts, 7);
	if (fabric_routing_parse(&rule, routing, why, sizeof(why)))
		fail_msg("%s", why);
	if (exclude ? fabric_set_exclude(&set, &s->tree, exclude, why, sizeof(why))
		    : fabric_set_all(&set, &s->tree))
		fail_msg("%s", why);
	if (exclude)
		s->index = fabric_set_index(&set, &s->tree);
	assert_int_equal(fabric_routes_make(&s->routes, &s->tree, &rule, s->index), 0);
	s->hosts = malloc(set.count * sizeof(*s->hosts));
	assert_non_null(s->hosts);
	if (fabric_order_of(&s->tree, &set, order, s->hosts, &s->n, why, sizeof(why)) ||
	    fabric_cps_parse(&s->cps, sequence, s->n, &s->tree.pgft, why, sizeof(why)))
		fail_msg("%s", why);
	fabric_set_free(&set);
	s->job = (struct fabric_hsd_job){.routes = &s->routes, .cps = &s->cps, .hosts = s->hosts};
}

static void drop(struct scene *s)
{
	fabric_cps_free(&s->cps);
	fabric_routes_free(&s->routes);
	fabric_tree_free(&s->tree);
	free(s->index);
	free(s->hosts);
}

static struct fabric_hsd run(struct scene *s)
{
	struct fabric_hsd result;

	assert_int_equal(fabric_hsd(&s->job, &result), 0);
	return result;
}

/* ---- the walker ---- */

/* By how much an address turns the ports of a level. */
static uint32_t digit_of(const struct fabric_pgft *t, uint32_t l, uint32_t address)
{
	for (uint32_t k = 0; k < l; k++)
		address /= t->w[k + 1] * t->p[k + 1];
	return address % (t->w[l + 1] * t->p[l + 1]);
}

static uint32_t equation_1(const struct fabric_pgft *t, uint32_t l, uint32_t key, uint32_t address)
{
	uint32_t product = 1, ports = t->w[l + 1] * t->p[l + 1];

	for (uint32_t k = 1; k <= l; k++)
		product *= t->w[k];
	return (key / product + digit_of(t, l, address)) % ports;
}

/* Whole trees by the equations and by the random table, others by the tables. */
static bool step(const struct scene *s, struct fabric_node n, uint32_t to, struct fabric_cable *c,
		 bool *up)
{
	const struct fabric_pgft *t = &s->tree.pgft;
	uint32_t key = s->index && s->index[to] != FABRIC_NONE ? s->index[to] : to, q, cable;

	if (s->routes.rule.kind == FABRIC_RANDOM && !s->routes.around) {
		struct fabric_ports p = fabric_route(t, &s->routes.rule, n, to, s->job.address);

		*up = p.up;
		*c = p.up ? fabric_cable_up(t, n, p.first) : fabric_cable_down(t, n, p.first);
		return true;
	}
	if (s->routes.table || s->routes.around) {
		cable = fabric_routes_step(&s->routes, fabric_number(t, n), to, s->job.address, up);
		if (cable != FABRIC_NONE)
			*c = fabric_cable(t, cable);
		return cable != FABRIC_NONE;
	}
	*up = to / t->M[n.level] != n.index / t->W[n.level];
	if (*up) {
		*c = fabric_cable_up(t, n, equation_1(t, n.level, key, s->job.address));
		return true;
	}
	q = equation_1(t, n.level - 1, key, s->job.address);
	*c = fabric_cable_down(
		t, n, to / t->M[n.level - 1] % t->m[n.level] + q / t->w[n.level] * t->m[n.level]);
	return true;
}

static bool walk(const struct scene *s, uint32_t from, uint32_t to, uint32_t *links, uint32_t *n)
{
	struct fabric_node at = {0, from};
	struct fabric_cable c;
	bool up;

	for (*n = 0; at.level != 0 || at.index != to; (*n)++) {
		assert_true(*n < 2 * s->tree.pgft.h);
		if (!step(s, at, to, &c, &up))
			return false;
		links[*n] = fabric_link(fabric_cable_number(&s->tree.pgft, &c), up);
		at = up ? c.upper : c.lower;
	}
	return true;
}

/* ---- every link of every stage ---- */

struct check {
	const struct scene *s;
	uint32_t *want;
	struct fabric_hsd_worst *worst; /* by stage */
	struct fabric_hsd_link *best;   /* by link */
	uint32_t stages;
};

static void worse(uint32_t *a, uint32_t b)
{
	*a = b > *a ? b : *a;
}

static void note_link(struct check *c, uint32_t stage, uint32_t link, uint32_t degree)
{
	uint32_t l = fabric_cable(&c->s->tree.pgft, link / 2).upper.level;
	struct fabric_hsd_worst *w = &c->worst[stage];

	worse(&w->all, degree);
	worse(link % 2 ? &w->down_at[l] : &w->up_at[l], degree);
	if (l > 1)
		worse(link % 2 ? &w->down : &w->up, degree);
	if (l == 2 && link % 2 == 0)
		worse(&w->leaf_up, degree);
	if (degree > c->best[link].degree)
		c->best[link] = (struct fabric_hsd_link){link, stage, degree};
}

static int on_stage(void *arg, uint32_t stage, const uint32_t *degree)
{
	struct check *c = arg;
	const struct scene *s = c->s;
	uint32_t n_links = 2 * fabric_cables(&s->tree.pgft), links[2 * FABRIC_LEVELS_MAX], n;

	memset(c->want, 0, n_links * sizeof(*c->want));
	for (uint32_t i = 0; i < s->n; i++) {
		uint32_t to = fabric_cps_to(&s->cps, stage, i);

		if (to == FABRIC_NONE)
			continue;
		if (!walk(s, s->hosts[i], s->hosts[to], links, &n)) {
			c->worst[stage].lost++;
			continue;
		}
		while (n > 0)
			c->want[links[--n]]++;
	}
	assert_memory_equal(degree, c->want, n_links * sizeof(*degree));
	for (uint32_t i = 0; i < n_links; i++)
		if (degree[i])
			note_link(c, stage, i, degree[i]);
	c->stages++;
	return 0;
}

static int by_degree(const void *a, const void *b)
{
	const struct fabric_hsd_link *x = a, *y = b;

	if (x->degree != y->degree)
		return x->degree < y->degree ? 1 : -1;
	return x->link < y->link ? -1 : x->link > y->link;
}

static void check_result(const struct check *c, const struct fabric_hsd *r,
			 const struct fabric_hsd_worst *per_stage)
{
	double all = 0, up = 0, down = 0, leaf = 0, n = c->stages ? c->stages : 1;
	struct fabric_hsd_worst worst = {0};

	assert_int_equal(r->stages, c->stages);
	for (uint32_t i = 0; i < c->s->cps.stages; i++) {
		const struct fabric_hsd_worst *w = &c->worst[i];

		assert_memory_equal(w, &per_stage[i], sizeof(*w));
		all += w->all;
		up += w->up;
		down += w->down;
		leaf += w->leaf_up;
		worse(&worst.all, w->all);
		worse(&worst.up, w->up);
		worse(&worst.down, w->down);
		worse(&worst.leaf_up, w->leaf_up);
		for (uint32_t l = 1; l <= c->s->tree.pgft.h; l++) {
			worse(&worst.up_at[l], w->up_at[l]);
			worse(&worst.down_at[l], w->down_at[l]);
		}
		worst.lost += w->lost;
	}
	assert_memory_equal(&worst, &r->worst, sizeof(worst));
	assert_true(r->avg_max_hsd == all / n && r->avg_max_up == up / n);
	assert_true(r->avg_max_down == down / n && r->avg_max_leaf_up == leaf / n);
}

/* The flows that are said to be on a link are there, and there are no others. */
static void check_flows(const struct scene *s, const struct fabric_hsd_link *hot)
{
	struct fabric_flow *flows = malloc(hot->degree * sizeof(*flows));
	uint32_t links[2 * FABRIC_LEVELS_MAX], n;

	assert_non_null(flows);
	assert_int_equal(fabric_hsd_flows(&s->job, hot->stage, hot->link, flows, hot->degree),
			 hot->degree);
	for (uint32_t i = 0; i < hot->degree; i++) {
		bool found = false;

		assert_true(i == 0 || flows[i].from > flows[i - 1].from);
		assert_int_equal(fabric_cps_to(&s->cps, hot->stage, flows[i].from), flows[i].to);
		assert_true(walk(s, s->hosts[flows[i].from], s->hosts[flows[i].to], links, &n));
		while (n > 0)
			found |= links[--n] == hot->link;
		assert_true(found);
	}
	assert_int_equal(fabric_hsd_flows(&s->job, hot->stage, hot->link, NULL, 0), hot->degree);
	free(flows);
}

static void check_hottest(const struct check *c, const struct fabric_hsd *r)
{
	uint32_t n_links = 2 * fabric_cables(&c->s->tree.pgft);

	qsort(c->best, n_links, sizeof(*c->best), by_degree);
	assert_true(r->n_hottest <= c->s->job.n_hottest);
	if (r->n_hottest < c->s->job.n_hottest && r->n_hottest < n_links)
		assert_int_equal(c->best[r->n_hottest].degree, 0);
	for (uint32_t i = 0; i < r->n_hottest; i++) {
		assert_memory_equal(&r->hottest[i], &c->best[i], sizeof(c->best[i]));
		if (i < 5)
			check_flows(c->s, &r->hottest[i]);
	}
}

static void check_scene(struct scene *s)
{
	uint32_t n_links = 2 * fabric_cables(&s->tree.pgft), stages = s->cps.stages + 1;
	struct fabric_hsd_worst *per_stage = calloc(stages, sizeof(*per_stage));
	struct check c = {.s = s};
	struct fabric_hsd r;

	c.want = calloc(n_links, sizeof(*c.want));
	c.worst = calloc(stages, sizeof(*c.worst));
	c.best = calloc(n_links, sizeof(*c.best));
	assert_true(per_stage && c.want && c.worst && c.best);
	s->job.links = on_stage;
	s->job.arg = &c;
	s->job.per_stage = per_stage;
	s->job.n_hottest = 20;
	r = run(s);
	check_result(&c, &r, per_stage);
	check_hottest(&c, &r);
	fabric_hsd_free(&r);
	s->job.links = NULL;
	/* Which thread gets which stage is never the same. */
	for (s->job.threads = 1; s->job.threads <= (s->n > 300 ? 8 : 2); s->job.threads++) {
		r = run(s);
		check_result(&c, &r, per_stage);
		check_hottest(&c, &r);
		fabric_hsd_free(&r);
	}
	free(per_stage);
	free(c.want);
	free(c.worst);
	free(c.best);
}

static void check_case(const char *tuple, const char *routing, const char *exclude,
		       const char *order, const char *sequence, uint32_t cuts)
{
	struct scene s;

	build(&s, tuple, routing, exclude, order, sequence, cuts);
	for (s.job.address = 0; s.job.address < 1u << s.routes.rule.lmc; s.job.address++)
		check_scene(&s);
	drop(&s);
}

static void test_links(void **state)
{
	static const char *const routings[] = {"dmodk", "lmc:2", "random:5"};
	static const char *const orders[] = {"routing", "random:3"};
	static const char *const sequences[] = {"shift", "recdbl", "topo-rechalv", "binomial"};

	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++)
		for (size_t r = 0; r < COUNT(routings); r++)
			for (size_t o = 0; o < COUNT(orders); o++)
				for (size_t c = 0; c < COUNT(sequences); c++)
					check_case(trees[i], routings[r], NULL, orders[o],
						   sequences[c], 0);
}

static void test_compact(void **state)
{
	static const char *const excludes[] = {"0:1", "1:2", "3:3", "40:5", "100:6"};

	(void)state;
	for (size_t i = 0; i < COUNT(excludes); i++) {
		check_case("2;12,12;1,6;1,2", "dmodk", excludes[i], "compact", "shift", 0);
		check_case("2;12,12;1,6;1,2", "dmodk", excludes[i], "random:1", "shift", 0);
		check_case("3;6,6,6;2,3,2;1,2,1", "lmc:1", excludes[i], "compact", "recdbl", 0);
	}
}

/* With cables gone; with many gone, some flows are lost. */
static void test_faults(void **state)
{
	(void)state;
	for (uint32_t cuts = 1; cuts < 100; cuts += 14) {
		check_case("2;12,12;1,6;1,2", "dmodk", NULL, "routing", "shift", cuts);
		check_case("3;4,4,4;1,4,2;1,1,2", "random:2", NULL, "random:2", "topo-recdbl",
			   cuts);
		check_case("2;4,4;2,2;2,3", "lmc:2", NULL, "random:1", "shift", cuts % 30);
		check_case("3;2,3,2;3,1,2;1,2,3", "random:7", NULL, "routing", "shift", cuts % 30);
		check_case("3;6,6,6;2,3,2;1,2,1", "lmc:1", "17:3", "compact", "shift", cuts);
	}
}

static void note_going(void *arg, double done)
{
	double *last = arg;

	assert_true(done >= *last && done < 1);
	*last = done;
}

/* How far it is, by the calling thread. */
static void test_going(void **state)
{
	struct scene s;
	struct fabric_hsd r;
	double last = 0;

	(void)state;
	build(&s, "2;18,18;1,9;1,2", "dmodk", NULL, "routing", "shift", 0);
	s.job.going = note_going;
	s.job.arg = &last;
	s.job.threads = 1;
	r = run(&s);
	assert_int_equal(r.stages, 323);
	assert_true(last > 0.99);
	drop(&s);
}

static void test_lost(void **state)
{
	struct scene s;
	struct fabric_hsd r;

	(void)state;
	build(&s, "2;12,2;1,12;1,1", "dmodk", NULL, "routing", "ring", 0);
	fabric_routes_free(&s.routes);
	assert_int_equal(fabric_tree_cut(&s.tree, 5), 0); /* the only one of host 5 */
	assert_int_equal(fabric_routes_make(&s.routes, &s.tree, &(struct fabric_routing){0}, NULL),
			 0);
	r = run(&s);
	assert_int_equal(r.worst.lost, 2);
	assert_int_equal(r.worst.all, 1);
	drop(&s);
}

/* Large enough for several threads, and for links to be looked at one by one. */
static void test_large(void **state)
{
	(void)state;
	check_case("2;18,18;1,9;1,2", "dmodk", NULL, "random:8", "shift", 0);
	check_case("3;18,18,6;1,18,3;1,1,6", "dmodk", NULL, "adversarial", "ring", 0);
	check_case("3;18,18,6;1,18,3;1,1,6", "dmodk", NULL, "random:8", "binomial", 0);
	check_case("3;18,18,6;1,18,3;1,1,6", "random:1", NULL, "routing", "binomial", 0);
}

/* Stages by their number: every third from the fifth on, four of them. */
static void test_sample(void **state)
{
	struct fabric_hsd_worst all[143], some[143];
	struct fabric_hsd r;
	struct scene s;
	double sum = 0;

	(void)state;
	build(&s, "2;12,12;1,6;1,2", "dmodk", NULL, "random:4", "shift", 0);
	s.job.per_stage = all;
	run(&s);
	memset(some, 0, sizeof(some));
	s.job.per_stage = some;
	s.job.first = 5;
	s.job.stride = 3;
	s.job.count = 4;
	r = run(&s);
	assert_int_equal(r.stages, 4);
	for (uint32_t i = 0; i < 143; i++)
		if (i == 5 || i == 8 || i == 11 || i == 14)
			sum += all[i].all;
		else
			assert_int_equal(some[i].all, 0);
	assert_true(r.avg_max_hsd == sum / 4);
	s.job.count = 0;
	assert_int_equal(run(&s).stages, 46);
	s.job.first = 143;
	assert_int_equal(run(&s).stages, 0);
	drop(&s);
}

static int stop(void *arg, uint32_t stage, const uint32_t *degree)
{
	(void)degree;
	++*(uint32_t *)arg;
	return stage == 4 ? -ECANCELED : 0;
}

static void test_refusals(void **state)
{
	uint32_t calls = 0;
	struct fabric_hsd r;
	struct scene s;

	(void)state;
	build(&s, "2;12,2;1,12;1,1", "lmc:1", NULL, "routing", "shift", 0);
	s.job.links = stop;
	s.job.arg = &calls;
	assert_int_equal(fabric_hsd(&s.job, &r), -ECANCELED);
	assert_int_equal(calls, 5);
	s.job.links = NULL;
	s.job.address = 2;
	assert_int_equal(fabric_hsd(&s.job, &r), -EINVAL);
	s.job.address = 1;
	assert_int_equal(fabric_hsd(&s.job, &r), 0);
	s.hosts[7] = 24;
	assert_int_equal(fabric_hsd(&s.job, &r), -EINVAL);
	drop(&s);
}

/* A table that sends around in circles: the flow is lost, and nothing hangs. */
static void test_circle(void **state)
{
	struct fabric_hsd r;
	struct scene s;
	uint32_t links[FABRIC_HOPS_MAX];
	size_t entries;

	(void)state;
	build(&s, "2;2,2;1,2;1,1", "dmodk", NULL, "routing", "shift:2", 0);
	fabric_routes_free(&s.routes);
	assert_int_equal(fabric_routes_empty(&s.routes, &s.tree, 0), 0);
	entries = fabric_routes_entries(&s.routes);
	/* Both leaves send up to the first spine (port 3), which sends down to leaf 0 (port 1). */
	for (uint32_t j = 0; j < 4; j++) {
		s.routes.table[0 * entries + j] = 3;
		s.routes.table[1 * entries + j] = j >= 2 ? (uint16_t)(j - 1) : 3;
		s.routes.table[2 * entries + j] = 1;
		s.routes.table[3 * entries + j] = 1;
	}
	assert_int_equal(fabric_hsd_way(&s.routes, 0, 2, 0, links), -ENETUNREACH);
	r = run(&s);
	assert_int_equal(r.worst.lost, 4);
	assert_int_equal(r.worst.all, 0);
	drop(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_links),  cmocka_unit_test(test_compact),
		cmocka_unit_test(test_faults), cmocka_unit_test(test_going),
		cmocka_unit_test(test_lost),   cmocka_unit_test(test_large),
		cmocka_unit_test(test_sample), cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_circle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
