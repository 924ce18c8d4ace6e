/* Calls for Weft's own device: they answer as the man pages promise, and none of them
 * reaches the real library (here: fake_ibverbs.c). */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

#include "fake_ibverbs.h"

struct fake_log fake_log __attribute__((visibility("default")));

static struct ibv_device *weft0;
static struct ibv_context *ctx;
static struct ibv_pd *pd;
static struct ibv_port_attr port;
static int calls_before;

/* What belongs to another device. */
static struct ibv_context alien_context;
static union {
	struct ibv_pd pd;
	struct ibv_cq cq;
	struct ibv_srq srq;
	struct ibv_comp_channel channel;
} alien = {.pd.context = &alien_context};

static int open_weft(void **state)
{
	struct ibv_device **list;
	int n;

	(void)state;
	fake_log.devices = 1;
	list = ibv_get_device_list(&n);
	if (!list || n != 2)
		return -1;
	alien_context.device = list[0];
	weft0 = list[1];
	ibv_free_device_list(list);
	calls_before = fake_log.calls;
	ctx = ibv_open_device(weft0);
	if (!ctx)
		return -1;
	pd = ibv_alloc_pd(ctx);
	return pd && !ibv_query_port(ctx, 1, &port) ? 0 : -1;
}

static int close_weft(void **state)
{
	(void)state;
	return ibv_dealloc_pd(pd) || ibv_close_device(ctx) || fake_log.calls != calls_before;
}

static int kept_to_ourselves(void **state)
{
	(void)state;
	return fake_log.calls != calls_before;
}

#define assert_refuses_null(call, err)                                                             \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_null(call);                                                                 \
		assert_int_equal(errno, err);                                                      \
	} while (0)

#define assert_refuses(call, ret, err)                                                             \
	do {                                                                                       \
		errno = 0;                                                                         \
		assert_int_equal(call, ret);                                                       \
		assert_int_equal(errno, err);                                                      \
	} while (0)

static void device(void **state)
{
	(void)state;
	assert_string_equal(ibv_get_device_name(weft0), "weft0");
	assert_true(ibv_get_device_guid(weft0) != 0);
	assert_int_equal(ibv_get_device_index(weft0), -1);
	assert_ptr_equal(ctx->device, weft0);
}

static void query_device_and_port(void **state)
{
	struct ibv_device_attr attr;
	struct ibv_port_attr bad;

	(void)state;
	assert_int_equal(ibv_query_device(ctx, &attr), 0);
	assert_int_equal(attr.phys_port_cnt, 1);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_true(port.gid_tbl_len >= 1);
	assert_int_equal(ibv_query_port(ctx, 2, &bad), EINVAL);
}

/* Old programs have a shorter structure: not a byte behind it may change. */
static void query_port_of_old_programs(void **state)
{
	int (*query)(struct ibv_context *, uint8_t, void *) =
		(int (*)(struct ibv_context *, uint8_t, void *))dlsym(RTLD_DEFAULT,
								      "ibv_query_port");
	const size_t len = offsetof(struct ibv_port_attr, port_cap_flags2);
	unsigned char buf[sizeof(struct ibv_port_attr) + 64];

	(void)state;
	memset(buf, 0xa5, sizeof(buf));
	assert_int_equal(query(ctx, 1, buf), 0);
	assert_memory_equal(buf, &port, len);
	for (size_t i = len; i < sizeof(buf); i++)
		assert_int_equal(buf[i], 0xa5);
	assert_int_equal(query(ctx, 9, buf), EINVAL);
}

