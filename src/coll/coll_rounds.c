#include "coll_rounds.h"

#include <stdlib.h>

#include "coll_here.h"
#include "util_clock.h"

/* Each way has a row of turns, after one that does not count, and when all have had theirs another:
 * what disturbs one way shall not be the only thing known of it. */
enum { ROWS = 2, TURNS = 4 };

static int round_of(struct coll_comm *c, uint32_t call, const struct coll_dissem *d, uint32_t round)
{
	uint32_t width = coll_dissem_width(d, round);
	int ret = 0;

	for (uint32_t k = 0; k < width && !ret; k++) {
		uint32_t to = coll_dissem_to(d, c->host, round, k);

		ret = coll_put_slot(c, call, coll_master(c, to), COLL_ROUND, c->memory, 0,
				    c->mem.desc);
	}
	for (uint32_t k = 0; k < width && !ret; k++)
		ret = coll_there_wait(c, call, COLL_ROUND, coll_dissem_from(d, c->host, round, k));
	return ret;
}

int coll_rounds(struct coll_comm *c, uint32_t call, const struct coll_dissem *d)
{
	int ret = 0;

	for (uint32_t i = 0; i < d->rounds && !ret; i++)
		ret = round_of(c, call, d, i);
	return ret;
}

static int by_time(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Each turn is a call of its own, as two banks ask for: nobody is more than one ahead of another.
 * In the first of a row peers meet who have not spoken before, late ones come, and all get into the
 * step of this way. */
static int row(struct coll_comm *c, const struct coll_dissem *d, uint64_t took[TURNS])
{
	uint64_t began = 0, now;

	for (int i = -1; i < TURNS; i++) {
		int ret = coll_rounds(c, coll_begin(c), d);

		if (!ret)
			ret = coll_leave(c);
		if (ret)
			return ret;
		now = util_now_ns();
		if (i >= 0)
			took[i] = now - began;
		began = now;
	}
	return 0;
}

int coll_rounds_measure(struct coll_comm *c, const struct coll_dissem *d, uint32_t count,
			uint64_t *ns)
{
	uint64_t took[COLL_DISSEM_TRIES][ROWS * TURNS] = {{0}};
	int ret = 0, none = 0;

	for (uint32_t i = 0; i < ROWS * count && !ret; i++)
		if (coll_is_master(c))
			ret = row(c, &d[i % count], &took[i % count][i / count * TURNS]);
		else
			for (int k = -1; k < TURNS; k++)
				coll_begin(c);
	for (uint32_t i = 0; i < count; i++) {
		qsort(took[i], ROWS * TURNS, sizeof(took[i][0]), by_time);
		ns[i] = took[i][ROWS * TURNS / 2];
	}
	/* Half of a call leaves the communicator behind the others for ever. */
	if (ret)
		atomic_compare_exchange_strong(&c->err, &none, ret);
	return ret;
}
