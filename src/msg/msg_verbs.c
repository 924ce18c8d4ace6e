#include "msg_verbs.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "util_log.h"
#include "msg.h"

/* The header wraps these in macros. */
#undef ibv_reg_mr
#undef ibv_query_port

/* name, what it returns, its parameters, how they are passed on */
#define FORWARDED(_)                                                                               \
	_(ibv_get_device_list, struct ibv_device **, (int *n), (n))                                \
	_(ibv_free_device_list, void, (struct ibv_device * *list), (list))                         \
	_(ibv_get_device_name, const char *, (struct ibv_device * dev), (dev))                     \
	_(ibv_open_device, struct ibv_context *, (struct ibv_device * dev), (dev))                 \
	_(ibv_close_device, int, (struct ibv_context * ctx), (ctx))                                \
	_(ibv_query_gid, int,                                                                      \
	  (struct ibv_context * ctx, uint8_t port, int index, union ibv_gid *gid),                 \
	  (ctx, port, index, gid))                                                                 \
	_(_ibv_query_gid_ex, int,                                                                  \
	  (struct ibv_context * ctx, uint32_t port, uint32_t index, struct ibv_gid_entry * entry,  \
	   uint32_t flags, size_t size),                                                           \
	  (ctx, port, index, entry, flags, size))                                                  \
	_(ibv_query_device, int, (struct ibv_context * ctx, struct ibv_device_attr * attr),        \
	  (ctx, attr))                                                                             \
	_(ibv_query_port, int,                                                                     \
	  (struct ibv_context * ctx, uint8_t port, struct _compat_ibv_port_attr * attr),           \
	  (ctx, port, attr))                                                                       \
	_(ibv_alloc_pd, struct ibv_pd *, (struct ibv_context * ctx), (ctx))                        \
	_(ibv_dealloc_pd, int, (struct ibv_pd * pd), (pd))                                         \
	_(ibv_reg_mr, struct ibv_mr *, (struct ibv_pd * pd, void *addr, size_t len, int access),   \
	  (pd, addr, len, access))                                                                 \
	_(ibv_reg_mr_iova2, struct ibv_mr *,                                                       \
	  (struct ibv_pd * pd, void *addr, size_t len, uint64_t iova, unsigned int access),        \
	  (pd, addr, len, iova, access))                                                           \
	_(ibv_dereg_mr, int, (struct ibv_mr * mr), (mr))                                           \
	_(ibv_create_comp_channel, struct ibv_comp_channel *, (struct ibv_context * ctx), (ctx))   \
	_(ibv_destroy_comp_channel, int, (struct ibv_comp_channel * ch), (ch))                     \
	_(ibv_create_cq, struct ibv_cq *,                                                          \
	  (struct ibv_context * ctx, int cqe, void *arg, struct ibv_comp_channel *ch, int vector), \
	  (ctx, cqe, arg, ch, vector))                                                             \
	_(ibv_destroy_cq, int, (struct ibv_cq * cq), (cq))                                         \
	_(ibv_get_cq_event, int, (struct ibv_comp_channel * ch, struct ibv_cq * *cq, void **arg),  \
	  (ch, cq, arg))                                                                           \
	_(ibv_ack_cq_events, void, (struct ibv_cq * cq, unsigned int n), (cq, n))                  \
	_(ibv_create_srq, struct ibv_srq *, (struct ibv_pd * pd, struct ibv_srq_init_attr * attr), \
	  (pd, attr))                                                                              \
	_(ibv_destroy_srq, int, (struct ibv_srq * srq), (srq))                                     \
	_(ibv_create_qp, struct ibv_qp *, (struct ibv_pd * pd, struct ibv_qp_init_attr * attr),    \
	  (pd, attr))                                                                              \
	_(ibv_destroy_qp, int, (struct ibv_qp * qp), (qp))                                         \
	_(ibv_modify_qp, int, (struct ibv_qp * qp, struct ibv_qp_attr * attr, int mask),           \
	  (qp, attr, mask))                                                                        \
	_(ibv_query_qp, int,                                                                       \
	  (struct ibv_qp * qp, struct ibv_qp_attr * attr, int mask, struct ibv_qp_init_attr *ini), \
	  (qp, attr, mask, ini))                                                                   \
	_(ibv_qp_to_qp_ex, struct ibv_qp_ex *, (struct ibv_qp * qp), (qp))                         \
	_(ibv_create_ah, struct ibv_ah *, (struct ibv_pd * pd, struct ibv_ah_attr * attr),         \
	  (pd, attr))                                                                              \
	_(ibv_destroy_ah, int, (struct ibv_ah * ah), (ah))                                         \
	_(ibv_wc_status_str, const char *, (enum ibv_wc_status status), (status))

