#include "msg_wire.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

static uint8_t *put32(uint8_t *to, uint32_t v)
{
	v = htole32(v);
	memcpy(to, &v, sizeof(v));
	return to + sizeof(v);
}

static uint8_t *put64(uint8_t *to, uint64_t v)
{
	v = htole64(v);
	memcpy(to, &v, sizeof(v));
	return to + sizeof(v);
}

static uint32_t get32(const uint8_t *from)
{
	uint32_t v;

	memcpy(&v, from, sizeof(v));
	return le32toh(v);
}

static uint64_t get64(const uint8_t *from)
{
	uint64_t v;

	memcpy(&v, from, sizeof(v));
	return le64toh(v);
}

#define RTR_BODY    32
#define ATOMIC_BODY 24
#define IDS_BODY    8

static bool has_segs(uint8_t type)
{
	return type == MSG_RTS || type == MSG_PUT || type == MSG_CTS;
}

/* Whether bytes of somebody's follow the body. */
static bool has_message(uint8_t type)
{
	return type == MSG_EAGER || type == MSG_ATOMIC || type == MSG_ATOMIC_RSP ||
	       type == MSG_HERE;
}

/* The length of what is between the header and, if there is one, the message. */
static size_t body_len(uint8_t type, unsigned int n_seg)
{
	if (type == MSG_RTR)
		return RTR_BODY;
	if (type == MSG_ATOMIC)
		return ATOMIC_BODY;
	return IDS_BODY + (has_segs(type) ? n_seg * MSG_SEG_LEN : 0);
}

static uint8_t *put_rtr(uint8_t *to, const struct msg_pkt *p)
{
	to = put32(to, p->id);
	to = put32(to, p->seg[0].key);
	to = put64(to, p->ignore);
	to = put64(to, p->seg[0].addr);
	to = put32(to, p->seen);
	return put32(to, p->ahead);
}

static void get_rtr(struct msg_pkt *p, const uint8_t *from)
{
	p->n_seg = 1;
	p->id = get32(from);
	p->seg[0] = (struct msg_seg){.key = get32(from + 4), .addr = get64(from + 16)};
	p->ignore = get64(from + 8);
	p->seen = get32(from + 24);
	p->ahead = get32(from + 28);
}

static uint8_t *put_atomic(uint8_t *to, const struct msg_pkt *p)
{
	to = put32(to, p->id);
	*to++ = p->code;
	*to++ = p->kind;
	*to++ = 0;
	*to++ = 0;
	to = put32(to, p->count);
	to = put32(to, p->seg[0].key);
	return put64(to, p->seg[0].addr);
}

/* p->len is that of the memory, `len` of all operands. */
static int get_atomic(struct msg_pkt *p, const uint8_t *from, size_t len)
{
	uint64_t n = (p->flags & MSG_F_OPERAND ? 1 : 0) + (p->flags & MSG_F_COMPARE ? 1 : 0);

	p->n_seg = 1;
	p->id = get32(from);
	p->code = from[4];
	p->kind = from[5];
	p->count = get32(from + 8);
	p->seg[0] = (struct msg_seg){.key = get32(from + 12), .addr = get64(from + 16)};
	return p->len <= UINT32_MAX && n * p->len == len ? 0 : -EPROTO;
}

size_t msg_wire_encode(const struct msg_pkt *p, uint8_t *buf)
{
	uint8_t *to = buf;

	*to++ = p->type;
	*to++ = p->flags;
	*to++ = (uint8_t)p->n_seg;
	*to++ = 0;
	memcpy(to, &p->ip, sizeof(p->ip));
	to = put64(to + sizeof(p->ip), p->tag);
	to = put32(to, p->data);
	to = put32(to, p->qkey);
	to = put64(to, p->len);
	if (p->type == MSG_RTR)
		return (size_t)(put_rtr(to, p) - buf);
	if (p->type == MSG_ATOMIC)
		return (size_t)(put_atomic(to, p) - buf);
	to = put32(to, p->id);
	to = put32(to, p->id2);
	if (has_segs(p->type))
		for (unsigned int i = 0; i < p->n_seg; i++) {
			to = put64(to, p->seg[i].addr);
			to = put32(to, p->seg[i].key);
			to = put32(to, p->seg[i].len);
		}
	return (size_t)(to - buf);
}

/* A CTS names as much as the receive has room for. Others name all, or nothing. */
static int get_segs(struct msg_pkt *p, const uint8_t *from)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < p->n_seg; i++, from += MSG_SEG_LEN) {
		p->seg[i] = (struct msg_seg){
			.addr = get64(from), .key = get32(from + 8), .len = get32(from + 12)};
		sum += p->seg[i].len;
	}
	if (p->type == MSG_CTS)
		return sum <= p->len ? 0 : -EPROTO;
	return sum == p->len || !p->n_seg ? 0 : -EPROTO;
}

