/* Counters of operations that are done. */
#include <limits.h>
#include <stdlib.h>
#include "util_clock.h"
#include "ofi.h"

void ofi_cntr_count(struct ofi_cntr *c, bool failed)
{
	atomic_fetch_add(failed ? &c->errors : &c->value, 1);
	ofi_watch_notify(&c->watch);
	ofi_idle_notify();
}

static struct ofi_cntr *of(struct fid_cntr *fid)
{
	return container_of(fid, struct ofi_cntr, fid);
}

static uint64_t cntr_read(struct fid_cntr *fid)
{
	ofi_watch_progress(&of(fid)->watch);
	return atomic_load(&of(fid)->value);
}

static uint64_t cntr_readerr(struct fid_cntr *fid)
{
	ofi_watch_progress(&of(fid)->watch);
	return atomic_load(&of(fid)->errors);
}

static int cntr_add(struct fid_cntr *fid, uint64_t value)
{
	atomic_fetch_add(&of(fid)->value, value);
	ofi_watch_notify(&of(fid)->watch);
	return 0;
}

static int cntr_set(struct fid_cntr *fid, uint64_t value)
{
	atomic_store(&of(fid)->value, value);
	ofi_watch_notify(&of(fid)->watch);
	return 0;
}

static int cntr_adderr(struct fid_cntr *fid, uint64_t value)
{
	atomic_fetch_add(&of(fid)->errors, value);
	ofi_watch_notify(&of(fid)->watch);
	return 0;
}

static int cntr_seterr(struct fid_cntr *fid, uint64_t value)
{
	atomic_store(&of(fid)->errors, value);
	ofi_watch_notify(&of(fid)->watch);
	return 0;
}

int ofi_cntr_trywait(struct ofi_cntr *c)
{
	if (c->wait_obj == FI_WAIT_NONE)
		return -FI_EINVAL;
	return ofi_watch_arm(&c->watch) ? 0 : -FI_EAGAIN;
}

/* As a queue that is read again and again: with a core to spare it spins for a while. */
#define WAIT_SPINS 1000

static int cntr_wait(struct fid_cntr *fid, uint64_t threshold, int timeout)
{
	struct ofi_cntr *c = of(fid);
	uint64_t errors = atomic_load(&c->errors);
	uint64_t end = ofi_deadline(timeout);

	for (unsigned int i = 0;; i++) {
		uint64_t now;

		ofi_watch_progress(&c->watch);
		if (atomic_load(&c->value) >= threshold)
			return 0;
		if (atomic_load(&c->errors) != errors)
			return -FI_EAVAIL;
		if (i < WAIT_SPINS && i < ofi_conf.wait.spin && timeout)
			continue;
		now = util_now_ns();
		if (now >= end)
			return -FI_ETIMEDOUT;
		if (ofi_watch_arm(&c->watch) && atomic_load(&c->value) < threshold &&
		    atomic_load(&c->errors) == errors)
			ofi_watch_sleep(&c->watch, end == UINT64_MAX ? UINT64_MAX : end - now);
	}
}

static struct fi_ops_cntr cntr_ops = {
	.size = sizeof(struct fi_ops_cntr),
	.read = cntr_read,
	.readerr = cntr_readerr,
	.add = cntr_add,
	.set = cntr_set,
	.wait = cntr_wait,
	.adderr = cntr_adderr,
	.seterr = cntr_seterr,
};

static int cntr_close(struct fid *fid)
{
	struct ofi_cntr *c = container_of(fid, struct ofi_cntr, fid.fid);

	if (atomic_load(&c->users))
		return -FI_EBUSY;
	ofi_watch_fini(&c->watch);
	atomic_fetch_sub(&c->domain->users, 1);
	free(c);
	return 0;
}

static int cntr_control(struct fid *fid, int command, void *arg)
{
	struct ofi_cntr *c = container_of(fid, struct ofi_cntr, fid.fid);
	int fd;

	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = c->wait_obj;
		return 0;
	}
	if (command != FI_GETWAIT || c->wait_obj != FI_WAIT_FD)
		return -FI_ENOSYS;
	fd = ofi_watch_fd(&c->watch);
	if (fd < 0)
		return fd;
	*(int *)arg = fd;
	return 0;
}

static struct fi_ops cntr_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = cntr_close,
	.bind = ofi_no_bind,
	.control = cntr_control,
	.ops_open = ofi_no_ops_open,
};

int ofi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **out,
		  void *context)
{
	struct ofi_domain *d = container_of(domain, struct ofi_domain, fid);
	enum fi_wait_obj wait = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	struct ofi_cntr *c;

	if (attr && attr->flags)
		return -FI_EBADFLAGS;
	if (attr && attr->events != FI_CNTR_EVENTS_COMP)
		return -FI_ENOSYS;
	if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_FD)
		return -FI_ENOSYS;
	c = calloc(1, sizeof(*c));
	if (!c)
		return -FI_ENOMEM;
	c->domain = d;
	c->wait_obj = wait == FI_WAIT_UNSPEC ? FI_WAIT_FD : wait;
	ofi_watch_init(&c->watch);
	c->fid.fid = (struct fid){FI_CLASS_CNTR, context, &cntr_fid_ops};
	c->fid.ops = &cntr_ops;
	atomic_fetch_add(&d->users, 1);
	*out = &c->fid;
	return 0;
}
