/* Calls for a hardware device reach the real library (here: fake_ibverbs.c) with all
 * of their arguments, and their results come back. */
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
#include <infiniband/verbs.h>

#include "fake_ibverbs.h"

#undef ibv_get_device_list

struct fake_log fake_log __attribute__((visibility("default")));

static struct ibv_device *fake0;
static struct ibv_context fake_context;

/* All objects of libibverbs begin with their context. */
static struct {
	struct ibv_context *context;
} fake_object = {&fake_context};

static int reset(void **state)
{
	(void)state;
	memset(&fake_log, 0, sizeof(fake_log));
	fake_log.devices = 1;
	return 0;
}

static int find_fake(void **state)
{
	struct ibv_device **list;
	int n;

	reset(state);
	list = ibv_get_device_list(&n);
	if (!list || n < 1)
		return -1;
	fake0 = list[0];
	fake_context.device = fake0;
	ibv_free_device_list(list);
	return 0;
}

static void list_is_merged(void **state)
{
	struct ibv_device **list;
	void *theirs;
	int n = -1;

	(void)state;
	fake_log.devices = 2;
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 3);
	assert_string_equal(ibv_get_device_name(list[0]), "fake0");
	assert_string_equal(ibv_get_device_name(list[1]), "fake0");
	assert_string_equal(ibv_get_device_name(list[2]), "weft0");
	assert_null(list[3]);
	theirs = fake_log.last_list;
	assert_ptr_not_equal(theirs, list);
	ibv_free_device_list(list);
	assert_ptr_equal(fake_log.freed_list, theirs);

	/* The number is optional. */
	list = ibv_get_device_list(NULL);
	assert_non_null(list);
	ibv_free_device_list(list);
}

static void list_without_hardware(void **state)
{
	struct ibv_device **list;
	int n = -1;

	(void)state;
	fake_log.devices = -1;
	list = ibv_get_device_list(&n);
	assert_non_null(list);
	assert_int_equal(n, 1);
	assert_string_equal(ibv_get_device_name(list[0]), "weft0");
	assert_null(list[1]);
	ibv_free_device_list(list);
	assert_null(fake_log.freed_list);
}

static void list_of_weft_only(void **state)
{
	struct ibv_device **list;
	int n = -1;

	(void)state;
	setenv("WEFT_ONLY", "yes", 1);
	list = ibv_get_device_list(&n);
	unsetenv("WEFT_ONLY");
	assert_non_null(list);
	assert_int_equal(n, 1);
	assert_string_equal(ibv_get_device_name(list[0]), "weft0");
	ibv_free_device_list(list);
	assert_int_equal(fake_log.calls, 0);
}

typedef uintptr_t call_fn(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t,
			  uintptr_t, uintptr_t, uintptr_t, uintptr_t);

/* Small values: some arguments are one byte wide. */
enum { FIRST_VALUE = 41 };

static void check_call(const char *name, const void *first, int n)
{
	call_fn *call = (call_fn *)dlsym(RTLD_DEFAULT, name);
	uintptr_t ret;

	/* Twice: the first call of each function resolves it. */
	for (int round = 0; round < 2; round++) {
		if (!call)
			fail_msg("%s is not exported", name);
		reset(NULL);
		errno = 1234;
		ret = call((uintptr_t)first, FIRST_VALUE + 1, FIRST_VALUE + 2, FIRST_VALUE + 3,
			   FIRST_VALUE + 4, FIRST_VALUE + 5, FIRST_VALUE + 6, FIRST_VALUE + 7,
			   FIRST_VALUE + 8, FIRST_VALUE + 9);
		assert_int_equal(errno, 1234);
		assert_int_equal(fake_log.calls, 1);
		assert_string_equal(fake_log.name, name);
		assert_ptr_equal((void *)fake_log.arg[0], first);
		for (int i = 1; i < n; i++)
			assert_int_equal(fake_log.arg[i], FIRST_VALUE + i);
		if (strncmp(name, "ibv_unimport", 12) != 0 &&
		    strcmp(name, "ibv_ack_cq_events") != 0)
			assert_int_equal(ret & 0xffff, FAKE_RETURN);
	}
}

static void arguments_arrive(void **state)
{
	const void *CONTEXT = &fake_context, *OBJECT = &fake_object, *DEVICE = fake0;
	const void *NOTHING = (void *)(uintptr_t)FIRST_VALUE;

	(void)state;
#define CHECK_CALL(call, first, n) check_call(#call, first, n);
	FAKE_CALLS(CHECK_CALL)
}

