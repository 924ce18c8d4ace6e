/* What the provider offers, and whether that is what is asked for. */
#include <pthread.h>
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
	if (a->name && strcmp(a->name, ofi_conf.dev.name ? ofi_conf.dev.name : "weft0"))
		REFUSE("domain %s is not ours\n", a->name);
	if (a->threading > FI_THREAD_ENDPOINT)
		REFUSE("threading model %d is not known\n", a->threading);
	/* Sends and receives move when the application calls. */
	if (a->data_progress == FI_PROGRESS_AUTO)
		REFUSE("data progress is manual\n");
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
	    strcmp(hints->fabric_attr->name, OFI_NAME))
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

static void fill_tx(struct fi_tx_attr *a, const struct fi_tx_attr *h, uint64_t caps)
{
	a->caps = h && h->caps ? h->caps : caps & TX_CAPS;
	a->op_flags = h ? h->op_flags : 0;
	a->msg_order = h && h->msg_order ? h->msg_order : OUR_ORDER;
	a->comp_order = FI_ORDER_NONE;
	a->inject_size = ofi_conf.eager_max;
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

static int fill_domain(struct fi_domain_attr *a, const struct fi_domain_attr *h)
{
	a->name = strdup(ofi_conf.dev.name ? ofi_conf.dev.name : "weft0");
	/* Whatever is asked for, it is safe. */
	a->threading = h && h->threading ? h->threading : FI_THREAD_SAFE;
	a->control_progress = h && h->control_progress ? h->control_progress : FI_PROGRESS_AUTO;
	a->data_progress = FI_PROGRESS_MANUAL;
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

static struct fi_info *answer(uint32_t version, const struct fi_info *h)
{
	struct fi_info *info = fi_allocinfo();
	uint64_t caps = answer_caps(version, h);

	if (!info)
		return NULL;
	info->caps = caps;
	info->addr_format = FI_FORMAT_UNSPEC;
	fill_tx(info->tx_attr, h ? h->tx_attr : NULL, caps);
	fill_rx(info->rx_attr, h ? h->rx_attr : NULL, caps);
	fill_ep(info->ep_attr, h ? h->ep_attr : NULL, caps);
	info->domain_attr->mr_mode = mr_answer(version, h, caps);
	/* prov_name stays NULL: libfabric sets it, and takes a name for one of a layer below. */
	info->fabric_attr->name = strdup(OFI_NAME);
	if (fill_domain(info->domain_attr, h ? h->domain_attr : NULL) || !info->fabric_attr->name) {
		fi_freeinfo(info);
		return NULL;
	}
	return info;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* Endpoints get their names when they are enabled: no host and service leads to one. What
 * fi_av_straddr prints does. */
static int add_dest(struct fi_info *info, const char *node, const struct fi_info *hints)
{
	const void *from =
		hints && hints->dest_addrlen == sizeof(struct msg_addr) ? hints->dest_addr : NULL;
	struct msg_addr addr;

	if (node) {
		if (ofi_addr_parse(node, &addr))
			REFUSE("%s is not an address of an endpoint, as fi_weft://...\n", node);
		from = &addr;
	}
	if (!from)
		return 0;
	info->dest_addr = malloc(sizeof(addr));
	if (!info->dest_addr)
		return -FI_ENOMEM;
	memcpy(info->dest_addr, from, sizeof(addr));
	info->dest_addrlen = sizeof(addr);
	return 0;
}

/* ---- the device ------------------------------------------------------------------------------ */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int device_err;

static void probe(void)
{
	struct msg_dev *dev;

	device_err = msg_dev_open_conf(&ofi_conf.dev, &dev);
	if (device_err)
		OFI_INFO(CORE, "no device: %s\n", fi_strerror(-device_err));
	else
		msg_dev_close(dev);
}

int ofi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
		const struct fi_info *hints, struct fi_info **info)
{
	int err;

	if (flags & CORE_PROV_ONLY)
		return -FI_ENODATA;
	if (hints && ofi_check_info(version, hints))
		return -FI_ENODATA;
	if (node && (service || flags & FI_SOURCE))
		REFUSE("host %s and a service name no endpoint\n", node);
	/* Servers ask for one even if they tell their name to clients by other means. */
	if (service)
		OFI_INFO(CORE, "service %s has no meaning: the device gives names\n", service);
	pthread_once(&once, probe);
	if (device_err)
		return -FI_ENODATA;
	*info = answer(version, hints);
	if (!*info)
		return -FI_ENOMEM;
	err = add_dest(*info, node, hints);
	if (err) {
		fi_freeinfo(*info);
		*info = NULL;
	}
	return err;
}
