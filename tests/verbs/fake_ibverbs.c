#include "fake_ibverbs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* <infiniband/verbs.h> is not included: most functions here have another type than
 * there, and only the beginning of these structures matters. */
#define EXPORT   __attribute__((visibility("default")))
#define PATH_LEN 256

struct ibv_device {
	void *ops[2];
	int node_type;
	int transport_type;
	char name[64];
	char dev_name[64];
	char dev_path[PATH_LEN];
	char ibdev_path[PATH_LEN];
};

struct ibv_context {
	struct ibv_device *device;
};

static struct ibv_device fake0 = {.node_type = 1, .name = "fake0", .dev_name = "uverbs99"};
static struct ibv_context fake0_context = {.device = &fake0};

static void record(const char *name)
{
	if (!&fake_log)
		return;
	fake_log.calls++;
	fake_log.name = name;
}

#define DEFINE_CALL(call, first, n)                                                                \
	uintptr_t call(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,            \
		       uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j);           \
	EXPORT uintptr_t call(uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,     \
			      uintptr_t f, uintptr_t g, uintptr_t h, uintptr_t i, uintptr_t j)     \
	{                                                                                          \
		record(#call);                                                                     \
		if (&fake_log) {                                                                   \
			const uintptr_t arg[] = {a, b, c, d, e, f, g, h, i, j};                    \
                                                                                                   \
			memcpy(fake_log.arg, arg, (n) * sizeof(arg[0]));                           \
		}                                                                                  \
		return FAKE_RETURN;                                                                \
	}
FAKE_CALLS(DEFINE_CALL)

extern bool verbs_allow_disassociate_destroy;
EXPORT bool verbs_allow_disassociate_destroy;

struct ibv_device **ibv_get_device_list(int *num);
EXPORT struct ibv_device **ibv_get_device_list(int *num)
{
	int n = &fake_log ? fake_log.devices : 1;
	struct ibv_device **list;

	record(__func__);
	if (&fake_log)
		verbs_allow_disassociate_destroy = fake_log.disassociate;
	if (num)
		*num = 0;
	if (n < 0) {
		errno = ENOSYS;
		return NULL;
	}
	list = calloc((size_t)n + 1, sizeof(void *));
	for (int i = 0; list && i < n; i++)
		list[i] = &fake0;
	if (num)
		*num = n;
	if (&fake_log)
		fake_log.last_list = list;
	return list;
}

void ibv_free_device_list(struct ibv_device **list);
EXPORT void ibv_free_device_list(struct ibv_device **list)
{
	record(__func__);
	for (int i = 0; list[i]; i++)
		if (list[i] != &fake0)
			abort();
	if (&fake_log)
		fake_log.freed_list = list;
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *dev);
EXPORT const char *ibv_get_device_name(struct ibv_device *dev)
{
	record(__func__);
	return dev->name;
}

struct ibv_context *ibv_open_device(struct ibv_device *dev);
EXPORT struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
	record(__func__);
	return dev == &fake0 ? &fake0_context : NULL;
}

/* The old version, which takes and returns other structures. */
void *fake_open_device_1_0(void *dev);
__asm__(".symver fake_open_device_1_0, ibv_open_device@IBVERBS_1.0");
EXPORT void *fake_open_device_1_0(void *dev)
{
	record(__func__);
	return (char *)dev + 1;
}

/* As the real one does, it goes through its own list by its exported name, and takes
 * all that it finds for its own. */
struct ibv_context *ibv_import_device(int fd);
EXPORT struct ibv_context *ibv_import_device(int fd)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	record(__func__);
	if (&fake_log)
		fake_log.arg[0] = (uintptr_t)fd;
	for (int i = 0; list && list[i]; i++)
		if (list[i] != &fake0 && &fake_log)
			fake_log.foreign_devices++;
	if (list)
		ibv_free_device_list(list);
	return &fake0_context;
}

/* One symbol with arguments of another kind than all libibverbs calls have: in vector
 * registers and, beyond eight, on the stack. */
double ibv_cmd_query_mr(double a, double b, double c, double d, double e, double f, double g,
			double h, double i, double j);
EXPORT double ibv_cmd_query_mr(double a, double b, double c, double d, double e, double f, double g,
			       double h, double i, double j)
{
	const double real[] = {a, b, c, d, e, f, g, h, i, j};

	record(__func__);
	if (&fake_log)
		memcpy(fake_log.real, real, sizeof(real));
	return a + j;
}

void __verbs_log(void *ctx, uint32_t level, const char *fmt, ...);
EXPORT void __verbs_log(void *ctx, uint32_t level, const char *fmt, ...)
{
	va_list ap;

	record(__func__);
	if (!&fake_log)
		return;
	fake_log.arg[0] = (uintptr_t)ctx;
	fake_log.arg[1] = level;
	va_start(ap, fmt);
	vsnprintf(fake_log.text, sizeof(fake_log.text), fmt, ap);
	va_end(ap);
}

/* Written down without a type: the event is another structure's business. */
void ibv_ack_async_event(void *event);
EXPORT void ibv_ack_async_event(void *event)
{
	record(__func__);
	if (&fake_log)
		fake_log.arg[0] = (uintptr_t)event;
}
