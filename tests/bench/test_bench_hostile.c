/* weft bench verbs and strangers: whatever comes over the control connection is answered by an
 * error, or by the end of that connection, soon; and who comes next is served. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_time.h"
#include "fan.h"

#define SOON_MS   5000
#define SILENT_MS 20000 /* the server gives a stranger 10 seconds */
#define BATCH     32    /* addresses that are swapped at once */

static char log_file[] = "/tmp/weft-hostile-XXXXXX";
static pid_t server;
static int port;

static pid_t start(const char *const *args, const char *log)
{
	pid_t child = fork();
	int fd;

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	fd = open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	dup2(fd, STDOUT_FILENO);
	dup2(fd, STDERR_FILENO);
	execv(args[0], (char *const *)(uintptr_t)args);
	_exit(127);
}

/* Its exit status, 128 and the signal, or -1 when it took longer. */
static int end_of(pid_t child, int ms)
{
	int status;

	for (int i = 0; i < ms / 10; i++) {
		if (waitpid(child, &status, WNOHANG) == child)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		usleep(10000);
	}
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	return -1;
}

static bool log_has(const char *text)
{
	char all[65536];
	int fd = open(log_file, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, all, sizeof(all) - 1);

	close(fd);
	all[n > 0 ? n : 0] = '\0';
	return strstr(all, text) != NULL;
}

static bool log_soon_has(const char *text)
{
	for (int i = 0; i < SOON_MS / 10; i++) {
		if (log_has(text))
			return true;
		usleep(10000);
	}
	return false;
}

/* Starts a server; one port after the other, until it could listen. */
static pid_t serve(bool keep, int *at)
{
	static unsigned int tries;

	for (int i = 0; i < 20; i++) {
		char text[8];
		const char *args[] = {
			getenv("VERBS_PERF"),   "serve", "--bind", "127.0.0.1", "-p", text,
			keep ? "--keep" : NULL, NULL};
		pid_t pid;

		*at = 20000 + (int)(((unsigned int)getpid() * 7 + ++tries * 131) % 10000);
		snprintf(text, sizeof(text), "%d", *at);
		pid = start(args, log_file);
		usleep(300000);
		if (!waitpid(pid, NULL, WNOHANG))
			return pid;
	}
	return -1;
}

static int set_up(void **state)
{
	(void)state;
	close(mkstemp(log_file));
	server = serve(true, &port);
	return server > 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	kill(server, SIGKILL);
	waitpid(server, NULL, 0);
	unlink(log_file);
	return 0;
}

static struct bench_ctl stranger(void)
{
	struct bench_ctl ctl = {.fd = -1};

	assert_int_equal(bench_ctl_connect(&ctl, "127.0.0.1", port, SOON_MS), 0);
	return ctl;
}

static struct bench_ctl acquaintance(void)
{
	struct bench_ctl ctl = stranger();
	struct bench_msg msg = {.op = BENCH_OP_HELLO, .kind = FAN_PROTOCOL};

	assert_int_equal(bench_ctl_send(&ctl, &msg), 0);
	assert_int_equal(bench_ctl_expect(&ctl, BENCH_OP_HELLO, &msg, SOON_MS), 0);
	assert_string_equal(msg.kind, FAN_PROTOCOL);
	return ctl;
}

/* The other side has closed. */
static void assert_closed(struct bench_ctl *ctl, int ms)
{
	char all[4096];
	int ret;

	do
		ret = bench_ctl_read(ctl, all, 1, ms);
	while (!ret);
	assert_int_not_equal(ret, -ETIMEDOUT);
	bench_ctl_close(ctl);
}

static void garbage(void **state)
{
	unsigned int seed = 1;
	char noise[8192];

	(void)state;
	for (int k = 0; k < 20; k++) {
		struct bench_ctl ctl = stranger();

		for (size_t i = 0; i < sizeof(noise); i++)
			noise[i] = (char)((seed = seed * 1103515245 + 12345) >> 16);
		bench_ctl_write(&ctl, noise, sizeof(noise)); /* it may have closed already */
		assert_closed(&ctl, SOON_MS);
	}
	assert_true(log_soon_has("is not understood"));
}

