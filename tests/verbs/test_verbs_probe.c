/* libweft-probe.so, preloaded: what it pretends, and that it leaves all else alone. */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <infiniband/verbs.h>

static struct ibv_device *weft0;
static char dev_path[sizeof("/dev/infiniband/") + IBV_SYSFS_NAME_MAX];

static int find_weft(void **state)
{
	struct ibv_device **list;

	(void)state;
	setenv("WEFT_ONLY", "1", 1);
	list = ibv_get_device_list(NULL);
	if (!list || !list[0])
		return -1;
	weft0 = list[0];
	ibv_free_device_list(list);
	snprintf(dev_path, sizeof(dev_path), "/dev/infiniband/%s", weft0->dev_name);
	return 0;
}

/* What UCX asks before it takes a device. */
static void ucx(void **state)
{
	struct stat st;

	(void)state;
	errno = 7;
	assert_int_equal(stat(dev_path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access(dev_path, R_OK | W_OK), 0);
	assert_int_equal(errno, 7);
}

/* What Open MPI's openib asks before it looks for devices. */
static void openib(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat("/sys/class/infiniband", &st), 0);
	assert_true(S_ISDIR(st.st_mode));
}

static void all_forms(void **state)
{
	int (*xstat)(int, const char *, struct stat *) =
		(int (*)(int, const char *, struct stat *))dlsym(RTLD_DEFAULT, "__xstat");
	struct stat64 st64;
	struct stat st;

	(void)state;
	assert_int_equal(stat64(dev_path, &st64), 0);
	assert_true(S_ISCHR(st64.st_mode));
	assert_int_equal(lstat(weft0->ibdev_path, &st), 0);
	assert_int_equal(lstat64(weft0->dev_path, &st64), 0);
	assert_true(S_ISDIR(st64.st_mode));
	assert_int_equal(faccessat(AT_FDCWD, dev_path, R_OK, 0), 0);
	assert_int_equal(access("/sys/class/infiniband/", F_OK), 0);
	assert_non_null(xstat);
	assert_int_equal(xstat(1, dev_path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	errno = 0;
	assert_int_equal(access(dev_path, X_OK), -1);
	assert_int_equal(errno, EACCES);
}

/* Nothing else appears, and what exists is what the kernel says. */
static void all_else(void **state)
{
	static const char *const absent[] = {
		"/sys/class/infiniban",
		"/sys/class/infiniband0",
		"/sys/class/infiniband/mlx5_none",
		"/dev/infiniband/uverbs_none",
		"/dev/infiniband/uverbs-weft0/x",
		"/no/such/file",
		"sys/class/infiniband",
		"",
	};
	struct stat st, again;

	(void)state;
	for (size_t i = 0; i < sizeof(absent) / sizeof(absent[0]); i++) {
		errno = 0;
		assert_int_equal(stat(absent[i], &st), -1);
		assert_int_equal(errno, ENOENT);
		assert_int_equal(access(absent[i], F_OK), -1);
	}
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_int_equal(fstatat(AT_FDCWD, "/dev/null", &again, 0), 0);
	assert_memory_equal(&st, &again, sizeof(st));
	errno = 7;
	assert_int_equal(access("/dev/null", R_OK | W_OK), 0);
	assert_int_equal(errno, 7);
	assert_int_equal(stat("/dev/null/x", &st), -1);
	assert_int_equal(errno, ENOTDIR);
	assert_int_equal(open(dev_path, O_RDONLY), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ucx),
		cmocka_unit_test(openib),
		cmocka_unit_test(all_forms),
		cmocka_unit_test(all_else),
	};

	return cmocka_run_group_tests(tests, find_weft, NULL);
}