/* Addresses, and not none. */
static bool is_list(uint64_t len)
{
	return len && len <= MSG_ADDRS * sizeof(uint32_t) && !(len % sizeof(uint32_t));
}

int msg_wire_decode(struct msg_pkt *p, const uint8_t *buf, size_t len, size_t *body)
{
	const uint8_t *from = buf + MSG_HDR;

	if (len < MSG_HDR + IDS_BODY)
		return -EPROTO;
	*p = (struct msg_pkt){.type = buf[0], .flags = buf[1], .n_seg = buf[2]};
	if (p->type < MSG_EAGER || p->type > MSG_TYPE_LAST || p->n_seg > MSG_SEGS)
		return -EPROTO;
	*body = MSG_HDR + body_len(p->type, p->n_seg);
	if (len < *body || (len != *body && !has_message(p->type)))
		return -EPROTO;
	memcpy(&p->ip, buf + 4, sizeof(p->ip));
	p->tag = get64(buf + 8);
	p->data = get32(buf + 16);
	p->qkey = get32(buf + 20);
	p->len = get64(buf + 24);
	if (p->type == MSG_RTR) {
		get_rtr(p, from);
		return 0;
	}
	if (p->type == MSG_ATOMIC)
		return get_atomic(p, from, len - *body);
	p->id = get32(from);
	p->id2 = get32(from + 4);
	if (has_segs(p->type))
		return get_segs(p, from + IDS_BODY);
	if (p->type == MSG_HERE && !is_list(p->len))
		return -EPROTO;
	return !has_message(p->type) || p->len == len - *body ? 0 : -EPROTO;
}

uint32_t msg_wire_seq(const uint8_t *buf)
{
	return get32(buf + 20);
}

/* ---- datagrams ---- */

#define HELLO_MAGIC UINT32_C(0x32435257) /* "WRC2" */
#define QPN_MAX     UINT32_C(0xffffff)
#define LMC_MAX     7

void msg_hello_encode(const struct msg_hello *h, uint8_t *buf)
{
	uint8_t *to = put32(buf, HELLO_MAGIC);

	*to++ = h->type;
	*to++ = h->mtu;
	*to++ = h->reads;
	*to++ = h->path;
	to = put32(to, h->qpn);
	to = put32(to, h->psn);
	to = put32(to, h->other);
	memcpy(to, h->from.gid, sizeof(h->from.gid));
	to = put32(to + sizeof(h->from.gid), h->from.qpn);
	to = put32(to, h->from.qkey);
	to = put32(to, h->from.lid);
	to = put32(to, h->token);
	to = put32(to, h->epoch | (uint32_t)h->at.lmc << 16);
	memcpy(to, h->at.gid, sizeof(h->at.gid));
	put32(to + sizeof(h->at.gid), h->at.lid);
}

int msg_hello_decode(struct msg_hello *h, const uint8_t *buf, size_t len)
{
	uint32_t lid, at_lid, epoch;

	if (len != MSG_HELLO_LEN || get32(buf) != HELLO_MAGIC)
		return -EPROTO;
	*h = (struct msg_hello){.type = buf[4],
				.mtu = buf[5],
				.reads = buf[6],
				.path = buf[7],
				.qpn = get32(buf + 8),
				.psn = get32(buf + 12),
				.other = get32(buf + 16),
				.from = {.qpn = get32(buf + 36), .qkey = get32(buf + 40)},
				.token = get32(buf + 48)};
	memcpy(h->from.gid, buf + 20, sizeof(h->from.gid));
	lid = get32(buf + 44);
	h->from.lid = (uint16_t)lid;
	epoch = get32(buf + 52);
	h->epoch = (uint16_t)epoch;
	h->at.lmc = (uint8_t)(epoch >> 16);
	memcpy(h->at.gid, buf + 56, sizeof(h->at.gid));
	at_lid = get32(buf + 72);
	h->at.lid = (uint16_t)at_lid;
	/* IBV_MTU_256 to IBV_MTU_4096 are 1 to 5. */
	return (h->type == MSG_HELLO_CALL || h->type == MSG_HELLO_ANSWER) && h->mtu >= 1 &&
			       h->mtu <= 5 && h->reads && h->qpn && h->qpn <= QPN_MAX &&
			       h->psn <= QPN_MAX && h->other <= QPN_MAX && lid <= UINT16_MAX &&
			       h->path < STRIPE_PATHS_MAX && epoch >> 16 <= LMC_MAX &&
			       at_lid <= UINT16_MAX
		       ? 0
		       : -EPROTO;
}
