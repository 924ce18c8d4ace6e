/* Completion queues: lists of operations that are done. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "util_clock.h"
#include "ofi.h"

/* ---- entries --------------------------------------------------------------------------------- */

/* With the lock held, so two plain halves will do. Who sleeps looks at the number after it has
 * armed the endpoints, with their locks, one of which whoever pushes has: either it sees the entry,
 * or it is seen to be armed. */
static void count_add(struct ofi_cq *cq, int n)
{
	uint32_t old = atomic_load_explicit(&cq->count, memory_order_relaxed);

	atomic_store_explicit(&cq->count, old + (uint32_t)n, memory_order_release);
}

void ofi_cq_push(struct ofi_cq *cq, struct ofi_op *op)
{
	op->next = NULL;
	util_lock(&cq->lock);
	*cq->tail = op;
	cq->tail = &op->next;
	count_add(cq, 1);
	util_unlock(&cq->lock);
	ofi_watch_notify(&cq->watch);
	ofi_idle_notify();
}

void ofi_cq_forget(struct ofi_cq *cq, struct ofi_ep *ep)
{
	struct ofi_op **at = &cq->head;

	util_lock(&cq->lock);
	while (*at) {
		if ((*at)->ep == ep) {
			*at = (*at)->next;
			count_add(cq, -1);
		} else {
			at = &(*at)->next;
		}
	}
	cq->tail = at;
	util_unlock(&cq->lock);
	while (atomic_load(&cq->reading))
		sched_yield();
}

static void *buffer_of(const struct ofi_op *op)
{
	return op->flags & FI_RECV ? op->op.iov[0].iov_base : NULL;
}

static struct fi_cq_tagged_entry entry_of(const struct ofi_op *op)
{
	bool got = op->flags & (FI_RECV | FI_REMOTE_WRITE);

	return (struct fi_cq_tagged_entry){
		.op_context = op->context,
		.flags = op->flags,
		.len = got ? op->op.len : 0,
		.buf = buffer_of(op),
		.data = op->flags & FI_REMOTE_CQ_DATA ? op->op.data : 0,
		.tag = got && op->flags & FI_TAGGED ? op->op.tag : 0,
	};
}

