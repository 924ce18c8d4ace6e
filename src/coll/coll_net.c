/* Writes, completions, memory. How the endpoint comes about is in coll_net_open.c. */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <time.h>

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "coll_net_in.h"
#include "util_log.h"

#define BATCH  16
#define NAP_MS 1
/* Where nothing wakes us: the provider can not, or another thread hears what is for us. */
#define NAP_ELSE_NS 50000

/* libfabric's numbers are those of the system, as far as they go. */
static int to_errno(ssize_t ret)
{
	return ret >= 0 ? (int)ret : ret > -FI_ERRNO_OFFSET ? (int)ret : -EIO;
}

size_t coll_net_name(uint8_t name[COLL_NAME_MAX])
{
	size_t len = COLL_NAME_MAX;

	memset(name, 0, COLL_NAME_MAX);
	return fi_getname(&coll_net.ep->fid, name, &len) || len > COLL_NAME_MAX ? 0 : len;
}

static int meet(const uint8_t *name, fi_addr_t *addr)
{
	if (coll_names_find(&coll_net.names, name, addr))
		return 0;
	if (fi_av_insert(coll_net.av, name, 1, addr, 0, NULL) != 1)
		return -EADDRNOTAVAIL;
	return coll_names_add(&coll_net.names, name, *addr);
}

int coll_net_peer(const uint8_t *name, fi_addr_t *addr)
{
	int ret;

	pthread_mutex_lock(&coll_net.names_lock);
	ret = meet(name, addr);
	pthread_mutex_unlock(&coll_net.names_lock);
	return ret;
}

/* ---- memory ---- */

int coll_net_reg(void *buf, size_t len, struct coll_mem *mem)
{
	int mode = coll_net.info->domain_attr->mr_mode;
	uint64_t want = mode & FI_MR_PROV_KEY ? 0 : atomic_fetch_add(&coll_net.next_key, 1);
	ssize_t ret;

	memset(mem, 0, sizeof(*mem));
	ret = fi_mr_reg(coll_net.domain, buf, len, FI_WRITE | FI_REMOTE_WRITE, 0, want, 0, &mem->mr,
			NULL);
	if (ret)
		return to_errno(ret);
	if (mode & FI_MR_ENDPOINT) {
		ret = fi_mr_bind(mem->mr, &coll_net.ep->fid, 0);
		if (!ret)
			ret = fi_mr_enable(mem->mr);
		if (ret) {
			coll_net_dereg(mem);
			return to_errno(ret);
		}
	}
	mem->desc = fi_mr_desc(mem->mr);
	mem->key = (struct coll_key){
		.addr = mode & FI_MR_VIRT_ADDR ? (uintptr_t)buf : 0,
		.key = fi_mr_key(mem->mr),
	};
	return 0;
}

void coll_net_dereg(struct coll_mem *mem)
{
	if (mem->mr)
		fi_close(&mem->mr->fid);
	memset(mem, 0, sizeof(*mem));
}

bool coll_net_local(void)
{
	return coll_net.info->domain_attr->mr_mode & FI_MR_LOCAL;
}

size_t coll_net_longest(void)
{
	return coll_net.info->ep_attr->max_msg_size;
}

bool coll_net_moves(void)
{
	return coll_net.info->domain_attr->data_progress == FI_PROGRESS_AUTO;
}

struct coll_key coll_net_ping_key(void)
{
	return coll_net.ping.key;
}

const uint64_t *coll_net_word(void **desc)
{
	*desc = coll_net.ping.desc;
	return &coll_net.pinged[1];
}

/* ---- writes ---- */

static int started(ssize_t ret)
{
	return ret == -FI_EAGAIN ? -EAGAIN : to_errno(ret);
}

int coll_net_write(struct coll_tx *tx, const void *buf, size_t len, void *desc,
		   const struct coll_to *to, uint32_t word)
{
	return started(fi_writedata(coll_net.ep, buf, len, desc, word, to->addr, to->remote,
				    to->key, &tx->context));
}

int coll_net_store(struct coll_tx *tx, const void *buf, size_t len, void *desc,
		   const struct coll_to *to)
{
	return started(
		fi_write(coll_net.ep, buf, len, desc, to->addr, to->remote, to->key, &tx->context));
}

int coll_net_ping(struct coll_tx *tx, const struct coll_to *to)
{
	return coll_net_store(tx, &coll_net.pinged[1], sizeof(coll_net.pinged[1]),
			      coll_net.ping.desc, to);
}

/* ---- completions ---- */

static void finish(void *context, int err)
{
	struct coll_tx *tx = context; /* its first member */

	if (tx)
		tx->done(tx, err);
}

static void take(const struct fi_cq_data_entry *e)
{
	if (e->flags & FI_REMOTE_WRITE) {
		if (e->flags & FI_REMOTE_CQ_DATA)
			coll_net.arrived((uint32_t)e->data);
	} else {
		finish(e->op_context, 0);
	}
}

static int take_error(void)
{
	static atomic_bool said;
	struct fi_cq_err_entry e = {0};

	if (fi_cq_readerr(coll_net.cq, &e, 0) != 1)
		return 0;
	util_log_once(&said, UTIL_LOG_INFO, "coll: a write failed: %s", fi_strerror(e.err));
	finish(e.op_context, e.err ? -e.err : -EIO);
	return 1;
}

static int taken(const struct fi_cq_data_entry *e, ssize_t n)
{
	if (n == -FI_EAVAIL)
		return take_error();
	for (ssize_t i = 0; i < n; i++)
		take(&e[i]);
	return n > 0 ? (int)n : 0;
}

int coll_net_progress(void)
{
	struct fi_cq_data_entry e[BATCH];
	int n;

	if (pthread_mutex_trylock(&coll_net.lock))
		return 0;
	/* Our own provider's fi_cq_read gives the core away when there is nothing: who waits here
	 * does that by itself. */
	n = taken(e, coll_net.sleeps ? fi_cq_sread(coll_net.cq, e, BATCH, NULL, 0)
				     : fi_cq_read(coll_net.cq, e, BATCH));
	pthread_mutex_unlock(&coll_net.lock);
	return n;
}

int coll_net_nap(void)
{
	static const struct timespec moment = {.tv_nsec = NAP_ELSE_NS};
	struct fi_cq_data_entry e[BATCH];
	ssize_t ret = -FI_ENOSYS;
	int n = 0;

	if (coll_net.sleeps && !pthread_mutex_trylock(&coll_net.lock)) {
		ret = fi_cq_sread(coll_net.cq, e, BATCH, NULL, NAP_MS);
		n = taken(e, ret);
		pthread_mutex_unlock(&coll_net.lock);
	}
	if (ret == -FI_ENOSYS)
		nanosleep(&moment, NULL);
	return n;
}

void coll_net_fence(void)
{
	pthread_mutex_lock(&coll_net.lock);
	pthread_mutex_unlock(&coll_net.lock);
}
