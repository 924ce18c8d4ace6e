/* The software RNIC: verbs objects in user space, iWARP on TCP and UDP below.
 *
 * This header is all that the layer above (verbs/, the libibverbs ABI) may use.
 * The objects are the public ones of <infiniband/verbs.h>: an ibv_qp made here is
 * the first member of this layer's own, larger structure. Calls follow the verbs
 * man pages: those that return int return 0 or a positive errno, those that return
 * a pointer return NULL and set errno. Arguments that belong to another device must
 * not reach this layer.
 *
 * Threads: every call may be made from any thread. One engine per process (an epoll
 * set, a lock, a progress thread) serves all contexts; see rnic_engine.h. After a
 * fork, objects of the parent are dead in the child: calls on them fail with EIO,
 * destroying them frees memory, and the child may open a context of its own.
 */
#ifndef WEFT_RNIC_H
#define WEFT_RNIC_H

#include <stdbool.h>
#include <netinet/in.h>
#include <infiniband/verbs.h>
#include "util_tune.h"

#define RNIC_MAX_GID 64

/* The one device: an address list on top of the kernel's network stack. GID i is
 * the v4-mapped address i; the LID is the low 16 bits of address 0, so that peers of
 * one /16 find each other by LID alone. */
struct rnic_device {
	struct ibv_device ibv; /* first */
	int n_addr;
	struct {
		struct in_addr addr;
		char netdev[IBV_SYSFS_NAME_MAX];
		unsigned int ifindex;
		unsigned int mtu;
	} addr[RNIC_MAX_GID];
};

/* Scans the network interfaces once per process; NULL when there is none (errno
 * says why) or the device is switched off. */
const struct rnic_device *rnic_device_get(void);
bool rnic_is_device(const struct ibv_device *dev);
extern const struct util_tunable rnic_tunables[]; /* ends with a NULL name */

__be64 rnic_device_guid(const struct ibv_device *dev);

/* Context. The op tables inside the returned context are filled in: poll_cq,
 * req_notify_cq, post_send, post_recv, post_srq_recv, memory windows, and the
 * verbs_context extensions that exist. */
struct ibv_context *rnic_open_device(struct ibv_device *dev);
int rnic_close_device(struct ibv_context *ctx);

int rnic_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr);
int rnic_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr);
/* -errno style is not used here: 0 or positive errno. */
int rnic_query_gid_entry(struct ibv_context *ctx, uint32_t port, uint32_t index,
			 struct ibv_gid_entry *entry);
int rnic_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey);

/* Asynchronous events: blocks on ctx->async_fd unless that is non-blocking. Returns
 * 0 or -1 with errno, as ibv_get_async_event does. */
int rnic_get_async_event(struct ibv_context *ctx, struct ibv_async_event *event);
void rnic_ack_async_event(struct ibv_async_event *event);

struct ibv_pd *rnic_alloc_pd(struct ibv_context *ctx);
int rnic_dealloc_pd(struct ibv_pd *pd);

struct ibv_mr *rnic_reg_mr(struct ibv_pd *pd, void *addr, size_t len, uint64_t iova,
			   unsigned int access);
int rnic_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t len,
		  int access);
int rnic_dereg_mr(struct ibv_mr *mr);
/* From now on the region's keys and addresses lead to the memory at addr, of the same length. After
 * the call nobody touches the old memory any more; what peers are reading from it just now may
 * fail. 0 or errno: EBUSY something was written by its keys, and nothing is changed. */
int rnic_move_mr(struct ibv_mr *mr, void *addr);

struct ibv_comp_channel *rnic_create_comp_channel(struct ibv_context *ctx);
int rnic_destroy_comp_channel(struct ibv_comp_channel *channel);
/* 0 or -1 with errno, as ibv_get_cq_event does. */
int rnic_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **cq_context);
void rnic_ack_cq_events(struct ibv_cq *cq, unsigned int n);

struct ibv_cq *rnic_create_cq(struct ibv_context *ctx, int cqe, void *cq_context,
			      struct ibv_comp_channel *channel, int comp_vector);
int rnic_resize_cq(struct ibv_cq *cq, int cqe);
int rnic_destroy_cq(struct ibv_cq *cq);

struct ibv_srq *rnic_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr);
int rnic_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int rnic_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr);
int rnic_destroy_srq(struct ibv_srq *srq);

struct ibv_ah *rnic_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr);
int rnic_destroy_ah(struct ibv_ah *ah);
/* Fills attr for a reply to the UD receive wc whose GRH is grh. */
int rnic_init_ah_from_wc(struct ibv_context *ctx, uint8_t port, struct ibv_wc *wc,
			 struct ibv_grh *grh, struct ibv_ah_attr *attr);

struct ibv_qp *rnic_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp_ex *rnic_qp_to_qp_ex(struct ibv_qp *qp); /* NULL: created without send ops */
int rnic_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask);
int rnic_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init);
int rnic_destroy_qp(struct ibv_qp *qp);

/* Reliable datagram queue pairs; <weft/weftdv.h> says what they are. attr is as for
 * ibv_create_qp_ex, with the type IBV_QPT_DRIVER; the other two take only such queue pairs. */
struct weftdv_path;
struct weftdv_rd_stats;
struct ibv_qp *rnic_create_rd_qp(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *attr);
int rnic_query_path(struct ibv_qp *qp, struct ibv_ah *ah, uint32_t remote_qpn,
		    struct weftdv_path *path);
int rnic_query_rd(struct ibv_qp *qp, struct weftdv_rd_stats *stats);
int rnic_serve_cq(struct ibv_cq *cq, void (*serve)(void *arg), void *arg);
int rnic_wr_complete_keep(struct ibv_qp_ex *ex, void *keep, uint32_t lkey);

int rnic_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);
int rnic_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid);

#endif