/* Each format is the beginning of the next. */
static size_t entry_size(enum fi_cq_format format)
{
	switch (format) {
	case FI_CQ_FORMAT_CONTEXT:
		return sizeof(struct fi_cq_entry);
	case FI_CQ_FORMAT_MSG:
		return sizeof(struct fi_cq_msg_entry);
	case FI_CQ_FORMAT_DATA:
		return sizeof(struct fi_cq_data_entry);
	default:
		return sizeof(struct fi_cq_tagged_entry);
	}
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Takes up to `max` that have not failed off the list. *failed: there is one at its head. */
static struct ofi_op *take(struct ofi_cq *cq, size_t max, bool *failed)
{
	struct ofi_op *first, **end = &cq->head;
	unsigned int n = 0;

	util_lock(&cq->lock);
	first = cq->head;
	while (n < max && *end && !(*end)->op.err) {
		end = &(*end)->next;
		n++;
	}
	*failed = cq->head && cq->head->op.err;
	if (n) {
		struct ofi_op *rest = *end;

		*end = NULL;
		cq->head = rest;
		if (!rest)
			cq->tail = &cq->head;
		count_add(cq, -(int)n);
		atomic_fetch_add_explicit(&cq->reading, 1, memory_order_relaxed);
	}
	util_unlock(&cq->lock);
	return n ? first : NULL;
}

static ssize_t read_entries(struct ofi_cq *cq, uint8_t *buf, size_t count, fi_addr_t *src)
{
	size_t size = entry_size(cq->format);
	struct ofi_op *op, *next;
	ssize_t n = 0;
	bool failed;

	if (!atomic_load(&cq->count))
		return -FI_EAGAIN;
	op = take(cq, count, &failed);
	if (!op)
		return failed ? -FI_EAVAIL : count ? -FI_EAGAIN : 0;
	for (; op; op = next, n++) {
		struct fi_cq_tagged_entry e = entry_of(op);

		next = op->next;
		memcpy(buf + (size_t)n * size, &e, size);
		if (src)
			src[n] = op->flags & (FI_RECV | FI_REMOTE_WRITE)
					 ? ofi_ep_source(op->ep, op->op.src)
					 : FI_ADDR_NOTAVAIL;
		ofi_op_free(op);
	}
	/* release: whoever sees it may free what was read */
	atomic_fetch_sub_explicit(&cq->reading, 1, memory_order_release);
	return n;
}

/* Programs read until there is no more, Open MPI after each message: asking the sockets again, just
 * to be able to say so, takes as long as a message's way through the provider, and its answer waits
 * meanwhile; to sleep then would be worse. */
static bool just_drained(struct ofi_cq *cq)
{
	if (!atomic_load_explicit(&cq->drained, memory_order_relaxed)) /* relaxed: a hint */
		return false;
	atomic_store_explicit(&cq->drained, false, memory_order_relaxed);
	return !atomic_load_explicit(&cq->count, memory_order_relaxed);
}

static ssize_t read_and_note(struct ofi_cq *cq, void *buf, size_t count, fi_addr_t *src)
{
	ssize_t n = read_entries(cq, buf, count, src);

	if (n > 0 && (size_t)n < count)
		atomic_store_explicit(&cq->drained, true, memory_order_relaxed);
	return n;
}

static ssize_t cq_readfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	ssize_t n;
	int came;

	if (just_drained(cq))
		return -FI_EAGAIN;
	came = ofi_watch_progress(&cq->watch);
	n = read_and_note(cq, buf, count, src);
	if (n != -FI_EAGAIN || came) {
		ofi_idle_busy();
		return n;
	}
	if (!ofi_idle_empty(atomic_load_explicit(&cq->may_sleep, memory_order_relaxed)))
		return n;
	if (ofi_watch_progress(&cq->watch))
		ofi_idle_busy();
	return read_and_note(cq, buf, count, src);
}

static ssize_t cq_read(struct fid_cq *fid, void *buf, size_t count)
{
	return cq_readfrom(fid, buf, count, NULL);
}

static ssize_t cq_readerr(struct fid_cq *fid, struct fi_cq_err_entry *buf, uint64_t flags)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	struct fi_cq_tagged_entry e;
	struct ofi_op *op;

	if (flags)
		return -FI_EBADFLAGS;
	util_lock(&cq->lock);
	op = cq->head;
	if (op && op->op.err) {
		cq->head = op->next;
		if (!cq->head)
			cq->tail = &cq->head;
		count_add(cq, -1);
		atomic_fetch_add_explicit(&cq->reading, 1, memory_order_relaxed);
	} else {
		op = NULL;
	}
	util_unlock(&cq->lock);
	if (!op)
		return -FI_EAGAIN;
	e = entry_of(op);
	/* err_data and its size stay: what the application offers is not used. */
	buf->op_context = e.op_context;
	buf->flags = e.flags;
	buf->len = e.len;
	buf->buf = e.buf;
	buf->data = e.data;
	buf->tag = op->flags & FI_TAGGED ? op->op.tag : 0;
	buf->olen = op->op.over;
	buf->err = -ofi_errno(op->op.err);
	buf->prov_errno = -op->op.err;
	buf->err_data = NULL;
	buf->err_data_size = 0;
	ofi_op_free(op);
	atomic_fetch_sub_explicit(&cq->reading, 1, memory_order_release);
	return 1;
}

/* ---- waiting --------------------------------------------------------------------------------- */

