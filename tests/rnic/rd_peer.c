#include <arpa/inet.h>
#include <poll.h>
#include <sys/socket.h>
#include "rd_peer.h"

#define BATCH 64

void rd_peer_open(struct rd_peer *p, struct end *target)
{
	struct sockaddr_in own = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(own);
	int size = 8 << 20;

	memset(p, 0, sizeof(*p));
	p->target = target;
	p->to = own;
	p->to.sin_port = htons((uint16_t)(target->qp->qp_num >> 8));
	p->fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	CHECK(p->fd >= 0);
	setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
	CHECK_0(bind(p->fd, (struct sockaddr *)&own, sizeof(own)));
	CHECK_0(getsockname(p->fd, (struct sockaddr *)&own, &len));
	p->hello = (struct wire_rd_hello){.src_qpn = (uint32_t)ntohs(own.sin_port) << 8 | 0xfe,
					  .dst_qpn = target->qp->qp_num,
					  .qkey = target->o.qkey,
					  .room = 1 << 20,
					  .mtu = 1472};
	rd_peer_new_life(p);
}

void rd_peer_new_life(struct rd_peer *p)
{
	p->hello.life = util_rand_next(rig_rand()) | 1;
	p->hello.id = util_rand_next(rig_rand()) | 1;
	p->id = 0;
	p->ack[0] = p->ack[1] = p->psn = p->ssn = 0;
}

void rd_peer_close(struct rd_peer *p)
{
	close(p->fd);
}

struct rig_addr rd_peer_addr(const struct rd_peer *p)
{
	struct rig_addr a = end_addr(p->target);

	a.qpn = p->hello.src_qpn;
	return a;
}

/* ---- out ---- */

static void catch_up(struct rd_peer *p)
{
	uint64_t end = rig_now_ms() + 50;

	while (rd_stats(p->target).received < p->seen + p->unseen && rig_now_ms() < end)
		usleep(20);
	p->unseen = 0;
}

void rd_peer_raw(struct rd_peer *p, const void *data, size_t len)
{
	if (!p->unseen)
		p->seen = rd_stats(p->target).received;
	CHECK(sendto(p->fd, data, len, 0, (struct sockaddr *)&p->to, sizeof(p->to)) ==
	      (ssize_t)len);
	if (++p->unseen == BATCH)
		catch_up(p);
}

void rd_peer_put(struct rd_peer *p, const struct wire_rd *h, const void *body, size_t len)
{
	static uint8_t buf[65536];

	CHECK(WIRE_RD_HDR + len <= sizeof(buf));
	wire_rd_encode(h, buf);
	if (len)
		memcpy(buf + WIRE_RD_HDR, body, len);
	wire_rd_seal(buf, WIRE_RD_HDR + len);
	rd_peer_raw(p, buf, WIRE_RD_HDR + len);
}

void rd_peer_say(struct rd_peer *p, enum wire_rd_type type, uint8_t flags, uint32_t psn,
		 const void *body, size_t len)
{
	struct wire_rd h = {.type = (uint8_t)type,
			    .flags = flags,
			    .id = p->id,
			    .psn = psn,
			    .ack = {p->ack[0], p->ack[1]}};

	rd_peer_put(p, &h, body, len);
}

void rd_peer_hello(struct rd_peer *p, enum wire_rd_type type, uint64_t id, uint64_t cookie)
{
	struct wire_rd h = {.type = (uint8_t)type, .id = id};
	struct wire_rd_hello hello = p->hello;
	uint8_t body[WIRE_RD_HELLO];

	hello.cookie = cookie;
	wire_rd_hello_encode(&hello, body);
	rd_peer_put(p, &h, body, sizeof(body));
}

void rd_peer_sack(struct rd_peer *p, uint8_t flags, const uint64_t *words, unsigned int n)
{
	struct wire_rd h = {.type = WIRE_RD_ACK,
			    .flags = flags,
			    .count = (uint8_t)n,
			    .id = p->id,
			    .ack = {p->ack[0], p->ack[1]}};
	uint8_t body[WIRE_RD_SACK_MAX * 8];

	rd_peer_put(p, &h, body, wire_rd_sack_encode(words, n, body));
}

void rd_peer_nak(struct rd_peer *p, uint32_t psn, uint8_t reason)
{
	struct wire_rd_nak nak = {reason, 0};
	uint8_t body[WIRE_RD_NAK_LEN];

	wire_rd_nak_encode(&nak, body);
	rd_peer_say(p, WIRE_RD_NAK, 0, psn, body, sizeof(body));
}

void rd_peer_seg(struct rd_peer *p, uint8_t flags, uint32_t psn, const struct wire_seg *seg,
		 const void *payload, size_t len)
{
	static uint8_t body[65000];
	size_t hdr = wire_seg_encode(seg, body);

	if (len)
		memcpy(body + hdr, payload, len);
	rd_peer_say(p, WIRE_RD_DATA, flags, psn, body, hdr + len);
}

static const uint8_t bytes[60000] = {0xee, 0xee};

