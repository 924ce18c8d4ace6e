/* What was said to be sent arrives, even if the endpoint is closed or the process ends right after
 * that; and closing does not take long.
 *
 * The two sides of a test are children: each loads the provider with an environment of its own. */
#include "ofi_node.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include "util_clock.h"

#define PATIENCE (20 * UTIL_NS_PER_S)
#define WORDS    40 /* fewer than there are receive buffers */
#define LEN      100
#define MEMBERS  6

struct side {
	struct node n;
	int me, sock; /* to the other one */
	fi_addr_t peer;
};

/* In a child cmocka's assertions would run the rest of the tests there: it ends instead. */
static void check(bool ok, const char *what, int line)
{
	if (ok)
		return;
	fprintf(stderr, "test_ofi_close.c:%d: %s\n", line, what);
	abort();
}
#define CHECK(cond) check(cond, #cond, __LINE__)

static void tell(struct side *s)
{
	CHECK(write(s->sock, "x", 1) == 1);
}

/* Without doing anything for the provider. */
static void hear(struct side *s)
{
	char c;

	CHECK(recv(s->sock, &c, 1, MSG_WAITALL) == 1);
}

static void side_open(struct side *s)
{
	uint8_t other[ADDR_LEN];
	struct node_conf conf = {0};

	node_open(&s->n, &conf);
	CHECK(write(s->sock, s->n.name, ADDR_LEN) == ADDR_LEN);
	CHECK(recv(s->sock, other, ADDR_LEN, MSG_WAITALL) == ADDR_LEN);
	CHECK(fi_av_insert(s->n.av, other, 1, &s->peer, 0, NULL) == 1);
}

static void say(struct side *s, uint64_t tag)
{
	uint64_t end = util_now_ns() + PATIENCE;
	uint8_t buf[LEN];
	ssize_t ret;

	fill(buf, LEN, (unsigned int)tag);
	while ((ret = fi_tinject(s->n.ep, buf, LEN, s->peer, tag)) == -FI_EAGAIN) {
		CHECK(util_now_ns() < end);
		node_drive(&s->n);
	}
	CHECK(!ret);
}

static void listen_for(struct side *s, uint64_t tag)
{
	uint64_t end = util_now_ns() + PATIENCE;
	struct fi_cq_tagged_entry e;
	uint8_t buf[LEN];
	ssize_t n;

	CHECK(!fi_trecv(s->n.ep, buf, LEN, NULL, s->peer, tag, 0, NULL));
	while ((n = fi_cq_read(s->n.rx, &e, 1)) == -FI_EAGAIN)
		CHECK(util_now_ns() < end);
	CHECK(n == 1 && e.len == LEN);
	check_filled(buf, LEN, (unsigned int)tag);
}

/* They know each other, and nothing is on its way. */
static void greet(struct side *s)
{
	if (s->me) {
		say(s, 1000);
		listen_for(s, 1001);
		tell(s);
	} else {
		listen_for(s, 1000);
		say(s, 1001);
		hear(s);
	}
}

/* Milliseconds. */
static uint64_t time_to_close(struct side *s)
{
	uint64_t start = util_now_ns();

	CHECK(!fi_close(&s->n.ep->fid));
	return (util_now_ns() - start) / UTIL_NS_PER_MS;
}

/* ---- children -------------------------------------------------------------------------------- */

typedef void (*part)(struct side *s);

