/* The endpoint: which provider, and what it must be able to do. */
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/providers/fi_prov.h>

#include "coll_net_in.h"
#include "util_log.h"

#define VERSION FI_VERSION(1, 17)
#define PLUGIN  "libweft-fi.so"

struct coll_net coll_net = {
	.lock = PTHREAD_MUTEX_INITIALIZER, .names_lock = PTHREAD_MUTEX_INITIALIZER, .next_key = 1};

/* Our own provider says that it moves data by itself only to those who ask. */
static struct fi_info *hints_for(const char *provider, bool moves)
{
	struct fi_info *h = fi_allocinfo();

	if (!h)
		return NULL;
	h->caps = FI_RMA | FI_WRITE | FI_REMOTE_WRITE;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->mr_mode =
		FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_LOCAL | FI_MR_ENDPOINT;
	h->domain_attr->threading = FI_THREAD_SAFE;
	h->domain_attr->cq_data_size = sizeof(uint32_t);
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	if (moves)
		h->domain_attr->data_progress = FI_PROGRESS_AUTO;
	if (provider)
		h->fabric_attr->prov_name = strdup(provider);
	return h;
}

/* Our own provider lies beside this library. Told of the directory by FI_PROVIDER_PATH, libfabric
 * would find it, but so would the MPI, and change what it runs on: that is not ours to decide. */
static struct fi_provider *load_beside(void)
{
	static int here;
	struct fi_provider *(*ini)(void) = NULL;
	char path[PATH_MAX];
	void *plugin = NULL;
	Dl_info us;
	char *slash;

	if (!dladdr(&here, &us) || !us.dli_fname ||
	    snprintf(path, sizeof(path), "%s", us.dli_fname) >= (int)sizeof(path))
		return NULL;
	slash = strrchr(path, '/');
	if (!slash || slash + 1 + sizeof(PLUGIN) > path + sizeof(path))
		return NULL;
	strcpy(slash + 1, PLUGIN);
	plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (plugin)
		*(void **)&ini = dlsym(plugin, "fi_prov_ini");
	return ini ? ini() : NULL;
}

static int open_beside(bool moves)
{
	struct fi_info *hints = hints_for(NULL, moves);
	struct fi_provider *prov = hints ? load_beside() : NULL;
	int ret = prov ? prov->getinfo(VERSION, NULL, NULL, 0, hints, &coll_net.info) : -ENOENT;

	if (!ret)
		ret = prov->fabric(coll_net.info->fabric_attr, &coll_net.fabric, NULL);
	if (hints)
		fi_freeinfo(hints);
	return ret;
}

static int try_fabric(const char *provider, bool moves)
{
	struct fi_info *hints = hints_for(provider, moves);
	int ret;

	if (!hints)
		return -ENOMEM;
	ret = fi_getinfo(VERSION, NULL, NULL, 0, hints, &coll_net.info);
	fi_freeinfo(hints);
	if (!ret) {
		ret = fi_fabric(coll_net.info->fabric_attr, &coll_net.fabric, NULL);
		if (ret)
			fi_freeinfo(coll_net.info);
		return ret;
	}
	return strcmp(provider, "weft") ? ret : open_beside(moves);
}

static int open_fabric(const char *provider)
{
	int ret = strcmp(provider, "weft") ? -ENODATA : try_fabric(provider, true);

	return ret ? try_fabric(provider, false) : 0;
}

static int open_cq(void)
{
	struct fi_cq_attr attr = {.format = FI_CQ_FORMAT_DATA, .wait_obj = FI_WAIT_UNSPEC};
	int ret = fi_cq_open(coll_net.domain, &attr, &coll_net.cq, NULL);

	coll_net.sleeps = !ret;
	attr.wait_obj = FI_WAIT_NONE;
	return ret ? fi_cq_open(coll_net.domain, &attr, &coll_net.cq, NULL) : 0;
}

static int open_endpoint(void)
{
	struct fi_av_attr av = {.type = coll_net.info->domain_attr->av_type};
	int ret = fi_domain(coll_net.fabric, coll_net.info, &coll_net.domain, NULL);

	if (!ret)
		ret = fi_av_open(coll_net.domain, &av, &coll_net.av, NULL);
	if (!ret)
		ret = open_cq();
	if (!ret)
		ret = fi_endpoint(coll_net.domain, coll_net.info, &coll_net.ep, NULL);
	if (!ret)
		ret = fi_ep_bind(coll_net.ep, &coll_net.av->fid, 0);
	if (!ret)
		ret = fi_ep_bind(coll_net.ep, &coll_net.cq->fid, FI_TRANSMIT | FI_RECV);
	if (!ret)
		ret = fi_enable(coll_net.ep);
	if (!ret)
		ret = coll_net_reg(coll_net.pinged, sizeof(coll_net.pinged), &coll_net.ping);
	return ret;
}

static int open_all(const char *provider)
{
	int ret = open_fabric(provider);

	if (!ret)
		ret = open_endpoint();
	if (ret) {
		util_log(UTIL_LOG_INFO, "coll: provider %s can not be used: %s", provider,
			 fi_strerror(-ret));
		coll_net_close();
		return ret > -FI_ERRNO_OFFSET ? ret : -ENODEV;
	}
	return 0;
}

int coll_net_open(const char *provider, coll_net_arrived arrived)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	static bool tried;
	static int result;

	pthread_mutex_lock(&once);
	if (!tried) {
		coll_net.arrived = arrived;
		result = open_all(provider);
		tried = true;
	}
	pthread_mutex_unlock(&once);
	return result;
}

static void close_one(struct fid *fid)
{
	if (fid)
		fi_close(fid);
}

#define CLOSE(object)                                                                              \
	do {                                                                                       \
		close_one(coll_net.object ? &coll_net.object->fid : NULL);                         \
		coll_net.object = NULL;                                                            \
	} while (0)

void coll_net_close(void)
{
	coll_net_dereg(&coll_net.ping);
	CLOSE(ep);
	CLOSE(cq);
	CLOSE(av);
	coll_names_free(&coll_net.names);
	CLOSE(domain);
	CLOSE(fabric);
	if (coll_net.info)
		fi_freeinfo(coll_net.info);
	coll_net.info = NULL;
}
