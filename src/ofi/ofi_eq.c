/* Event queues. Nothing of this provider is asynchronous, so all that they ever hold is what the
 * application writes. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "util_clock.h"
#include "ofi.h"

struct event {
	struct list_head link;
	uint32_t what;
	size_t len;
	uint8_t data[];
};

bool ofi_eq_empty(struct ofi_eq *eq)
{
	bool empty;

	util_lock(&eq->lock);
	empty = list_empty(&eq->events);
	util_unlock(&eq->lock);
	return empty;
}

static ssize_t eq_read(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	ssize_t ret = -FI_EAGAIN;
	struct event *e;
	uint64_t one;

	if (flags & ~FI_PEEK)
		return -FI_EBADFLAGS;
	util_lock(&eq->lock);
	e = list_first(&eq->events, struct event, link);
	if (e && len < e->len) {
		ret = -FI_ETOOSMALL;
	} else if (e) {
		*event = e->what;
		memcpy(buf, e->data, e->len);
		ret = (ssize_t)e->len;
		if (!(flags & FI_PEEK)) {
			list_del(&e->link);
			free(e);
			if (read(eq->event, &one, sizeof(one)) < 0)
				OFI_WARN(EQ, "an event can not be read: %s\n", fi_strerror(errno));
		}
	}
	util_unlock(&eq->lock);
	return ret;
}

static ssize_t eq_readerr(struct fid_eq *fid, struct fi_eq_err_entry *buf, uint64_t flags)
{
	(void)fid;
	(void)buf;
	return flags & ~FI_PEEK ? -FI_EBADFLAGS : -FI_EAGAIN;
}

static ssize_t eq_write(struct fid_eq *fid, uint32_t event, const void *buf, size_t len,
			uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	struct event *e;
	uint64_t one = 1;

	if (flags)
		return -FI_EBADFLAGS;
	e = malloc(sizeof(*e) + len);
	if (!e)
		return -FI_ENOMEM;
	e->what = event;
	e->len = len;
	memcpy(e->data, buf, len);
	util_lock(&eq->lock);
	list_add_tail(&e->link, &eq->events);
	if (write(eq->event, &one, sizeof(one)) < 0)
		OFI_WARN(EQ, "nobody can be woken: %s\n", fi_strerror(errno));
	util_unlock(&eq->lock);
	return (ssize_t)len;
}

static ssize_t eq_sread(struct fid_eq *fid, uint32_t *event, void *buf, size_t len, int timeout,
			uint64_t flags)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid);
	uint64_t end = ofi_deadline(timeout);
	struct pollfd p = {.fd = eq->event, .events = POLLIN};

	if (eq->wait_obj == FI_WAIT_NONE)
		return -FI_ENOSYS;
	for (;;) {
		ssize_t ret = eq_read(fid, event, buf, len, flags);
		uint64_t now = util_now_ns();

		if (ret != -FI_EAGAIN || now >= end)
			return ret;
		if (poll(&p, 1,
			 end == UINT64_MAX
				 ? -1
				 : (int)((end - now + UTIL_NS_PER_MS - 1) / UTIL_NS_PER_MS)) < 0)
			return -errno;
	}
}

static const char *eq_strerror(struct fid_eq *fid, int prov_errno, const void *err_data, char *buf,
			       size_t len)
{
	(void)fid;
	(void)err_data;
	return ofi_strerror(prov_errno, buf, len);
}

static struct fi_ops_eq eq_ops = {
	.size = sizeof(struct fi_ops_eq),
	.read = eq_read,
	.readerr = eq_readerr,
	.write = eq_write,
	.sread = eq_sread,
	.strerror = eq_strerror,
};

static int eq_close(struct fid *fid)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid.fid);
	struct event *e;

	while ((e = list_first(&eq->events, struct event, link))) {
		list_del(&e->link);
		free(e);
	}
	close(eq->event);
	atomic_fetch_sub(&eq->fabric->users, 1);
	free(eq);
	return 0;
}

static int eq_control(struct fid *fid, int command, void *arg)
{
	struct ofi_eq *eq = container_of(fid, struct ofi_eq, fid.fid);

	if (command == FI_GETWAITOBJ) {
		*(enum fi_wait_obj *)arg = eq->wait_obj;
		return 0;
	}
	if (command != FI_GETWAIT || eq->wait_obj != FI_WAIT_FD)
		return -FI_ENOSYS;
	*(int *)arg = eq->event;
	return 0;
}

static struct fi_ops eq_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = eq_close,
	.bind = ofi_no_bind,
	.control = eq_control,
	.ops_open = ofi_no_ops_open,
};

int ofi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr, struct fid_eq **out,
		void *context)
{
	struct ofi_fabric *f = container_of(fabric, struct ofi_fabric, fid);
	enum fi_wait_obj wait = attr ? attr->wait_obj : FI_WAIT_UNSPEC;
	struct ofi_eq *eq;

	if (attr && attr->flags & ~FI_WRITE)
		return -FI_EBADFLAGS;
	if (wait != FI_WAIT_NONE && wait != FI_WAIT_UNSPEC && wait != FI_WAIT_FD)
		return -FI_ENOSYS;
	eq = calloc(1, sizeof(*eq));
	if (!eq)
		return -FI_ENOMEM;
	eq->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC | EFD_SEMAPHORE);
	if (eq->event < 0) {
		free(eq);
		return -errno;
	}
	eq->fabric = f;
	/* A descriptor is what there is: whoever does not care may ask for it. */
	eq->wait_obj = wait == FI_WAIT_UNSPEC ? FI_WAIT_FD : wait;
	list_init(&eq->events);
	eq->fid.fid = (struct fid){FI_CLASS_EQ, context, &eq_fid_ops};
	eq->fid.ops = &eq_ops;
	atomic_fetch_add(&f->users, 1);
	*out = &eq->fid;
	return 0;
}
