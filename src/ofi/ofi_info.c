/* What the provider offers, and whether that is what is asked for. */
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ofi.h"

/* A flag of libfabric's own, not in its public headers: a provider of messages asks for one of
 * connections to stand on (FI_EP_RDM over FI_EP_MSG). There is nothing to be gained over this one;
 * worse, `weft;ofi_rxm` would come first. */
#define CORE_PROV_ONLY (UINT64_C(1) << 59)

#define OUR_PROTOCOL (FI_PROV_SPECIFIC | 0x77656674)
#define PLENTY       65536
#define TAG_FORMAT   UINT64_C(0xaaaaaaaaaaaaaaaa) /* one field of 64 bits */

/* What the engine keeps in order: messages among each other, and atomic operations. */
#define OUR_ORDER                                                                                  \
	(FI_ORDER_SAS | FI_ORDER_ATOMIC_RAR | FI_ORDER_ATOMIC_RAW | FI_ORDER_ATOMIC_WAR |          \
	 FI_ORDER_ATOMIC_WAW)

/* Memory that others reach is named as in verbs. */
#define MR_BITS (FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY)

#define TX_CAPS (FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_SEND | FI_READ | FI_WRITE)
#define RX_CAPS                                                                                    \
	(FI_MSG | FI_TAGGED | FI_RMA | FI_ATOMIC | FI_RECV | FI_REMOTE_READ | FI_REMOTE_WRITE |    \
	 FI_MULTI_RECV | FI_SOURCE | FI_DIRECTED_RECV)

#define REFUSE(...)                                                                                \
	do {                                                                                       \
		OFI_INFO(CORE, __VA_ARGS__);                                                       \
		return -FI_ENODATA;                                                                \
	} while (0)

static bool over(const char *what, uint64_t asked, uint64_t have)
{
	if (asked <= have)
		return false;
	OFI_INFO(CORE, "%s: %llu is asked for, there are %llu\n", what, (unsigned long long)asked,
		 (unsigned long long)have);
	return true;
}

static bool beyond(const char *what, uint64_t asked, uint64_t have)
{
	if (!(asked & ~have))
		return false;
	OFI_INFO(CORE, "%s: 0x%llx is not there\n", what, (unsigned long long)(asked & ~have));
	return true;
}

/* ---- capabilities and memory ----------------------------------------------------------------- */

static bool basic(uint32_t version, int mode)
{
	return mode & FI_MR_BASIC || (FI_VERSION_LT(version, FI_VERSION(1, 5)) && !mode);
}

/* Whether the application can live with keys and addresses as they are. */
static bool mr_fits(uint32_t version, const struct fi_info *hints)
{
	int mode = hints && hints->domain_attr ? hints->domain_attr->mr_mode : MR_BITS;

	return basic(version, mode) || (mode & MR_BITS) == MR_BITS;
}

static int mr_answer(uint32_t version, const struct fi_info *hints, uint64_t caps)
{
	int mode = hints && hints->domain_attr ? hints->domain_attr->mr_mode : 0;
	bool old = FI_VERSION_LT(version, FI_VERSION(1, 5));

	if (mode == FI_MR_SCALABLE)
		return mode;
	if (mode & FI_MR_BASIC || old)
		return FI_MR_BASIC;
	return caps & (FI_RMA | FI_ATOMIC) ? MR_BITS : 0;
}