static void open_and_import(void **state)
{
	struct ibv_context *ctx = ibv_open_device(fake0);

	(void)state;
	assert_non_null(ctx);
	assert_ptr_equal(ctx->device, fake0);
	assert_string_equal(fake_log.name, "ibv_open_device");

	/* The real library's own look at its devices must not meet ours. */
	assert_ptr_equal(ibv_import_device(77), ctx);
	assert_int_equal(fake_log.arg[0], 77);
	assert_int_equal(fake_log.foreign_devices, 0);
}

static void old_versions(void **state)
{
	void *(*open_1_0)(void *) =
		(void *(*)(void *))dlvsym(RTLD_DEFAULT, "ibv_open_device", "IBVERBS_1.0");
	char dev[2];

	(void)state;
	assert_non_null(open_1_0);
	assert_ptr_not_equal(open_1_0, dlvsym(RTLD_DEFAULT, "ibv_open_device", "IBVERBS_1.1"));
	assert_ptr_equal(open_1_0(dev), dev + 1);
	assert_string_equal(fake_log.name, "fake_open_device_1_0");
}

static void vector_arguments(void **state)
{
	double (*fn)(double, double, double, double, double, double, double, double, double,
		     double) = dlsym(RTLD_DEFAULT, "ibv_cmd_query_mr");

	(void)state;
	assert_non_null(fn);
	for (int round = 0; round < 2; round++) {
		reset(NULL);
		assert_true(fn(1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5, 10.5) == 12.0);
		for (int i = 0; i < 10; i++)
			assert_true(fake_log.real[i] == i + 1.5);
	}
}

static void variadic_arguments(void **state)
{
	void (*fn)(void *, uint32_t, const char *, ...) = dlsym(RTLD_DEFAULT, "__verbs_log");

	(void)state;
	assert_non_null(fn);
	for (int round = 0; round < 2; round++) {
		reset(NULL);
		fn(&fake_object, 3, "%d %s %.2f %d %d %d %.1f", 1, "two", 3.25, 4, 5, 6, 7.5);
		assert_ptr_equal((void *)fake_log.arg[0], &fake_object);
		assert_int_equal(fake_log.arg[1], 3);
		assert_string_equal(fake_log.text, "1 two 3.25 4 5 6 7.5");
	}
}

/* Providers read the variable here, whoever wrote it. */
static void variables_are_shared(void **state)
{
	bool *ours = dlsym(RTLD_DEFAULT, "verbs_allow_disassociate_destroy");
	struct ibv_device **list;

	(void)state;
	assert_non_null(ours);
	assert_false(*ours);
	fake_log.disassociate = 1;
	list = ibv_get_device_list(NULL);
	ibv_free_device_list(list);
	assert_true(*ours);
}

static void events_go_to_their_device(void **state)
{
	struct ibv_qp *qp = (struct ibv_qp *)&fake_object;
	struct ibv_async_event event = {.event_type = IBV_EVENT_QP_FATAL, .element.qp = qp};

	(void)state;
	ibv_ack_async_event(&event);
	assert_int_equal(fake_log.calls, 1);
	assert_ptr_equal((void *)fake_log.arg[0], &event);
}

/* In the fake library's version map, but not in the fake library. */
static void absent_function(void **state)
{
	int (*fn)(void *) = (int (*)(void *))dlsym(RTLD_DEFAULT, "ibv_cmd_destroy_wq");

	(void)state;
	assert_non_null(fn);
	errno = 0;
	assert_int_equal(fn(&fake_object), ENOSYS);
	assert_int_equal(errno, ENOSYS);
	assert_int_equal(fake_log.calls, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(list_is_merged, reset),
		cmocka_unit_test_setup(list_without_hardware, reset),
		cmocka_unit_test_setup(list_of_weft_only, reset),
		cmocka_unit_test_setup(arguments_arrive, reset),
		cmocka_unit_test_setup(open_and_import, reset),
		cmocka_unit_test_setup(old_versions, reset),
		cmocka_unit_test_setup(vector_arguments, reset),
		cmocka_unit_test_setup(variadic_arguments, reset),
		cmocka_unit_test_setup(variables_are_shared, reset),
		cmocka_unit_test_setup(events_go_to_their_device, reset),
		cmocka_unit_test_setup(absent_function, reset),
	};

	return cmocka_run_group_tests(tests, find_fake, NULL);
}
