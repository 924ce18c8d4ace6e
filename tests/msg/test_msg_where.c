/* Endpoints that have several addresses: they are asked for, tried, and used; and nothing that a
 * peer says about its own does harm. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util_clock.h"
#include "ep_rig.h"
#include "msg_ep.h"

#define LEN (64u << 10)

static const char *const addrs[2] = {"127.0.1.1,127.0.1.2,127.0.1.3",
				     "127.0.2.1,127.0.2.2,127.0.2.3"};

/* ---- what the second one answers ---- */

static enum { HONEST, SILENT, LIAR } answers;
static uint32_t questions;

void __real_msg_where_asked(struct msg_ep *ep, uint32_t src, uint32_t id);
void __wrap_msg_where_asked(struct msg_ep *ep, uint32_t src, uint32_t id);

static void answer(struct msg_ep *ep, uint32_t to, uint32_t id, const char *text)
{
	struct msg_pkt p = {.type = MSG_HERE, .id = id};
	uint32_t list[MSG_ADDRS];
	char copy[512], *save;

	strcpy(copy, text);
	for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save)) {
		CHECK(inet_pton(AF_INET, s, &list[p.len / 4]) == 1);
		p.len += 4;
	}
	CHECK(!msg_tx_post(ep, to, &p, list, p.len));
}

void __wrap_msg_where_asked(struct msg_ep *ep, uint32_t src, uint32_t id)
{
	questions++;
	if (answers == HONEST)
		__real_msg_where_asked(ep, src, id);
	if (answers != LIAR)
		return;
	/* Another number; then what leads nowhere, to the other one itself, or to nobody; then once
	 * more, when it has been told already. */
	answer(ep, src, id + 1, "127.0.2.3");
	answer(ep, src, id,
	       "198.51.100.1 127.0.1.1 127.0.1.2 127.0.1.3 224.0.0.1 0.0.0.0 0.0.0.1 198.51.100.1 "
	       "240.0.0.1 198.51.100.2 127.0.1.1 127.0.1.2 198.51.100.2 127.0.2.2 127.0.2.1 "
	       "255.255.255.255");
	answer(ep, src, id, "127.0.2.1 127.0.2.2 127.0.2.3");
}

/* ---- both ---- */

/* Each test is two new processes: a device is found once in each. */
static void apart(void (*run)(struct side *s))
{
	struct side s;
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid) {
		CHECK(waitpid(pid, &status, 0) == pid);
		assert_int_equal(status, 0);
		return;
	}
	side_open_at(&s, &(struct msg_ep_conf){0}, addrs);
	warm_up(&s);
	run(&s);
	side_close(&s);
	_exit(0);
}

/* A long message in each direction. */
static void exchange(struct side *s, uint64_t round)
{
	struct op send, recv;

	memset(s->rx, 0, LEN);
	fill(s->tx, LEN, round + (uint64_t)s->me);
	start_recv(s, &recv, s->rx, s->peer, round, 0, LEN);
	start_send(s, &send, s->tx, round, LEN, MSG_OP_TAGGED);
	finish(s, &recv);
	finish(s, &send);
	CHECK(!recv.msg.err && !send.msg.err);
	check_filled(s->rx, LEN, round + !s->me);
}

static struct msg_path_stats stats(struct side *s)
{
	struct msg_path_stats out = {0};
	uint32_t peer = 0;

	CHECK(msg_ep_paths(s->ep, &peer, &out));
	return out;
}

/* So many rounds, or until both have so many addresses: how many messages that took. */
static uint64_t exchange_until(struct side *s, uint64_t from, uint64_t to, uint32_t want0,
			       uint32_t want1)
{
	uint64_t end = util_now_ns() + 20 * UTIL_NS_PER_S;
	bool mine = false, other = false;

	for (; from < to && !(mine && other); from++) {
		exchange(s, from);
		mine = stats(s).addresses == (s->me ? want1 : want0);
		swap_served(s, &mine, &other, sizeof(mine));
		CHECK(util_now_ns() < end);
	}
	CHECK(mine && other);
	return from;
}

