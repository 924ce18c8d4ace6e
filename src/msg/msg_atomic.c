/* Atomic operations: sent to the peer, done there by whoever makes progress, answered. All that a
 * device's processes do to each other's memory in this way is done with one lock held. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "msg_ep.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

size_t msg_atomic_max(const struct msg_ep *ep)
{
	return ep->conf.eager_max;
}

static uint64_t length(const struct iovec *iov, unsigned int n)
{
	uint64_t len = 0;

	for (unsigned int i = 0; i < n; i++)
		len += iov[i].iov_len;
	return len;
}

static int check(const struct msg_ep *ep, const struct msg_atomic *a)
{
	uint64_t len = a->op.remote[0].len;

	if (a->op.n_remote != 1 || (a->op.n_iov && length(a->op.iov, a->op.n_iov) != len) ||
	    (a->n_compare && length(a->compare, a->n_compare) != len) ||
	    (a->n_result && length(a->result, a->n_result) != len))
		return -EINVAL;
	return ((a->op.n_iov ? 1 : 0) + (a->n_compare ? 1 : 0)) * len <= msg_atomic_max(ep) &&
			       len <= msg_atomic_max(ep)
		       ? 0
		       : -EMSGSIZE;
}

int msg_atomic_send(struct msg_ep *ep, struct msg_atomic *a)
{
	struct msg_op *op = &a->op;
	struct msg_pkt p = {.type = MSG_ATOMIC,
			    .flags = (op->n_iov ? MSG_F_OPERAND : 0) |
				     (a->n_compare ? MSG_F_COMPARE : 0) |
				     (a->n_result ? MSG_F_RESULT : 0),
			    .code = a->code,
			    .kind = a->type,
			    .count = a->count,
			    .len = op->remote[0].len,
			    .seg = {{.addr = op->remote[0].addr, .key = op->remote[0].key}},
			    .n_seg = 1};
	struct iovec iov[2 * MSG_IOV];
	int err = check(ep, a);

	if (err)
		return err;
	memcpy(iov, op->iov, op->n_iov * sizeof(*iov));
	memcpy(iov + op->n_iov, a->compare, a->n_compare * sizeof(*iov));
	err = msg_id_new(ep, op);
	if (err)
		return err;
	p.id = op->id;
	err = msg_tx_send(ep, op->peer, &p, iov, op->n_iov + a->n_compare, NULL);
	if (err) {
		msg_id_free(ep, op);
		return err;
	}
	op->phase = MSG_PHASE_ANSWER;
	ep->stats.atomics++;
	return 0;
}

/* ---- the other side ---- */

static int populate(uintptr_t page, size_t len, bool write)
{
	return madvise((void *)page, len, write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
}

/* Memory that is registered may be unmapped all the same, or have become read-only, and it would be
 * this process that dies of it. */
static bool is_there(const void *target, size_t len, bool write)
{
	uintptr_t size = (uintptr_t)sysconf(_SC_PAGESIZE), page = (uintptr_t)target & ~(size - 1);
	char here;

	if (!populate(page, (uintptr_t)target + len - page, write))
		return true;
	/* Before Linux 5.14 it could not be asked. */
	return errno == EINVAL && populate((uintptr_t)&here & ~(size - 1), size, true);
}

static int execute(struct msg_ep *ep, const struct msg_pkt *p, const uint8_t *body, void *result)
{
	struct msg_atomic_job job = {.code = p->code,
				     .type = p->kind,
				     .count = p->count,
				     .len = p->len,
				     .result = result};
	int err;

	if (!ep->conf.atomic)
		return -EOPNOTSUPP;
	if (p->flags & MSG_F_OPERAND) {
		job.operand = body;
		body += p->len;
	}
	if (p->flags & MSG_F_COMPARE)
		job.compare = body;
	util_lock(&ep->dev->lock);
	job.target = msg_dev_mem(ep->dev, p->seg[0].key, p->seg[0].addr, p->len, job.operand);
	err = job.target && is_there(job.target, p->len, job.operand) ? ep->conf.atomic(&job)
								      : -EACCES;
	util_unlock(&ep->dev->lock);
	return err;
}

void msg_atomic_do(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p, const uint8_t *body)
{
	struct msg_pkt answer = {.type = MSG_ATOMIC_RSP, .id = p->id};
	void *result = NULL;
	int err = p->len <= msg_atomic_max(ep) ? 0 : -EMSGSIZE;

	if (!err && p->flags & MSG_F_RESULT) {
		result = malloc(p->len ? p->len : 1);
		err = result ? 0 : -ENOMEM;
	}
	if (!err)
		err = execute(ep, p, body, result);
	answer.id2 = (uint32_t)-err;
	answer.len = result && !err ? p->len : 0;
	msg_tx_post(ep, src, &answer, result, answer.len);
	free(result);
}

void msg_atomic_answer(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p,
		       const uint8_t *body)
{
	struct msg_op *op = msg_id_op(ep, p->id);
	struct msg_atomic *a = container_of(op, struct msg_atomic, op);
	int err = p->id2 < 4096 ? -(int)p->id2 : -EPROTO;

	if (!op || op->phase != MSG_PHASE_ANSWER || op->peer != src)
		return;
	if (!err && a->n_result && p->len != op->remote[0].len)
		err = -EPROTO;
	for (unsigned int i = 0; i < a->n_result && !err; i++) {
		memcpy(a->result[i].iov_base, body, a->result[i].iov_len);
		body += a->result[i].iov_len;
	}
	msg_id_free(ep, op);
	op->phase = MSG_PHASE_NONE;
	op->len = op->remote[0].len;
	msg_done(ep, op, err);
}
