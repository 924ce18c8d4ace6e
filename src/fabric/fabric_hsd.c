#include "fabric_hsd.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fabric_hsd_in.h"

/* ---- one stage ---- */

/* All threads take stages from the same counter. */
struct shared {
	const struct fabric_hsd_job *job;
	const struct fabric_pgft *t;
	struct fabric_ways ways;
	uint32_t n_links, first, stride, count;
	atomic_uint next;
};

struct best {
	uint32_t degree, stage;
};

struct worker {
	struct shared *shared;
	struct fabric_flow *flows;
	uint32_t *degree;  /* by link; all 0 between stages */
	struct best *best; /* by link, if the hottest are asked for */
	struct fabric_hsd_worst worst;
	uint64_t sum_all, sum_up, sum_down, sum_leaf_up;
	bool caller; /* it runs in the thread of the caller */
	int ret;
};

/* ---- what is made of the degrees ---- */

static void remember(struct worker *w, uint32_t stage, uint32_t link)
{
	struct best *b = &w->best[link];

	/* A worker's stages ascend: the first of equal ones stays. */
	if (w->degree[link] > b->degree)
		*b = (struct best){w->degree[link], stage};
}

/* Many flows: all links of a level in one go. */
static void harvest_all(struct worker *w, uint32_t stage, struct fabric_hsd_worst *worst)
{
	const struct fabric_pgft *t = w->shared->t;

	for (uint32_t l = 1; l <= t->h; l++) {
		const uint32_t *d = w->degree + 2 * (size_t)t->first_cable[l];
		uint32_t up = 0, down = 0;

		for (uint32_t i = 0; i < t->cables[l]; i++) {
			up = d[2 * i] > up ? d[2 * i] : up;
			down = d[2 * i + 1] > down ? d[2 * i + 1] : down;
		}
		worst->up_at[l] = up;
		worst->down_at[l] = down;
	}
	for (uint32_t i = 0; w->best && i < w->shared->n_links; i++)
		remember(w, stage, i);
	memset(w->degree, 0, w->shared->n_links * sizeof(*w->degree));
}

static void harvest_link(struct worker *w, uint32_t stage, uint32_t link,
			 struct fabric_hsd_worst *worst)
{
	const struct fabric_pgft *t = w->shared->t;
	uint32_t l = 1, *at;

	while (link / 2 >= t->first_cable[l + 1])
		l++;
	at = link % 2 ? &worst->down_at[l] : &worst->up_at[l];
	if (w->degree[link] > *at)
		*at = w->degree[link];
	if (w->best)
		remember(w, stage, link);
	w->degree[link] = 0;
}

/* Few flows on a large tree: only the links that they passed. */
static void harvest_ways(struct worker *w, uint32_t stage, uint32_t n,
			 struct fabric_hsd_worst *worst)
{
	uint32_t links[FABRIC_HOPS_MAX];

	for (uint32_t i = 0; i < n; i++) {
		int hops = fabric_ways_of(&w->shared->ways, w->flows[i], links);

		for (int k = 0; k < hops; k++)
			harvest_link(w, stage, links[k], worst);
	}
}

