/* Receives that are cancelled while their sender computes: that is over at once, and whatever the
 * sender does later, not knowing of it, is as if they had never been posted.
 *
 * Side 1 receives. Side 0 sends, makes no calls between hear() and tell(), and sends *blindly*
 * where a message must go by the RTRs that it has, whatever has come since. */
#include <errno.h>
#include <endian.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_rand.h"
#include "ep_rig.h"
#include "msg_ep.h"

#define LEN  100000
#define MEG  (1u << 20)
#define SOON (200 * UTIL_NS_PER_MS)

static const struct msg_ep_conf speculating = {.speculate = true, .usage = 0};

static void tell(struct side *s)
{
	CHECK(write(s->sock, "t", 1) == 1);
}

static void hear(struct side *s)
{
	char c;

	CHECK(read(s->sock, &c, 1) == 1);
}

static void open_sides(struct side *s)
{
	side_open(s, &speculating);
	warm_up(s);
}

/* ---- the sender ---- */

static void until_came(struct side *s, uint64_t n)
{
	uint64_t end = util_now_ns() + 20 * UTIL_NS_PER_S;
	struct msg_stats st;

	do {
		CHECK(util_now_ns() < end);
		msg_progress(s->ep);
		msg_ep_stats(s->ep, &st);
	} while (st.rtr_came < n);
}

static struct msg_ledger *ledger(struct side *s)
{
	return &s->ep->peers[s->peer].ledger;
}

/* Only announces it, unless `whole`. Returns the RTR. */
static struct msg_rtr put_blindly(struct side *s, struct op *op, const void *buf, size_t len,
				  bool whole)
{
	const struct msg_rtr *next;
	struct msg_rtr rtr;

	*op = (struct op){.msg = {.kind = MSG_OP_SEND,
				  .flags = MSG_OP_TAGGED,
				  .peer = s->peer,
				  .tag = 1,
				  .iov = {{(void *)buf, len}},
				  .n_iov = 1,
				  .room = len}};
	list_init(&op->msg.link);
	util_lock(&s->ep->lock);
	next = msg_ledger_next(ledger(s), 1, len, true);
	CHECK(next);
	CHECK(!msg_put_send(s->ep, &op->msg, next));
	if (whole)
		msg_rdma_go_on(s->ep, &op->msg);
	CHECK(msg_ledger_sent(ledger(s), 1, len, true, &rtr));
	util_unlock(&s->ep->lock);
	return rtr;
}

static void send_blindly(struct side *s, struct op *op, size_t i, size_t len)
{
	fill(s->tx + i * LEN, len, i);
	put_blindly(s, op, s->tx + i * LEN, len, true);
}

/* ---- the receiver ---- */

static unsigned int ghosts(struct side *s)
{
	struct msg_op *op;
	unsigned int n = 0;

	util_lock(&s->ep->lock);
	list_for_each (op, &s->ep->ghosts, link)
		n++;
	util_unlock(&s->ep->lock);
	return n;
}

static void until_ghosts(struct side *s, unsigned int n)
{
	uint64_t end = util_now_ns() + 20 * UTIL_NS_PER_S;

	while (ghosts(s) != n) {
		CHECK(util_now_ns() < end);
		msg_progress(s->ep);
	}
}

static void post(struct side *s, struct op *op, size_t i)
{
	memset(s->rx + i * LEN, 0x55, LEN);
	start_recv(s, op, s->rx + i * LEN, s->peer, 1, 0, LEN);
}

static void cancel_soon(struct side *s, struct op *op)
{
	uint64_t begin = util_now_ns();

	CHECK(!msg_cancel(s->ep, &op->msg));
	finish(s, op);
	CHECK(op->msg.err == -ECANCELED);
	CHECK(util_now_ns() - begin < SOON);
}

static void untouched(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		CHECK(p[i] == 0x55);
}

/* Message i is in the buffer of receive `at`. */
static void has(struct side *s, struct op *op, size_t at, size_t i, size_t len)
{
	finish(s, op);
	CHECK(!op->msg.err && op->msg.len == len && op->msg.src == s->peer && op->msg.tag == 1);
	check_filled(s->rx + at * LEN, len, i);
	untouched(s->rx + at * LEN + len, LEN - len);
}