/* Those that are asked for, and what they imply; all if none are. */
static uint64_t answer_caps(uint32_t version, const struct fi_info *hints)
{
	uint64_t caps = hints ? hints->caps : 0;

	if (!caps)
		return mr_fits(version, hints) ? OFI_CAPS : OFI_CAPS & ~OFI_CAPS_RMA;
	if (caps & (FI_MSG | FI_TAGGED) && !(caps & (FI_SEND | FI_RECV)))
		caps |= FI_SEND | FI_RECV;
	if (caps & (FI_RMA | FI_ATOMIC) &&
	    !(caps & (FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE)))
		caps |= FI_READ | FI_WRITE | FI_REMOTE_READ | FI_REMOTE_WRITE;
	return caps | OFI_CAPS_DOMAIN;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static int check_tx(const struct fi_tx_attr *a, uint64_t caps)
{
	if (beyond("tx caps", a->caps, caps) || beyond("tx op_flags", a->op_flags, OFI_TX_FLAGS) ||
	    beyond("tx msg_order", a->msg_order, OUR_ORDER) ||
	    beyond("tx comp_order", a->comp_order, FI_ORDER_NONE) ||
	    over("inject_size", a->inject_size, ofi_conf.eager_max) ||
	    over("tx size", a->size, PLENTY) || over("tx iov_limit", a->iov_limit, MSG_IOV) ||
	    over("rma_iov_limit", a->rma_iov_limit, MSG_IOV))
		return -FI_ENODATA;
	return 0;
}

static int check_rx(const struct fi_rx_attr *a, uint64_t caps)
{
	if (beyond("rx caps", a->caps, caps) || beyond("rx op_flags", a->op_flags, OFI_RX_FLAGS) ||
	    beyond("rx msg_order", a->msg_order, OUR_ORDER) ||
	    beyond("rx comp_order", a->comp_order, FI_ORDER_NONE) ||
	    over("rx size", a->size, PLENTY) || over("rx iov_limit", a->iov_limit, MSG_IOV))
		return -FI_ENODATA;
	return 0;
}

static int check_ep(const struct fi_ep_attr *a)
{
	if (a->type != FI_EP_UNSPEC && a->type != FI_EP_RDM)
		REFUSE("only FI_EP_RDM is there\n");
	if (a->protocol && a->protocol != OUR_PROTOCOL)
		REFUSE("protocol %u is not ours\n", a->protocol);
	if (over("protocol_version", a->protocol_version, 1) ||
	    over("max_msg_size", a->max_msg_size, OFI_MAX_MSG) ||
	    over("max_order_raw_size", a->max_order_raw_size, OFI_ATOMIC_MAX) ||
	    over("max_order_war_size", a->max_order_war_size, OFI_ATOMIC_MAX) ||
	    over("max_order_waw_size", a->max_order_waw_size, OFI_ATOMIC_MAX) ||
	    over("tx_ctx_cnt", a->tx_ctx_cnt, 1) || over("rx_ctx_cnt", a->rx_ctx_cnt, 1) ||
	    over("auth_key_size", a->auth_key_size, 0))
		return -FI_ENODATA;
	return 0;
}

static int check_domain(const struct fi_domain_attr *a)
{
	if (a->threading > FI_THREAD_ENDPOINT)
		REFUSE("threading model %d is not known\n", a->threading);
	if (a->av_type != FI_AV_UNSPEC && a->av_type != FI_AV_MAP && a->av_type != FI_AV_TABLE)
		REFUSE("address vector type %d is not known\n", a->av_type);
	if (over("cq_data_size", a->cq_data_size, sizeof(uint32_t)) ||
	    over("cq_cnt", a->cq_cnt, PLENTY) || over("ep_cnt", a->ep_cnt, PLENTY) ||
	    over("tx_ctx_cnt", a->tx_ctx_cnt, PLENTY) ||
	    over("rx_ctx_cnt", a->rx_ctx_cnt, PLENTY) ||
	    over("max_ep_tx_ctx", a->max_ep_tx_ctx, 1) ||
	    over("max_ep_rx_ctx", a->max_ep_rx_ctx, 1) ||
	    over("max_ep_stx_ctx", a->max_ep_stx_ctx, 0) ||
	    over("max_ep_srx_ctx", a->max_ep_srx_ctx, 0) || over("cntr_cnt", a->cntr_cnt, PLENTY) ||
	    over("mr_iov_limit", a->mr_iov_limit, 1) ||
	    over("auth_key_size", a->auth_key_size, 0) ||
	    over("max_err_data", a->max_err_data, 0) || over("mr_cnt", a->mr_cnt, PLENTY) ||
	    beyond("domain caps", a->caps, OFI_CAPS_DOMAIN))
		return -FI_ENODATA;
	return 0;
}

int ofi_check_info(uint32_t version, const struct fi_info *hints)
{
	uint64_t caps = answer_caps(version, hints);
	int err = 0;

	if (beyond("caps", hints->caps, OFI_CAPS))
		return -FI_ENODATA;
	if (caps & (FI_RMA | FI_ATOMIC) && !mr_fits(version, hints))
		REFUSE("FI_RMA and FI_ATOMIC need FI_MR_VIRT_ADDR, FI_MR_ALLOCATED and "
		       "FI_MR_PROV_KEY\n");
	if (hints->addr_format != FI_FORMAT_UNSPEC)
		REFUSE("address format %u is not ours\n", hints->addr_format);
	if (hints->fabric_attr && hints->fabric_attr->name &&
	    strcmp(hints->fabric_attr->name, OFI_NAME) != 0)
		REFUSE("fabric %s is not ours\n", hints->fabric_attr->name);
	if (hints->tx_attr)
		err = check_tx(hints->tx_attr, caps);
	if (!err && hints->rx_attr)
		err = check_rx(hints->rx_attr, caps);
	if (!err && hints->ep_attr)
		err = check_ep(hints->ep_attr);
	if (!err && hints->domain_attr)
		err = check_domain(hints->domain_attr);
	return err;
}

/* ---- answers --------------------------------------------------------------------------------- */

static void fill_tx(struct fi_tx_attr *a, const struct fi_tx_attr *h, uint64_t caps, size_t inject)
{
	a->caps = h && h->caps ? h->caps : caps & TX_CAPS;
	a->op_flags = h ? h->op_flags : 0;
	a->msg_order = h && h->msg_order ? h->msg_order : OUR_ORDER;
	a->comp_order = FI_ORDER_NONE;
	a->inject_size = h && h->inject_size > inject ? h->inject_size : inject;
	a->size = h && h->size ? h->size : 1024;
	a->iov_limit = a->rma_iov_limit = MSG_IOV;
}

static void fill_rx(struct fi_rx_attr *a, const struct fi_rx_attr *h, uint64_t caps)
{
	a->caps = h && h->caps ? h->caps : caps & RX_CAPS;
	a->op_flags = h ? h->op_flags : 0;
	a->msg_order = h && h->msg_order ? h->msg_order : OUR_ORDER;
	a->comp_order = FI_ORDER_NONE;
	a->size = h && h->size ? h->size : 1024;
	a->iov_limit = MSG_IOV;
}

static void fill_ep(struct fi_ep_attr *a, const struct fi_ep_attr *h, uint64_t caps)
{
	a->type = FI_EP_RDM;
	a->protocol = OUR_PROTOCOL;
	a->protocol_version = 1;
	a->max_msg_size = OFI_MAX_MSG;
	if (caps & FI_ATOMIC)
		a->max_order_raw_size = a->max_order_war_size = a->max_order_waw_size =
			OFI_ATOMIC_MAX;
	a->mem_tag_format = h && h->mem_tag_format ? h->mem_tag_format : TAG_FORMAT;
	a->tx_ctx_cnt = a->rx_ctx_cnt = 1;
}

static bool wants_auto(const struct fi_domain_attr *h)
{
	return h && h->data_progress == FI_PROGRESS_AUTO;
}

static int fill_domain(struct fi_domain_attr *a, const struct fi_domain_attr *h, const char *name)
{
	a->name = strdup(name);
	/* Whatever is asked for, it is safe. */
	a->threading = h && h->threading ? h->threading : FI_THREAD_SAFE;
	a->control_progress = h && h->control_progress ? h->control_progress : FI_PROGRESS_AUTO;
	/* Who does not ask is told to call, which is faster than the device's thread. */
	a->data_progress = wants_auto(h) ? FI_PROGRESS_AUTO : FI_PROGRESS_MANUAL;
	a->resource_mgmt = FI_RM_ENABLED;
	a->av_type = h ? h->av_type : FI_AV_UNSPEC;
	a->mr_key_size = sizeof(uint32_t);
	a->cq_data_size = sizeof(uint32_t);
	a->cq_cnt = a->ep_cnt = a->cntr_cnt = a->mr_cnt = PLENTY;
	a->tx_ctx_cnt = a->rx_ctx_cnt = PLENTY;
	a->max_ep_tx_ctx = a->max_ep_rx_ctx = 1;
	a->mr_iov_limit = 1;
	a->caps = OFI_CAPS_DOMAIN;
	return a->name ? 0 : -FI_ENOMEM;
}

static struct fi_info *answer(uint32_t version, const struct fi_info *h, const char *name,
			      size_t inject)
{
	struct fi_info *info = fi_allocinfo();
	uint64_t caps = answer_caps(version, h);

	if (!info)
		return NULL;
	info->caps = caps;
	info->addr_format = FI_FORMAT_UNSPEC;
	fill_tx(info->tx_attr, h ? h->tx_attr : NULL, caps, inject);
	fill_rx(info->rx_attr, h ? h->rx_attr : NULL, caps);
	fill_ep(info->ep_attr, h ? h->ep_attr : NULL, caps);
	info->domain_attr->mr_mode = mr_answer(version, h, caps);
	/* prov_name stays NULL: libfabric sets it, and takes a name for one of a layer below. */
	info->fabric_attr->name = strdup(OFI_NAME);
	if (fill_domain(info->domain_attr, h ? h->domain_attr : NULL, name) ||
	    !info->fabric_attr->name) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

/* ---- the device ------------------------------------------------------------------------------ */

struct device {
	char name[64]; /* also of the domain */
	struct msg_addr addr;
	size_t inject; /* what is offered to be injected */
	bool moves;    /* while nobody calls */
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct device usual;
static int usual_err;

/* What is injected is copied, and MPI libraries inject what they may: where copies are to be saved,
 * no more than is cheaper to copy on any device. Who asks for more gets it. */
#define INJECT_COPIED 1024

static int look(const char *name, struct device *d)
{
	struct msg_dev_conf conf = ofi_conf.dev;
	struct msg_dev *dev;
	int err;

	conf.name = name;
	err = msg_dev_open_conf(&conf, &dev);
	if (err) {
		OFI_INFO(CORE, "no device %s: %s\n", name ? name : "", fi_strerror(-err));
		return err;
	}
	snprintf(d->name, sizeof(d->name), "%s", msg_dev_name(dev));
	d->addr = msg_dev_addr(dev);
	d->inject = ofi_conf.eager_max;
	d->moves = msg_dev_moves(dev);
	if (!msg_dev_takes_all(dev) && ofi_conf.reuse != MSG_REUSE_NO && d->inject > INJECT_COPIED)
		d->inject = INJECT_COPIED;
	msg_dev_close(dev);
	return 0;
}

static void look_once(void)
{
	usual_err = look(ofi_conf.dev.name, &usual);
}

/* The usual one, or the one that is asked for, unless the user wants another. */
static int find_device(const char *name, struct device *d)
{
	pthread_once(&once, look_once);
	if (!usual_err && (!name || !strcmp(name, usual.name))) {
		*d = usual;
		return 0;
	}
	if (!name)
		return usual_err;
	if (ofi_conf.dev.name)
		REFUSE("domain %s is asked for, the device is %s\n", name, ofi_conf.dev.name);
	return look(name, d);
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Whether the address, in text or in binary, is one of the device. What the device has not given
 * it yet, number and key of the queue pair, does not count. */
static bool is_here(const struct msg_addr *a, const struct msg_addr *here)
{
	return !memcmp(a->gid, here->gid, sizeof(a->gid)) && a->lid == here->lid;
}

/* The loopback address is as good as any: peers of this host are reached, too. */
static bool host_is_here(const char *node, const struct msg_addr *here)
{
	struct addrinfo want = {.ai_family = AF_INET}, *all, *ai;
	struct msg_addr a;
	bool yes = false;

	if (!ofi_addr_parse(node, &a))
		return is_here(&a, here);
	if (getaddrinfo(node, NULL, &want, &all))
		return false;
	for (ai = all; ai; ai = ai->ai_next) {
		const struct sockaddr_in *in = (const struct sockaddr_in *)ai->ai_addr;

		yes |= in->sin_addr.s_addr == here->ip ||
		       ntohl(in->sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
	}
	freeaddrinfo(all);
	return yes;
}

static int copy_addr(const struct msg_addr *from, void **to, size_t *len)
{
	*to = malloc(sizeof(*from));
	if (!*to)
		return -FI_ENOMEM;
	memcpy(*to, from, sizeof(*from));
	*len = sizeof(*from);
	return 0;
}

/* Where endpoints will be. The rest of their names they get when they are enabled. */
static int add_src(struct fi_info *info, const char *node, const struct fi_info *hints,
		   const struct msg_addr *here)
{
	struct msg_addr a;

	if (node && !host_is_here(node, here))
		REFUSE("%s is not an address of the device\n", node);
	if (hints && hints->src_addr) {
		if (hints->src_addrlen != sizeof(a))
			REFUSE("a source address has %zu bytes\n", sizeof(a));
		memcpy(&a, hints->src_addr, sizeof(a));
		if (!is_here(&a, here))
			REFUSE("the source address is not of the device\n");
	}
	return copy_addr(here, &info->src_addr, &info->src_addrlen);
}

/* Endpoints get their names when they are enabled: no host and service leads to one. What
 * fi_av_straddr prints does. */
static int add_dest(struct fi_info *info, const char *node, const struct fi_info *hints)
{
	struct msg_addr addr;

	if (node && ofi_addr_parse(node, &addr))
		REFUSE("%s is not an address of an endpoint, as fi_weft://...\n", node);
	if (!node && (!hints || !hints->dest_addr))
		return 0;
	if (!node) {
		if (hints->dest_addrlen != sizeof(addr))
			REFUSE("a destination address has %zu bytes\n", sizeof(addr));
		memcpy(&addr, hints->dest_addr, sizeof(addr));
	}
	return copy_addr(&addr, &info->dest_addr, &info->dest_addrlen);
}

int ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	bool source = flags & FI_SOURCE;
	struct device d;
	int err;

	if (flags & CORE_PROV_ONLY)
		return -FI_ENODATA;
	if (hints && ofi_check_info(version, hints))
		return -FI_ENODATA;
	/* Servers ask for one even if they tell their name to clients by other means. */
	if (service)
		OFI_INFO(CORE, "service %s has no meaning: the device gives names\n", service);
	if (find_device(hints && hints->domain_attr ? hints->domain_attr->name : NULL, &d))
		return -FI_ENODATA;
	if (hints && wants_auto(hints->domain_attr) && !d.moves)
		REFUSE("data progress is manual: connections, or WEFT_PROGRESS is off\n");
	*info = answer(version, hints, d.name, d.inject);
	if (!*info)
		return -FI_ENOMEM;
	err = add_src(*info, source ? node : NULL, hints, &d.addr);
	if (!err)
		err = add_dest(*info, source ? NULL : node, hints);
	if (err) {
		fi_freeinfo(*info);
		*info = NULL;
	}
	return err;
}
