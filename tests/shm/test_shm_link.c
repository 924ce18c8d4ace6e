/* Two processes that meet, talk, sleep and die. What a liar can say is in
 * test_shm_liar.c. */
#include "link_rig.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "util_rand.h"

static void test_refusals(void **state)
{
	struct shm_port port, twin;
	uint64_t name = rig_name();
	struct shm_link link = {0};
	int bell = rig_bell(), pipes[2];

	(void)state;
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(shm_link_input(&link), -ENOTCONN);
	shm_link_close(&link);
	assert_int_equal(shm_link_connect(&link, name, 1, RIG_RING, bell), -ECONNREFUSED);
	assert_int_equal(shm_port_open(&port, name, 4), 0);
	assert_int_equal(shm_port_open(&twin, name, 4), -EADDRINUSE);
	shm_port_close(&twin);
	assert_int_equal(shm_port_accept(&port, bell, &link), -EAGAIN);
	assert_int_equal(shm_port_accept(&port, pipes[1], &link), -EINVAL);
	assert_int_equal(shm_link_connect(&link, name, 1, RIG_RING, pipes[1]), -EINVAL);
	assert_int_equal(shm_link_connect(&link, name, 1, RIG_RING, -1), -EINVAL);
	assert_int_equal(shm_link_connect(&link, name, 1, RIG_RING + 1, bell), -EINVAL);
	assert_int_equal(shm_link_connect(&link, name, 1, 0, bell), -EINVAL);
	shm_link_close(&link);
	shm_port_close(&port);
	/* Closed means free. */
	assert_int_equal(shm_port_open(&port, name, 4), 0);
	shm_port_close(&port);
	close(bell);
	close(pipes[0]);
	close(pipes[1]);
}

static void test_backlog(void **state)
{
	struct shm_link link[8];
	uint64_t name = rig_name();
	struct shm_port port;
	int bell = rig_bell(), n = 0, ret;

	(void)state;
	assert_int_equal(shm_port_open(&port, name, 2), 0);
	while (n < 8 && !(ret = shm_link_connect(&link[n], name, 1, RIG_RING, bell)))
		n++;
	assert_true(n >= 2 && n < 8);
	assert_int_equal(ret, -EAGAIN);
	assert_int_equal(shm_link_input(&link[0]), 0);
	/* A port that goes takes those in its backlog with it. */
	shm_port_close(&port);
	assert_int_equal(shm_link_input(&link[0]), -ECONNRESET);
	assert_int_equal(shm_link_input(&link[0]), -ECONNRESET);
	while (n > 0)
		shm_link_close(&link[--n]);
	close(bell);
}

static void test_identity(void **state)
{
	struct rig r;

	(void)state;
	rig_up(&r, RIG_RING);
	assert_int_equal(r.a.pid, getpid());
	assert_int_equal(r.b.pid, getpid());
	assert_int_equal(r.a.uid, geteuid());
	shm_link_close(&r.a);
	rig_wait(r.b.fd);
	assert_int_equal(shm_link_input(&r.b), -ECONNRESET);
	rig_down(&r);
}

#define RECORDS 100000

/* One process of a conversation: sends RECORDS and receives as many, and sleeps whenever
 * it has nothing to do. Both rings are small, so both wait for room, too. */
struct talk {
	struct shm_link *link;
	int bell;
	uint32_t sent, got, sleeps;
	struct util_rand lens, other_lens;
};

static uint32_t talk_len(struct util_rand *r)
{
	return 4 + (uint32_t)util_rand_below(r, util_rand_below(r, 20) ? 60 : 1000);
}

static bool talk_send(struct talk *t)
{
	bool did = false;

	while (t->sent < RECORDS) {
		struct util_rand saved = t->lens;
		uint32_t len = talk_len(&t->lens);
		uint8_t *to = shm_ring_reserve(&t->link->tx, len);

		if (!to) {
			t->lens = saved;
			break;
		}
		memset(to, (int)(t->sent & 0xff), len);
		memcpy(to, &t->sent, 4);
		shm_ring_commit(&t->link->tx, len);
		t->sent++;
		did = true;
		/* Now and then one at a time, so that the other side gets to sleep. */
		if (t->sent % 128 < 8)
			break;
	}
	if (did)
		shm_link_ring(t->link);
	return did;
}

static bool talk_receive(struct talk *t)
{
	const uint8_t *rec;
	bool did = false;
	uint32_t len;
	int ret;

	while ((ret = shm_ring_peek(&t->link->rx, (const void **)&rec, &len)) == 1) {
		if (len != talk_len(&t->other_lens) || memcmp(rec, &t->got, 4) != 0 ||
		    (len > 4 && rec[len - 1] != (t->got & 0xff)))
			_exit(20);
		shm_ring_release(&t->link->rx);
		t->got++;
		did = true;
	}
	if (ret < 0)
		_exit(21);
	if (did)
		shm_link_ring_room(t->link);
	return did;
}