static uint32_t larger(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

static void over_levels(struct fabric_hsd_worst *worst, uint32_t h)
{
	for (uint32_t l = 2; l <= h; l++) {
		worst->up = larger(worst->up, worst->up_at[l]);
		worst->down = larger(worst->down, worst->down_at[l]);
	}
	worst->leaf_up = h >= 2 ? worst->up_at[2] : 0;
	worst->all =
		larger(larger(worst->up_at[1], worst->down_at[1]), larger(worst->up, worst->down));
}

static void take_worse(struct fabric_hsd_worst *a, const struct fabric_hsd_worst *b, uint32_t h)
{
	a->all = larger(a->all, b->all);
	a->up = larger(a->up, b->up);
	a->down = larger(a->down, b->down);
	a->leaf_up = larger(a->leaf_up, b->leaf_up);
	for (uint32_t l = 1; l <= h; l++) {
		a->up_at[l] = larger(a->up_at[l], b->up_at[l]);
		a->down_at[l] = larger(a->down_at[l], b->down_at[l]);
	}
	a->lost += b->lost;
}

static int do_stage(struct worker *w, uint32_t stage)
{
	const struct shared *s = w->shared;
	struct fabric_hsd_worst worst = {0};
	uint32_t n = fabric_cps_flows(s->job->cps, stage, w->flows);
	int ret = 0;

	worst.lost = fabric_ways_count(&s->ways, w->flows, n, w->degree);
	if (s->job->links)
		ret = s->job->links(s->job->arg, stage, w->degree);
	if (n < s->n_links / 64)
		harvest_ways(w, stage, n, &worst);
	else
		harvest_all(w, stage, &worst);
	over_levels(&worst, s->t->h);
	w->sum_all += worst.all;
	w->sum_up += worst.up;
	w->sum_down += worst.down;
	w->sum_leaf_up += worst.leaf_up;
	take_worse(&w->worst, &worst, s->t->h);
	if (s->job->per_stage)
		s->job->per_stage[stage] = worst;
	return ret;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	struct shared *s = w->shared;
	uint32_t i;

	/* Nothing else is read by others before this thread was joined. */
	while (!w->ret &&
	       (i = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed)) < s->count) {
		if (w->caller && s->job->going)
			s->job->going(s->job->arg, (double)i / s->count);
		w->ret = do_stage(w, s->first + i * s->stride);
	}
	return NULL;
}

/* ---- all stages ---- */

static int check(const struct fabric_hsd_job *job)
{
	const struct fabric_routes *r = job->routes;

	if (job->address >> r->rule.lmc)
		return -EINVAL;
	for (uint32_t i = 0; i < job->cps->n; i++)
		if (job->hosts[i] >= fabric_hosts(&r->tree->pgft))
			return -EINVAL;
	return 0;
}

static int prepare(struct shared *s, const struct fabric_hsd_job *job)
{
	uint32_t after;

	s->job = job;
	s->t = &job->routes->tree->pgft;
	s->n_links = 2 * fabric_cables(s->t);
	s->first = job->first;
	s->stride = job->stride ? job->stride : 1;
	after = job->cps->stages > s->first ? job->cps->stages - s->first : 0;
	s->count = after / s->stride + (after % s->stride != 0);
	if (job->count && job->count < s->count)
		s->count = job->count;
	atomic_init(&s->next, 0);
	return fabric_ways_make(&s->ways, job);
}

static int begin(struct worker *w, struct shared *s)
{
	w->shared = s;
	w->flows = malloc(s->job->cps->widest * sizeof(*w->flows));
	w->degree = calloc(s->n_links, sizeof(*w->degree));
	if (s->job->n_hottest)
		w->best = calloc(s->n_links, sizeof(*w->best));
	if (!w->flows || !w->degree || (s->job->n_hottest && !w->best))
		return -ENOMEM;
	return 0;
}

static void end(struct worker *w)
{
	free(w->flows);
	free(w->degree);
	free(w->best);
}

static void merge(struct worker *into, const struct worker *w)
{
	const struct shared *s = into->shared;

	take_worse(&into->worst, &w->worst, s->t->h);
	into->sum_all += w->sum_all;
	into->sum_up += w->sum_up;
	into->sum_down += w->sum_down;
	into->sum_leaf_up += w->sum_leaf_up;
	for (uint32_t i = 0; into->best && i < s->n_links; i++) {
		struct best *a = &into->best[i], b = w->best[i];

		if (b.degree > a->degree || (b.degree == a->degree && b.stage < a->stage))
			*a = b;
	}
}

static int by_degree(const void *a, const void *b)
{
	const struct fabric_hsd_link *x = a, *y = b;

	if (x->degree != y->degree)
		return x->degree < y->degree ? 1 : -1;
	return (x->link > y->link) - (x->link < y->link);
}