/* Nothing, half a message, and a byte now and then. */
static void silence(void **state)
{
	struct bench_ctl mute = stranger(), half = stranger(), slow = stranger();
	uint64_t begun = bench_now();

	(void)state;
	assert_int_equal(bench_ctl_write(&half, "GET / HTTP/1.1\r\n\r\n", 18), 0);
	while (!bench_ctl_readable(&slow) && bench_now() - begun < SILENT_MS * BENCH_MS) {
		bench_ctl_write(&slow, "", 1);
		usleep(300000);
	}
	assert_closed(&slow, SOON_MS);
	assert_closed(&half, SOON_MS);
	assert_closed(&mute, SOON_MS);
	assert_true(bench_now() - begun < SILENT_MS * BENCH_MS);
	assert_true(log_soon_has("silent for too long"));
}

static void another_version(void **state)
{
	struct bench_ctl ctl = stranger();
	struct bench_msg msg = {.op = BENCH_OP_HELLO, .kind = "weft-fan 99"};

	(void)state;
	assert_int_equal(bench_ctl_send(&ctl, &msg), 0);
	assert_int_equal(bench_ctl_expect(&ctl, BENCH_OP_HELLO, &msg, SOON_MS), 0);
	assert_string_equal(msg.kind, FAN_PROTOCOL);
	assert_closed(&ctl, SOON_MS);
	assert_true(log_soon_has("another version"));
}

static void false_status(void **state)
{
	static const int32_t no[] = {1, INT32_MAX, INT32_MIN, -4096};

	(void)state;
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		struct bench_ctl ctl = stranger();
		struct bench_msg msg = {
			.op = BENCH_OP_HELLO, .status = no[i], .kind = FAN_PROTOCOL};

		assert_int_equal(bench_ctl_send(&ctl, &msg), 0);
		assert_closed(&ctl, SOON_MS);
	}
}

static void unknown_words(void **state)
{
	static const uint32_t ops[] = {0, BENCH_OP_OPEN, BENCH_OP_SNAP, FAN_OP_CLOSE + 1,
				       UINT32_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct bench_ctl ctl = acquaintance();
		struct bench_msg msg = {.op = ops[i]};

		assert_int_equal(bench_ctl_send(&ctl, &msg), 0);
		assert_closed(&ctl, SOON_MS);
	}
}

static int asked(struct bench_ctl *ctl, const struct bench_msg *msg)
{
	assert_int_equal(bench_ctl_send(ctl, msg), 0);
	return bench_ctl_expect(ctl, BENCH_OP_READY, NULL, SOON_MS);
}

/* Too many, too large, not there: refused, and the connection is as good as before. */
static void absurd_opens(void **state)
{
	static const struct bench_msg no[] = {
		{.op = FAN_OP_OPEN, .kind = "rc-send", .arg = {0, 0, 1, 64}},
		{.op = FAN_OP_OPEN, .kind = "rc-send", .arg = {FAN_MAX_N + 1, 0, 1, 64}},
		{.op = FAN_OP_OPEN, .kind = "rc-send", .arg = {UINT64_MAX, 0, 1, 64}},
		{.op = FAN_OP_OPEN, .kind = "rc-send", .arg = {2, UINT64_MAX, 1, 64}},
		{.op = FAN_OP_OPEN, .kind = "rc-send", .arg = {2, 0, UINT64_MAX, 64}},
		{.op = FAN_OP_OPEN, .kind = "rc-send", .arg = {1, 0, 1, 0}},
		{.op = FAN_OP_OPEN, .kind = "rc-send", .arg = {1, 0, 1, UINT64_MAX}},
		{.op = FAN_OP_OPEN, .kind = "rc-send", .arg = {1024, 0, 1, FAN_MAX_SIZE}},
		{.op = FAN_OP_OPEN, .kind = "ud-read", .arg = {1, 0, 1, 64}},
		{.op = FAN_OP_OPEN, .kind = "carrier pigeon", .arg = {1, 0, 1, 64}},
		{.op = FAN_OP_OPEN, .kind = "", .arg = {1, 0, 1, 64}},
		{.op = FAN_OP_STEP, .arg = {FAN_ECHO, 8, 1, 10}},
	};
	struct bench_ctl ctl = acquaintance();

	(void)state;
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++)
		assert_true(asked(&ctl, &no[i]) < 0);
	bench_ctl_close(&ctl);
}