static void gids(void **state)
{
	struct ibv_gid_entry entry;
	union ibv_gid gid;

	(void)state;
	for (int i = 0; i < port.gid_tbl_len; i++) {
		assert_int_equal(ibv_query_gid(ctx, 1, i, &gid), 0);
		assert_int_equal(ibv_query_gid_ex(ctx, 1, (uint32_t)i, &entry, 0), 0);
		assert_memory_equal(&gid, &entry.gid, sizeof(gid));
		assert_int_equal(entry.gid_index, i);
		assert_int_equal(entry.port_num, 1);
		assert_int_equal(entry.gid_type, IBV_GID_TYPE_ROCE_V2);
	}
	assert_refuses(ibv_query_gid(ctx, 1, port.gid_tbl_len, &gid), -1, EINVAL);
	assert_refuses(ibv_query_gid(ctx, 1, -1, &gid), -1, EINVAL);
	assert_refuses(ibv_query_gid(ctx, 2, 0, &gid), -1, EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, 1, (uint32_t)port.gid_tbl_len, &entry, 0), EINVAL);
	assert_int_equal(ibv_query_gid_ex(ctx, 1, 0, &entry, 1), EOPNOTSUPP);
}

static void gid_type(void **state)
{
	int (*query)(struct ibv_context *, uint8_t, unsigned int, int *) =
		(int (*)(struct ibv_context *, uint8_t, unsigned int, int *))dlsym(
			RTLD_DEFAULT, "ibv_query_gid_type");
	int type = -1;

	(void)state;
	assert_int_equal(query(ctx, 1, 0, &type), 0);
	assert_int_equal(type, 1); /* RoCE v2 */
	assert_refuses(query(ctx, 1, 1000, &type), -1, EINVAL);
}

/* The structure may have grown or shrunk since the caller was built. */
static void gid_entries_of_any_size(void **state)
{
	const size_t n = (size_t)port.gid_tbl_len;
	const size_t sizes[] = {sizeof(union ibv_gid), sizeof(struct ibv_gid_entry),
				sizeof(struct ibv_gid_entry) + 24};

	(void)state;
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		size_t size = sizes[s];
		unsigned char *table = malloc(n * size + 16);
		union ibv_gid gid;

		assert_non_null(table);
		memset(table, 0xa5, n * size + 16);
		assert_int_equal(_ibv_query_gid_table(ctx, (void *)table, n, 0, size), n);
		for (size_t i = 0; i < n; i++) {
			assert_int_equal(ibv_query_gid(ctx, 1, (int)i, &gid), 0);
			assert_memory_equal(table + i * size, &gid, sizeof(gid));
		}
		for (size_t i = 0; i < 16; i++)
			assert_int_equal(table[n * size + i], 0xa5);
		memset(table, 0xa5, size + 16);
		assert_int_equal(_ibv_query_gid_ex(ctx, 1, 0, (void *)table, 0, size), 0);
		assert_int_equal(table[size], 0xa5);
		free(table);
	}
}

static void gid_table_that_does_not_fit(void **state)
{
	struct ibv_gid_entry *table = calloc((size_t)port.gid_tbl_len, sizeof(*table));

	(void)state;
	assert_non_null(table);
	assert_int_equal(ibv_query_gid_table(ctx, table, (size_t)port.gid_tbl_len - 1, 0), -EINVAL);
	assert_int_equal(ibv_query_gid_table(ctx, table, (size_t)port.gid_tbl_len, 1), -EOPNOTSUPP);
	free(table);
}

static void pkeys(void **state)
{
	__be16 pkey = 0;

	(void)state;
	assert_int_equal(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_refuses(ibv_query_pkey(ctx, 1, 1, &pkey), -1, EINVAL);
	assert_int_equal(ibv_get_pkey_index(ctx, 1, 0xffff), 0);
	assert_refuses(ibv_get_pkey_index(ctx, 1, 0x1234), -1, EINVAL);
}

static void events(void **state)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_async_event event;
	struct ibv_cq *cq;
	void *cq_context;

	(void)state;
	assert_non_null(channel);
	assert_int_equal(fcntl(channel->fd, F_SETFL, O_NONBLOCK), 0);
	assert_refuses(ibv_get_cq_event(channel, &cq, &cq_context), -1, EAGAIN);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
	assert_int_equal(fcntl(ctx->async_fd, F_SETFL, O_NONBLOCK), 0);
	assert_refuses(ibv_get_async_event(ctx, &event), -1, EAGAIN);
}