static int sort_hottest(const struct worker *w, struct fabric_hsd *result)
{
	uint32_t used = 0, n = w->shared->job->n_hottest;
	struct fabric_hsd_link *all;

	for (uint32_t i = 0; i < w->shared->n_links; i++)
		used += w->best[i].degree > 0;
	all = malloc((used ? used : 1) * sizeof(*all));
	if (!all)
		return -ENOMEM;
	used = 0;
	for (uint32_t i = 0; i < w->shared->n_links; i++)
		if (w->best[i].degree)
			all[used++] =
				(struct fabric_hsd_link){i, w->best[i].stage, w->best[i].degree};
	qsort(all, used, sizeof(*all), by_degree);
	result->hottest = all;
	result->n_hottest = used < n ? used : n;
	return 0;
}

static int conclude(const struct worker *w, struct fabric_hsd *result)
{
	uint32_t stages = w->shared->count;
	double n = stages ? stages : 1;

	*result = (struct fabric_hsd){.stages = stages, .worst = w->worst};
	result->avg_max_hsd = (double)w->sum_all / n;
	result->avg_max_up = (double)w->sum_up / n;
	result->avg_max_down = (double)w->sum_down / n;
	result->avg_max_leaf_up = (double)w->sum_leaf_up / n;
	return w->best ? sort_hottest(w, result) : 0;
}

#define THREADS_MAX 64

static unsigned choose_threads(const struct fabric_hsd_job *job, const struct shared *s)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	unsigned n = job->threads ? job->threads : cores > 1 ? (unsigned)cores : 1;

	if (job->links)
		return 1; /* which wants its stages in their order */
	/* A thread costs as much as some thousand flows. */
	if ((uint64_t)s->count * job->cps->n < 100000)
		return 1;
	if (n > s->count)
		n = s->count;
	return n < THREADS_MAX ? n : THREADS_MAX;
}

/* Threads that can not be had are done without: their stages are done by the others. */
static int run(struct shared *s, struct worker *workers, unsigned n, struct fabric_hsd *result)
{
	pthread_t threads[THREADS_MAX];
	unsigned started = 1;
	int ret = begin(&workers[0], s);

	if (ret)
		return ret;
	for (; started < n && !begin(&workers[started], s); started++)
		if (pthread_create(&threads[started], NULL, work, &workers[started]))
			break;
	workers[0].caller = true;
	work(&workers[0]);
	ret = workers[0].ret;
	for (unsigned i = 1; i < started; i++) {
		pthread_join(threads[i], NULL);
		merge(&workers[0], &workers[i]);
	}
	return ret ? ret : conclude(&workers[0], result);
}

int fabric_hsd(const struct fabric_hsd_job *job, struct fabric_hsd *result)
{
	struct shared s = {0};
	struct worker *workers;
	unsigned n;
	int ret = check(job);

	*result = (struct fabric_hsd){0};
	if (ret)
		return ret;
	ret = prepare(&s, job);
	n = choose_threads(job, &s);
	workers = calloc(n, sizeof(*workers));
	if (!ret)
		ret = workers ? run(&s, workers, n, result) : -ENOMEM;
	for (unsigned i = 0; workers && i < n; i++)
		end(&workers[i]);
	free(workers);
	fabric_ways_free(&s.ways);
	return ret;
}

void fabric_hsd_free(struct fabric_hsd *result)
{
	free(result->hottest);
	*result = (struct fabric_hsd){0};
}

uint32_t fabric_hsd_flows(const struct fabric_hsd_job *job, uint32_t stage, uint32_t link,
			  struct fabric_flow *flows, uint32_t room)
{
	const struct fabric_cps *c = job->cps;
	uint32_t links[FABRIC_HOPS_MAX], count = 0, nth = 0, i = 0;

	while (i < c->n) {
		uint32_t to = fabric_cps_nth(c, stage, i, nth++);
		int hops;

		if (to == FABRIC_NONE) {
			nth = 0;
			i++;
			continue;
		}
		hops = fabric_hsd_way(job->routes, job->hosts[i], job->hosts[to], job->address,
				      links);
		for (int k = 0; k < hops; k++) {
			if (links[k] != link)
				continue;
			if (count < room)
				flows[count] = (struct fabric_flow){i, to};
			count++;
			break;
		}
	}
	return count;
}
