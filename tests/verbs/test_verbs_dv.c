/* libweftdv in each surrounding that a program may meet. WEFT_TEST_DV says which:
 *
 *	none    no libibverbs in the process at all
 *	system  the system's
 *	local   Weft's, loaded by the program, in nobody's scope
 *	global  Weft's, linked or preloaded
 */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <weft/weftdv.h>

/* ibv_* by dlsym: whichever library they are in. */
#define CALL(name) ((__typeof__(name) *)find(#name))

#undef ibv_get_device_list

static void *scope = RTLD_DEFAULT;

static void *find(const char *name)
{
	void *sym = dlsym(scope, name);

	if (!sym)
		fail_msg("no %s", name);
	return sym;
}

/* ---- what is not Weft's ---- */

static struct ibv_device other_device;
static struct ibv_context other = {.device = &other_device};

static void nothing_on_other_devices(void **state)
{
	struct weftdv_qp_init_attr weft = {.type = WEFTDV_QPT_RD};
	struct ibv_qp_init_attr_ex attr = {.qp_type = IBV_QPT_DRIVER};
	struct ibv_qp qp = {.context = &other, .qp_type = IBV_QPT_DRIVER};
	struct ibv_ah ah = {.context = &other};
	struct weftdv_path path;
	struct weftdv_rd_stats stats;

	(void)state;
	assert_false(weftdv_is_supported(NULL));
	assert_false(weftdv_is_supported(&other_device));
	errno = 0;
	assert_null(weftdv_create_qp(&other, &attr, &weft));
	assert_int_equal(errno, EOPNOTSUPP);
	assert_int_equal(weftdv_query_path(&qp, &ah, 1, &path), EOPNOTSUPP);
	assert_int_equal(weftdv_query_rd(&qp, &stats), EOPNOTSUPP);
}

static void no_weft_in_the_list(void **state)
{
	struct ibv_device **list;

	(void)state;
	if (scope == RTLD_DEFAULT)
		skip();
	list = CALL(ibv_get_device_list)(NULL);
	for (int i = 0; list && list[i]; i++)
		assert_false(weftdv_is_supported(list[i]));
	if (list)
		CALL(ibv_free_device_list)(list);
}

/* ---- Weft's ---- */

struct objects {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_qp_init_attr_ex attr;
};

static struct ibv_device *weft_device(struct ibv_device **list)
{
	for (int i = 0; list[i]; i++) {
		bool is = !strcmp(CALL(ibv_get_device_name)(list[i]), "weft0");

		assert_int_equal(weftdv_is_supported(list[i]), is);
		if (is)
			return list[i];
	}
	fail_msg("no weft0");
	return NULL;
}

static int objects_make(void **state)
{
	static struct objects o;
	struct ibv_device **list = CALL(ibv_get_device_list)(NULL);

	assert_non_null(list);
	o.ctx = CALL(ibv_open_device)(weft_device(list));
	CALL(ibv_free_device_list)(list);
	assert_non_null(o.ctx);
	o.pd = CALL(ibv_alloc_pd)(o.ctx);
	o.cq = CALL(ibv_create_cq)(o.ctx, 16, NULL, NULL, 0);
	assert_non_null(o.pd);
	assert_non_null(o.cq);
	o.attr = (struct ibv_qp_init_attr_ex){
		.send_cq = o.cq,
		.recv_cq = o.cq,
		.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1},
		.qp_type = IBV_QPT_DRIVER,
		.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
		.pd = o.pd,
		.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE,
	};
	*state = &o;
	return 0;
}

static int objects_drop(void **state)
{
	struct objects *o = *state;

	assert_int_equal(CALL(ibv_destroy_cq)(o->cq), 0);
	assert_int_equal(CALL(ibv_dealloc_pd)(o->pd), 0);
	assert_int_equal(CALL(ibv_close_device)(o->ctx), 0);
	return 0;
}

static void refused(struct objects *o, const struct weftdv_qp_init_attr *weft)
{
	errno = 0;
	assert_null(weftdv_create_qp(o->ctx, &o->attr, weft));
	assert_int_equal(errno, EINVAL);
}

