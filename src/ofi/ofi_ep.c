/* Endpoints: made, bound, enabled, closed. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ofi_atomic.h"
#include "ofi.h"

#define MOST           (OFI_AV_CHUNK * OFI_AV_CHUNKS)
#define MIN_MULTI_RECV 64

/* ---- peers ----------------------------------------------------------------------------------- */

static atomic_uint *peers_of(struct ofi_ep *ep, fi_addr_t fi)
{
	atomic_uint *none = NULL, *made, *all = atomic_load(&ep->peer[fi / OFI_AV_CHUNK]);

	if (all)
		return all;
	made = calloc(OFI_AV_CHUNK, sizeof(*made));
	if (!made)
		return NULL;
	if (atomic_compare_exchange_strong(&ep->peer[fi / OFI_AV_CHUNK], &none, made))
		return made;
	free(made); /* another thread was faster */
	return none;
}

static int make_peer(struct ofi_ep *ep, fi_addr_t fi, uint32_t *peer)
{
	struct msg_addr addr;
	atomic_uint *all;
	int err = ofi_av_get(ep->av, fi, &addr);

	if (err)
		return err;
	all = peers_of(ep, fi);
	if (!all)
		return -FI_ENOMEM;
	err = msg_ep_peer(ep->msg, &addr, peer);
	if (!err)
		atomic_store(&all[fi % OFI_AV_CHUNK], *peer + 1);
	return err;
}

int ofi_ep_peer(struct ofi_ep *ep, fi_addr_t fi, uint32_t *peer)
{
	atomic_uint *all;
	uint32_t known;

	if (fi >= MOST)
		return -FI_EINVAL;
	all = atomic_load_explicit(&ep->peer[fi / OFI_AV_CHUNK], memory_order_acquire);
	known = all ? atomic_load_explicit(&all[fi % OFI_AV_CHUNK], memory_order_relaxed) : 0;
	if (!known)
		return make_peer(ep, fi, peer);
	*peer = known - 1;
	return 0;
}

fi_addr_t ofi_ep_source(struct ofi_ep *ep, uint32_t peer)
{
	struct msg_addr addr;

	if (peer == MSG_ANY_SRC)
		return FI_ADDR_NOTAVAIL;
	addr = msg_peer_addr(ep->msg, peer);
	return ofi_av_find(ep->av, &addr);
}

/* ---- binding --------------------------------------------------------------------------------- */

static int bind_cq(struct ofi_ep *ep, struct ofi_cq *cq, uint64_t flags)
{
	if (flags & ~(FI_TRANSMIT | FI_RECV | FI_SELECTIVE_COMPLETION))
		return -FI_EBADFLAGS;
	if (!(flags & (FI_TRANSMIT | FI_RECV)) || cq->domain != ep->domain)
		return -FI_EINVAL;
	if ((flags & FI_TRANSMIT && ep->tx_cq) || (flags & FI_RECV && ep->rx_cq))
		return -FI_EINVAL;
	if (flags & FI_TRANSMIT) {
		ep->tx_cq = cq;
		ep->tx_selective = flags & FI_SELECTIVE_COMPLETION;
		atomic_fetch_add(&cq->users, 1);
	}
	if (flags & FI_RECV) {
		ep->rx_cq = cq;
		ep->rx_selective = flags & FI_SELECTIVE_COMPLETION;
		atomic_fetch_add(&cq->users, 1);
	}
	return 0;
}

static int bind_cntr(struct ofi_ep *ep, struct ofi_cntr *c, uint64_t flags)
{
	static const uint64_t kinds[OFI_KINDS] = {[OFI_SEND] = FI_SEND,
						  [OFI_RECV] = FI_RECV,
						  [OFI_READ] = FI_READ,
						  [OFI_WRITE] = FI_WRITE};

	/* What peers do to our memory passes by unnoticed. */
	if (flags & (FI_REMOTE_READ | FI_REMOTE_WRITE))
		return -FI_ENOSYS;
	if (flags & ~(FI_SEND | FI_RECV | FI_READ | FI_WRITE))
		return -FI_EBADFLAGS;
	if (!flags || c->domain != ep->domain)
		return -FI_EINVAL;
	for (int i = 0; i < OFI_KINDS; i++)
		if (flags & kinds[i] && ep->cntr[i])
			return -FI_EINVAL;
	for (int i = 0; i < OFI_KINDS; i++)
		if (flags & kinds[i]) {
			ep->cntr[i] = c;
			atomic_fetch_add(&c->users, 1);
		}
	return 0;
}

