#include <poll.h>
#include <sys/eventfd.h>
#include "rd_ring.h"

void rd_ring_open(struct rd_ring *r)
{
	memset(r, 0, sizeof(*r));
	stage_open(&r->s, false);
	CHECK_0(posix_memalign((void **)&r->guard, 4096, RING_SPAN));
	memset(r->guard, RING_GUARD, RING_SPAN);
	r->mr = rnic_reg_mr(r->s.p.rig.pd, r->guard + RING_AT, RING_LEN,
			    (uintptr_t)r->guard + RING_AT, r->s.p.b.o.mr_access);
	CHECK(r->mr);
	r->bell = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	CHECK(r->bell >= 0);
	r->size = 256 << 10;
	stage_good(&r->s);
}

void rd_ring_close(struct rd_ring *r)
{
	shm_link_close(&r->link);
	CHECK_0(rnic_dereg_mr(r->mr));
	free(r->guard);
	close(r->bell);
	stage_close(&r->s);
}

/* ---- links ---- */

/* Everybody can ask for it. */
static uint64_t life_of(struct end *e)
{
	static struct rd_got g;
	struct rd_peer spy;

	rd_peer_open(&spy, e);
	rd_peer_hello(&spy, WIRE_RD_INIT, 0, 0);
	CHECK(rd_peer_get(&spy, &g, 2000));
	CHECK_EQ(g.h.type, WIRE_RD_CHALLENGE);
	rd_peer_close(&spy);
	return g.hello.life;
}

void rd_ring_meet(struct rd_ring *r)
{
	struct rd_peer *h = &r->s.h;
	uint64_t life = life_of(&r->s.p.b);
	struct pollfd p;

	shm_link_close(&r->link);
	r->seq = r->ack = r->done = 0;
	r->found = false;
	rd_peer_new_life(h);
	h->hello.life %= life; /* the lower one connects */
	CHECK(rd_peer_shake(h));
	CHECK_0(shm_link_connect(&r->link, life, h->hello.life, r->size, r->bell));
	p = (struct pollfd){.fd = r->link.fd, .events = POLLIN};
	CHECK_EQ(poll(&p, 1, RIG_WAIT), 1);
	CHECK_EQ(shm_link_input(&r->link), 1);
	CHECK(rd_ring_get(r, REC_WORD, 2000)); /* it knows whose link that is */
}

void rd_ring_drop(struct rd_ring *r)
{
	shm_link_close(&r->link);
	/* The pair is over, too, unless the link was never used. */
	rd_peer_say(&r->s.h, WIRE_RD_BYE, 0, 0, NULL, 0);
}

void rd_ring_forgotten(const struct rd_ring *r)
{
	uint64_t end = rig_now_ms() + RIG_WAIT;

	while (rd_stats(&r->s.p.b).peers > 1 && rig_now_ms() < end)
		usleep(100);
	CHECK_EQ(rd_stats(&r->s.p.b).peers, 1);
}

void rd_ring_leave(struct rd_ring *r)
{
	rd_ring_drop(r);
	rd_ring_forgotten(r);
}

void rd_ring_introduce(struct rd_ring *r)
{
	struct rec h = {.op = REC_WORD}, found = {.op = REC_FOUND, .imm = 1};
	uint64_t body[2];

	r->word = util_rand_next(rig_rand());
	body[0] = (uintptr_t)&r->word;
	body[1] = r->word;
	CHECK(rd_ring_put(r, &h, body, sizeof(body), NULL, 0));
	CHECK(rd_ring_get(r, REC_FOUND, 2000));
	r->found = r->last.imm;
	CHECK(rd_ring_put(r, &found, NULL, 0, NULL, 0));
}

/* ---- records ---- */

bool rd_ring_raw(struct rd_ring *r, const void *data, size_t len)
{
	uint64_t end = rig_now_ms() + 2000;
	void *to;

	CHECK(len <= shm_ring_max(r->size));
	while (!(to = shm_ring_reserve(&r->link.tx, (uint32_t)len))) {
		if (shm_link_input(&r->link) < 0)
			return false;
		CHECK(rig_now_ms() < end);
		while (rd_ring_get(r, 0, 0))
			;
		usleep(50);
	}
	if (len)
		memcpy(to, data, len);
	shm_ring_commit(&r->link.tx, (uint32_t)len);
	shm_link_ring(&r->link);
	return true;
}

