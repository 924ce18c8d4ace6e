/* Several connections to a peer: all carry their part, and when some fail in the middle of it,
 * messages arrive whole, once, and in order, over the others. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "util_clock.h"
#include "util_rand.h"
#include "ep_rig.h"
#include "msg_rc.h"

#define PATIENCE (20 * UTIL_NS_PER_S)

/* ---- faults ---- */

static struct {
	bool on;
	int me;
	struct util_rand rand;
	uint32_t killed, unsure, twice;        /* connections; completions that were kept secret */
	uint32_t finishes, asked, again, here; /* packets of the kind, seen by this side */
} faults;

/* The last path stays; of the others each side breaks some. */
static bool may_kill(const struct msg_ep *ep, const struct msg_conn *c)
{
	uint32_t n = ep->peers[c->peer].paths ? ep->peers[c->peer].paths->conf.paths : 0;

	return faults.on && c->up && c->path + 1u < n && c->path % 2 == (uint32_t)faults.me;
}

static void kill_conn(struct msg_ep *ep, struct msg_conn *c)
{
	c->tries = 0; /* there is no end to this */
	faults.killed++;
	msg_conn_failed(ep, c);
}

/* Something has arrived, but its connection fails before anybody has been told. */
void __real_msg_stripe_done(struct msg_ep *ep, struct msg_part *part, int err);
void __wrap_msg_stripe_done(struct msg_ep *ep, struct msg_part *part, int err);

void __wrap_msg_stripe_done(struct msg_ep *ep, struct msg_part *part, int err)
{
	const struct msg_paths *paths = ep->peers[msg_rdma_peer(part->op)].paths;
	struct msg_conn *c = paths->way[part->piece.path];
	/* finishes are few */
	uint64_t odds = part->piece.bytes ? 40 : 4;

	if (!err && may_kill(ep, c) && util_rand_below(&faults.rand, odds) == 0) {
		faults.unsure += !part->piece.bytes;
		kill_conn(ep, c);
		err = -EHOSTUNREACH;
	}
	faults.finishes += !part->piece.bytes;
	__real_msg_stripe_done(ep, part, err);
}

bool __real_msg_flow_sent(struct msg_ep *ep, struct msg_tx *tx, int err);
bool __wrap_msg_flow_sent(struct msg_ep *ep, struct msg_tx *tx, int err);

bool __wrap_msg_flow_sent(struct msg_ep *ep, struct msg_tx *tx, int err)
{
	struct msg_conn *c = msg_conn_ready(ep, tx->peer);

	if (!err && c && may_kill(ep, c) && util_rand_below(&faults.rand, 20) == 0) {
		faults.twice++;
		kill_conn(ep, c);
		err = -EHOSTUNREACH;
	}
	return __real_msg_flow_sent(ep, tx, err);
}

void __real_msg_stripe_again(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);
void __wrap_msg_stripe_again(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p);

void __wrap_msg_stripe_again(struct msg_ep *ep, uint32_t src, const struct msg_pkt *p)
{
	faults.again += !p->id2;
	faults.here += p->id2;
	__real_msg_stripe_again(ep, src, p);
}

/* Just so, with whatever is under way. */
static void kill_one(struct side *s)
{
	util_lock(&s->ep->lock);
	for (struct msg_conn *c = s->ep->peers[s->peer].conn; c; c = c->also)
		if (may_kill(s->ep, c) && util_rand_below(&faults.rand, 3) == 0) {
			kill_conn(s->ep, c);
			break;
		}
	util_unlock(&s->ep->lock);
}

/* ---- the two ---- */

static uint32_t up(struct side *s)
{
	uint32_t n = 0;

	util_lock(&s->ep->lock);
	for (struct msg_conn *c = s->ep->peers[s->peer].conn; c; c = c->also)
		n += c->up;
	util_unlock(&s->ep->lock);
	return n;
}

static uint32_t paths_of(struct side *s)
{
	return s->ep->peers[s->peer].paths->conf.paths;
}

static void both_long(struct side *s, uint64_t tag)
{
	struct op send, recv;

	fill(s->tx, LONGEST, tag + (uint64_t)s->me);
	start_recv(s, &recv, s->rx, s->peer, tag, 0, LONGEST);
	start_send(s, &send, s->tx, tag, LONGEST, MSG_OP_TAGGED);
	finish(s, &recv);
	finish(s, &send);
	CHECK(!recv.msg.err && !send.msg.err && recv.msg.len == LONGEST);
	check_filled(s->rx, LONGEST, tag + !s->me);
	meet(s);
}

/* Everything is connected; where only one side has anything to send, its paths are not there. */
static void all_up(struct side *s)
{
	uint64_t end = util_now_ns() + PATIENCE;

	for (uint64_t tag = 1000; !s->ep->peers[s->peer].paths; tag++)
		both_long(s, tag);
	while (up(s) < paths_of(s)) {
		CHECK(util_now_ns() < end);
		msg_progress(s->ep);
	}
	meet(s);
}