static int bind_av(struct ofi_ep *ep, struct ofi_av *av, uint64_t flags)
{
	if (flags)
		return -FI_EBADFLAGS;
	if (ep->av || av->domain != ep->domain)
		return -FI_EINVAL;
	ep->av = av;
	util_lock(&av->lock);
	list_add_tail(&ep->av_link, &av->eps);
	util_unlock(&av->lock);
	atomic_fetch_add(&av->users, 1);
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *bfid, uint64_t flags)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);

	if (ep->msg)
		return -FI_EOPBADSTATE;
	switch (bfid->fclass) {
	case FI_CLASS_CQ:
		return bind_cq(ep, container_of(bfid, struct ofi_cq, fid.fid), flags);
	case FI_CLASS_CNTR:
		return bind_cntr(ep, container_of(bfid, struct ofi_cntr, fid.fid), flags);
	case FI_CLASS_AV:
		return bind_av(ep, container_of(bfid, struct ofi_av, fid.fid), flags);
	case FI_CLASS_EQ: /* of no consequence: no connection comes or goes */
		return 0;
	default:
		return -FI_EINVAL;
	}
}

/* ---- endpoints that are enabled -------------------------------------------------------------- */

static struct util_lock open_lock;
static struct list_head open_eps = LIST_HEAD_INIT(open_eps);

static void opened(struct ofi_ep *ep)
{
	util_lock(&open_lock);
	list_add_tail(&ep->open_link, &open_eps);
	util_unlock(&open_lock);
}

static void closed(struct ofi_ep *ep)
{
	util_lock(&open_lock);
	list_del(&ep->open_link);
	util_unlock(&open_lock);
}

/* The lock may be a thread's that is no more. */
void ofi_ep_fini(void)
{
	struct ofi_ep *ep;

	if (!util_trylock(&open_lock))
		return;
	list_for_each (ep, &open_eps, open_link) {
		msg_ep_serve(ep->msg, false);
		msg_ep_linger(ep->msg);
	}
	util_unlock(&open_lock);
}

/* ---- enabling -------------------------------------------------------------------------------- */

static void unwatch(struct ofi_ep *ep)
{
	ofi_idle_remove(ep);
	if (ep->tx_cq)
		ofi_watch_remove(&ep->tx_cq->watch, ep);
	if (ep->rx_cq && ep->rx_cq != ep->tx_cq)
		ofi_watch_remove(&ep->rx_cq->watch, ep);
	for (int i = 0; i < OFI_KINDS; i++)
		if (ep->cntr[i])
			ofi_watch_remove(&ep->cntr[i]->watch, ep);
}

static int watch(struct ofi_ep *ep)
{
	bool sleep = ep->caps & (FI_MSG | FI_TAGGED);
	int err = ofi_idle_add(ep);

	if (!err && ep->tx_cq)
		err = ofi_watch_add(&ep->tx_cq->watch, ep);
	if (!err && ep->rx_cq && ep->rx_cq != ep->tx_cq)
		err = ofi_watch_add(&ep->rx_cq->watch, ep);
	for (int i = 0; i < OFI_KINDS && !err; i++)
		if (ep->cntr[i])
			err = ofi_watch_add(&ep->cntr[i]->watch, ep);
	if (ep->tx_cq && sleep)
		atomic_store_explicit(&ep->tx_cq->may_sleep, true, memory_order_relaxed);
	if (ep->rx_cq && sleep)
		atomic_store_explicit(&ep->rx_cq->may_sleep, true, memory_order_relaxed);
	return err;
}

static int enable(struct ofi_ep *ep)
{
	struct msg_ep_conf conf = {.eager_max = ofi_conf.eager_max,
				   .eager_far = ofi_conf.eager_far,
				   .rx_buffers = ofi_conf.rx_buffers,
				   .depth = ofi_conf.depth,
				   .wait = true,
				   .linger = ofi_conf.linger,
				   .alive = ofi_conf.alive,
				   .write = ofi_conf.write,
				   .speculate = ofi_conf.speculate,
				   .usage = ofi_conf.usage,
				   .reuse = ofi_conf.reuse,
				   .reuse_part = ofi_conf.reuse_part,
				   .stripe = ofi_conf.stripe,
				   .stripe_auto = ofi_conf.stripe_auto,
				   .stripe_min = ofi_conf.stripe_min,
				   .live = ofi_conf.live,
				   .done = ofi_done,
				   .atomic = ofi_atomic_job,
				   .written = ofi_written,
				   .arg = ep};
	int err;

	if (ep->msg)
		return -FI_EOPBADSTATE;
	if (!ep->av)
		return -FI_ENOAV;
	if ((ep->caps & (FI_SEND | FI_READ | FI_WRITE) && !ep->tx_cq && !ep->cntr[OFI_SEND] &&
	     !ep->cntr[OFI_READ] && !ep->cntr[OFI_WRITE]) ||
	    (ep->caps & FI_RECV && !ep->rx_cq && !ep->cntr[OFI_RECV]))
		return -FI_ENOCQ;
	err = msg_ep_open(ep->domain->dev, &conf, &ep->msg);
	if (err) {
		OFI_WARN(EP_CTRL, "no endpoint: %s\n", fi_strerror(-err));
		return err;
	}
	err = watch(ep);
	if (err) {
		unwatch(ep);
		msg_ep_close(ep->msg);
		ep->msg = NULL;
		return err;
	}
	opened(ep);
	msg_ep_serve(ep->msg, true);
	return 0;
}