/* Opens ud-send with one end, whose other side nobody is. */
static struct bench_ctl opened(void)
{
	struct bench_msg open = {.op = FAN_OP_OPEN, .kind = "ud-send", .arg = {1, 0, 1, 64}};
	struct bench_addr mine[BATCH], theirs[BATCH];
	struct bench_ctl ctl = acquaintance();
	uint32_t good = 0, answer;

	assert_int_equal(asked(&ctl, &open), 0);
	memset(mine, 0, sizeof(mine));
	mine[0].qpn = 77;
	memcpy(mine[0].gid.raw + 10, "\xff\xff\x7f\0\0\1", 6);
	bench_addr_swab(&mine[0]);
	assert_int_equal(bench_ctl_swap(&ctl, mine, theirs, sizeof(mine)), 0);
	assert_int_equal(bench_ctl_swap(&ctl, &good, &answer, sizeof(good)), 0);
	assert_int_equal(answer, 0);
	return ctl;
}

static void absurd_steps(void **state)
{
	static const uint64_t no[][5] = {
		{FAN_MODES, 8, 1, 10},         {UINT64_MAX, 8, 1, 10},
		{FAN_STAGE2, 8, 1, 10},        {FAN_ECHO, 0, 1, 10},
		{FAN_ECHO, 65, 1, 10},         {FAN_ECHO, UINT64_MAX, 1, 10},
		{FAN_ECHO, 8, 2, 10},          {FAN_ECHO, 8, UINT64_MAX, 10},
		{FAN_ECHO, 8, 1, UINT64_MAX},  {FAN_ECHO, 8, 1, FAN_MAX_TIMES + 1},
		{FAN_STREAM, 8, 1, 10, ~0ull}, {FAN_STREAM, 8, 1, 10, 1ull << 60},
	};
	struct bench_msg step = {.op = FAN_OP_STEP}, done = {.op = BENCH_OP_DONE};
	struct bench_ctl ctl = opened();

	(void)state;
	for (size_t i = 0; i < sizeof(no) / sizeof(no[0]); i++) {
		memcpy(step.arg, no[i], sizeof(no[i]));
		assert_int_equal(asked(&ctl, &step), -EINVAL);
	}
	/* One that is good, after all of them. */
	memcpy(step.arg, (uint64_t[]){FAN_STREAM, 8, 1, 10, 10 * BENCH_MS}, 5 * sizeof(uint64_t));
	assert_int_equal(asked(&ctl, &step), 0);
	assert_int_equal(bench_ctl_send(&ctl, &done), 0);
	assert_int_equal(bench_ctl_expect(&ctl, BENCH_OP_RESULT, NULL, SOON_MS), 0);
	bench_ctl_close(&ctl);
}

/* Gone between two words: while addresses are swapped, and in a step. */
static void vanished(void **state)
{
	struct bench_msg open = {.op = FAN_OP_OPEN, .kind = "rc-send", .arg = {40, 0, 1, 64}};
	struct bench_msg step = {.op = FAN_OP_STEP, .arg = {FAN_ECHO, 8, 1, 10}};
	struct bench_ctl ctl = acquaintance();

	(void)state;
	assert_int_equal(asked(&ctl, &open), 0);
	bench_ctl_close(&ctl);
	ctl = opened();
	assert_int_equal(asked(&ctl, &step), 0);
	bench_ctl_close(&ctl);
}