/* Nothing is under way, and nobody thinks so. */
static void check_idle(struct side *s)
{
	const struct msg_paths *paths = s->ep->peers[s->peer].paths;

	CHECK(!s->ep->parts_out && list_empty(&s->ep->turns) && list_empty(&s->ep->strips));
	CHECK(!paths || !paths->users);
	for (uint32_t i = 0; paths && i < STRIPE_PATHS_MAX; i++)
		CHECK(!paths->use.out[i] && !paths->state.out[i] && !paths->whole.state.out[i] &&
		      !paths->doubt[i]);
}

static void rig_open(struct side *s, const struct msg_ep_conf *mode)
{
	side_open(s, mode);
	memset(&faults, 0, sizeof(faults));
	faults.me = s->me;
	util_rand_seed(&faults.rand, 77 + (uint64_t)s->me);
	warm_up(s);
}

/* ---- what they do ---- */

/* Until there is something long, there is one connection; then all carry something. */
static void test_all_carry(void **state)
{
	struct op send, recv;
	struct side s;
	bool each = true;

	rig_open(&s, *state);
	start_recv(&s, &recv, s.rx, s.peer, 1, 0, EAGER_MAX + 10);
	start_send(&s, &send, s.tx, 1, EAGER_MAX + 10, MSG_OP_TAGGED);
	finish(&s, &recv);
	finish(&s, &send);
	meet(&s);
	CHECK(!s.ep->peers[s.peer].conn->also && !s.ep->peers[s.peer].paths);
	all_up(&s);
	for (uint64_t tag = 2; tag < 12; tag++)
		both_long(&s, tag);
	for (uint32_t i = 0; i < paths_of(&s); i++)
		each &= s.ep->peers[s.peer].paths->use.path[i].bytes > 0;
	/* Some policies use the best ones only. */
	CHECK(each || s.ep->conf.stripe.batch < s.ep->conf.stripe.paths ||
	      !strcmp(s.ep->conf.stripe.policy->name, "hop"));
	CHECK(!faults.again && !faults.here);
	side_close(&s);
}

/* One finish for each path that has carried something, if nothing fails. */
static void test_finishes(void **state)
{
	uint64_t before[STRIPE_PATHS_MAX];
	uint32_t used = 0;
	struct side s;

	rig_open(&s, *state);
	all_up(&s);
	for (uint32_t i = 0; i < paths_of(&s); i++)
		before[i] = s.ep->peers[s.peer].paths->use.path[i].bytes;
	faults.finishes = 0;
	both_long(&s, 1);
	for (uint32_t i = 0; i < paths_of(&s); i++)
		used += s.ep->peers[s.peer].paths->use.path[i].bytes > before[i];
	CHECK(used && faults.finishes == used);
	side_close(&s);
}

/* Nothing tells of losses between connected peers, so auto leaves it at one connection. */
static void test_auto(void **state)
{
	struct side s;

	rig_open(&s, *state);
	s.ep->conf.stripe_auto = true;
	for (uint64_t tag = 1; tag < 4; tag++)
		both_long(&s, tag);
	CHECK(!s.ep->peers[s.peer].conn->also && !s.ep->peers[s.peer].paths);
	side_close(&s);
}

enum { FLIGHT = 6, ROUNDS = 40, AREA = LONGEST / FLIGHT };

static size_t length(uint32_t round, uint32_t i)
{
	static const size_t sizes[] = {10, 3000, EAGER_MAX + 1, 3 * EAGER_MAX, 200000, AREA};

	return sizes[(round + i) % 6] - (round * 5 + i) % 9;
}