bool rd_ring_put(struct rd_ring *r, const struct rec *h, const void *a, size_t a_len, const void *b,
		 size_t b_len)
{
	static uint8_t buf[65536];

	CHECK(sizeof(*h) + a_len + b_len <= sizeof(buf));
	memcpy(buf, h, sizeof(*h));
	if (a_len)
		memcpy(buf + sizeof(*h), a, a_len);
	if (b_len)
		memcpy(buf + sizeof(*h) + a_len, b, b_len);
	return rd_ring_raw(r, buf, sizeof(*h) + a_len + b_len);
}

/* Whatever we do to it, the target writes proper records. */
static bool take(struct rd_ring *r)
{
	const uint8_t *rec;
	uint32_t len;
	int ret = shm_ring_peek(&r->link.rx, (const void **)&rec, &len);

	if (ret != 1)
		return false;
	CHECK(len >= sizeof(r->last) && len <= sizeof(r->last) + sizeof(r->body));
	memcpy(&r->last, rec, sizeof(r->last));
	memcpy(r->body, rec + sizeof(r->last), len - sizeof(r->last));
	shm_ring_release(&r->link.rx);
	shm_link_ring_room(&r->link);
	r->done = r->last.ack;
	return true;
}

bool rd_ring_get(struct rd_ring *r, enum rec_op op, unsigned int ms)
{
	uint64_t end = rig_now_ms() + ms;

	do {
		while (take(r))
			if (!op || r->last.op == op)
				return true;
		if (ms)
			usleep(20);
	} while (rig_now_ms() < end);
	return false;
}

void rd_ring_greet(struct rd_ring *r)
{
	static struct rd_got g;
	struct rd_peer *h = &r->s.h;

	for (int i = 0; i < 100 && rd_peer_get(h, &g, 0); i++) {
		bool cookie = g.h.type == WIRE_RD_INIT && g.hello.cookie;

		if (g.h.type == WIRE_RD_PROBE)
			rd_peer_sack(h, 0, NULL, 0);
		if (g.h.type != WIRE_RD_INIT)
			continue;
		if (cookie)
			h->id = g.hello.id;
		rd_peer_hello(h, cookie ? WIRE_RD_ACCEPT : WIRE_RD_CHALLENGE, g.hello.id,
			      cookie ? 0 : 77);
	}
}

void rd_ring_want(struct rd_ring *r, enum rec_op op)
{
	uint64_t end = rig_now_ms() + 2000;

	while (!rd_ring_get(r, op, 0)) {
		CHECK(rig_now_ms() < end);
		rd_ring_greet(r);
	}
}

struct rec_target rd_ring_target(const struct rd_ring *r, uint64_t off)
{
	return (struct rec_target){
		.addr = (uintptr_t)r->guard + RING_AT + off, .rkey = r->mr->rkey, .handle = 1};
}

bool rd_ring_write(struct rd_ring *r, uint8_t flags, uint32_t len, uint32_t off, size_t n)
{
	static const uint8_t data[32768] = {0xee};
	struct rec h = {.op = REC_WRITE,
			.flags = flags,
			.seq = r->seq + 1,
			.ack = r->ack,
			.len = len,
			.off = off};
	struct rec_target t = rd_ring_target(r, 0);

	r->seq += !!(flags & REC_LAST);
	return rd_ring_put(r, &h, &t, sizeof(t), data, n);
}

/* ---- checks ---- */

bool rd_ring_gone(struct rd_ring *r, unsigned int ms)
{
	uint64_t end = rig_now_ms() + ms;

	do {
		if (shm_link_input(&r->link) < 0)
			return true;
		usleep(50);
	} while (rig_now_ms() < end);
	return false;
}

void rd_ring_check_guard(const struct rd_ring *r)
{
	for (size_t i = 0; i < RING_SPAN; i++)
		if (i < RING_AT || i >= RING_AT + RING_LEN)
			CHECK_EQ(r->guard[i], RING_GUARD);
}

void rd_ring_check_gone(struct rd_ring *r)
{
	CHECK(rd_ring_gone(r, 2000));
	rd_ring_leave(r);
	rd_ring_check_guard(r);
	stage_good(&r->s);
}

void rd_ring_check_up(struct rd_ring *r)
{
	struct rec h = {.op = REC_VOID, .seq = ++r->seq, .ack = r->ack};
	uint64_t end = rig_now_ms() + 2000;

	CHECK(rd_ring_put(r, &h, NULL, 0, NULL, 0));
	while (r->done != r->seq && rig_now_ms() < end)
		rd_ring_get(r, 0, 1);
	CHECK_EQ(r->done, r->seq);
	CHECK(!rd_ring_gone(r, 0));
	rd_ring_check_guard(r);
	stage_good(&r->s);
}