/* other: the parent's end of what the child talks through, or its sibling's. */
static pid_t child(part play, int me, int sock, int other, const char *linger)
{
	struct side s = {.me = me, .sock = sock};
	pid_t pid;

	fflush(NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	close(other); /* or nobody would see the end of it */
	setenv("FI_WEFT_LINGER", linger, 1);
	alarm(60);
	play(&s);
	_exit(0);
}

static void ended_well(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void two(part play, const char *linger)
{
	pid_t pid[2];
	int sv[2];

	OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	for (int i = 0; i < 2; i++)
		pid[i] = child(play, i, sv[i], sv[!i], linger);
	close(sv[0]);
	close(sv[1]);
	for (int i = 0; i < 2; i++)
		ended_well(pid[i]);
}

/* ---- last words ------------------------------------------------------------------------------ */

/* Nobody knows anybody yet, or the first word would wait until a connection is there. */
static void last_words(struct side *s, bool met, void (*leave)(struct side *s))
{
	side_open(s);
	if (met)
		greet(s);
	for (unsigned int i = 0; i < WORDS && s->me; i++)
		say(s, i);
	if (s->me)
		leave(s);
	for (unsigned int i = 0; i < WORDS; i++)
		listen_for(s, i);
	node_close(&s->n);
}

static void leave_closing(struct side *s)
{
	node_close(&s->n);
	_exit(0);
}

/* Nobody closes anything. */
static void leave_exiting(struct side *s)
{
	(void)s;
	exit(0);
}

static void closing(struct side *s)
{
	last_words(s, true, leave_closing);
}

static void closing_strangers(struct side *s)
{
	last_words(s, false, leave_closing);
}

static void exiting(struct side *s)
{
	last_words(s, true, leave_exiting);
}

static void exiting_strangers(struct side *s)
{
	last_words(s, false, leave_exiting);
}

static void test_last_words(void **state)
{
	(void)state;
	two(closing, "10s");
	two(closing_strangers, "10s");
	two(exiting, "10s");
	two(exiting_strangers, "10s");
}

/* ---- how long it takes ----------------------------------------------------------------------- */

/* A peer that is there and does not answer costs the whole time, and no more. */
static void silent(struct side *s)
{
	uint64_t ms;
	pid_t other = getpid();

	side_open(s);
	greet(s);
	CHECK(write(s->sock, &other, sizeof(other)) == sizeof(other));
	CHECK(recv(s->sock, &other, sizeof(other), MSG_WAITALL) == sizeof(other));
	if (s->me) {
		hear(s); /* stopped, and later let go again */
		_exit(0);
	}
	CHECK(!kill(other, SIGSTOP));
	usleep(50000); /* all of its threads */
	say(s, 1);
	ms = time_to_close(s);
	CHECK(ms >= 400 && ms < 5000);
	CHECK(!kill(other, SIGCONT));
	tell(s);
}

static void test_silent_peer(void **state)
{
	(void)state;
	two(silent, "500ms");
}

/* One that has closed its end is not waited for, whether it has heard everything or not. */
static void gone(struct side *s)
{
	side_open(s);
	greet(s);
	if (s->me) {
		node_close(&s->n);
		tell(s);
		hear(s);
		_exit(0);
	}
	say(s, 1);
	hear(s);
	CHECK(time_to_close(s) < 10000);
	tell(s);
}

/* Nor one that was killed. */
static void killed(struct side *s)
{
	char c;

	side_open(s);
	greet(s);
	if (s->me) {
		hear(s);
		_exit(0);
	}
	say(s, 1);
	tell(s);
	CHECK(recv(s->sock, &c, 1, 0) == 0);
	CHECK(time_to_close(s) < 10000);
}

static void test_gone(void **state)
{
	(void)state;
	two(gone, "30s");
	two(killed, "30s");
}

/* ---- all at once ----------------------------------------------------------------------------- */

/* Everybody has just sent something to everybody, and closes: who is first makes nobody wait. */
static void member(struct side *s)
{
	struct fi_cq_tagged_entry e;
	uint8_t names[MEMBERS * ADDR_LEN], buf[LEN] = {0};
	struct node_conf conf = {0};
	fi_addr_t peers[MEMBERS];
	uint64_t end = util_now_ns() + PATIENCE;
	unsigned int got = 0;

	node_open(&s->n, &conf);
	CHECK(send(s->sock, s->n.name, ADDR_LEN, 0) == ADDR_LEN);
	CHECK(recv(s->sock, names, sizeof(names), MSG_WAITALL) == sizeof(names));
	CHECK(fi_av_insert(s->n.av, names, MEMBERS, peers, 0, NULL) == MEMBERS);
	for (int i = 0; i < MEMBERS; i++)
		CHECK(!fi_trecv(s->n.ep, buf, LEN, NULL, peers[i], 1, 0, NULL));
	for (int i = 0; i < MEMBERS; i++) {
		s->peer = peers[(s->me + i) % MEMBERS];
		say(s, 1);
		say(s, 2); /* which nobody receives */
	}
	while (got < MEMBERS) {
		CHECK(util_now_ns() < end);
		got += fi_cq_read(s->n.rx, &e, 1) == 1;
	}
	CHECK(time_to_close(s) < 10000);
}

static void test_all_at_once(void **state)
{
	uint8_t names[MEMBERS * ADDR_LEN];
	pid_t pid[MEMBERS];
	int sv[MEMBERS][2];

	(void)state;
	for (int i = 0; i < MEMBERS; i++) {
		OK(socketpair(AF_UNIX, SOCK_STREAM, 0, sv[i]));
		pid[i] = child(member, i, sv[i][1], sv[i][0], "30s");
		close(sv[i][1]);
	}
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(recv(sv[i][0], names + i * ADDR_LEN, ADDR_LEN, MSG_WAITALL),
				 ADDR_LEN);
	for (int i = 0; i < MEMBERS; i++)
		assert_int_equal(send(sv[i][0], names, sizeof(names), 0), sizeof(names));
	for (int i = 0; i < MEMBERS; i++) {
		ended_well(pid[i]);
		close(sv[i][0]);
	}
}

NODE_MAIN(cmocka_unit_test(test_last_words), cmocka_unit_test(test_silent_peer),
	  cmocka_unit_test(test_gone), cmocka_unit_test(test_all_at_once))
