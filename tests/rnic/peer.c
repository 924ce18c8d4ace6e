#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include "peer.h"

/* ---- the socket ---- */

void peer_dial(struct peer *p, uint16_t port)
{
	struct sockaddr_in to = {.sin_family = AF_INET,
				 .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
				 .sin_port = htons(port)};
	int on = 1;

	memset(p, 0, offsetof(struct peer, rx));
	p->rx_len = 0;
	p->crc = true;
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	CHECK(p->fd >= 0);
	CHECK_0(setsockopt(p->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)));
	CHECK_0(connect(p->fd, (struct sockaddr *)&to, sizeof(to)));
}

void peer_hang_up(struct peer *p)
{
	close(p->fd);
	p->fd = -1;
}

void peer_write(struct peer *p, const void *bytes, size_t len)
{
	const uint8_t *b = bytes;

	while (len) {
		ssize_t n = send(p->fd, b, len, MSG_NOSIGNAL);

		if (n < 0)
			return;
		b += n;
		len -= (size_t)n;
	}
}

/* More bytes; 0 when there are none in time, -1 at the end. */
static int more(struct peer *p, unsigned int ms)
{
	struct pollfd pfd = {.fd = p->fd, .events = POLLIN};
	ssize_t n;

	if (poll(&pfd, 1, (int)ms) <= 0)
		return 0;
	n = recv(p->fd, p->rx + p->rx_len, sizeof(p->rx) - p->rx_len, 0);
	if (n <= 0)
		return -1;
	p->rx_len += (size_t)n;
	return 1;
}

bool peer_closed(struct peer *p, unsigned int ms)
{
	uint64_t end = rig_now_ms() + ms;

	while (rig_now_ms() < end) {
		p->rx_len = 0;
		if (more(p, (unsigned int)(end - rig_now_ms())) < 0)
			return true;
	}
	return false;
}

/* ---- the handshake ---- */

struct rig_addr peer_addr(const struct end *victim)
{
	return (struct rig_addr){.qpn = PEER_QPN, .psn = PEER_PSN, .gid = end_addr(victim).gid};
}

struct wire_hello peer_hello(const struct end *victim)
{
	return (struct wire_hello){.version = WIRE_HELLO_VERSION,
				   .type = victim->o.type == IBV_QPT_UC ? WIRE_HELLO_UC
									: WIRE_HELLO_RC,
				   .src_qpn = PEER_QPN,
				   .dst_qpn = victim->qp->qp_num,
				   .rq_psn = victim->psn,
				   .dst_addr = INADDR_LOOPBACK};
}

size_t peer_request(const struct wire_hello *h, uint8_t *buf)
{
	struct wire_mpa_hs hs = {.revision = 1, .crc = true};
	int len;

	hs.pd_len = (uint16_t)wire_hello_encode(h, hs.pd);
	len = wire_mpa_hs_encode(&hs, buf, WIRE_MPA_HS_MAX);
	CHECK(len > 0);
	return (size_t)len;
}

int peer_answer(struct peer *p, unsigned int ms)
{
	struct wire_mpa_hs hs;

	for (;;) {
		int used = wire_mpa_hs_decode(&hs, p->rx, p->rx_len);

		if (used > 0) {
			CHECK(hs.reply);
			p->rx_len -= (size_t)used;
			memmove(p->rx, p->rx + used, p->rx_len);
			return !hs.reject;
		}
		CHECK_EQ(used, -EAGAIN);
		if (more(p, ms) <= 0)
			return -1;
	}
}

void peer_meet(struct peer *p, const struct end *victim)
{
	struct wire_hello h = peer_hello(victim);
	uint8_t buf[WIRE_MPA_HS_MAX];

	peer_dial(p, (uint16_t)(victim->qp->qp_num >> 8));
	peer_write(p, buf, peer_request(&h, buf));
	CHECK_EQ(peer_answer(p, RIG_WAIT), 1);
	peer_control(p, WIRE_CTL_PROBE, 0, 0);
}

/* ---- frames ---- */

size_t peer_seal(uint8_t *fpdu, const void *ulpdu, size_t len)
{
	memcpy(fpdu + WIRE_MPA_LEN_HDR, ulpdu, len);
	return wire_mpa_fpdu_seal(fpdu, len, true);
}

void peer_ulpdu(struct peer *p, const void *ulpdu, size_t len)
{
	static uint8_t fpdu[WIRE_MPA_FPDU_MAX];

	peer_write(p, fpdu, peer_seal(fpdu, ulpdu, len));
}

void peer_frame(struct peer *p, const struct wire_seg *seg, const void *payload, size_t len)
{
	static uint8_t ulpdu[WIRE_MPA_ULPDU_MAX];
	size_t hdr = wire_seg_encode(seg, ulpdu);

	if (len)
		memcpy(ulpdu + hdr, payload, len);
	peer_ulpdu(p, ulpdu, hdr + len);
}

void peer_control(struct peer *p, uint8_t type, uint8_t arg, uint32_t seq)
{
	struct wire_ctl ctl = {.type = type, .arg = arg, .seq = seq};
	struct wire_seg seg = {.opcode = WIRE_OP_CONTROL,
			       .last = true,
			       .qn = WIRE_QN_CONTROL,
			       .msn = ++p->ctl_msn};
	uint8_t payload[WIRE_CTL_LEN];

	wire_ctl_encode(&ctl, payload);
	peer_frame(p, &seg, payload, sizeof(payload));
}

