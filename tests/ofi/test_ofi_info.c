/* What the provider says that it can do. */
#include "ofi_node.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static struct fi_info *hints_new(void)
{
	struct fi_info *h = fi_allocinfo();

	assert_non_null(h);
	h->fabric_attr->prov_name = strdup("weft");
	h->domain_attr->mr_mode = MR_BITS;
	return h;
}

static int get(uint32_t version, struct fi_info *hints, struct fi_info **info)
{
	int ret = fi_getinfo(version, NULL, NULL, 0, hints, info);

	if (ret)
		*info = NULL;
	return ret;
}

static void test_all(void **state)
{
	struct fi_info *h = hints_new(), *i;

	(void)state;
	OK(get(VERSION, h, &i));
	assert_null(i->next); /* and no weft;ofi_rxm */
	assert_string_equal(i->fabric_attr->prov_name, "weft");
	assert_int_equal(i->ep_attr->type, FI_EP_RDM);
	assert_int_equal(i->mode, 0);
	assert_int_equal(i->domain_attr->mr_mode, MR_BITS);
	assert_true(i->caps & FI_RMA && i->caps & FI_ATOMIC && i->caps & FI_TAGGED);
	assert_true(i->tx_attr->inject_size > 0 && i->tx_attr->iov_limit > 1);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* What Open MPI's mtl/ofi asks for. */
static void test_mtl(void **state)
{
	struct fi_info *h = hints_new(), *i;

	(void)state;
	h->mode = FI_CONTEXT;
	h->caps = FI_TAGGED | FI_LOCAL_COMM | FI_REMOTE_COMM | FI_DIRECTED_RECV;
	h->tx_attr->msg_order = FI_ORDER_SAS;
	h->rx_attr->msg_order = FI_ORDER_SAS;
	h->rx_attr->op_flags = FI_COMPLETION;
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->control_progress = FI_PROGRESS_MANUAL;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->av_type = FI_AV_MAP;
	h->domain_attr->mr_mode = 0;
	h->domain_attr->cq_data_size = 4;
	h->ep_attr->type = FI_EP_RDM;
	OK(get(FI_VERSION(1, 5), h, &i));
	assert_int_equal(i->domain_attr->mr_mode, 0);
	assert_int_equal(i->mode, 0);
	assert_int_equal(i->domain_attr->threading, FI_THREAD_DOMAIN);
	assert_int_equal(i->domain_attr->av_type, FI_AV_MAP);
	assert_false(i->caps & (FI_RMA | FI_ATOMIC | FI_MSG));
	assert_int_equal(i->domain_attr->max_ep_tx_ctx, 1);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* And btl/ofi. */
static void test_btl(void **state)
{
	struct fi_info *h = hints_new(), *i;

	(void)state;
	h->caps = FI_RMA | FI_ATOMIC;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->tx_attr->op_flags = FI_DELIVERY_COMPLETE;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->mr_mode |= FI_MR_LOCAL;
	OK(get(FI_VERSION(1, 5), h, &i));
	assert_int_equal(i->domain_attr->mr_mode, MR_BITS);
	assert_int_equal(i->tx_attr->op_flags, FI_DELIVERY_COMPLETE);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

static void test_mr_modes(void **state)
{
	static const struct {
		uint32_t version;
		int mode;
		uint64_t caps;
		int ret, answer;
	} cases[] = {
		{FI_VERSION(1, 4), FI_MR_UNSPEC, FI_MSG | FI_RMA, 0, FI_MR_BASIC},
		{FI_VERSION(1, 4), FI_MR_BASIC, FI_MSG | FI_RMA, 0, FI_MR_BASIC},
		{FI_VERSION(1, 4), FI_MR_SCALABLE, FI_MSG | FI_RMA, -FI_ENODATA, 0},
		{FI_VERSION(1, 4), FI_MR_SCALABLE, FI_MSG, 0, FI_MR_SCALABLE},
		{VERSION, FI_MR_BASIC, FI_RMA, 0, FI_MR_BASIC},
		{VERSION, FI_MR_SCALABLE, FI_RMA, -FI_ENODATA, 0},
		{VERSION, 0, FI_RMA, -FI_ENODATA, 0},
		{VERSION, 0, FI_MSG, 0, 0},
		{VERSION, FI_MR_VIRT_ADDR | FI_MR_ALLOCATED, FI_RMA, -FI_ENODATA, 0},
		{VERSION, MR_BITS | FI_MR_LOCAL | FI_MR_ENDPOINT, FI_ATOMIC, 0, MR_BITS},
		{VERSION, MR_BITS, FI_TAGGED, 0, 0},
	};

	(void)state;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct fi_info *h = hints_new(), *i;

		h->caps = cases[k].caps;
		h->domain_attr->mr_mode = cases[k].mode;
		assert_int_equal(get(cases[k].version, h, &i), cases[k].ret);
		if (i)
			assert_int_equal(i->domain_attr->mr_mode, cases[k].answer);
		fi_freeinfo(i);
		fi_freeinfo(h);
	}
	/* nothing asked for, no keys possible: messages */
	for (int with = 0; with < 2; with++) {
		struct fi_info *h = hints_new(), *i;

		h->domain_attr->mr_mode = with ? MR_BITS : 0;
		OK(get(VERSION, h, &i));
		assert_int_equal(!!(i->caps & FI_RMA), with);
		fi_freeinfo(i);
		fi_freeinfo(h);
	}
}

static void refuse_with(void (*spoil)(struct fi_info *h))
{
	struct fi_info *h = hints_new(), *i;

	spoil(h);
	assert_int_equal(get(VERSION, h, &i), -FI_ENODATA);
	fi_freeinfo(h);
}

#define SPOIL(name, statement)                                                                     \
	static void spoil_##name(struct fi_info *h)                                                \
	{                                                                                          \
		statement;                                                                         \
	}
SPOIL(type, h->ep_attr->type = FI_EP_MSG)
SPOIL(caps, h->caps = FI_MSG | FI_MULTICAST)
SPOIL(event, h->caps = FI_RMA | FI_RMA_EVENT)
SPOIL(inject, h->tx_attr->inject_size = 1 << 30)
SPOIL(iov, h->tx_attr->iov_limit = 100)
SPOIL(rx_iov, h->rx_attr->iov_limit = 100)
SPOIL(rma_iov, h->tx_attr->rma_iov_limit = 100)
SPOIL(order, h->tx_attr->msg_order = FI_ORDER_RAW)
SPOIL(rx_order, h->rx_attr->comp_order = FI_ORDER_STRICT)
SPOIL(op_flags, h->tx_attr->op_flags = FI_COMMIT_COMPLETE)
SPOIL(rx_flags, h->rx_attr->op_flags = FI_INJECT)
SPOIL(tx_caps, (h->caps = FI_MSG, h->tx_attr->caps = FI_RMA))
SPOIL(data, h->domain_attr->cq_data_size = 8)
SPOIL(domain, h->domain_attr->name = strdup("mlx5_0"))
SPOIL(fabric, h->fabric_attr->name = strdup("10.0.0.0/8"))
SPOIL(contexts, h->ep_attr->tx_ctx_cnt = 2)
SPOIL(shared, h->ep_attr->rx_ctx_cnt = FI_SHARED_CONTEXT)
SPOIL(message, h->ep_attr->max_msg_size = SIZE_MAX)
SPOIL(protocol, h->ep_attr->protocol = FI_PROTO_RXM)
SPOIL(format, h->addr_format = FI_SOCKADDR_IN)
SPOIL(regions, h->domain_attr->mr_iov_limit = 2)

static void test_refused(void **state)
{
	(void)state;
	refuse_with(spoil_type);
	refuse_with(spoil_caps);
	refuse_with(spoil_event);
	refuse_with(spoil_inject);
	refuse_with(spoil_iov);
	refuse_with(spoil_rx_iov);
	refuse_with(spoil_rma_iov);
	refuse_with(spoil_order);
	refuse_with(spoil_rx_order);
	refuse_with(spoil_op_flags);
	refuse_with(spoil_rx_flags);
	refuse_with(spoil_tx_caps);
	refuse_with(spoil_data);
	refuse_with(spoil_domain);
	refuse_with(spoil_fabric);
	refuse_with(spoil_contexts);
	refuse_with(spoil_shared);
	refuse_with(spoil_message);
	refuse_with(spoil_protocol);
	refuse_with(spoil_format);
	refuse_with(spoil_regions);
}

/* Data moves by itself where the device sees to it, which is said to those who ask. */
static void test_progress(void **state)
{
	bool moves = !getenv("FI_WEFT_TRANSPORT") && !getenv("WEFT_PROGRESS");
	struct fi_info *h = hints_new(), *i;

	(void)state;
	OK(get(VERSION, h, &i));
	assert_int_equal(i->domain_attr->data_progress, FI_PROGRESS_MANUAL);
	fi_freeinfo(i);
	h->domain_attr->data_progress = FI_PROGRESS_AUTO;
	assert_int_equal(get(VERSION, h, &i), moves ? 0 : -FI_ENODATA);
	if (moves) {
		assert_int_equal(i->domain_attr->data_progress, FI_PROGRESS_AUTO);
		fi_freeinfo(i);
	}
	fi_freeinfo(h);
}

/* Every threading model comes back as it was asked for. */
static void test_threading(void **state)
{
	(void)state;
	for (int t = FI_THREAD_SAFE; t <= FI_THREAD_ENDPOINT; t++) {
		struct fi_info *h = hints_new(), *i;

		h->domain_attr->threading = (enum fi_threading)t;
		OK(get(VERSION, h, &i));
		assert_int_equal(i->domain_attr->threading, t);
		fi_freeinfo(i);
		fi_freeinfo(h);
	}
}

/* An answer, taken as a question, gets the same answer. */
static void test_again(void **state)
{
	struct fi_info *h = hints_new(), *i, *k;

	(void)state;
	OK(get(VERSION, h, &i));
	OK(get(VERSION, i, &k));
	assert_int_equal(i->caps, k->caps);
	assert_int_equal(i->ep_attr->protocol, k->ep_attr->protocol);
	fi_freeinfo(i);
	fi_freeinfo(k);
	fi_freeinfo(h);
}

static void test_nodes(void **state)
{
	struct fi_info *h = hints_new(), *i;
	static const uint8_t want[16] = {[10] = 0xff, 0xff, 10, 0, 0, 7};

	(void)state;
	assert_int_equal(fi_getinfo(VERSION, "localhost", "7471", 0, h, &i), -FI_ENODATA);
	assert_int_equal(fi_getinfo(VERSION, "203.0.113.9", NULL, FI_SOURCE, h, &i), -FI_ENODATA);
	OK(fi_getinfo(VERSION, NULL, "7471", FI_SOURCE, h, &i)); /* as fabtests do */
	fi_freeinfo(i);
	OK(fi_getinfo(VERSION, "localhost", "7471", FI_SOURCE, h, &i));
	fi_freeinfo(i);
	assert_int_equal(fi_getinfo(VERSION, "fi_weft://10.0.0.7:12345", NULL, 0, h, &i),
			 -FI_ENODATA);
	OK(fi_getinfo(VERSION, "fi_weft://[::ffff:10.0.0.7]:abc123:1234abcd:0", "1", 0, h, &i));
	fi_freeinfo(i);
	OK(fi_getinfo(VERSION, "fi_weft://[::ffff:10.0.0.7]:abc123:1234abcd:0", NULL, 0, h, &i));
	assert_int_equal(i->dest_addrlen, ADDR_LEN);
	assert_memory_equal(i->dest_addr, want, 16);
	fi_freeinfo(i);
	fi_freeinfo(h);
}

/* The domain is the device, and so is the source address, as far as it is known before an endpoint
 * is there. */
static void test_where(void **state)
{
	static const uint8_t none[8];
	struct fi_info *h = hints_new(), *i;
	struct node_conf conf = {0};
	char host[INET_ADDRSTRLEN], text[100];
	size_t len = sizeof(text);
	struct node n;

	(void)state;
	node_open(&n, &conf);
	assert_int_equal(n.info->src_addrlen, ADDR_LEN);
	assert_memory_equal(n.info->src_addr, n.name, 16);
	assert_memory_equal((uint8_t *)n.info->src_addr + 16, none, 8);
	assert_memory_equal((uint8_t *)n.info->src_addr + 24, n.name + 24, 4);
	/* in all forms */
	inet_ntop(AF_INET, n.name + 12, host, sizeof(host));
	fi_av_straddr(n.av, n.name, text, &len);
	h->domain_attr->name = strdup(n.info->domain_attr->name);
	h->src_addr = malloc(ADDR_LEN);
	memcpy(h->src_addr, n.name, ADDR_LEN);
	h->src_addrlen = ADDR_LEN;
	for (int k = 0; k < 4; k++) {
		OK(fi_getinfo(VERSION, k & 1 ? text : host, k & 2 ? "7471" : NULL, FI_SOURCE, h,
			      &i));
		assert_string_equal(i->domain_attr->name, n.info->domain_attr->name);
		assert_memory_equal(i->src_addr, n.info->src_addr, ADDR_LEN);
		assert_null(i->dest_addr);
		fi_freeinfo(i);
	}
	/* somewhere else */
	((uint8_t *)h->src_addr)[15] ^= 1;
	assert_int_equal(get(VERSION, h, &i), -FI_ENODATA);
	((uint8_t *)h->src_addr)[15] ^= 1;
	h->src_addrlen = 16;
	assert_int_equal(get(VERSION, h, &i), -FI_ENODATA);
	node_close(&n);
	fi_freeinfo(h);
}

NODE_MAIN(cmocka_unit_test(test_all), cmocka_unit_test(test_mtl), cmocka_unit_test(test_btl),
	  cmocka_unit_test(test_mr_modes), cmocka_unit_test(test_refused),
	  cmocka_unit_test(test_progress), cmocka_unit_test(test_threading),
	  cmocka_unit_test(test_again), cmocka_unit_test(test_nodes), cmocka_unit_test(test_where))
