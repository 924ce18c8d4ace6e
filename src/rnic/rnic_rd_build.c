/* RD: packets, made of messages. */
#include <arpa/inet.h>
#include <stdlib.h>
#include "wire_crc32c.h"
#include "rnic_conn.h"
#include "rnic_rd.h"

/* Of packet i of a message: where its payload begins, and how long it is. */
static uint32_t part(const struct rnic_rd_msg *m, uint32_t i, uint64_t *off)
{
	uint64_t left;

	*off = (uint64_t)i * m->seg;
	switch (m->kind) {
	case RNIC_RD_READ:
		return WIRE_READ_REQ_LEN;
	case RNIC_RD_ATOMIC:
		return WIRE_ATOMIC_REQ_LEN;
	case RNIC_RD_ATOMIC_RSP:
		return WIRE_ATOMIC_RESP_LEN;
	case RNIC_RD_ERROR_RSP:
		return WIRE_RD_ERROR_LEN;
	case RNIC_RD_WRITE_IMM:
		if (i == m->n - 1)
			return WIRE_IMM_LEN;
		break;
	default:
		break;
	}
	left = m->length - *off;
	return left < m->seg ? (uint32_t)left : m->seg;
}

static bool is_tagged(const struct rnic_rd_msg *m, uint32_t i)
{
	return m->kind == RNIC_RD_WRITE || m->kind == RNIC_RD_READ_RSP ||
	       (m->kind == RNIC_RD_WRITE_IMM && i < m->n - 1);
}

size_t rnic_rd_packet_len(const struct rnic_rd_msg *m, uint32_t i)
{
	uint64_t off;

	if (m->skip)
		return WIRE_RD_HDR + (rnic_rd_takes_receive(m) ? WIRE_RD_SKIP_LEN : 0);
	return WIRE_RD_HDR + (is_tagged(m, i) ? WIRE_TAGGED_HDR : WIRE_UNTAGGED_HDR) +
	       part(m, i, &off);
}

static struct wire_seg send_seg(const struct rnic_rd_msg *m, uint32_t i, uint64_t off)
{
	const struct rnic_swqe *w = rnic_rd_swqe(m);
	bool se = w->flags & IBV_SEND_SOLICITED, imm = w->opcode == IBV_WR_SEND_WITH_IMM;

	return (struct wire_seg){.opcode = imm ? (se ? WIRE_OP_SEND_IMM_SE : WIRE_OP_SEND_IMM)
					       : (se ? WIRE_OP_SEND_SE : WIRE_OP_SEND),
				 .last = i == m->n - 1,
				 .ulp = imm ? ntohl(w->imm) : 0,
				 .qn = WIRE_QN_SEND,
				 .msn = m->ssn,
				 .mo = (uint32_t)off};
}

static struct wire_seg write_seg(const struct rnic_rd_msg *m, uint32_t i, uint64_t off)
{
	const struct rnic_swqe *w = rnic_rd_swqe(m);
	uint32_t data = m->kind == RNIC_RD_WRITE_IMM ? m->n - 1 : m->n;

	if (i < data)
		return (struct wire_seg){.opcode = WIRE_OP_WRITE,
					 .tagged = true,
					 .last = i == data - 1,
					 .stag = w->rkey,
					 .to = w->remote_addr + off};
	/* The immediate says how long the write before it was. */
	return (struct wire_seg){.opcode = w->flags & IBV_SEND_SOLICITED ? WIRE_OP_IMM_SE
									 : WIRE_OP_IMM,
				 .last = true,
				 .ulp = m->length,
				 .qn = WIRE_QN_SEND,
				 .msn = m->ssn};
}

static struct wire_seg make_seg(const struct rnic_rd_msg *m, uint32_t i, uint64_t off)
{
	switch (m->kind) {
	case RNIC_RD_SEND:
		return send_seg(m, i, off);
	case RNIC_RD_WRITE:
	case RNIC_RD_WRITE_IMM:
		return write_seg(m, i, off);
	case RNIC_RD_READ:
	case RNIC_RD_ATOMIC:
		return (struct wire_seg){.opcode = m->kind == RNIC_RD_READ ? WIRE_OP_READ_REQ
									   : WIRE_OP_ATOMIC_REQ,
					 .last = true,
					 .qn = WIRE_QN_READ_REQ,
					 .msn = m->first};
	case RNIC_RD_READ_RSP:
		return (struct wire_seg){.opcode = WIRE_OP_READ_RESP,
					 .tagged = true,
					 .last = i == m->n - 1,
					 .stag = ((const struct rnic_rd_job *)m)->handle,
					 .to = off};
	case RNIC_RD_ATOMIC_RSP:
		return (struct wire_seg){.opcode = WIRE_OP_ATOMIC_RESP,
					 .last = true,
					 .qn = WIRE_QN_ATOMIC_RESP,
					 .msn = m->first};
	default:
		return (struct wire_seg){.opcode = WIRE_OP_TERMINATE,
					 .last = true,
					 .qn = WIRE_QN_TERMINATE,
					 .msn = m->first};
	}
}

static uint32_t small(uint8_t *buf, size_t len, uint32_t *crc)
{
	*crc = wire_crc32c(*crc, buf, len);
	return 0;
}