/* A list of parameters comes with its own parentheses. */
#define DEFINE(name, type, params, args)                                                           \
	static type(*real_##name) params; /* NOLINT(bugprone-macro-parentheses) */                 \
	type name params                                                                           \
	{                                                                                          \
		return real_##name args;                                                           \
	}
FORWARDED(DEFINE)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int loaded = -ENOENT;
static const struct verbs_dv_ops *dv;

/* The directory of the library, or program, that this code is in. A program is known by the name
 * that it was started by: one that was found in PATH has no directory in it, and is not in the one
 * that the user is in. */
static int find_own(char own[PATH_MAX])
{
	Dl_info info;
	ssize_t n;

	if (!dladdr((void *)(uintptr_t)msg_verbs_load, &info) || !info.dli_fname)
		return -ENOENT;
	if (strchr(info.dli_fname, '/')) {
		if (strlen(info.dli_fname) >= PATH_MAX)
			return -ENAMETOOLONG;
		strcpy(own, info.dli_fname);
	} else {
		n = readlink("/proc/self/exe", own, PATH_MAX - 1);
		if (n < 0)
			return -errno;
		own[n] = '\0';
	}
	*strrchr(own, '/') = '\0';
	return 0;
}

/* Beside the library that this code is in, or where a program of a build tree finds it. */
static void *open_beside(void)
{
	static const char *const places[] = {"libibverbs.so.1", "../lib/libibverbs.so.1"};
	char own[PATH_MAX], path[PATH_MAX];
	void *lib = NULL;

	if (find_own(own))
		return NULL;
	for (unsigned int i = 0; i < 2 && !lib; i++) {
		int n = snprintf(path, sizeof(path), "%s/%s", own, places[i]);

		if (n > 0 && (size_t)n < sizeof(path))
			lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	}
	if (!lib)
		util_log(UTIL_LOG_INFO, "no libibverbs.so.1 of Weft's: %s", dlerror());
	return lib;
}

static char told[PATH_MAX];

void msg_verbs_at(const char *path)
{
	snprintf(told, sizeof(told), "%s", path);
}

static void load(void)
{
	const struct verbs_dv_ops *(*ops)(void);
	void *lib = *told ? dlopen(told, RTLD_NOW | RTLD_LOCAL) : open_beside();

	if (!lib)
		return;
#define LOOK_UP(name, type, params, args)                                                          \
	*(void **)&real_##name = dlsym(lib, #name);                                                \
	if (!real_##name)                                                                          \
		return;
	FORWARDED(LOOK_UP)
	*(void **)&ops = dlsym(lib, VERBS_DV_SYMBOL);
	dv = ops ? ops() : NULL;
	/* It stays in the process: its thread may be running. */
	if (dv && dv->version == VERBS_DV_VERSION && verbs_dv_has(dv, query_rd))
		loaded = 0;
}

int msg_verbs_load(void)
{
	pthread_once(&once, load);
	return loaded;
}

const struct verbs_dv_ops *msg_verbs_dv(void)
{
	return dv;
}
