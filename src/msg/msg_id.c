/* Names of operations, which peers send back: an index, and how often that was used before, so that
 * an old name finds nothing. As an immediate, a name is told from a program's data by its first
 * bit. */
#include <errno.h>
#include <stdlib.h>
#include "msg_ep.h"

#define INDEX_BITS 20
#define GEN_MAX    ((MSG_IMM_NAME >> INDEX_BITS) - 1)
#define INDEX_MASK ((UINT32_C(1) << INDEX_BITS) - 1)
#define NONE       UINT32_MAX

static int grow(struct msg_ep *ep)
{
	uint32_t n = ep->n_ids ? 2 * ep->n_ids : 64;
	struct msg_id *ids;

	if (n > INDEX_MASK)
		return -EAGAIN;
	ids = realloc(ep->ids, n * sizeof(*ids));
	if (!ids)
		return -ENOMEM;
	ep->ids = ids;
	for (uint32_t i = ep->n_ids; i < n; i++)
		ids[i] = (struct msg_id){.gen = 1, .next = i + 1 < n ? i + 1 : NONE};
	ep->id_free = ep->n_ids;
	ep->n_ids = n;
	return 0;
}

int msg_id_new(struct msg_ep *ep, struct msg_op *op)
{
	uint32_t i;

	if (ep->id_free == NONE || !ep->n_ids) {
		int err = grow(ep);

		if (err)
			return err;
	}
	i = ep->id_free;
	ep->id_free = ep->ids[i].next;
	ep->ids[i].op = op;
	op->id = MSG_IMM_NAME | ep->ids[i].gen << INDEX_BITS | i;
	return 0;
}

struct msg_op *msg_id_op(const struct msg_ep *ep, uint32_t id)
{
	uint32_t i = id & INDEX_MASK;

	if (i >= ep->n_ids || !ep->ids[i].op || ep->ids[i].op->id != id)
		return NULL;
	return ep->ids[i].op;
}

void msg_id_move(struct msg_ep *ep, struct msg_op *from, struct msg_op *to)
{
	ep->ids[from->id & INDEX_MASK].op = to;
	to->id = from->id;
	to->share = from->share;
	from->id = 0;
	from->share = NULL;
}

void msg_id_free(struct msg_ep *ep, struct msg_op *op)
{
	uint32_t i = op->id & INDEX_MASK;

	if (!op->id)
		return;
	free(op->share);
	op->share = NULL;
	ep->ids[i].op = NULL;
	ep->ids[i].gen = ep->ids[i].gen % GEN_MAX + 1;
	ep->ids[i].next = ep->id_free;
	ep->id_free = i;
	op->id = 0;
}