int ofi_cq_trywait(struct ofi_cq *cq)
{
	if (cq->wait_obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	/* Armed first, then looked at: what comes between the two makes the descriptor ready. */
	if (!ofi_watch_arm(&cq->watch) || atomic_load(&cq->count))
		return -FI_EAGAIN;
	return 0;
}

static ssize_t cq_sreadfrom(struct fid_cq *fid, void *buf, size_t count, fi_addr_t *src,
			    const void *cond, int timeout)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);
	uint64_t end = ofi_deadline(timeout);

	(void)cond; /* a threshold is a wish */
	if (cq->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	for (;;) {
		uint64_t now;
		ssize_t n;

		ofi_watch_progress(&cq->watch);
		n = read_entries(cq, buf, count, src);
		if (n != -FI_EAGAIN)
			return n;
		if (atomic_exchange(&cq->signalled, false))
			return -FI_EAGAIN;
		now = util_now_ns();
		if (now >= end)
			return -FI_EAGAIN;
		if (!ofi_cq_trywait(cq) && !atomic_load(&cq->signalled))
			ofi_watch_sleep(&cq->watch, end == UINT64_MAX ? UINT64_MAX : end - now);
	}
}

static ssize_t cq_sread(struct fid_cq *fid, void *buf, size_t count, const void *cond, int timeout)
{
	return cq_sreadfrom(fid, buf, count, NULL, cond, timeout);
}

static int cq_signal(struct fid_cq *fid)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid);

	if (cq->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	atomic_store(&cq->signalled, true);
	ofi_watch_wake(&cq->watch);
	return 0;
}

static const char *cq_strerror(struct fid_cq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	(void)fid;
	(void)err_data;
	return ofi_strerror(prov_errno, buf, len);
}

static struct fi_ops_cq cq_ops = {
	.size = sizeof(struct fi_ops_cq),
	.read = cq_read,
	.readfrom = cq_readfrom,
	.readerr = cq_readerr,
	.sread = cq_sread,
	.sreadfrom = cq_sreadfrom,
	.signal = cq_signal,
	.strerror = cq_strerror,
};

/* ---- made and closed ------------------------------------------------------------------------- */

static int cq_close(struct fid *fid)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);

	if (atomic_load(&cq->users))
		return -FI_EBUSY;
	ofi_watch_fini(&cq->watch);
	atomic_fetch_sub(&cq->domain->users, 1);
	free(cq);
	return 0;
}

static int cq_control(struct fid *fid, int command, void *arg)
{
	struct ofi_cq *cq = container_of(fid, struct ofi_cq, fid.fid);
	int fd;

	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = cq->wait_obj;
		return 0;
	}
	if (command != FI_GETWAIT || cq->wait_obj != FI_WAIT_FD)
		return -FI_ENOSYS;
	fd = ofi_watch_fd(&cq->watch);
	if (fd < 0)
		return fd;
	*(int *)arg = fd;
	return 0;
}

static struct fi_ops cq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cq_close,
	.bind = ofi_no_bind,
	.control = cq_control,
	.ops_open = ofi_no_ops_open,
};

int ofi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr, struct fid_cq **out,
		void *context)
{
	struct ofi_domain *d = container_of(domain, struct ofi_domain, fid);
	enum fi_wait_obj wait = attr ? attr->wait_obj : FI_WAIT_NONE;
	struct ofi_cq *cq;

	if (attr && attr->flags & ~FI_AFFINITY)
		return -FI_EBADFLAGS;
	if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_FD)
		return -FI_ENOSYS;
	if (attr && (attr->format > FI_CQ_FORMAT_TAGGED || attr->wait_cond > FI_CQ_COND_THRESHOLD))
		return -FI_ENOSYS;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -FI_ENOMEM;
	cq->domain = d;
	cq->format = attr && attr->format ? attr->format : FI_CQ_FORMAT_CONTEXT;
	cq->wait_obj = wait == FI_WAIT_UNSPEC ? FI_WAIT_FD : wait;
	cq->tail = &cq->head;
	ofi_watch_init(&cq->watch);
	cq->fid.fid = (struct fid){FI_CLASS_CQ, context, &cq_fid_ops};
	cq->fid.ops = &cq_ops;
	atomic_fetch_add(&d->users, 1);
	*out = &cq->fid;
	return 0;
}
