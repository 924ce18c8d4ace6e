#include "coll_measure.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll_agree.h"
#include "coll_here.h"
#include "util_clock.h"

#define TURNS   16                   /* of a message there and back */
#define ROW     16                   /* messages one way, at most, ... */
#define ROW_NS  (5 * UTIL_NS_PER_MS) /* ... if fewer do not take as long as this */
#define FASTEST 0.01                 /* ns a byte between hosts, and ... */
#define NIMBLE  50.0                 /* ... ns a message: less is not believed */
/* What others have written is not in the caches next to this core. */
#define PASS   ((size_t)4 << 20)
#define PASSES 3

/* ---- between hosts ---- */

/* The first two hosts, each as it sees the other. */
struct pair {
	struct coll_comm *c;
	uint32_t call, other;
};

static int give(const struct pair *p, size_t len)
{
	struct coll_comm *c = p->c;

	return coll_put_slot(c, p->call, coll_master(c, p->other), COLL_ROUND, c->memory, len,
			     c->mem.desc);
}

static int take(const struct pair *p)
{
	return coll_there_wait(p->c, p->call, COLL_ROUND, p->other);
}

static double less(double a, double b)
{
	return a < b ? a : b;
}

/* There and back, a few times, with nothing in it. The shortest: whatever was longer was disturbed.
 * *turn: of both ways; *sent: to send. */
static int turns(const struct pair *p, double *turn, double *sent)
{
	int ret = 0;

	*turn = *sent = 1e12;
	for (int i = 0; i < TURNS && !ret; i++) {
		uint64_t began = util_now_ns();

		if (p->c->host == 0) {
			ret = give(p, 0);
			*sent = less(*sent, (double)(util_now_ns() - began));
		}
		if (!ret)
			ret = take(p);
		if (!ret && p->c->host == 1)
			ret = give(p, 0);
		*turn = less(*turn, (double)(util_now_ns() - began));
	}
	return ret;
}

static int give_many(const struct pair *p, uint64_t n)
{
	int ret = 0;

	while (n-- > 0 && !ret)
		ret = give(p, p->c->slot);
	return ret;
}

static int take_many(const struct pair *p, uint64_t n)
{
	int ret = 0;

	while (n-- > 0 && !ret)
		ret = take(p);
	return ret;
}

/* How many messages come next is said before, and that is answered; 0: no more. */
static int announce(const struct pair *p, uint64_t n)
{
	int ret;

	memcpy(p->c->memory, &n, sizeof(n));
	ret = give(p, sizeof(n));
	return ret ? ret : take(p);
}

/* Rows of messages one way, each twice as many as before, until one takes long enough: a link may
 * let some bytes through at once before it comes to its rate, and those are used up by then. */
static int lead_rows(const struct pair *p, double *ns)
{
	double took = 0;
	int ret = 0;

	for (uint64_t n = 1; n <= ROW && took < ROW_NS && !ret; n *= 2) {
		uint64_t began;

		ret = announce(p, n);
		began = util_now_ns();
		if (!ret)
			ret = give_many(p, n);
		if (!ret)
			ret = take(p);
		took = (double)(util_now_ns() - began);
		*ns = took / (double)n;
	}
	return ret ? ret : announce(p, 0);
}

static int follow_rows(const struct pair *p)
{
	uint64_t n = 1;
	int ret = 0;

	while (n && !ret) {
		ret = take(p);
		memcpy(&n, coll_slot(p->c, p->call, coll_master(p->c, p->other)), sizeof(n));
		if (!ret && n > ROW)
			ret = -EPROTO;
		if (!ret)
			ret = give(p, 0);
		if (!ret)
			ret = take_many(p, n);
		if (!ret && n)
			ret = give(p, 0);
	}
	return ret;
}

static int measure_net(struct coll_comm *c, uint32_t call, struct coll_cost *cost)
{
	struct pair p = {c, call, 1 - c->host};
	double turn, row = 0;
	int ret = turns(&p, &turn, &cost->o);

	if (!ret)
		ret = c->host ? follow_rows(&p) : lead_rows(&p, &row);
	if (!ret)
		ret = coll_flush(c);
	if (cost->o < NIMBLE)
		cost->o = NIMBLE;
	/* Where most of it is work of the processors, little is left. */
	cost->L = turn / 2 > 2 * cost->o ? turn / 2 - 2 * cost->o : 0;
	cost->G = row / (double)c->slot;
	if (cost->G < FASTEST)
		cost->G = FASTEST;
	return ret;
}

/* ---- on a host ---- */

static struct coll_cost of_memory;

/* Of the process: the least of some, since it may have to share its core. */
static void measure_memory(void)
{
	uint8_t *from = malloc(2 * PASS), *to = from + PASS;
	double copy = 1e12, add = 1e12;

	of_memory = coll_cost_typical;
	if (!from)
		return;
	memset(from, 0, 2 * PASS); /* so that there are pages */
	for (int i = 0; i < PASSES; i++) {
		uint64_t began = util_now_ns(), copied;

		memcpy(to, from, PASS);
		copied = util_now_ns();
		PMPI_Reduce_local(from, to, (int)(PASS / sizeof(double)), MPI_DOUBLE, MPI_SUM);
		copy = less(copy, (double)(copied - began));
		add = less(add, (double)(util_now_ns() - copied));
	}
	of_memory.copy = copy / (double)PASS;
	of_memory.add = add / (double)PASS;
	free(from);
}

/* ---- all of it ---- */

int coll_measure(struct coll_comm *c, struct coll_cost *cost)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	long cores = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t call = coll_begin(c); /* all are in it */
	int ret = 0, all;

	if (!c->rank)
		pthread_once(&once, measure_memory);
	*cost = c->rank ? coll_cost_typical : of_memory;
	cost->cores = cores > 0 ? (uint32_t)cores : 1;
	if (c->hosts > 1 && c->host < 2 && coll_is_master(c))
		ret = measure_net(c, call, cost);
	all = coll_agree_on(c, cost, sizeof(*cost));
	return ret ? ret : all;
}