/* ---- tests ---- */

/* Nothing is sent before it; the memory can go, and the message finds the next receive. */
static void test_alone(void **state)
{
	struct op op, next;
	struct side s;
	void *buf;

	(void)state;
	open_sides(&s);
	if (s.me) {
		buf = mmap(NULL, MEG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(buf != MAP_FAILED);
		start_recv(&s, &op, buf, s.peer, 1, 0, MEG);
		cancel_soon(&s, &op);
		CHECK(ghosts(&s) == 1);
		CHECK(!munmap(buf, MEG));
		start_recv(&s, &next, s.rx, s.peer, 1, 0, MEG);
		tell(&s);
		finish(&s, &next);
		CHECK(!next.msg.err && next.msg.len == MEG);
		check_filled(s.rx, MEG, 3);
		until_ghosts(&s, 0);
	} else {
		hear(&s);
		until_came(&s, 2);
		CHECK(ledger(&s)->n_held == 1); /* which the withdrawal was before */
		fill(s.tx, MEG, 3);
		start_send(&s, &op, s.tx, 1, MEG, MSG_OP_TAGGED);
		finish(&s, &op);
	}
	side_close(&s);
}

/* The first of three; the sender uses all three RTRs afterwards. The messages go to the second, the
 * third, and, seen before and cut, to one that comes later. */
static void crossed_receiver(struct side *s)
{
	struct op r[3], late,
		peek = {.msg = {.kind = MSG_OP_RECV,
				.flags = MSG_OP_TAGGED,
				.peer = s->peer,
				.tag = 1}};
	struct msg_early *claimed = NULL;

	for (size_t i = 0; i < 3; i++)
		post(s, &r[i], i);
	hear(s);
	cancel_soon(s, &r[0]);
	CHECK(ghosts(s) == 3);
	tell(s);
	has(s, &r[1], 1, 0, LEN);
	has(s, &r[2], 2, 1, LEN - 1);
	while (msg_peek(s->ep, &peek.msg, &claimed) == -ENOMSG)
		;
	CHECK(peek.msg.len == LEN - 2 && claimed);
	memset(s->rx + 3 * LEN, 0x55, LEN);
	late = peek;
	late.msg.iov[0] = (struct iovec){s->rx + 3 * LEN, 10000};
	late.msg.iov[1] = (struct iovec){s->rx + 3 * LEN + 10000, 20000};
	late.msg.n_iov = 2;
	CHECK(!msg_recv_claimed(s->ep, &late.msg, claimed));
	finish(s, &late);
	CHECK(late.msg.err == -EMSGSIZE && late.msg.len == 30000 && late.msg.over == LEN - 30002);
	check_filled(s->rx + 3 * LEN, 30000, 2);
	untouched(s->rx + 3 * LEN + 30000, LEN - 30000);
	untouched(s->rx, LEN);
	until_ghosts(s, 0);
	CHECK(!s->ep->peers[s->peer].out);
}

static void test_crossed(void **state)
{
	struct op send[3];
	struct side s;

	(void)state;
	open_sides(&s);
	if (s.me) {
		crossed_receiver(&s);
	} else {
		until_came(&s, 3);
		tell(&s);
		hear(&s);
		for (size_t i = 0; i < 3; i++)
			send_blindly(&s, &send[i], i, LEN - i);
		for (size_t i = 0; i < 3; i++)
			finish(&s, &send[i]);
	}
	side_close(&s);
}

/* Those behind have new RTRs before the sender knows that the old ones are gone; it uses one of
 * those, and then one of these. */
static void test_again(void **state)
{
	struct op op[5];
	struct msg_stats st;
	struct side s;

	(void)state;
	open_sides(&s);
	if (s.me) {
		for (size_t i = 0; i < 3; i++)
			post(&s, &op[i], i);
		hear(&s);
		cancel_soon(&s, &op[0]);
		cancel_soon(&s, &op[2]);
		post(&s, &op[3], 3);
		post(&s, &op[4], 4);
		CHECK(s.ep->peers[s.peer].out == 5);
		tell(&s);
		has(&s, &op[1], 1, 0, LEN);
		has(&s, &op[3], 3, 1, LEN);
		has(&s, &op[4], 4, 2, LEN);
		untouched(s.rx, LEN);
		untouched(s.rx + 2 * LEN, LEN);
		until_ghosts(&s, 0);
	} else {
		until_came(&s, 3);
		tell(&s);
		hear(&s);
		send_blindly(&s, &op[0], 0, LEN);
		until_came(&s, 5);
		for (size_t i = 1; i < 3; i++) {
			fill(s.tx + i * LEN, LEN, i);
			start_send(&s, &op[i], s.tx + i * LEN, 1, LEN, MSG_OP_TAGGED);
		}
		for (size_t i = 0; i < 3; i++)
			finish(&s, &op[i]);
		msg_ep_stats(s.ep, &st);
		CHECK(st.put == 3 && !st.read);
	}
	side_close(&s);
}

/* A receive into which something was written has its message, and can not be cancelled; nor can
 * one ahead of it. */
static void test_begun(void **state)
{
	struct op op[2];
	struct side s;

	(void)state;
	open_sides(&s);
	if (s.me) {
		post(&s, &op[0], 0);
		post(&s, &op[1], 1);
		hear(&s);
		/* The device places data while nobody looks at announcements. */
		for (uint64_t end = util_now_ns() + 20 * UTIL_NS_PER_S; s.rx[2 * LEN - 1] == 0x55;)
			CHECK(util_now_ns() < end);
		CHECK(!msg_cancel(s.ep, &op[0].msg) && !op[0].done);
		has(&s, &op[0], 0, 0, LEN);
		has(&s, &op[1], 1, 1, LEN);
		until_ghosts(&s, 0);
	} else {
		until_came(&s, 2);
		fill(s.tx + LEN, LEN, 1);
		CHECK(s.tx[2 * LEN - 1] != 0x55);
		send_blindly(&s, &op[0], 0, LEN);
		send_blindly(&s, &op[1], 1, LEN);
		tell(&s);
		finish(&s, &op[0]);
		finish(&s, &op[1]);
	}
	side_close(&s);
}

/* However often: no more RTRs and ghosts than one peer may have. */
static void bounded_receiver(struct side *s)
{
	enum { N = 500 };
	struct op *op = calloc(N, sizeof(*op));
	struct msg_stats st;
	size_t n = 0;

	CHECK(op);
	do {
		CHECK(n < N - 10);
		post(s, &op[n++], 0);
		msg_ep_stats(s->ep, &st);
	} while (st.rtr_sent < MSG_LEDGER_HELD);
	hear(s);
	cancel_soon(s, &op[0]);
	CHECK(ghosts(s) == MSG_LEDGER_HELD);
	for (size_t i = 0; i < 10; i++)
		post(s, &op[n++], 0);
	for (size_t i = 1; i < n; i++)
		cancel_soon(s, &op[i]);
	msg_ep_stats(s->ep, &st);
	CHECK(st.rtr_sent == MSG_LEDGER_HELD && ghosts(s) == MSG_LEDGER_HELD);
	tell(s);
	until_ghosts(s, 0);
	post(s, &op[0], 0);
	meet(s);
	has(s, &op[0], 0, 0, LEN);
	free(op);
}

static void test_bounded(void **state)
{
	struct side s;
	struct op op;

	(void)state;
	open_sides(&s);
	if (s.me) {
		bounded_receiver(&s);
	} else {
		until_came(&s, MSG_LEDGER_HELD);
		tell(&s);
		hear(&s);
		meet(&s);
		fill(s.tx, LEN, 0);
		start_send(&s, &op, s.tx, 1, LEN, MSG_OP_TAGGED);
		finish(&s, &op);
	}
	side_close(&s);
}

/* ---- peers that do not keep to the rules ---- */

static void pkt(struct side *s, enum msg_type type, uint32_t id, uint64_t len)
{
	struct msg_pkt p = {.type = (uint8_t)type,
			    .flags = MSG_F_TAGGED,
			    .tag = 1,
			    .len = len,
			    .id = id,
			    .id2 = id};

	util_lock(&s->ep->lock);
	CHECK(!msg_tx_post(s->ep, s->peer, &p, NULL, 0));
	util_unlock(&s->ep->lock);
}

static void notice(struct side *s, uint32_t id)
{
	struct ibv_send_wr wr = {.wr_id = msg_wr_peer(s->peer, MSG_WR_PEER),
				 .opcode = IBV_WR_RDMA_WRITE_WITH_IMM,
				 .imm_data = htobe32(id)};

	util_lock(&s->ep->lock);
	CHECK(!s->ep->port->post(s->ep, s->peer, NULL, &wr));
	util_unlock(&s->ep->lock);
}

static void hostile_sender(struct side *s)
{
	uint32_t id[4];

	until_came(s, 4);
	for (int i = 0; i < 4; i++)
		id[i] = ledger(s)->held[i].rtr.id;
	tell(s);
	hear(s);
	notice(s, id[0]);                /* nothing was announced: ignored */
	pkt(s, MSG_PUT, id[0], LEN);     /* for the second receive */
	pkt(s, MSG_PUT, id[0], LEN);     /* once more: for the third, which fails */
	pkt(s, MSG_ANSWER, id[0], 0);    /* too late to say that it is not used */
	notice(s, id[0]);                /* the second has it, empty */
	notice(s, id[0]);                /* nobody's */
	pkt(s, MSG_PUT, id[1], 2 * LEN); /* longer than it may be: the fourth fails */
	pkt(s, MSG_PUT, id[1], LEN);     /* of use still, but there is no receive: it waits */
	pkt(s, MSG_ANSWER, id[2], 0);
	pkt(s, MSG_ANSWER, id[2], 0);
	pkt(s, MSG_PUT, id[2], LEN); /* lost */
	meet(s);
}

static void test_hostile(void **state)
{
	struct op r[4];
	struct side s;

	(void)state;
	open_sides(&s);
	/* The parent receives: a sanitizer sees what it leaves behind. */
	if (!s.me) {
		for (size_t i = 0; i < 4; i++)
			post(&s, &r[i], i);
		hear(&s);
		cancel_soon(&s, &r[0]);
		CHECK(ghosts(&s) == 4);
		tell(&s);
		finish(&s, &r[1]);
		CHECK(!r[1].msg.err && r[1].msg.len == LEN);
		for (size_t i = 0; i < LEN; i++)
			CHECK(!s.rx[LEN + i]);
		finish(&s, &r[2]);
		finish(&s, &r[3]);
		CHECK(r[2].msg.err == -EPROTO && r[3].msg.err == -EPROTO);
		untouched(s.rx + 2 * LEN, 2 * LEN);
		meet(&s);
	} else {
		hostile_sender(&s);
	}
	/* One message waits for its notice, one RTR for its answer: closing ends them. */
	side_close(&s);
}

/* ---- death ---- */

static void test_death(void **state)
{
	struct op op[3], more;
	struct msg_stats st;
	struct side s;

	(void)state;
	open_sides(&s);
	/* The parent lives on, so here it is the one that receives. */
	if (s.me) {
		until_came(&s, 3);
		tell(&s);
		hear(&s);
		put_blindly(&s, &op[0], s.tx, LEN, false);
		put_blindly(&s, &op[1], s.tx, LEN, false);
		meet(&s);
		pause();
	}
	for (size_t i = 0; i < 3; i++)
		post(&s, &op[i], i);
	hear(&s);
	cancel_soon(&s, &op[2]);
	cancel_soon(&s, &op[0]);
	CHECK(ghosts(&s) == 3);
	tell(&s);
	meet(&s);
	for (st.unexpected = 0; !st.unexpected; msg_ep_stats(s.ep, &st))
		msg_progress(s.ep);
	CHECK(!kill(s.child, SIGKILL));
	CHECK(waitpid(s.child, NULL, 0) == s.child);
	alarm(60);
	try_send(&s, &more, s.tx, 3, 100, MSG_OP_TAGGED | MSG_OP_DELIVER);
	finish(&s, &more);
	finish(&s, &op[1]);
	CHECK(more.msg.err == -EHOSTUNREACH && op[1].msg.err == -EHOSTUNREACH);
	CHECK(ghosts(&s) == 1); /* of the message that nobody has received */
	post(&s, &more, 0);
	finish(&s, &more);
	CHECK(more.msg.err == -EHOSTUNREACH && !more.msg.len && !ghosts(&s));
	untouched(s.rx, 3 * LEN);
	side_free(&s);
	alarm(0);
}

/* ---- as chance will have it ---- */

enum { ROUNDS = 200, WINDOW = 8 };

static void storm_send(struct side *s, struct util_rand *r, uint32_t *sent)
{
	uint32_t n = (uint32_t)util_rand_below(r, WINDOW + 1);
	struct op op[WINDOW];

	CHECK(write(s->sock, &n, sizeof(n)) == sizeof(n));
	hear(s);
	for (uint64_t i = util_rand_below(r, 20); i; i--)
		msg_progress(s->ep);
	for (uint32_t i = 0; i < n; i++, ++*sent) {
		size_t len = util_rand_below(r, 4) ? LEN - i : 100;
		bool blind;

		fill(s->tx + i * LEN, len, *sent);
		util_lock(&s->ep->lock);
		blind = util_rand_below(r, 4) &&
			msg_ledger_next(ledger(s), 1, len, len > EAGER_MAX);
		util_unlock(&s->ep->lock);
		if (blind)
			put_blindly(s, &op[i], s->tx + i * LEN, len, true);
		else
			start_send(s, &op[i], s->tx + i * LEN, 1, len, MSG_OP_TAGGED);
	}
	for (uint32_t i = 0; i < n; i++)
		finish(s, &op[i]);
}

/* Receives in their order have messages in theirs; of those that are cancelled nothing is seen. */
static uint32_t storm_recv(struct side *s, struct util_rand *r, uint32_t *got)
{
	struct op op[3 * WINDOW];
	uint32_t n, posted = WINDOW, came = 0, cancelled = 0;

	CHECK(read(s->sock, &n, sizeof(n)) == sizeof(n));
	for (uint32_t i = 0; i < WINDOW; i++)
		post(s, &op[i], i);
	tell(s);
	for (uint64_t i = util_rand_below(r, 40); i; i--)
		msg_progress(s->ep);
	for (uint32_t i = 0; i < WINDOW; i++)
		if (util_rand_below(r, 3) == 0)
			msg_cancel(s->ep, &op[i].msg);
	for (; posted < 2 * WINDOW; posted++)
		post(s, &op[posted], posted);
	for (uint32_t i = 0; i < posted; i++) {
		if (came == n && !op[i].done)
			msg_cancel(s->ep, &op[i].msg);
		finish(s, &op[i]);
		if (op[i].msg.err == -ECANCELED) {
			untouched(s->rx + i * LEN, LEN);
			cancelled++;
			continue;
		}
		CHECK(!op[i].msg.err);
		has(s, &op[i], i, *got + came, op[i].msg.len);
		came++;
	}
	CHECK(came == n);
	*got += came;
	return cancelled;
}

static void test_storm(void **state)
{
	uint32_t messages = 0, cancelled = 0, other;
	uint64_t seed = 4711;
	struct util_rand r;
	struct side s;

	(void)state;
	open_sides(&s);
	util_rand_seed(&r, seed + (uint64_t)s.me);
	for (int i = 0; i < ROUNDS; i++) {
		if (s.me)
			cancelled += storm_recv(&s, &r, &messages);
		else
			storm_send(&s, &r, &messages);
		meet(&s);
	}
	swap(&s, &messages, &other, sizeof(other));
	CHECK(messages == other && (cancelled || !s.me));
	side_close(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_alone),   cmocka_unit_test(test_crossed),
		cmocka_unit_test(test_again),   cmocka_unit_test(test_begun),
		cmocka_unit_test(test_bounded), cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_death),   cmocka_unit_test(test_storm),
	};

	/* Registrations that others use, too, are not moved. */
	setenv("TEST_MSG_CACHE", "off", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
