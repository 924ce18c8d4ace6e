#include "msg_wire.h"

#include <endian.h>
#include <errno.h>
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

#define RTR_BODY 32
#define IDS_BODY 8

/* The length of what is between the header and, if there is one, the message. */
static size_t body_len(uint8_t type, unsigned int n_seg)
{
	switch (type) {
	case MSG_EAGER:
		return IDS_BODY;
	case MSG_RTS:
	case MSG_PUT:
		return IDS_BODY + n_seg * MSG_SEG_LEN;
	case MSG_CTS:
	case MSG_RTR:
		return RTR_BODY;
	default:
		return IDS_BODY;
	}
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
	if (p->type == MSG_RTR || p->type == MSG_CTS) {
		to = put32(to, p->id);
		to = put32(to, p->seg[0].key);
		to = put64(to, p->ignore);
		to = put64(to, p->seg[0].addr);
		to = put32(to, p->seen);
		to = put32(to, p->ahead);
		return (size_t)(to - buf);
	}
	to = put32(to, p->id);
	to = put32(to, p->id2);
	if (p->type == MSG_RTS || p->type == MSG_PUT)
		for (unsigned int i = 0; i < p->n_seg; i++) {
			to = put64(to, p->seg[i].addr);
			to = put32(to, p->seg[i].key);
			to = put32(to, p->seg[i].len);
		}
	return (size_t)(to - buf);
}

static int get_segs(struct msg_pkt *p, const uint8_t *from)
{
	uint64_t sum = 0;

	for (unsigned int i = 0; i < p->n_seg; i++, from += MSG_SEG_LEN) {
		p->seg[i] = (struct msg_seg){
			.addr = get64(from), .key = get32(from + 8), .len = get32(from + 12)};
		sum += p->seg[i].len;
	}
	return sum == p->len ? 0 : -EPROTO;
}

int msg_wire_decode(struct msg_pkt *p, const uint8_t *buf, size_t len, size_t *body)
{
	if (len < MSG_HDR + IDS_BODY)
		return -EPROTO;
	*p = (struct msg_pkt){.type = buf[0], .flags = buf[1], .n_seg = buf[2]};
	if (p->type < MSG_EAGER || p->type > MSG_ATOMIC_RSP || p->n_seg > MSG_SEGS)
		return -EPROTO;
	*body = MSG_HDR + body_len(p->type, p->n_seg);
	if (len < *body || (len != *body && p->type != MSG_EAGER && p->type != MSG_ATOMIC &&
			    p->type != MSG_ATOMIC_RSP))
		return -EPROTO;
	memcpy(&p->ip, buf + 4, sizeof(p->ip));
	p->tag = get64(buf + 8);
	p->data = get32(buf + 16);
	p->qkey = get32(buf + 20);
	p->len = get64(buf + 24);
	p->id = get32(buf + MSG_HDR);
	if (p->type == MSG_RTR || p->type == MSG_CTS) {
		p->n_seg = 1;
		p->seg[0] = (struct msg_seg){.key = get32(buf + MSG_HDR + 4),
					     .addr = get64(buf + MSG_HDR + 16)};
		p->ignore = get64(buf + MSG_HDR + 8);
		p->seen = get32(buf + MSG_HDR + 24);
		p->ahead = get32(buf + MSG_HDR + 28);
		return 0;
	}
	p->id2 = get32(buf + MSG_HDR + 4);
	if (p->type == MSG_EAGER)
		return p->len == len - *body ? 0 : -EPROTO;
	return p->type == MSG_RTS || p->type == MSG_PUT ? get_segs(p, buf + MSG_HDR + IDS_BODY) : 0;
}