static void talk_sleep(struct talk *t)
{
	struct pollfd p[] = {{.fd = t->bell, .events = POLLIN},
			     {.fd = t->link->fd, .events = POLLIN}};

	shm_link_sleep(t->link, true);
	if (!talk_send(t) && !talk_receive(t)) {
		t->sleeps++;
		if (poll(p, 2, 20000) <= 0)
			_exit(22); /* nobody rang: the very thing that must not be */
	}
	shm_link_sleep(t->link, false);
	rig_bell_count(t->bell);
}

static void talk(struct talk *t, uint64_t seed, bool first)
{
	util_rand_seed(&t->lens, seed + first);
	util_rand_seed(&t->other_lens, seed + !first);
	while (t->sent < RECORDS || t->got < RECORDS) {
		bool did = talk_send(t);

		did |= talk_receive(t);
		if (!did)
			talk_sleep(t);
	}
}

/* Made in a child; brings it up and runs what it is told. */
static pid_t spawn(uint64_t name, void (*run)(struct shm_link *link, int bell))
{
	struct shm_link link;
	struct pollfd p;
	pid_t pid = fork();
	int bell;

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	bell = rig_bell();
	if (shm_link_connect(&link, name, name + 1, RIG_RING, bell))
		_exit(10);
	p = (struct pollfd){.fd = link.fd, .events = POLLIN};
	if (poll(&p, 1, 10000) != 1 || shm_link_input(&link) != 1)
		_exit(11);
	run(&link, bell);
	/* The parent closes first. */
	if (poll(&p, 1, 20000) != 1 || shm_link_input(&link) != -ECONNRESET)
		_exit(12);
	shm_link_close(&link);
	_exit(0);
}

static void accept_up(struct shm_port *port, struct shm_link *link, int bell)
{
	rig_wait(port->fd);
	assert_int_equal(shm_port_accept(port, bell, link), 0);
	rig_wait(link->fd);
	assert_int_equal(shm_link_input(link), 1);
}

#define TALK_SEED 5

static void child_talks(struct shm_link *link, int bell)
{
	struct talk t = {.link = link, .bell = bell};

	talk(&t, TALK_SEED, false);
}

static void test_talk(void **state)
{
	uint64_t name = rig_name();
	int bell = rig_bell(), status;
	struct shm_link link;
	struct shm_port port;
	struct talk t = {.link = &link, .bell = bell};
	pid_t pid;

	(void)state;
	assert_int_equal(shm_port_open(&port, name, 4), 0);
	pid = spawn(name, child_talks);
	accept_up(&port, &link, bell);
	assert_int_equal(link.pid, pid);
	assert_true(link.peer == name + 1);
	talk(&t, TALK_SEED, true);
	assert_int_equal(shm_link_input(&link), 1);
	shm_link_close(&link);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	print_message("slept %u times\n", t.sleeps);
	assert_true(t.sleeps > 0);
	shm_port_close(&port);
	close(bell);
}

static void child_sends_and_hangs(struct shm_link *link, int bell)
{
	(void)bell;
	memcpy(shm_ring_reserve(&link->tx, 5), "last", 5);
	shm_ring_commit(&link->tx, 5);
	shm_link_ring(link);
	for (;;)
		pause();
}

/* The socket tells, and what was committed can still be read. */
static void test_killed(void **state)
{
	uint64_t name = rig_name();
	int bell = rig_bell();
	struct shm_link link;
	struct shm_port port;
	const void *rec;
	uint32_t len;
	pid_t pid;

	(void)state;
	assert_int_equal(shm_port_open(&port, name, 4), 0);
	pid = spawn(name, child_sends_and_hangs);
	accept_up(&port, &link, bell);
	shm_link_sleep(&link, true);
	if (!shm_ring_peek(&link.rx, &rec, &len))
		rig_wait(bell);
	kill(pid, SIGKILL);
	rig_wait(link.fd);
	assert_int_equal(shm_link_input(&link), -ECONNRESET);
	assert_int_equal(shm_link_input(&link), -ECONNRESET);
	assert_int_equal(shm_ring_peek(&link.rx, &rec, &len), 1);
	assert_string_equal(rec, "last");
	shm_ring_release(&link.rx);
	shm_link_ring(&link); /* to nobody, which is harmless */
	shm_link_close(&link);
	waitpid(pid, NULL, 0);
	shm_port_close(&port);
	close(bell);
}