bool peer_next(struct peer *p, struct wire_seg *seg, uint8_t *payload, size_t *len, unsigned int ms)
{
	for (;;) {
		const uint8_t *ulpdu;
		struct wire_term why;
		size_t ulpdu_len, need;
		int hdr, used = wire_mpa_fpdu_open(p->rx, p->rx_len, p->crc, &ulpdu, &ulpdu_len,
						   &need);

		if (used > 0) {
			hdr = wire_seg_decode(seg, ulpdu, ulpdu_len, &why);
			CHECK(hdr > 0);
			*len = ulpdu_len - (size_t)hdr;
			memcpy(payload, ulpdu + hdr, *len);
			p->rx_len -= (size_t)used;
			memmove(p->rx, p->rx + used, p->rx_len);
			return true;
		}
		CHECK_EQ(used, -EAGAIN);
		if (more(p, ms) <= 0)
			return false;
	}
}

bool peer_next_data(struct peer *p, struct wire_seg *seg, uint8_t *payload, size_t *len)
{
	while (peer_next(p, seg, payload, len, RIG_WAIT))
		if (seg->opcode != WIRE_OP_CONTROL)
			return true;
	return false;
}

bool peer_next_control(struct peer *p, uint8_t type, struct wire_ctl *ctl)
{
	static uint8_t payload[WIRE_MPA_ULPDU_MAX];
	struct wire_seg seg;
	size_t len;

	while (peer_next(p, &seg, payload, &len, RIG_WAIT)) {
		if (seg.opcode != WIRE_OP_CONTROL)
			continue;
		CHECK_0(wire_ctl_decode(ctl, payload, len));
		if (ctl->type == type)
			return true;
	}
	return false;
}

/* ---- the court ---- */

#define CANARY 0xc5

static struct rig_opts victim_opts(const struct court *c)
{
	struct rig_opts o = rig_defaults();

	(void)c;
	o.buf_len = 0;
	o.timeout = 19;
	return o;
}

void court_open(struct court *c)
{
	struct rig_opts o = rig_defaults();
	struct rig_addr a, b;
	unsigned int all = o.mr_access;
	uint8_t *open;

	memset(c, 0, sizeof(*c));
	rig_open(&c->rig);
	c->honest.rig = c->rig;
	end_make(&c->honest.a, &c->rig, &o);
	end_make(&c->honest.b, &c->rig, &o);
	a = end_addr(&c->honest.a);
	b = end_addr(&c->honest.b);
	end_up(&c->honest.a, &b);
	end_up(&c->honest.b, &a);
	c->side = 128 * 1024;
	c->map = mmap(NULL, 2 * c->side + COURT_OPEN, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(c->map != MAP_FAILED);
	memset(c->map, CANARY, 2 * c->side + COURT_OPEN);
	open = court_memory(c);
	c->open_mr = rnic_reg_mr(c->rig.pd, open, COURT_OPEN, (uintptr_t)open, all);
	/* Regions beside it that exist, but not for the peer. */
	c->closed_mr =
		rnic_reg_mr(c->rig.pd, c->map, 4096, (uintptr_t)c->map, IBV_ACCESS_LOCAL_WRITE);
	c->foreign_pd = rnic_alloc_pd(c->rig.ctx);
	CHECK(c->open_mr && c->closed_mr && c->foreign_pd);
	c->foreign_mr =
		rnic_reg_mr(c->foreign_pd, c->map + 8192, 4096, (uintptr_t)c->map + 8192, all);
	CHECK(c->foreign_mr);
}

void court_close(struct court *c)
{
	CHECK_0(rnic_dereg_mr(c->open_mr));
	CHECK_0(rnic_dereg_mr(c->closed_mr));
	CHECK_0(rnic_dereg_mr(c->foreign_mr));
	CHECK_0(rnic_dealloc_pd(c->foreign_pd));
	munmap(c->map, 2 * c->side + COURT_OPEN);
	end_destroy(&c->honest.a);
	end_destroy(&c->honest.b);
	rig_close(&c->rig);
}

uint8_t *court_memory(const struct court *c)
{
	return c->map + c->side;
}

void court_victim(struct court *c)
{
	struct rig_opts o = victim_opts(c);
	struct rig_addr peer;

	end_make(&c->victim, &c->rig, &o);
	/* its buffer is the open region */
	c->victim.buf = court_memory(c);
	c->victim.mr = c->open_mr;
	peer = peer_addr(&c->victim);
	end_up(&c->victim, &peer);
}

void court_dismiss(struct court *c)
{
	struct ibv_async_event ev;

	c->victim.buf = NULL;
	c->victim.mr = NULL;
	while (wait_event(&c->rig, &ev, 0))
		rnic_ack_async_event(&ev);
	end_destroy(&c->victim);
}

static bool untouched(const uint8_t *p, size_t len)
{
	return p[0] == CANARY && !memcmp(p, p + 1, len - 1);
}

void court_check(struct court *c)
{
	uint64_t n = c->rounds++;

	CHECK(untouched(c->map, c->side));
	CHECK(untouched(c->map + c->side + COURT_OPEN, c->side));
	memcpy(c->honest.a.buf, &n, sizeof(n));
	end_recv(&c->honest.b, n, 1024, 64);
	end_send(&c->honest.a, n, 0, sizeof(n));
	EXPECT_OK(c->honest.b.rcq, n);
	EXPECT_OK(c->honest.a.scq, n);
	CHECK_0(memcmp(c->honest.b.buf + 1024, &n, sizeof(n)));
}
