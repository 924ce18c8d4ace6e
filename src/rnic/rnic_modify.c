/* The state machine of a queue pair, as the InfiniBand specification draws it (volume 1,
 * section 10.3): which attributes a transition needs, which it allows. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include "util_log.h"
#include "rnic_conn.h"
#include "rnic_rd.h"

struct transition {
	enum ibv_qp_state from, to;
	enum ibv_qp_type type;
	int required, optional;
};

#define ALT (IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE)

#define RD_WISHES                                                                                  \
	(IBV_QP_QKEY | IBV_QP_RNR_RETRY | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_MIN_RNR_TIMER)

static const struct transition table[] = {
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_RC,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UC,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, 0},
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_UD, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY, 0},
	{IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPT_DRIVER, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY,
	 0},
	{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_DRIVER, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_DRIVER, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_QKEY | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_DRIVER, IBV_QP_SQ_PSN, RD_WISHES},
	{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_DRIVER, 0, RD_WISHES},
	{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_RC, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UC, 0,
	 IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_INIT, IBV_QPS_INIT, IBV_QPT_UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_RC,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
		 IBV_QP_MIN_RNR_TIMER,
	 ALT | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UC,
	 IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN,
	 ALT | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPT_UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_RC,
	 IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
		 IBV_QP_MAX_QP_RD_ATOMIC,
	 ALT | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UC, IBV_QP_SQ_PSN, ALT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_RTR, IBV_QPS_RTS, IBV_QPT_UD, IBV_QP_SQ_PSN, IBV_QP_QKEY},
	{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_RC, 0, ALT | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UC, 0, ALT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_RTS, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_QKEY},
	{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_RC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UC, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPT_UD, 0, IBV_QP_EN_SQD_ASYNC_NOTIFY},
	{IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_RC, 0,
	 ALT | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
		 IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UC, 0, ALT | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX},
	{IBV_QPS_SQD, IBV_QPS_SQD, IBV_QPT_UD, 0, IBV_QP_PKEY_INDEX | IBV_QP_QKEY},
	{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_RC, 0, ALT | IBV_QP_ACCESS_FLAGS | IBV_QP_MIN_RNR_TIMER},
	{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UC, 0, ALT | IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_SQD, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_QKEY},
	{IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UC, 0, IBV_QP_ACCESS_FLAGS},
	{IBV_QPS_SQE, IBV_QPS_RTS, IBV_QPT_UD, 0, IBV_QP_QKEY},
};

static bool allowed(enum ibv_qp_state from, enum ibv_qp_state to, enum ibv_qp_type type, int mask)
{
	mask &= ~(IBV_QP_STATE | IBV_QP_CUR_STATE);
	if (to == IBV_QPS_RESET || (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
		return !mask;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		const struct transition *t = &table[i];

		if (t->from == from && t->to == to && t->type == type)
			return (mask & t->required) == t->required &&
			       !(mask & ~(t->required | t->optional));
	}
	return false;
}

/* The address that an address vector names: by GID, or by LID within our /16. */
int rnic_resolve_addr(const struct rnic_device *dev, const struct ibv_ah_attr *ah,
		      struct in_addr *addr)
{
	const uint8_t *gid = ah->grh.dgid.raw;
	static const uint8_t v4_mapped[12] = {[10] = 0xff, [11] = 0xff};

	if (ah->is_global) {
		if (ah->grh.sgid_index >= dev->n_addr ||
		    memcmp(gid, v4_mapped, sizeof(v4_mapped)) != 0)
			return EINVAL;
		memcpy(addr, gid + 12, sizeof(*addr));
	} else {
		uint32_t own = ntohl(dev->addr[0].addr.s_addr);

		addr->s_addr = htonl((own & 0xffff0000) | ah->dlid);
	}
	return 0;
}

static int check_values(struct rnic_qp *qp, const struct ibv_qp_attr *a, int mask,
			struct in_addr *peer)
{
	if (mask & IBV_QP_PORT && a->port_num != 1)
		return EINVAL;
	if (mask & IBV_QP_PKEY_INDEX && a->pkey_index)
		return EINVAL;
	if (mask & IBV_QP_ALT_PATH ||
	    (mask & IBV_QP_PATH_MIG_STATE && a->path_mig_state != IBV_MIG_MIGRATED))
		return EOPNOTSUPP;
	if (mask & IBV_QP_DEST_QPN && a->dest_qp_num > 0xffffff)
		return EINVAL;
	if (mask & IBV_QP_PATH_MTU && (a->path_mtu < IBV_MTU_256 || a->path_mtu > IBV_MTU_4096))
		return EINVAL;
	if (mask & IBV_QP_MAX_QP_RD_ATOMIC && a->max_rd_atomic > RNIC_MAX_RD_ATOMIC)
		return EINVAL;
	if (mask & IBV_QP_MAX_DEST_RD_ATOMIC && a->max_dest_rd_atomic > RNIC_MAX_RD_ATOMIC)
		return EINVAL;
	if (mask & IBV_QP_TIMEOUT && a->timeout > 31)
		return EINVAL;
	if ((mask & IBV_QP_RETRY_CNT && a->retry_cnt > 7) ||
	    (mask & IBV_QP_RNR_RETRY && a->rnr_retry > 7) ||
	    (mask & IBV_QP_MIN_RNR_TIMER && a->min_rnr_timer > 31))
		return EINVAL;
	if (mask & IBV_QP_AV && rnic_resolve_addr(qp->ctx->dev, &a->ah_attr, peer))
		return EINVAL;
	return mask & IBV_QP_AV && IN_MULTICAST(ntohl(peer->s_addr)) ? EINVAL : 0;
}