static int in_child(int (*run)(void *arg), void *arg)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(run(arg));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int connect_as_nobody(void *arg)
{
	struct shm_port *port = arg;
	struct shm_link link;

	if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
		return 1;
	if (shm_link_connect(&link, port->name, 1, RIG_RING, rig_bell()) != -EACCES)
		return 2;
	return 0;
}

static void test_other_user(void **state)
{
	struct shm_link link;
	struct shm_port port;
	int bell = rig_bell();

	(void)state;
	if (geteuid() != 0) {
		close(bell);
		skip();
	}
	assert_int_equal(shm_port_open(&port, rig_name(), 4), 0);
	assert_int_equal(in_child(connect_as_nobody, &port), 0);
	/* Its end is gone, but its user is still known. */
	assert_int_equal(shm_port_accept(&port, bell, &link), -EACCES);
	assert_int_equal(shm_port_accept(&port, bell, &link), -EAGAIN);
	shm_port_close(&port);
	close(bell);
}

static int connect_from_elsewhere(void *arg)
{
	struct shm_port *port = arg;
	struct shm_link link;

	if (unshare(CLONE_NEWNET))
		return 77;
	return shm_link_connect(&link, port->name, 1, RIG_RING, rig_bell()) != -ECONNREFUSED;
}

static void test_other_network(void **state)
{
	struct shm_port port;
	int ret;

	(void)state;
	assert_int_equal(shm_port_open(&port, rig_name(), 4), 0);
	ret = in_child(connect_from_elsewhere, &port);
	shm_port_close(&port);
	if (ret == 77)
		skip();
	assert_int_equal(ret, 0);
}

static void limit_fds(rlim_t n)
{
	struct rlimit rl;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = n;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

/* The descriptor that the next open would get, without anything above it in use. */
static rlim_t next_fd(void)
{
	int fd = dup(0);

	assert_true(fd >= 0);
	close(fd);
	return (rlim_t)fd;
}

/* With every number of free descriptors that is too small, each step fails cleanly. */
static void test_exhaustion(void **state)
{
	struct shm_link a, b;
	struct shm_port port;
	struct rlimit old;
	int bell = rig_bell(), ret;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(shm_port_open(&port, rig_name(), 4), 0);
	for (rlim_t spare = 0; spare < 2; spare++) {
		limit_fds(next_fd() + spare);
		assert_int_equal(shm_link_connect(&a, port.name, 1, RIG_RING, bell), -EMFILE);
		limit_fds(old.rlim_cur);
	}
	/* One got as far as connecting; it is gone. */
	assert_int_equal(shm_port_accept(&port, bell, &b), 0);
	assert_int_equal(shm_link_input(&b), -ECONNRESET);
	shm_link_close(&b);
	for (rlim_t spare = 0; spare < 3; spare++) {
		assert_int_equal(shm_link_connect(&a, port.name, 1, RIG_RING, bell), 0);
		limit_fds(next_fd() + spare);
		ret = shm_port_accept(&port, bell, &b);
		assert_int_equal(ret, spare ? 0 : -EMFILE);
		if (ret) {
			limit_fds(old.rlim_cur); /* it has waited */
			assert_int_equal(shm_port_accept(&port, bell, &b), 0);
			limit_fds(next_fd());
		}
		assert_int_equal(shm_link_input(&b), -EMFILE);
		limit_fds(old.rlim_cur);
		shm_link_close(&b);
		assert_int_equal(shm_link_input(&a), -ECONNRESET);
		shm_link_close(&a);
	}
	assert_int_equal(shm_link_connect(&a, port.name, 1, RIG_RING, bell), 0);
	assert_int_equal(shm_port_accept(&port, bell, &b), 0);
	assert_int_equal(shm_link_input(&b), 1);
	limit_fds(next_fd());
	assert_int_equal(shm_link_input(&a), -EMFILE);
	limit_fds(old.rlim_cur);
	shm_link_close(&a);
	assert_int_equal(shm_link_input(&b), -ECONNRESET);
	shm_link_close(&b);
	shm_port_close(&port);
	close(bell);
}

#define COUNTED(test) cmocka_unit_test_setup_teardown(test, rig_count_before, rig_count_after)

int main(void)
{
	const struct CMUnitTest tests[] = {
		COUNTED(test_refusals),      COUNTED(test_backlog),    COUNTED(test_identity),
		COUNTED(test_talk),          COUNTED(test_killed),     COUNTED(test_other_user),
		COUNTED(test_other_network), COUNTED(test_exhaustion),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
