/* Operations that are free.
 *
 * Whoever takes one holds the lock, so that fi_cancel, which holds it too, looks at operations
 * that are not made into others meanwhile. Given back they are without it, by one atomic
 * operation: those that take one exchange the whole list, which makes that safe. */
#include <stdlib.h>
#include "ofi.h"

static int grow(struct ofi_pool *p)
{
	struct ofi_op **all = realloc(p->chunk, (p->n_chunks + 1) * sizeof(struct ofi_op *));
	struct ofi_op *chunk;

	if (!all)
		return -FI_ENOMEM;
	p->chunk = all;
	chunk = calloc(OFI_POOL_CHUNK, sizeof(*chunk));
	if (!chunk)
		return -FI_ENOMEM;
	p->chunk[p->n_chunks++] = chunk;
	for (unsigned int i = 0; i < OFI_POOL_CHUNK; i++) {
		chunk[i].next = p->free;
		p->free = &chunk[i];
	}
	return 0;
}

struct ofi_op *ofi_pool_get(struct ofi_pool *p)
{
	struct ofi_op *op = NULL;

	util_lock(&p->lock);
	if (!p->free) /* acquire: what was done to them before is over */
		p->free = atomic_exchange_explicit(&p->returned, NULL, memory_order_acquire);
	if (p->free || !grow(p)) {
		op = p->free;
		p->free = op->next;
	}
	util_unlock(&p->lock);
	return op;
}

void ofi_pool_put(struct ofi_pool *p, struct ofi_op *op)
{
	struct ofi_op *head = atomic_load_explicit(&p->returned, memory_order_relaxed);

	do
		op->next = head;
	while (!atomic_compare_exchange_weak_explicit(&p->returned, &head, op, memory_order_release,
						      memory_order_relaxed));
}

void ofi_pool_fini(struct ofi_pool *p)
{
	for (uint32_t i = 0; i < p->n_chunks; i++) {
		for (unsigned int k = 0; k < OFI_POOL_CHUNK; k++)
			free(p->chunk[i][k].bounce);
		free(p->chunk[i]);
	}
	free(p->chunk);
}