#define TAKE(flag, field)                                                                          \
	do {                                                                                       \
		if (mask & (flag))                                                                 \
			qp->attr.field = a->field;                                                 \
	} while (0)

static void take_values(struct rnic_qp *qp, const struct ibv_qp_attr *a, int mask)
{
	TAKE(IBV_QP_PORT, port_num);
	TAKE(IBV_QP_PKEY_INDEX, pkey_index);
	TAKE(IBV_QP_ACCESS_FLAGS, qp_access_flags);
	TAKE(IBV_QP_QKEY, qkey);
	TAKE(IBV_QP_AV, ah_attr);
	TAKE(IBV_QP_PATH_MTU, path_mtu);
	TAKE(IBV_QP_DEST_QPN, dest_qp_num);
	TAKE(IBV_QP_RQ_PSN, rq_psn);
	TAKE(IBV_QP_SQ_PSN, sq_psn);
	TAKE(IBV_QP_MAX_QP_RD_ATOMIC, max_rd_atomic);
	TAKE(IBV_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic);
	TAKE(IBV_QP_MIN_RNR_TIMER, min_rnr_timer);
	TAKE(IBV_QP_TIMEOUT, timeout);
	TAKE(IBV_QP_RETRY_CNT, retry_cnt);
	TAKE(IBV_QP_RNR_RETRY, rnr_retry);
	TAKE(IBV_QP_PATH_MIG_STATE, path_mig_state);
	TAKE(IBV_QP_EN_SQD_ASYNC_NOTIFY, en_sqd_async_notify);
	/* A local address vector leaves the index of our own address at 0. */
	if (mask & IBV_QP_AV && !a->ah_attr.is_global)
		qp->attr.ah_attr.grh.sgid_index = 0;
}

static void enter_state(struct rnic_qp *qp, enum ibv_qp_state to)
{
	enum ibv_qp_state from = qp->ibv.state;

	if (to == IBV_QPS_RESET) {
		rnic_qp_reset(qp);
		return;
	}
	if (to == IBV_QPS_ERR) {
		rnic_qp_error(qp);
		return;
	}
	rnic_qp_set_state(qp, to);
	if (to == IBV_QPS_SQD) {
		if (from != to)
			qp->drained_told = false;
		rnic_req_reap(qp);
		return;
	}
	if (rnic_is_rd(qp))
		return; /* speaks when spoken to */
	if (qp->ibv.qp_type == IBV_QPT_UD) {
		if (to == IBV_QPS_RTS)
			rnic_ud_pump(qp);
		return;
	}
	if (to == IBV_QPS_RTR) {
		rnic_conn_start(qp);
	} else if (to == IBV_QPS_RTS && qp->conn) {
		if (from == IBV_QPS_RTR && qp->conn->state >= RNIC_CONN_REPLIED &&
		    qp->conn == qp->rsp_conn && !rnic_conn_psn_fits(qp, qp->conn))
			rnic_conn_disown(qp->conn); /* the peer means another one */
		else
			rnic_stream_pump(qp->conn);
	}
}

int rnic_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask)
{
	struct rnic_qp *qp = rnic_qp(ibqp);
	enum ibv_qp_state from, to;
	struct in_addr peer = {0};
	int err = 0;

	if (qp->e->dead)
		return EIO;
	rnic_enter(qp->e);
	from = qp->ibv.state;
	to = mask & IBV_QP_STATE ? attr->qp_state : from;
	if (mask & IBV_QP_CUR_STATE && attr->cur_qp_state != from)
		err = EINVAL;
	if (!err && !allowed(from, to, ibqp->qp_type, mask))
		err = EINVAL;
	if (!err)
		err = check_values(qp, attr, mask, &peer);
	if (!err) {
		take_values(qp, attr, mask);
		if (rnic_is_rd(qp))
			rnic_rd_modified(qp, mask);
		if (to == IBV_QPS_SQD && from != to && !(mask & IBV_QP_EN_SQD_ASYNC_NOTIFY))
			qp->attr.en_sqd_async_notify = 0; /* the wish of an earlier time */
		if (mask & IBV_QP_AV)
			qp->peer = peer;
		enter_state(qp, to);
	}
	rnic_leave(qp->e);
	if (err)
		util_log(UTIL_LOG_INFO, "ibv_modify_qp: QP 0x%06x, state %d to %d, mask 0x%x: %s",
			 ibqp->qp_num, from, to, (unsigned int)mask, strerror(err));
	return err;
}

int rnic_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		  struct ibv_qp_init_attr *init)
{
	struct rnic_qp *qp = rnic_qp(ibqp);

	(void)mask;
	if (qp->e->dead)
		return EIO;
	rnic_lock(qp->e);
	*attr = qp->attr;
	attr->qp_state = attr->cur_qp_state = ibqp->state;
	attr->sq_draining = ibqp->state == IBV_QPS_SQD && !rnic_req_drained(qp);
	attr->cap = qp->cap;
	rnic_unlock(qp->e);
	*init = (struct ibv_qp_init_attr){.qp_context = ibqp->qp_context,
					  .send_cq = ibqp->send_cq,
					  .recv_cq = ibqp->recv_cq,
					  .srq = ibqp->srq,
					  .cap = qp->cap,
					  .qp_type = ibqp->qp_type,
					  .sq_sig_all = qp->sq_sig_all};
	return 0;
}