static void read_body(const struct rnic_rd_msg *m, uint8_t *buf)
{
	const struct rnic_swqe *w = rnic_rd_swqe(m);
	struct wire_read_req rr = {.sink_stag = ((const struct rnic_rd_req *)m)->handle,
				   .len = w->length,
				   .src_stag = w->rkey,
				   .src_to = w->remote_addr};

	wire_read_req_encode(&rr, buf);
}

static void atomic_body(const struct rnic_rd_msg *m, uint8_t *buf)
{
	const struct rnic_swqe *w = rnic_rd_swqe(m);
	bool add = w->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
	struct wire_atomic_req ar = {.op = add ? WIRE_ATOMIC_FETCH_ADD : WIRE_ATOMIC_CMP_SWAP,
				     .id = ((const struct rnic_rd_req *)m)->handle,
				     .stag = w->rkey,
				     .to = w->remote_addr,
				     .add_swap = add ? w->compare_add : w->swap,
				     .add_swap_mask = UINT64_MAX,
				     .compare = add ? 0 : w->compare_add,
				     .compare_mask = UINT64_MAX};

	wire_atomic_req_encode(&ar, buf);
}

/* The payload of a packet, and its CRC. */
static enum rnic_mem_error fill(struct rnic_rd_peer *peer, struct rnic_rd_msg *m, uint32_t i,
				uint64_t off, uint8_t *buf, uint32_t len, uint32_t *crc)
{
	struct rnic_qp *qp = peer->rd->qp;
	struct rnic_rd_job *job = rnic_rd_job(m);
	const struct rnic_swqe *w;
	enum rnic_mem_error err;
	void *from;

	switch (m->kind) {
	case RNIC_RD_READ:
		read_body(m, buf);
		return small(buf, len, crc);
	case RNIC_RD_ATOMIC:
		atomic_body(m, buf);
		return small(buf, len, crc);
	case RNIC_RD_ATOMIC_RSP:
		wire_atomic_resp_encode(&(struct wire_atomic_resp){job->handle, job->value}, buf);
		return small(buf, len, crc);
	case RNIC_RD_ERROR_RSP:
		wire_rd_error_encode(&(struct wire_rd_error){job->handle, (uint8_t)job->value},
				     buf);
		return small(buf, len, crc);
	case RNIC_RD_READ_RSP:
		if (!len)
			return RNIC_MEM_OK;
		err = rnic_mem_remote(peer->rd->e, qp->ibv.pd, job->rkey, job->addr + off, len,
				      IBV_ACCESS_REMOTE_READ, &from);
		return err ? err : rnic_guard_copy_crc(buf, from, len, crc);
	default:
		w = rnic_rd_swqe(m);
		if (m->kind == RNIC_RD_WRITE_IMM && i == m->n - 1) {
			wire_imm_encode(ntohl(w->imm), buf);
			return small(buf, len, crc);
		}
		if (w->inl) {
			*crc = wire_crc32c_copy(*crc, buf, (const uint8_t *)w->sge + off, len);
			return RNIC_MEM_OK;
		}
		return rnic_mem_gather(peer->rd->e, qp->ibv.pd, w->sge, w->num_sge, off, buf, len,
				       crc);
	}
}

/* The memory of a message is not what it was. What is left of it are empty packets. */
static void spoiled(struct rnic_rd_peer *peer, struct rnic_rd_msg *m)
{
	struct rnic_rd_job *e;

	m->skip = true;
	if (m->lane == RNIC_RD_REQ) {
		if (!rnic_rd_req(m)->status)
			rnic_rd_req(m)->status = IBV_WC_LOC_PROT_ERR;
		return;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return; /* the peer's request hangs until we have gone; there is no memory to tell
			 */
	e->handle = rnic_rd_job(m)->handle;
	e->value = WIRE_RD_OPERATION;
	e->msg = (struct rnic_rd_msg){
		.path = m->path, .kind = RNIC_RD_ERROR_RSP, .lane = RNIC_RD_RSP, .n = 1};
	peer->n_jobs++;
	rnic_rd_send(peer, &e->msg);
}

size_t rnic_rd_build(struct rnic_rd_peer *peer, struct rnic_rd_msg *m, uint32_t i, bool ask,
		     uint8_t *buf)
{
	struct wire_rd h = {.type = WIRE_RD_DATA,
			    .flags = (uint8_t)((m->lane ? WIRE_RD_RESPONSE : 0) |
					       (m->skip ? WIRE_RD_SKIP : 0) |
					       (ask ? WIRE_RD_ASK : 0)),
			    .id = peer->remote_id,
			    .psn = m->first + i,
			    .ack = {peer->lane[0].rx.next, peer->lane[1].rx.next}};
	size_t len = wire_rd_encode(&h, buf);
	struct wire_seg seg;
	uint64_t off;
	uint32_t n, crc;

	if (m->skip) {
		if (rnic_rd_takes_receive(m))
			len += wire_rd_skip_encode(m->ssn, buf + len);
		wire_rd_seal(buf, len);
		return len;
	}
	n = part(m, i, &off);
	seg = make_seg(m, i, off);
	len += wire_seg_encode(&seg, buf + len);
	crc = wire_crc32c(0, buf + 4, len - 4);
	if (fill(peer, m, i, off, buf + len, n, &crc)) {
		spoiled(peer, m);
		return rnic_rd_build(peer, m, i, ask, buf);
	}
	wire_rd_put_crc(buf, crc);
	return len + n;
}
