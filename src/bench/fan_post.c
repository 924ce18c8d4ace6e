/* Requests and completions of a node. */
#include <errno.h>
#include <stdio.h>

#include "bench_time.h"
#include "fan.h"

#define SIGNAL_EVERY 16 /* one completion in so many requests; fewer than any send queue holds */

static bool signals(struct fan_node *node, struct fan_end *end, bool wanted)
{
	unsigned int *count = node->shared ? &node->unsignalled : &end->unsignalled;

	if (!wanted && ++*count < SIGNAL_EVERY)
		return false;
	*count = 0;
	return true;
}

static void address(struct ibv_send_wr *wr, const struct fan_node *node, const struct fan_end *end,
		    const struct fan_req *req)
{
	switch (req->opcode) {
	case IBV_WR_SEND:
		if (!end->ah)
			break;
		wr->wr.ud.ah = node->group ? node->group : end->ah;
		wr->wr.ud.remote_qpn = node->group ? 0xffffff : end->addr.qpn;
		wr->wr.ud.remote_qkey = end->addr.qkey;
		break;
	case IBV_WR_ATOMIC_FETCH_AND_ADD:
		wr->wr.atomic.remote_addr = req->remote;
		wr->wr.atomic.rkey = end->addr.rkey;
		wr->wr.atomic.compare_add = 1;
		break;
	default:
		wr->wr.rdma.remote_addr = req->remote;
		wr->wr.rdma.rkey = end->addr.rkey;
	}
}

/* What the CQ has, behind what was taken before. Returns how many, or -errno. */
static int reap(struct fan_node *node)
{
	int n;

	if (node->wc_head == node->wc_tail)
		node->wc_head = node->wc_tail = 0;
	if (node->wc_tail + FAN_BATCH > node->wc_room)
		return 0;
	n = ibv_poll_cq(node->cq, FAN_BATCH, node->wc + node->wc_tail);
	if (n < 0)
		return -EIO;
	node->wc_tail += (unsigned int)n;
	return n;
}

int fan_post(struct fan_node *node, unsigned int i, const struct fan_req *req)
{
	struct fan_end *end = &node->end[i];
	struct ibv_sge sge = {.addr = (uintptr_t)req->local,
			      .length = (uint32_t)req->len,
			      .lkey = node->mr->lkey};
	struct ibv_send_wr wr = {.wr_id = req->id,
				 .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = req->opcode,
				 .imm_data = req->imm},
			   *bad;
	uint32_t spins = 0;

	if (signals(node, end, req->signal))
		wr.send_flags = IBV_SEND_SIGNALED;
	if (req->len <= node->inline_max && req->opcode != IBV_WR_RDMA_READ &&
	    req->opcode != IBV_WR_ATOMIC_FETCH_AND_ADD)
		wr.send_flags |= IBV_SEND_INLINE;
	address(&wr, node, end, req);
	for (;;) {
		int n, ret = node->type->service == FAN_RD
				     ? bench_rd_post(end->qp, &wr, end->ah, &end->addr)
				     : ibv_post_send(end->qp, &wr, &bad);

		if (ret != ENOMEM)
			return -ret;
		/* The queue is full of what has not been acknowledged. */
		n = reap(node);
		if (n < 0)
			return n;
		if (!n && bench_expired(&spins, node->deadline))
			return -ETIMEDOUT;
	}
}

int fan_refill(struct fan_node *node, unsigned int slot)
{
	bool ud = node->type->service == FAN_UD;
	struct ibv_sge sge = {
		.addr = (uintptr_t)fan_msg(node, slot) - (ud ? BENCH_GRH : 0),
		.length = (uint32_t)(node->room + (ud ? BENCH_GRH : 0)),
		.lkey = node->mr->lkey,
	};
	struct ibv_recv_wr wr = {.wr_id = FAN_RECV | slot, .sg_list = &sge, .num_sge = 1}, *bad;

	return -ibv_post_recv(node->shared ? node->shared : node->end[slot - 1].qp, &wr, &bad);
}

int fan_refill_all(struct fan_node *node)
{
	int ret = 0;

	for (unsigned int i = 0; i < node->n && !node->shared && !ret; i++)
		for (; node->end[i].unposted && !ret; node->end[i].unposted--)
			ret = fan_refill(node, 1 + i);
	node->refill = false;
	return ret;
}

int fan_take(struct fan_node *node, struct ibv_wc *wc)
{
	if (node->wc_head == node->wc_tail) {
		int n = reap(node);

		if (n <= 0)
			return n;
	}
	*wc = node->wc[node->wc_head++];
	if (wc->status == IBV_WC_SUCCESS)
		return 1;
	fprintf(stderr, "%s: %s: completion with error: %s\n", program_invocation_short_name,
		node->type->name, ibv_wc_status_str(wc->status));
	return -EIO;
}

char *fan_mark(const struct fan_node *node, char *msg)
{
	if (node->mode == FAN_STAGE2)
		return msg - FAN_HEAD + FAN_MARK;
	return msg + node->size - 1;
}

int fan_write(struct fan_node *node, unsigned int i, char *msg, uint32_t imm)
{
	bool mark = node->mode == FAN_STAGE2;
	struct fan_req req = {
		.opcode = node->notice == FAN_BY_RECV ? IBV_WR_RDMA_WRITE_WITH_IMM
						      : IBV_WR_RDMA_WRITE,
		.local = mark ? fan_mark(node, msg) : msg,
		.len = mark ? 1 : node->size,
		.remote = node->end[i].addr.vaddr - (mark ? FAN_HEAD - FAN_MARK : 0),
		.imm = htobe32(imm),
	};

	return fan_post(node, i, &req);
}
