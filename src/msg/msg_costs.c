#include "msg_costs.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "util_clock.h"
#include "msg_ep.h"

/* ---- pure ---- */

uint32_t msg_costs_uses(double reg, double copy, double over)
{
	double n = copy > over ? reg / (copy - over) : INFINITY;

	return n < MSG_COSTS_NEVER - 1 ? (uint32_t)n + 1 : MSG_COSTS_NEVER;
}

uint32_t msg_costs_frequent(uint32_t n, uint32_t percent)
{
	uint64_t uses = ((uint64_t)n * percent + 99) / 100;

	if (n == MSG_COSTS_NEVER || uses >= MSG_COSTS_NEVER)
		return MSG_COSTS_NEVER;
	return uses ? (uint32_t)uses : 1;
}

/* ---- measured ---- */

/* Whatever disturbs a measurement makes it longer: the shortest of several counts. */
#define TRIES  8
#define BUDGET (5 * UTIL_NS_PER_MS)
#define LOOKS  1024

struct trial {
	struct msg_dev *dev;
	uint8_t *mem, *to;
	size_t len, page;
	uint64_t end; /* nothing is repeated after that */
};

static void keep_least(double *best, uint64_t ns, unsigned int n)
{
	double each = (double)ns / n;

	if (each < *best)
		*best = each;
}

static bool once_more(const struct trial *t, unsigned int done)
{
	return done < TRIES && (!done || util_now_ns() < t->end);
}

/* Registered and deregistered. INFINITY: it can not be. */
static double reg_each_time(struct trial *t, size_t len)
{
	double best = INFINITY;

	for (unsigned int i = 0; once_more(t, i); i++) {
		uint64_t start = util_now_ns();
		struct ibv_mr *mr;

		if (msg_dev_reg(t->dev, t->mem, len, false, &mr))
			break;
		ibv_dereg_mr(mr);
		keep_least(&best, util_now_ns() - start, 1);
	}
	return best;
}

/* The device's cache is asked for memory so many times. If there is to be no registration of it
 * then, there will be none afterwards: that is paid for with it. What was counted was not the
 * application's doing. */
static int ask(struct trial *t, size_t len, unsigned int times, bool anew, uint64_t *took)
{
	struct msg_cache *c = &t->dev->cache;
	struct msg_cache_stats before;
	struct msg_region *r;
	int err = 0;

	util_lock(&t->dev->cache_lock);
	before = c->stats;
	*took = util_now_ns();
	for (unsigned int i = 0; i < times && !err; i++) {
		err = msg_cache_get(c, t->mem, len, &r);
		if (!err)
			msg_cache_put(c, r);
	}
	if (anew)
		msg_cache_drop(c, t->mem, len);
	*took = util_now_ns() - *took;
	c->stats = before;
	util_unlock(&t->dev->cache_lock);
	return err;
}

/* Registered and watched, and all of that undone. */
static double reg_kept(struct trial *t, size_t len)
{
	double best = INFINITY;
	uint64_t took;

	for (unsigned int i = 0; once_more(t, i) && !ask(t, len, 1, true, &took); i++)
		keep_least(&best, took, 1);
	return best;
}

/* A registration that is there is got and put back. */
static double look_up_kept(struct trial *t)
{
	enum { TIMES = 32 };
	double best = INFINITY;
	uint64_t took;

	if (ask(t, 1, 1, false, &took))
		return best;
	for (unsigned int i = 0; once_more(t, i) && !ask(t, 1, TIMES, false, &took); i++)
		keep_least(&best, took, TIMES);
	ask(t, 1, 0, true, &took);
	return best;
}

/* A buffer is found among a thousand. */
static double look_up_buffer(struct trial *t)
{
	uint32_t least[MSG_COSTS_CLASSES] = {0};
	double best = INFINITY;
	struct msg_reuse table;

	msg_reuse_init(&table, least, true);
	for (unsigned int i = 0; i < LOOKS; i++)
		msg_reuse_use(&table, t->mem + (size_t)i * MSG_COSTS_LEAST, MSG_COSTS_LEAST);
	for (unsigned int i = 0; once_more(t, i); i++) {
		uint64_t start = util_now_ns();

		for (unsigned int k = 0; k < LOOKS; k++)
			msg_reuse_use(&table, t->mem + (size_t)k * MSG_COSTS_LEAST,
				      MSG_COSTS_LEAST);
		keep_least(&best, util_now_ns() - start, LOOKS);
	}
	msg_reuse_free(&table);
	return best;
}

/* Into a buffer that is used again and again, as the endpoint's that is free is. */
static double copy(struct trial *t, size_t len)
{
	/* A compiler that knows what it copies knows that nobody looks at it. */
	static void *(*const volatile copy_it)(void *, const void *, size_t) = memcpy;
	unsigned int times = (unsigned int)(16384 / len + 2);
	double best = INFINITY;

	for (unsigned int i = 0; once_more(t, i); i++) {
		uint64_t start = util_now_ns();

		for (unsigned int k = 0; k < times; k++)
			copy_it(t->to, t->mem, len);
		keep_least(&best, util_now_ns() - start, times);
	}
	return best;
}

static size_t pages(const struct trial *t, uint64_t len)
{
	return (len + t->page - 1) / t->page;
}

static void measure(struct trial *t, struct msg_costs *c)
{
	bool kept = t->dev->cached;
	double look = look_up_buffer(t) + (kept ? look_up_kept(t) : 0), reg = INFINITY;

	*c = (struct msg_costs){.needed = !t->dev->all, .cached = kept};
	for (uint32_t i = 0; i < MSG_COSTS_CLASSES; i++) {
		struct msg_cost *m = &c->of[i];
		size_t len = msg_costs_size(i);

		/* What is registered is whole pages. */
		if (!i || pages(t, len) != pages(t, msg_costs_size(i - 1)))
			reg = kept ? reg_kept(t, len) : reg_each_time(t, len);
		m->copy = copy(t, len);
		/* A packet that is copied completes, too: there is no further completion. */
		m->over = kept ? look : reg;
		m->reg = kept ? reg : 0;
		m->n = msg_costs_uses(m->reg, m->copy, m->over);
	}
}

static int gauge(struct msg_dev *dev, struct msg_costs *c)
{
	struct trial t = {.dev = dev, .page = (size_t)sysconf(_SC_PAGESIZE)};

	t.len = pages(&t, msg_costs_size(MSG_COSTS_CLASSES - 1)) * t.page;
	t.mem = mmap(NULL, 2 * t.len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (t.mem == MAP_FAILED)
		return -errno;
	t.to = t.mem + t.len;
	memset(t.mem, 1, 2 * t.len);
	t.end = util_now_ns() + BUDGET;
	measure(&t, c);
	munmap(t.mem, 2 * t.len);
	return 0;
}

int msg_dev_costs(struct msg_dev *dev, struct msg_costs *out)
{
	int err;

	util_lock(&dev->costs_lock);
	if (!dev->gauged) {
		dev->costs_err = gauge(dev, &dev->costs);
		dev->gauged = true;
	}
	*out = dev->costs;
	err = dev->costs_err;
	util_unlock(&dev->costs_lock);
	return err;
}
