/* Segment headers and the payloads of messages that are headers themselves:
 * RFC 5041 section 4, RFC 5040 section 4, RFC 7306 sections 4 to 6. */
#include "wire_rdmap.h"

#include <errno.h>

#include "wire_bytes.h"

/* DDP control: T L reserved(4) version(2). RDMAP control: version(2) reserved(2)
 * opcode(4). Reserved bits are sent as zero and not checked. */
#define DDP_TAGGED     0x80
#define DDP_LAST       0x40
#define DDP_VER_MASK   0x03
#define DDP_VERSION    1
#define RDMAP_VER_MASK 0xc0
#define RDMAP_VERSION  (1 << 6)
#define RDMAP_OP_MASK  0x0f
#define CTRL_LEN       2

/* What each opcode is carried in. */
static const struct {
	const char *name; /* NULL: no such opcode */
	bool tagged;
	uint8_t qn;
} ops[16] = {
	[WIRE_OP_WRITE] = {"RDMA Write", .tagged = true},
	[WIRE_OP_READ_REQ] = {"RDMA Read Request", .qn = WIRE_QN_READ_REQ},
	[WIRE_OP_READ_RESP] = {"RDMA Read Response", .tagged = true},
	[WIRE_OP_SEND] = {"Send", .qn = WIRE_QN_SEND},
	[WIRE_OP_SEND_INV] = {"Send with Invalidate", .qn = WIRE_QN_SEND},
	[WIRE_OP_SEND_SE] = {"Send with Solicited Event", .qn = WIRE_QN_SEND},
	[WIRE_OP_SEND_SE_INV] = {"Send with Solicited Event and Invalidate", .qn = WIRE_QN_SEND},
	[WIRE_OP_TERMINATE] = {"Terminate", .qn = WIRE_QN_TERMINATE},
	[WIRE_OP_IMM] = {"Immediate Data", .qn = WIRE_QN_SEND},
	[WIRE_OP_IMM_SE] = {"Immediate Data with Solicited Event", .qn = WIRE_QN_SEND},
	[WIRE_OP_ATOMIC_REQ] = {"Atomic Request", .qn = WIRE_QN_READ_REQ},
	[WIRE_OP_ATOMIC_RESP] = {"Atomic Response", .qn = WIRE_QN_ATOMIC_RESP},
	[WIRE_OP_SEND_IMM] = {"Send with Immediate", .qn = WIRE_QN_SEND},
	[WIRE_OP_SEND_IMM_SE] = {"Send with Immediate and Solicited Event", .qn = WIRE_QN_SEND},
	[WIRE_OP_CONTROL] = {"Control", .qn = WIRE_QN_CONTROL},
};

const char *wire_opcode_str(uint8_t opcode)
{
	if (opcode > RDMAP_OP_MASK || !ops[opcode].name)
		return "unknown opcode";
	return ops[opcode].name;
}

size_t wire_seg_encode(const struct wire_seg *seg, void *buf)
{
	uint8_t op = seg->opcode & RDMAP_OP_MASK;
	uint8_t *p = buf;

	p = put_u8(p, (uint8_t)((ops[op].tagged ? DDP_TAGGED : 0) | (seg->last ? DDP_LAST : 0) |
				DDP_VERSION));
	p = put_u8(p, RDMAP_VERSION | op);
	if (ops[op].tagged) {
		p = put_be32(p, seg->stag);
		put_be64(p, seg->to);
		return WIRE_TAGGED_HDR;
	}
	p = put_be32(p, seg->ulp);
	p = put_be32(p, seg->qn);
	p = put_be32(p, seg->msn);
	put_be32(p, seg->mo);
	return WIRE_UNTAGGED_HDR;
}

static int refuse(struct wire_term *why, uint8_t layer, uint8_t etype, uint8_t ecode)
{
	*why = (struct wire_term){.layer = layer, .etype = etype, .ecode = ecode};
	return -EPROTO;
}

/* What DDP itself has to check before it may look at the rest (RFC 5041 section 7). */
static int check_ddp(const uint8_t *b, size_t len, struct wire_term *why)
{
	bool tagged;

	/* The RFCs have no code for a segment that ends within its own header. */
	if (len < CTRL_LEN)
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_CATASTROPHIC, 0);
	tagged = b[0] & DDP_TAGGED;
	if ((b[0] & DDP_VER_MASK) != DDP_VERSION)
		return tagged ? refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_TAGGED,
				       WIRE_DDP_T_VERSION)
			      : refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_UNTAGGED,
				       WIRE_DDP_U_VERSION);
	if (len < (size_t)(tagged ? WIRE_TAGGED_HDR : WIRE_UNTAGGED_HDR))
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_CATASTROPHIC, 0);
	return 0;
}

/* A queue that nobody has is DDP's error; a message on another's queue RDMAP's. */
static int check_qn(const struct wire_seg *seg, struct wire_term *why)
{
	if (seg->qn > WIRE_QN_CONTROL)
		return refuse(why, WIRE_LAYER_DDP, WIRE_ETYPE_DDP_UNTAGGED, WIRE_DDP_U_INVALID_QN);
	if (seg->qn != ops[seg->opcode].qn)
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION, WIRE_RDMAP_OPCODE);
	return 0;
}