/* Addresses that are none. */
static void false_addresses(void **state)
{
	struct bench_msg open = {.op = FAN_OP_OPEN, .arg = {BATCH, 0, 1, 64}};
	struct bench_addr mine[BATCH], theirs[BATCH];
	static const char *const types[] = {"rc-send", "uc-write", "ud-mcast", "rd-read"};

	(void)state;
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		struct bench_ctl ctl = acquaintance();
		uint32_t good = 0, answer;

		strcpy(open.kind, types[i]);
		assert_int_equal(asked(&ctl, &open), 0);
		memset(mine, 0xee, sizeof(mine));
		assert_int_equal(bench_ctl_swap(&ctl, mine, theirs, sizeof(mine)), 0);
		/* It says what it thinks of them, in time. */
		assert_int_equal(bench_ctl_swap(&ctl, &good, &answer, sizeof(good)), 0);
		bench_ctl_close(&ctl);
	}
}

static int measured_with(int at)
{
	char text[8];
	const char *args[] = {getenv("VERBS_PERF"),
			      "pingpong",
			      "-q",
			      "--peers",
			      "127.0.0.1",
			      "-p",
			      text,
			      "-t",
			      "rc-send",
			      "-n",
			      "1",
			      "-s",
			      "8",
			      "--passes",
			      "1",
			      "--rounds",
			      "5",
			      NULL};

	snprintf(text, sizeof(text), "%d", at);
	return end_of(start(args, log_file), SILENT_MS);
}

static void served_after_all(void **state)
{
	(void)state;
	assert_int_equal(measured_with(port), 0);
	assert_int_equal(waitpid(server, NULL, WNOHANG), 0);
	assert_false(log_has("Sanitizer"));
}

/* Who only knocks is not the one that a server without --keep ends with. */
static void waits_for_its_root(void **state)
{
	int at;
	pid_t pid = serve(false, &at);
	struct bench_ctl ctl = {.fd = -1};
	char noise[512];

	(void)state;
	assert_true(pid > 0);
	memset(noise, 0x5a, sizeof(noise));
	assert_int_equal(bench_ctl_connect(&ctl, "127.0.0.1", at, SOON_MS), 0);
	bench_ctl_write(&ctl, noise, sizeof(noise));
	assert_closed(&ctl, SOON_MS);
	usleep(800000); /* it looks every 200 ms */
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	assert_int_equal(measured_with(at), 0);
	assert_int_equal(end_of(pid, SOON_MS), 0);
}

/* The other way round: a server that is none. */
static void false_server(void **state)
{
	static const struct bench_msg other = {.op = BENCH_OP_HELLO, .kind = "weft-fan 99"};
	int listener = bench_ctl_listen("127.0.0.1", 0);
	struct sockaddr_in sin;
	socklen_t len = sizeof(sin);
	char text[8], noise[512];
	const char *args[] = {getenv("VERBS_PERF"),
			      "pingpong",
			      "-q",
			      "--peers",
			      "127.0.0.1",
			      "-p",
			      text,
			      "-t",
			      "rc-send",
			      "-n",
			      "1",
			      "-s",
			      "8",
			      NULL};

	(void)state;
	memset(noise, 0x5a, sizeof(noise));
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sin, &len), 0);
	snprintf(text, sizeof(text), "%d", ntohs(sin.sin_port));
	for (int i = 0; i < 3; i++) {
		pid_t root = start(args, log_file);
		struct bench_ctl ctl = {.fd = -1};

		assert_int_equal(bench_ctl_accept(&ctl, listener, SOON_MS), 0);
		if (i == 0)
			bench_ctl_write(&ctl, noise, sizeof(noise));
		else if (i == 1)
			bench_ctl_send(&ctl, &other);
		if (i < 2)
			usleep(100000);
		bench_ctl_close(&ctl);
		assert_int_equal(end_of(root, SOON_MS), 1);
	}
	close(listener);
	assert_true(log_has("not `" FAN_PROTOCOL "`"));
	assert_false(log_has("Sanitizer"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(garbage),
		cmocka_unit_test(another_version),
		cmocka_unit_test(false_status),
		cmocka_unit_test(unknown_words),
		cmocka_unit_test(absurd_opens),
		cmocka_unit_test(absurd_steps),
		cmocka_unit_test(vanished),
		cmocka_unit_test(false_addresses),
		cmocka_unit_test(silence),
		cmocka_unit_test(served_after_all),
		cmocka_unit_test(waits_for_its_root),
		cmocka_unit_test(false_server),
	};

	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
