/* Programs that load libibverbs by name and ask for versions get this library, not the
 * system's, and the real one stays reachable behind it. */
#define _GNU_SOURCE

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <infiniband/verbs.h>

typedef struct ibv_device **get_list_fn(int *);
typedef void free_list_fn(struct ibv_device **);
typedef const char *get_name_fn(struct ibv_device *);

static bool has_device(void *lib, const char *version, const char *name)
{
	get_list_fn *get = (get_list_fn *)dlvsym(lib, "ibv_get_device_list", version);
	free_list_fn *put = (free_list_fn *)dlvsym(lib, "ibv_free_device_list", version);
	get_name_fn *get_name = (get_name_fn *)dlvsym(lib, "ibv_get_device_name", version);
	struct ibv_device **list;
	bool found = false;

	assert_non_null(get);
	assert_non_null(put);
	assert_non_null(get_name);
	list = get(NULL);
	assert_non_null(list);
	for (int i = 0; list[i]; i++)
		found |= !strcmp(get_name(list[i]), name);
	put(list);
	return found;
}

static void by_name_and_version(void **state)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);

	(void)state;
	if (!lib)
		fail_msg("%s", dlerror());
	assert_non_null(dlsym(lib, "weft_verbs_library"));
	assert_true(has_device(lib, "IBVERBS_1.1", "weft0"));
	assert_ptr_equal(dlsym(lib, "ibv_open_device"),
			 dlvsym(lib, "ibv_open_device", "IBVERBS_1.1"));
	assert_non_null(dlvsym(lib, "ibv_open_device", "IBVERBS_1.0"));
	assert_null(dlvsym(lib, "ibv_register_driver", "IBVERBS_1.0"));

	/* It stays: a thread of its may be running. */
	assert_int_equal(dlclose(lib), 0);
	assert_non_null(dlopen("libibverbs.so.1", RTLD_NOW | RTLD_NOLOAD));
}

/* Loaded so, we are not in the scope in which the real library looks for its own
 * variables, but its providers still see ours. */
static void variables_are_shared(void **state)
{
	void *lib = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
	bool *ours;

	(void)state;
	assert_non_null(lib);
	ours = dlsym(lib, "verbs_allow_disassociate_destroy");
	assert_non_null(ours);
	assert_true(*ours); /* RDMAV_ALLOW_DISASSOC_DESTROY is set, and the library was used */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(by_name_and_version),
		cmocka_unit_test(variables_are_shared),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