void rd_peer_send(struct rd_peer *p, uint32_t psn, uint32_t ssn, bool last, uint32_t mo, size_t len)
{
	struct wire_seg seg = {.opcode = WIRE_OP_SEND, .last = last, .msn = ssn, .mo = mo};

	rd_peer_seg(p, 0, psn, &seg, bytes, len);
}

void rd_peer_write(struct rd_peer *p, uint32_t psn, uint32_t stag, uint64_t to, size_t len)
{
	struct wire_seg seg = {
		.opcode = WIRE_OP_WRITE, .tagged = true, .last = true, .stag = stag, .to = to};

	rd_peer_seg(p, 0, psn, &seg, bytes, len);
}

void rd_peer_read(struct rd_peer *p, uint32_t psn, uint32_t stag, uint64_t to, uint32_t len,
		  uint32_t handle)
{
	struct wire_seg seg = {.opcode = WIRE_OP_READ_REQ, .last = true, .qn = WIRE_QN_READ_REQ};
	struct wire_read_req r = {.sink_stag = handle, .len = len, .src_stag = stag, .src_to = to};
	uint8_t body[WIRE_READ_REQ_LEN];

	wire_read_req_encode(&r, body);
	rd_peer_seg(p, 0, psn, &seg, body, sizeof(body));
}

void rd_peer_add(struct rd_peer *p, uint32_t psn, uint32_t stag, uint64_t to, uint32_t handle)
{
	struct wire_seg seg = {.opcode = WIRE_OP_ATOMIC_REQ, .last = true, .qn = WIRE_QN_READ_REQ};
	struct wire_atomic_req a = {.op = WIRE_ATOMIC_FETCH_ADD,
				    .id = handle,
				    .stag = stag,
				    .to = to,
				    .add_swap = 1,
				    .add_swap_mask = UINT64_MAX,
				    .compare_mask = UINT64_MAX};
	uint8_t body[WIRE_ATOMIC_REQ_LEN];

	wire_atomic_req_encode(&a, body);
	rd_peer_seg(p, 0, psn, &seg, body, sizeof(body));
}

/* ---- in ---- */

bool rd_peer_get(struct rd_peer *p, struct rd_got *g, unsigned int ms)
{
	static uint8_t buf[65536];
	uint64_t end = rig_now_ms() + ms;

	do {
		struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
		uint64_t now = rig_now_ms();
		ssize_t n;
		int hdr;

		if (poll(&pfd, 1, now < end ? (int)(end - now) : 0) <= 0)
			return false;
		n = recv(p->fd, buf, sizeof(buf), MSG_DONTWAIT);
		if (n < 0)
			continue; /* ICMP's news */
		hdr = wire_rd_decode(&g->h, buf, (size_t)n);
		CHECK_EQ(hdr, WIRE_RD_HDR); /* whatever we do, the target speaks properly */
		g->len = (size_t)n - WIRE_RD_HDR;
		memcpy(g->body, buf + hdr, g->len);
		if (g->h.type <= WIRE_RD_REFUSE)
			CHECK_0(wire_rd_hello_decode(&g->hello, g->body, g->len));
		if (g->h.type == WIRE_RD_DATA && !(g->h.flags & WIRE_RD_SKIP))
			CHECK(wire_rd_seg_decode(&g->seg, &g->h, g->body, g->len) > 0);
		return true;
	} while (rig_now_ms() < end);
	return false;
}

void rd_peer_drain(struct rd_peer *p)
{
	static struct rd_got g;

	for (int i = 0; i < 100000 && rd_peer_get(p, &g, 0); i++)
		if (g.h.type == WIRE_RD_PROBE)
			rd_peer_sack(p, 0, NULL, 0);
}

bool rd_peer_shake(struct rd_peer *p)
{
	static struct rd_got g;
	uint64_t cookie = 0;

	for (int i = 0; i < 20; i++) {
		rd_peer_hello(p, WIRE_RD_INIT, 0, cookie);
		while (rd_peer_get(p, &g, 100)) {
			/* What is meant for an earlier life of ours is answered as it has to be. */
			if (g.h.type > WIRE_RD_REFUSE && g.h.id != p->hello.id)
				rd_peer_put(p,
					    &(struct wire_rd){.type = WIRE_RD_RESET, .id = g.h.id},
					    NULL, 0);
			if (g.h.type > WIRE_RD_REFUSE || g.h.id != p->hello.id)
				continue;
			if (g.h.type == WIRE_RD_REFUSE)
				return false;
			if (g.h.type == WIRE_RD_ACCEPT) {
				p->id = g.hello.id;
				return true;
			}
			cookie = g.hello.cookie;
			break;
		}
	}
	return false;
}

bool rd_peer_listen(struct rd_peer *p, struct rd_got *g, unsigned int ms)
{
	uint64_t end = rig_now_ms() + ms;

	while (rig_now_ms() < end && rd_peer_get(p, g, ms)) {
		if (g->h.type == WIRE_RD_DATA)
			return true;
		if (g->h.type != WIRE_RD_INIT)
			continue;
		if (g->hello.cookie)
			p->id = g->hello.id;
		rd_peer_hello(p, g->hello.cookie ? WIRE_RD_ACCEPT : WIRE_RD_CHALLENGE, g->hello.id,
			      g->hello.cookie ? 0 : 77);
	}
	return false;
}