static void memory(void **state)
{
	static char buf[4096], other[4096];
	struct ibv_mr *mr = ibv_reg_mr(pd, buf, sizeof(buf), IBV_ACCESS_LOCAL_WRITE);
	struct ibv_pd *pd2 = ibv_alloc_pd(ctx);

	(void)state;
	assert_non_null(mr);
	assert_non_null(pd2);
	assert_ptr_equal(mr->pd, pd);
	assert_ptr_equal(mr->addr, buf);

	assert_refuses(ibv_rereg_mr(mr, 1 << 10, NULL, NULL, 0, 0), IBV_REREG_MR_ERR_INPUT, EINVAL);
	assert_refuses(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, NULL, 1, 0),
		       IBV_REREG_MR_ERR_INPUT, EINVAL);
	assert_refuses(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, buf, 0, 0),
		       IBV_REREG_MR_ERR_INPUT, EINVAL);
	assert_refuses(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, NULL, NULL, 0, 0),
		       IBV_REREG_MR_ERR_INPUT, EINVAL);
	assert_refuses(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, &alien.pd, NULL, 0, 0),
		       IBV_REREG_MR_ERR_INPUT, EINVAL);
	assert_refuses(
		ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, pd2, NULL, 0, IBV_ACCESS_LOCAL_WRITE),
		IBV_REREG_MR_ERR_INPUT, EINVAL);
	assert_ptr_equal(mr->pd, pd);

	assert_int_equal(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD | IBV_REREG_MR_CHANGE_TRANSLATION,
				      pd2, other, 100, 0),
			 0);
	assert_ptr_equal(mr->pd, pd2);
	assert_ptr_equal(mr->addr, other);
	assert_int_equal(mr->length, 100);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	assert_int_equal(ibv_dealloc_pd(pd2), 0);

	/* By the macro, and by the function behind the optional access flags. */
	mr = ibv_reg_mr_iova(pd, buf, sizeof(buf), 0x1000, IBV_ACCESS_LOCAL_WRITE);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
	mr = ibv_reg_mr_iova2(pd, buf, sizeof(buf), 0x1000,
			      IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_RELAXED_ORDERING);
	assert_non_null(mr);
	assert_int_equal(ibv_dereg_mr(mr), 0);
}

static void queues(void **state)
{
	struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, &cq, channel, 0);
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 8, .max_sge = 1}};
	struct ibv_srq *srq = ibv_create_srq(pd, &srq_attr);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp_attr qp_attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp *qp;

	(void)state;
	assert_non_null(channel);
	assert_non_null(cq);
	assert_non_null(srq);
	assert_int_equal(ibv_resize_cq(cq, 64), 0);
	assert_int_equal(ibv_query_srq(srq, &srq_attr.attr), 0);
	qp = ibv_create_qp(pd, &attr);
	assert_non_null(qp);
	assert_int_equal(ibv_query_qp(qp, &qp_attr, IBV_QP_STATE, &attr), 0);
	assert_int_equal(qp_attr.qp_state, IBV_QPS_RESET);
	assert_null(ibv_qp_to_qp_ex(qp));
	assert_int_equal(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0), 0);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_srq(srq), 0);
	ibv_ack_cq_events(cq, 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_int_equal(ibv_destroy_comp_channel(channel), 0);
}

static void queues_of_another_device(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};

	(void)state;
	assert_non_null(cq);
	assert_refuses_null(ibv_create_cq(ctx, 16, NULL, &alien.channel, 0), EINVAL);
	attr.send_cq = &alien.cq;
	assert_refuses_null(ibv_create_qp(pd, &attr), EINVAL);
	attr.send_cq = cq;
	attr.recv_cq = &alien.cq;
	assert_refuses_null(ibv_create_qp(pd, &attr), EINVAL);
	attr.recv_cq = cq;
	attr.srq = &alien.srq;
	assert_refuses_null(ibv_create_qp(pd, &attr), EINVAL);
	assert_int_equal(ibv_destroy_cq(cq), 0);
}

