/* Node 0 in a round of the ping-pong: how it sends to a peer, and how it learns that one has
 * answered, by a completion or by the last byte of the memory. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "bench_time.h"
#include "fan.h"

#define SETTLE_US 20000

/* What a write of message seq leaves in the last byte; never 0. */
static char mark_of(uint32_t seq)
{
	return (char)(seq % 255 + 1);
}

static int root_send(void *arg, unsigned int i, uint32_t seq)
{
	struct fan_node *node = &((struct fan_root *)arg)->node;
	char *tx = fan_msg(node, 0);
	struct fan_req req = {.opcode = IBV_WR_SEND, .local = tx, .len = node->size};
	uint16_t low = htole16((uint16_t)seq);

	node->refill = true;
	if (node->mode == FAN_STAGE2 || node->type->func == FAN_WRITE) {
		*fan_mark(node, tx) = mark_of(seq);
		return fan_write(node, i, tx, i);
	}
	if (node->type->func == FAN_READ || node->type->func == FAN_ATOMIC) {
		req.opcode = node->type->func == FAN_READ ? IBV_WR_RDMA_READ
							  : IBV_WR_ATOMIC_FETCH_AND_ADD;
		req.local = fan_msg(node, 1 + i);
		req.remote = node->end[i].addr.vaddr;
		req.signal = true;
		req.id = i;
	} else if (node->size >= 2 * sizeof(low)) {
		memcpy(tx + sizeof(low), &low, sizeof(low));
	}
	return fan_post(node, i, &req);
}

/* Who has sent what is in this slot? -1: nobody who is awaited. */
static int sender(const struct fan_node *node, const struct ibv_wc *wc, uint32_t seq)
{
	unsigned int slot = FAN_OF(wc->wr_id), step = 1u << 16;
	const char *msg = fan_msg(node, slot);
	uint16_t who = 0, low;

	if (!node->shared)
		return (int)slot - 1;
	if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM) {
		who = (uint16_t)be32toh(wc->imm_data);
	} else {
		memcpy(&who, msg, node->size < sizeof(who) ? node->size : sizeof(who));
		who = le16toh(who);
		if (node->size < sizeof(who))
			step = 256;
	}
	if (node->size >= 2 * sizeof(low) && node->type->service == FAN_UD) {
		memcpy(&low, msg + sizeof(low), sizeof(low));
		if (le16toh(low) != (uint16_t)seq)
			return -1; /* of a round that was given up */
	}
	/* One byte does not tell more than 256 peers apart: then it is one of those. */
	for (unsigned int i = who; i < node->active; i += step)
		if (node->end[i].seq != seq)
			return (int)i;
	return -1;
}

static int poll_memory(struct fan_node *node, uint32_t seq, unsigned int *who)
{
	for (unsigned int i = 0; i < node->active; i++) {
		if (node->end[i].seq == seq)
			continue;
		/* Acquire: the rest of the message was placed before its last byte. */
		if (__atomic_load_n(fan_mark(node, fan_msg(node, 1 + i)), __ATOMIC_ACQUIRE) !=
		    mark_of(seq))
			continue;
		*who = i;
		return 1;
	}
	return 0;
}

static int root_received(struct fan_node *node, const struct ibv_wc *wc, uint32_t seq)
{
	int who = sender(node, wc, seq);

	if (node->shared) {
		int ret = fan_refill(node, FAN_OF(wc->wr_id));

		return ret ? ret - 1 : who;
	}
	node->end[FAN_OF(wc->wr_id) - 1].unposted++;
	return who;
}

static int root_poll(void *arg, uint32_t seq, unsigned int *i)
{
	struct fan_node *node = &((struct fan_root *)arg)->node;
	struct ibv_wc wc;
	int ret, who;

	/* While the messages are on their way, and not before they leave. */
	if (node->refill) {
		ret = fan_refill_all(node);
		if (ret)
			return ret;
	}
	if (node->notice == FAN_BY_MEMORY && poll_memory(node, seq, i)) {
		node->end[*i].seq = seq;
		return 1;
	}
	while ((ret = fan_take(node, &wc)) > 0) {
		if (wc.wr_id & FAN_RECV)
			who = root_received(node, &wc, seq);
		else
			who = node->notice == FAN_BY_SEND ? (int)FAN_OF(wc.wr_id) : -1;
		if (who < -1)
			return who + 1;
		if (who < 0 || (unsigned int)who >= node->active || node->end[who].seq == seq)
			continue;
		node->end[who].seq = seq;
		*i = (unsigned int)who;
		return 1;
	}
	return ret;
}

static uint64_t root_now(void *arg)
{
	(void)arg;
	return bench_now();
}

static int root_check(void *arg)
{
	return fan_root_check(arg);
}

static void root_settle(void *arg)
{
	struct fan_node *node = &((struct fan_root *)arg)->node;
	struct ibv_wc wc;

	usleep(SETTLE_US);
	while (fan_take(node, &wc) > 0)
		if (wc.wr_id & FAN_RECV)
			fan_refill(node, FAN_OF(wc.wr_id));
}

const struct fan_ops fan_root_ops = {
	.send = root_send,
	.poll = root_poll,
	.now = root_now,
	.check = root_check,
	.settle = root_settle,
};