int wire_seg_decode(struct wire_seg *seg, const void *ulpdu, size_t len, struct wire_term *why)
{
	const uint8_t *b = ulpdu;

	if (check_ddp(b, len, why))
		return -EPROTO;
	if ((b[1] & RDMAP_VER_MASK) != RDMAP_VERSION)
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION,
			      WIRE_RDMAP_VERSION);
	seg->opcode = b[1] & RDMAP_OP_MASK;
	seg->tagged = b[0] & DDP_TAGGED;
	seg->last = b[0] & DDP_LAST;
	if (!ops[seg->opcode].name || ops[seg->opcode].tagged != seg->tagged)
		return refuse(why, WIRE_LAYER_RDMAP, WIRE_ETYPE_RDMAP_OPERATION, WIRE_RDMAP_OPCODE);
	if (seg->tagged) {
		seg->stag = get_be32(b + 2);
		seg->to = get_be64(b + 6);
		return WIRE_TAGGED_HDR;
	}
	seg->ulp = get_be32(b + 2);
	seg->qn = get_be32(b + 6);
	seg->msn = get_be32(b + 10);
	seg->mo = get_be32(b + 14);
	return check_qn(seg, why) ? -EPROTO : WIRE_UNTAGGED_HDR;
}

/* RFC 5040 section 4.4. */
size_t wire_read_req_encode(const struct wire_read_req *r, void *buf)
{
	uint8_t *p = buf;

	p = put_be32(p, r->sink_stag);
	p = put_be64(p, r->sink_to);
	p = put_be32(p, r->len);
	p = put_be32(p, r->src_stag);
	put_be64(p, r->src_to);
	return WIRE_READ_REQ_LEN;
}

int wire_read_req_decode(struct wire_read_req *r, const void *buf, size_t len)
{
	const uint8_t *b = buf;

	if (len != WIRE_READ_REQ_LEN)
		return -EPROTO;
	r->sink_stag = get_be32(b);
	r->sink_to = get_be64(b + 4);
	r->len = get_be32(b + 12);
	r->src_stag = get_be32(b + 16);
	r->src_to = get_be64(b + 20);
	return 0;
}

/* RFC 7306 section 5: the AOpCode is the low four bits of the first word. */
#define AOPCODE_MASK 0xf

size_t wire_atomic_req_encode(const struct wire_atomic_req *a, void *buf)
{
	uint8_t *p = buf;

	p = put_be32(p, a->op & AOPCODE_MASK);
	p = put_be32(p, a->id);
	p = put_be32(p, a->stag);
	p = put_be64(p, a->to);
	p = put_be64(p, a->add_swap);
	p = put_be64(p, a->add_swap_mask);
	p = put_be64(p, a->compare);
	put_be64(p, a->compare_mask);
	return WIRE_ATOMIC_REQ_LEN;
}

int wire_atomic_req_decode(struct wire_atomic_req *a, const void *buf, size_t len)
{
	const uint8_t *b = buf;

	if (len != WIRE_ATOMIC_REQ_LEN)
		return -EPROTO;
	a->op = get_be32(b) & AOPCODE_MASK;
	if (a->op != WIRE_ATOMIC_FETCH_ADD && a->op != WIRE_ATOMIC_CMP_SWAP)
		return -EPROTO;
	a->id = get_be32(b + 4);
	a->stag = get_be32(b + 8);
	a->to = get_be64(b + 12);
	a->add_swap = get_be64(b + 20);
	a->add_swap_mask = get_be64(b + 28);
	a->compare = get_be64(b + 36);
	a->compare_mask = get_be64(b + 44);
	return 0;
}

size_t wire_atomic_resp_encode(const struct wire_atomic_resp *a, void *buf)
{
	uint8_t *p = buf;

	p = put_be32(p, a->id);
	put_be64(p, a->value);
	return WIRE_ATOMIC_RESP_LEN;
}

int wire_atomic_resp_decode(struct wire_atomic_resp *a, const void *buf, size_t len)
{
	const uint8_t *b = buf;

	if (len != WIRE_ATOMIC_RESP_LEN)
		return -EPROTO;
	a->id = get_be32(b);
	a->value = get_be64(b + 4);
	return 0;
}

/* RFC 7306 section 6 gives eight bytes to the ULP; verbs have a value of four. */
size_t wire_imm_encode(uint32_t imm, void *buf)
{
	uint8_t *p = buf;

	p = put_be32(p, imm);
	put_be32(p, 0);
	return WIRE_IMM_LEN;
}

int wire_imm_decode(uint32_t *imm, const void *buf, size_t len)
{
	const uint8_t *b = buf;

	/* A peer that uses all eight bytes must not be understood by halves. */
	if (len != WIRE_IMM_LEN || get_be32(b + 4) != 0)
		return -EPROTO;
	*imm = get_be32(b);
	return 0;
}