static void what_is_not_supported(void **state)
{
	struct ibv_cq *cq = ibv_create_cq(ctx, 16, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = {
		.send_cq = cq,
		.recv_cq = cq,
		.qp_type = IBV_QPT_RC,
		.cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1},
	};
	struct ibv_qp *qp = ibv_create_qp(pd, &attr);
	struct ibv_ah_attr ah = {.port_num = 1};
	struct ibv_ece ece = {.vendor_id = 1};
	uint8_t mac[ETHERNET_LL_SIZE];
	uint16_t vlan;

	(void)state;
	assert_non_null(qp);
	assert_int_equal(ibv_query_ece(qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_set_ece(qp, &ece), EOPNOTSUPP);
	assert_int_equal(ibv_destroy_qp(qp), 0);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	assert_refuses_null(ibv_reg_dmabuf_mr(pd, 0, 4096, 0, 0, 0), EOPNOTSUPP);
	assert_refuses_null(ibv_import_pd(ctx, 1), EOPNOTSUPP);
	assert_refuses_null(ibv_import_mr(pd, 1), EOPNOTSUPP);
	assert_refuses_null(ibv_import_dm(ctx, 1), EOPNOTSUPP);
	assert_int_equal(ibv_resolve_eth_l2_from_gid(ctx, &ah, mac, &vlan), -EOPNOTSUPP);
}

/* Only where the installed libibverbs is new enough to have them. */
static void what_newer_libraries_have(void **state)
{
	void *(*reg_mr_ex)(struct ibv_pd *, void *) =
		(void *(*)(struct ibv_pd *, void *))dlsym(RTLD_DEFAULT, "ibv_reg_mr_ex");
	void *(*alloc_dmah)(struct ibv_context *, void *) =
		(void *(*)(struct ibv_context *, void *))dlsym(RTLD_DEFAULT, "ibv_alloc_dmah");
	char attr[256] = {0};

	(void)state;
	if (!reg_mr_ex || !alloc_dmah)
		skip();
	assert_refuses_null(reg_mr_ex(pd, attr), EOPNOTSUPP);
	assert_refuses_null(alloc_dmah(ctx, attr), EOPNOTSUPP);
}

static void address_handles(void **state)
{
	struct ibv_ah_attr attr = {.port_num = 1, .is_global = 1};
	struct ibv_wc wc = {.wc_flags = IBV_WC_GRH};
	struct ibv_grh grh = {0};
	struct ibv_ah *ah;

	(void)state;
	assert_int_equal(ibv_query_gid(ctx, 1, 0, &attr.grh.dgid), 0);
	ah = ibv_create_ah(pd, &attr);
	assert_non_null(ah);
	assert_int_equal(ibv_destroy_ah(ah), 0);
	errno = 0;
	assert_int_equal(ibv_init_ah_from_wc(ctx, 9, &wc, &grh, &attr), -1);
	assert_true(errno > 0);
	assert_null(ibv_create_ah_from_wc(pd, &wc, &grh, 9));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(device, kept_to_ourselves),
		cmocka_unit_test_teardown(query_device_and_port, kept_to_ourselves),
		cmocka_unit_test_teardown(query_port_of_old_programs, kept_to_ourselves),
		cmocka_unit_test_teardown(gids, kept_to_ourselves),
		cmocka_unit_test_teardown(gid_type, kept_to_ourselves),
		cmocka_unit_test_teardown(gid_entries_of_any_size, kept_to_ourselves),
		cmocka_unit_test_teardown(gid_table_that_does_not_fit, kept_to_ourselves),
		cmocka_unit_test_teardown(pkeys, kept_to_ourselves),
		cmocka_unit_test_teardown(events, kept_to_ourselves),
		cmocka_unit_test_teardown(memory, kept_to_ourselves),
		cmocka_unit_test_teardown(queues, kept_to_ourselves),
		cmocka_unit_test_teardown(queues_of_another_device, kept_to_ourselves),
		cmocka_unit_test_teardown(what_is_not_supported, kept_to_ourselves),
		cmocka_unit_test_teardown(what_newer_libraries_have, kept_to_ourselves),
		cmocka_unit_test_teardown(address_handles, kept_to_ourselves),
	};

	return cmocka_run_group_tests(tests, open_weft, close_weft);
}
