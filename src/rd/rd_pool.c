#include <stdlib.h>

#include "rd_board_impl.h"

void rd_pool_init(struct rd_pool *pool, uint32_t keep)
{
	*pool = (struct rd_pool){.keep = keep};
	list_init(&pool->free);
}

void rd_pool_free(struct rd_pool *pool)
{
	struct rd_sent *s, *tmp;

	list_for_each_safe (s, tmp, &pool->free, link)
		free(s);
	list_init(&pool->free);
	pool->n_free = 0;
}

void rd_pool_trim(struct rd_pool *pool, uint32_t n)
{
	while (pool->n_free > n) {
		struct rd_sent *s = list_last(&pool->free, struct rd_sent, link);

		list_del(&s->link);
		pool->n_free--;
		free(s);
	}
}

struct rd_sent *rd_pool_get(struct rd_pool *pool)
{
	struct rd_sent *s = list_first(&pool->free, struct rd_sent, link);

	if (s) {
		list_del(&s->link);
		pool->n_free--;
	} else {
		s = malloc(sizeof(*s));
		if (!s)
			return NULL;
	}
	pool->n_used++;
	return s;
}

void rd_pool_put(struct rd_pool *pool, struct rd_sent *s)
{
	pool->n_used--;
	if (pool->n_free >= pool->keep) {
		free(s);
		return;
	}
	/* The one that is still in the cache is the next to be used. */
	list_add(&s->link, &pool->free);
	pool->n_free++;
}