/* ---- tests ---- */

static void run_all(struct side *s)
{
	uint64_t round = exchange_until(s, 1, 100000, 3, 3);
	struct msg_path_stats st;

	for (int i = 0; i < 20; i++)
		exchange(s, ++round);
	st = stats(s);
	CHECK(st.paths == 3 && msg_paths_distinct(s->ep->peers[s->peer].paths));
	for (uint32_t i = 0; i < 3; i++) {
		CHECK(st.bytes[i] > 0);
		CHECK(ntohl(st.to[i]) == (s->me ? 0x7f000101 : 0x7f000201) + i);
	}
	CHECK(s->ep->peers[s->peer].where->asked == 1);
}

static void test_all(void **state)
{
	(void)state;
	apart(run_all);
}

/* As long as it is not answered, and when it never is. */
static void run_silent(struct side *s)
{
	struct msg_where *w;

	answers = s->me ? SILENT : HONEST;
	exchange_until(s, 1, 100000, 1, 3);
	if (s->me) {
		CHECK(questions == 1);
	} else {
		/* It is asked some more times, when it is time. */
		w = s->ep->peers[s->peer].where;
		CHECK(w && !w->n_pairs && w->asked == 1);
	}
	for (uint64_t i = 0; i < 8; i++) {
		if (!s->me)
			s->ep->peers[s->peer].where->when = 0;
		exchange(s, 200000 + i);
	}
	meet(s);
	if (s->me)
		CHECK(questions == 4);
	else
		CHECK(s->ep->peers[s->peer].where->asked == 4 && stats(s).addresses == 1 &&
		      !msg_paths_distinct(s->ep->peers[s->peer].paths));
}

static void test_silent(void **state)
{
	(void)state;
	apart(run_silent);
}

/* What was not asked for, and what is not true: only those that answer are used, and nothing
 * waits for the others. */
static void run_liar(struct side *s)
{
	const struct msg_where *w;
	struct msg_path_stats st;
	uint64_t began = util_now_ns(), round;

	answers = s->me ? LIAR : HONEST;
	if (s->me)
		answer(s->ep, s->peer, 0, "127.0.2.2 127.0.2.3");
	meet(s);
	CHECK(!s->ep->peers[s->peer].where);
	for (round = 1; round < 50; round++)
		exchange(s, round);
	CHECK(util_now_ns() - began < 5 * UTIL_NS_PER_S);
	round = exchange_until(s, round, 100000, 2, 3);
	if (s->me)
		return;
	w = s->ep->peers[s->peer].where;
	CHECK(w->n_pairs <= MSG_ADDRS && w->asked == 1);
	CHECK(w->good == w->used && __builtin_popcount(w->used) == 2);
	st = stats(s);
	for (uint32_t i = 0; i < st.paths; i++)
		CHECK(ntohl(st.to[i]) == 0x7f000201 || ntohl(st.to[i]) == 0x7f000202);
	CHECK(!msg_paths_distinct(s->ep->peers[s->peer].paths)); /* the third has only a port */
}

static void test_liar(void **state)
{
	(void)state;
	apart(run_liar);
}

/* The same number at another address is somebody else. */
static void test_same_number(void **state)
{
	static struct msg_ep ep;
	struct msg_peer peers[2] = {{.addr = msg_addr_v4(inet_addr("10.1.0.5"), 77, 1)},
				    {.addr = msg_addr_v4(inet_addr("10.1.0.6"), 77, 1)}};
	struct ibv_wc wc = {.src_qp = 77, .slid = 6};

	(void)state;
	ep.peers = peers;
	assert_false(msg_port_rd.is_from(&ep, &wc, 0));
	assert_true(msg_port_rd.is_from(&ep, &wc, 1));
	wc.src_qp = 78;
	assert_false(msg_port_rd.is_from(&ep, &wc, 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_liar),
		cmocka_unit_test(test_same_number),
	};

	setenv("TEST_MSG_STRIPE", "pull:3", 1);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
