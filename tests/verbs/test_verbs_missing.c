/* Without the system's libibverbs (WEFT_REAL_IBVERBS names a file that is not there):
 * Weft's device works, helpers answer, and all else is refused without a crash. */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <infiniband/verbs.h>

static void weft_is_there(void **state)
{
	struct ibv_device **list;
	struct ibv_context *ctx;
	int n = -1;

	(void)state;
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 1);
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	assert_non_null(ctx);
	assert_int_equal(ibv_close_device(ctx), 0);
}

static void hardware_is_not(void **state)
{
	(void)state;
	errno = 0;
	assert_null(ibv_import_device(0));
	assert_int_equal(errno, ENOSYS);
}

static void helpers_answer(void **state)
{
	(void)state;
	assert_string_equal(ibv_wc_status_str(IBV_WC_RETRY_EXC_ERR),
			    "transport retry counter exceeded");
	assert_string_equal(ibv_wc_status_str((enum ibv_wc_status)1000), "unknown");
	assert_string_equal(ibv_node_type_str((enum ibv_node_type)IBV_NODE_UNKNOWN), "unknown");
	assert_string_equal(ibv_port_state_str(IBV_PORT_ACTIVE), "active");
	assert_string_equal(ibv_event_type_str(IBV_EVENT_SRQ_LIMIT_REACHED), "SRQ limit reached");
	assert_int_equal(ibv_fork_init(), 0);
	assert_int_equal(ibv_is_fork_initialized(), IBV_FORK_UNNEEDED);
	assert_int_equal(ibv_rate_to_mult(IBV_RATE_10_GBPS), -1);
}

/* Every function that is only forwarded, private and old ones included, can be called
 * with nonsense. */
static void private_calls_are_refused(void **state)
{
	int (*cmd)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "ibv_cmd_dealloc_pd");
	void *(*open_private)(void *) = (void *(*)(void *))dlsym(RTLD_DEFAULT, "verbs_open_device");
	void *(*open_1_0)(void *) =
		(void *(*)(void *))dlvsym(RTLD_DEFAULT, "ibv_open_device", "IBVERBS_1.0");

	(void)state;
	assert_non_null(cmd);
	assert_int_equal(cmd(NULL), ENOSYS);
	assert_non_null(open_private);
	errno = 0;
	assert_null(open_private(NULL));
	assert_int_equal(errno, ENOSYS);
	assert_non_null(open_1_0);
	assert_null(open_1_0(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hardware_is_not),
		cmocka_unit_test(weft_is_there),
		cmocka_unit_test(helpers_answer),
		cmocka_unit_test(private_calls_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