/* All with one tag: the order tells which is which. */
static void test_failures(void **state)
{
	const struct msg_ep_conf *mode = *state;
	struct side s;

	rig_open(&s, *state);
	all_up(&s);
	faults.on = true;
	for (uint32_t round = 0; round < ROUNDS; round++) {
		struct op send[FLIGHT], recv[FLIGHT];

		for (uint32_t i = 0; i < FLIGHT; i++)
			start_recv(&s, &recv[i], s.rx + i * AREA, s.peer, 5, 0, AREA);
		if (round % 2)
			meet(&s);
		for (uint32_t i = 0; i < FLIGHT; i++) {
			fill(s.tx + i * AREA, length(round, i), round + i + (uint64_t)s.me);
			start_send(&s, &send[i], s.tx + i * AREA, 5, length(round, i),
				   MSG_OP_TAGGED | (i % 2 ? MSG_OP_DELIVER : 0));
			if (util_rand_below(&faults.rand, 8) == 0)
				kill_one(&s);
		}
		for (uint32_t i = 0; i < FLIGHT; i++) {
			finish(&s, &recv[i]);
			finish(&s, &send[i]);
			CHECK(!recv[i].msg.err && !send[i].msg.err);
			CHECK(recv[i].msg.len == length(round, i));
			check_filled(s.rx + i * AREA, length(round, i),
				     round + i + (uint64_t)!s.me);
		}
		meet(&s);
	}
	faults.on = false;
	printf("%d: %u killed, %u finishes and %u packets in doubt; again %u, here %u\n", s.me,
	       faults.killed, faults.unsure, faults.twice, faults.again, faults.here);
	CHECK(faults.killed);
	/* Messages were asked about, and written again or not. */
	CHECK(s.me || !mode->write || faults.again || faults.here);
	meet(&s);
	/* What has failed is tried again, and comes back. */
	for (struct msg_conn *c = s.ep->peers[s.peer].conn; c; c = c->also)
		c->tries = 0;
	all_up(&s);
	both_long(&s, 2000);
	check_idle(&s);
	side_close(&s);
}

/* Memory of the peer, read and written by the application. */
static void test_rma_failures(void **state)
{
	struct {
		uint64_t addr;
		uint32_t key;
	} own, other;
	struct msg_mem *mr;
	struct side s;

	rig_open(&s, *state);
	all_up(&s);
	CHECK(!msg_reg(s.dev, s.rx, LONGEST, true, &mr, &own.key));
	own.addr = (uintptr_t)s.rx;
	swap(&s, &own, &other, sizeof(own));
	faults.on = true;
	for (uint64_t round = 0; round < 40; round++) {
		size_t len = round % 4 ? LONGEST / 2 - round : 100 + round;
		struct op op = {.msg = {.kind = MSG_OP_WRITE,
					.peer = s.peer,
					.iov = {{s.tx, len}},
					.n_iov = 1,
					.remote = {{other.addr, len, other.key}},
					.n_remote = 1}};

		fill(s.tx, len, round + (uint64_t)s.me);
		CHECK(!msg_rma(s.ep, &op.msg));
		if (round % 3 == 0)
			kill_one(&s);
		finish(&s, &op);
		CHECK(!op.msg.err);
		meet(&s);
		check_filled(s.rx, len, round + (uint64_t)!s.me);
		memset(s.tx, 0, len);
		op.done = false;
		op.msg.kind = MSG_OP_READ;
		CHECK(!msg_rma(s.ep, &op.msg));
		finish(&s, &op);
		CHECK(!op.msg.err);
		check_filled(s.tx, len, round + (uint64_t)s.me);
		meet(&s);
	}
	faults.on = false;
	CHECK(faults.killed);
	meet(&s);
	check_idle(&s);
	msg_dereg(mr);
	side_close(&s);
}

/* With the last connection the peer is gone, and everything ends. */
static void test_none_left(void **state)
{
	struct op send, recv;
	struct side s;

	rig_open(&s, *state);
	all_up(&s);
	start_recv(&s, &recv, s.rx, s.peer, 8, 0, LONGEST);
	meet(&s);
	start_send(&s, &send, s.tx, s.me ? 9 : 8, LONGEST, MSG_OP_TAGGED);
	if (!s.me) {
		util_lock(&s.ep->lock);
		for (struct msg_conn *c = s.ep->peers[s.peer].conn; c; c = c->also)
			msg_conn_failed(s.ep, c);
		util_unlock(&s.ep->lock);
		CHECK(s.ep->peers[s.peer].dead);
	}
	finish(&s, &send);
	CHECK(send.msg.err == -EHOSTUNREACH);
	finish(&s, &recv);
	CHECK(recv.msg.err == -EHOSTUNREACH);
	meet(&s);
	check_idle(&s);
	side_close(&s);
}

int main(void)
{
	static struct msg_ep_conf modes[] = {
		{.write = false}, {.write = true}, {.speculate = true, .write = true}};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_all_carry, &modes[0]),
		cmocka_unit_test_prestate(test_all_carry, &modes[1]),
		cmocka_unit_test_prestate(test_all_carry, &modes[2]),
		cmocka_unit_test_prestate(test_finishes, &modes[1]),
		cmocka_unit_test_prestate(test_auto, &modes[0]),
		cmocka_unit_test_prestate(test_auto, &modes[1]),
		cmocka_unit_test_prestate(test_failures, &modes[0]),
		cmocka_unit_test_prestate(test_failures, &modes[1]),
		cmocka_unit_test_prestate(test_failures, &modes[2]),
		cmocka_unit_test_prestate(test_rma_failures, &modes[0]),
		cmocka_unit_test_prestate(test_none_left, &modes[0]),
		cmocka_unit_test_prestate(test_none_left, &modes[1]),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