static int ops_flag(struct ofi_ep *ep, int command, uint64_t *arg)
{
	uint64_t *flags = *arg & FI_TRANSMIT ? &ep->tx_flags : &ep->rx_flags;
	uint64_t which = *arg & (FI_TRANSMIT | FI_RECV);
	uint64_t allowed = which == FI_TRANSMIT ? OFI_TX_FLAGS : OFI_RX_FLAGS;

	if (which != FI_TRANSMIT && which != FI_RECV)
		return -FI_EINVAL;
	if (command == FI_GETOPSFLAG) {
		*arg = *flags;
		return 0;
	}
	if (*arg & ~which & ~allowed)
		return -FI_EBADFLAGS;
	*flags = *arg & ~which;
	return 0;
}

static int ep_control(struct fid *fid, int command, void *arg)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);

	switch (command) {
	case FI_ENABLE:
		return enable(ep);
	case FI_GETOPSFLAG:
	case FI_SETOPSFLAG:
		return ops_flag(ep, command, arg);
	default:
		return -FI_ENOSYS;
	}
}

/* ---- closing --------------------------------------------------------------------------------- */

static void unbind(struct ofi_ep *ep)
{
	struct ofi_cq *cqs[] = {ep->tx_cq, ep->rx_cq};

	for (int i = 0; i < 2; i++)
		if (cqs[i])
			atomic_fetch_sub(&cqs[i]->users, 1);
	for (int i = 0; i < OFI_KINDS; i++)
		if (ep->cntr[i])
			atomic_fetch_sub(&ep->cntr[i]->users, 1);
	if (ep->av) {
		util_lock(&ep->av->lock);
		list_del(&ep->av_link);
		util_unlock(&ep->av->lock);
		atomic_fetch_sub(&ep->av->users, 1);
	}
}

static int ep_close(struct fid *fid)
{
	struct ofi_ep *ep = container_of(fid, struct ofi_ep, fid.fid);

	if (ep->msg) {
		if (ofi_conf.stats != OFI_STATS_NO)
			ofi_stats_print(ep);
		closed(ep);
		unwatch(ep);
		msg_ep_serve(ep->msg, false);
		/* Nobody but this thread serves it any more; what is done from now on is told to
		 * nobody, and those that are reading of it are awaited. */
		ep->closing = true;
		if (ep->tx_cq)
			ofi_cq_forget(ep->tx_cq, ep);
		if (ep->rx_cq)
			ofi_cq_forget(ep->rx_cq, ep);
		msg_ep_close(ep->msg);
	}
	unbind(ep);
	for (int i = 0; i < OFI_AV_CHUNKS; i++)
		free(atomic_load(&ep->peer[i]));
	ofi_pool_fini(&ep->ops);
	ofi_pool_fini(&ep->events);
	atomic_fetch_sub(&ep->domain->users, 1);
	free(ep);
	return 0;
}

static struct fi_ops ep_fid_ops = {
	.size = sizeof(struct fi_ops),
	.close = ep_close,
	.bind = ep_bind,
	.control = ep_control,
	.ops_open = ofi_no_ops_open,
};

int ofi_ep_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **out, void *context)
{
	struct ofi_domain *d = container_of(domain, struct ofi_domain, fid);
	struct ofi_ep *ep;

	if (!info || !info->ep_attr || ofi_check_info(d->fabric->fid.api_version, info))
		return -FI_EINVAL;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->domain = d;
	ep->caps = info->caps;
	ep->tx_flags = info->tx_attr ? info->tx_attr->op_flags : 0;
	ep->rx_flags = info->rx_attr ? info->rx_attr->op_flags : 0;
	ep->min_multi_recv = MIN_MULTI_RECV;
	ep->inject_max = info->tx_attr && info->tx_attr->inject_size ? info->tx_attr->inject_size
								     : ofi_conf.eager_max;
	list_init(&ep->av_link);
	ep->fid.fid = (struct fid){FI_CLASS_EP, context, &ep_fid_ops};
	ep->fid.ops = &ofi_ep_ops;
	ep->fid.cm = &ofi_cm_ops;
	ep->fid.msg = &ofi_msg_ops;
	ep->fid.tagged = &ofi_tagged_ops;
	ep->fid.rma = &ofi_rma_ops;
	ep->fid.atomic = &ofi_atomic_ops;
	atomic_fetch_add(&d->users, 1);
	*out = &ep->fid;
	return 0;
}