static void wrong_attributes(void **state)
{
	struct objects *o = *state;
	struct weftdv_qp_init_attr weft = {.type = 0};
	struct ibv_cq *other_cq = &(struct ibv_cq){.context = &other};
	struct ibv_pd *other_pd = &(struct ibv_pd){.context = &other};

	refused(o, &weft);
	weft = (struct weftdv_qp_init_attr){.type = WEFTDV_QPT_RD, .comp_mask = 1};
	refused(o, &weft);
	weft.comp_mask = 0;
	o->attr.qp_type = IBV_QPT_RC;
	refused(o, &weft);
	o->attr.qp_type = IBV_QPT_DRIVER;
	o->attr.send_cq = other_cq;
	refused(o, &weft);
	o->attr.send_cq = o->cq;
	o->attr.recv_cq = other_cq;
	refused(o, &weft);
	o->attr.recv_cq = o->cq;
	o->attr.pd = other_pd;
	refused(o, &weft);
}

/* Made, and answers; that it also works is for the tests of the device. */
static void queue_pair(void **state)
{
	struct objects *o = *state;
	struct weftdv_qp_init_attr weft = {.type = WEFTDV_QPT_RD};
	struct ibv_qp *qp = weftdv_create_qp(o->ctx, &o->attr, &weft);
	struct ibv_ah_attr ah_attr = {.is_global = 1, .port_num = 1, .grh = {.hop_limit = 1}};
	struct weftdv_rd_stats stats;
	struct weftdv_path path;
	struct ibv_ah *ah;

	assert_non_null(qp);
	assert_int_equal(qp->qp_type, IBV_QPT_DRIVER);
	assert_ptr_equal(qp->context, o->ctx);
	assert_non_null(CALL(ibv_qp_to_qp_ex)(qp));
	memset(&stats, 0xff, sizeof(stats));
	assert_int_equal(weftdv_query_rd(qp, &stats), 0);
	assert_true(stats.peers == 0 && stats.sent == 0);
	assert_int_equal(CALL(ibv_query_gid)(o->ctx, 1, 0, &ah_attr.grh.dgid), 0);
	ah = CALL(ibv_create_ah)(o->pd, &ah_attr);
	assert_non_null(ah);
	assert_int_equal(weftdv_query_path(qp, ah, 0x123456, &path), ENOENT);
	assert_int_equal(weftdv_query_path(qp, &(struct ibv_ah){.context = &other}, 1, &path),
			 EINVAL);
	assert_int_equal(CALL(ibv_destroy_ah)(ah), 0);
	assert_int_equal(CALL(ibv_destroy_qp)(qp), 0);
}

static void other_types(void **state)
{
	struct objects *o = *state;
	struct ibv_qp_init_attr attr = {
		.send_cq = o->cq, .recv_cq = o->cq, .cap = o->attr.cap, .qp_type = IBV_QPT_RC};
	struct ibv_qp *qp = CALL(ibv_create_qp)(o->pd, &attr);
	struct ibv_ah ah = {.context = o->ctx};
	struct weftdv_rd_stats stats;
	struct weftdv_path path;

	assert_non_null(qp);
	assert_int_equal(weftdv_query_rd(qp, &stats), EINVAL);
	assert_int_equal(weftdv_query_path(qp, &ah, 1, &path), EINVAL);
	assert_int_equal(CALL(ibv_destroy_qp)(qp), 0);
}

/* Before the library is there nothing is found, and afterwards it is. */
static void load(const char *path)
{
	nothing_on_other_devices(NULL);
	scope = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!scope)
		fail_msg("%s", dlerror());
	assert_null(dlsym(RTLD_DEFAULT, "ibv_open_device"));
}

static void surroundings(void **state)
{
	const char *mode = getenv("WEFT_TEST_DV"), *real = getenv("REAL");

	(void)state;
	assert_non_null(mode);
	if (!strcmp(mode, "system")) {
		assert_non_null(real);
		load(real);
	} else if (!strcmp(mode, "local")) {
		load("libibverbs.so.1");
	}
	assert_int_equal(scope != RTLD_DEFAULT && dlsym(scope, "weft_verbs_library"),
			 !strcmp(mode, "local"));
}

int main(void)
{
	const char *mode = getenv("WEFT_TEST_DV");
	const struct CMUnitTest without[] = {
		cmocka_unit_test(surroundings),
		cmocka_unit_test(nothing_on_other_devices),
		cmocka_unit_test(no_weft_in_the_list),
	};
#define ON_WEFT(f) cmocka_unit_test_setup_teardown(f, objects_make, objects_drop)
	const struct CMUnitTest with[] = {
		cmocka_unit_test(surroundings), cmocka_unit_test(nothing_on_other_devices),
		ON_WEFT(wrong_attributes),      ON_WEFT(queue_pair),
		ON_WEFT(other_types),
	};

	return mode && (!strcmp(mode, "local") || !strcmp(mode, "global"))
		       ? cmocka_run_group_tests(with, NULL, NULL)
		       : cmocka_run_group_tests(without, NULL, NULL);
}
