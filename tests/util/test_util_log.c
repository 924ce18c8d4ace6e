/* Log lines: shape, levels, one write per line, "once". */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util_log.h"

/* Standard error becomes a datagram socket, so that each write(2) is one message. */
static int saved_stderr, pair[2];

static int capture(void **state)
{
	(void)state;
	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		return -1;
	fcntl(pair[0], F_SETFL, O_NONBLOCK);
	saved_stderr = dup(STDERR_FILENO);
	dup2(pair[1], STDERR_FILENO);
	return 0;
}

static int release(void **state)
{
	(void)state;
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	close(pair[0]);
	close(pair[1]);
	return 0;
}

static ssize_t next_line(char *buf, size_t len)
{
	ssize_t n = recv(pair[0], buf, len - 1, 0);

	buf[n > 0 ? n : 0] = '\0';
	return n;
}

/* First in the list: the level is still unset. */
static void test_bad_env(void **state)
{
	char line[2048];

	(void)state;
	setenv("WEFT_LOG", "loud", 1);
	util_log(UTIL_LOG_INFO, "not shown");
	assert_true(next_line(line, sizeof(line)) > 0);
	assert_non_null(strstr(line, "WEFT_LOG=loud is not understood: expected one of "
				     "error|warn|info|debug; using the default, warn\n"));
	assert_true(next_line(line, sizeof(line)) < 0);
}

static void test_shape(void **state)
{
	char line[2048], want[64];

	(void)state;
	util_log_set_level(UTIL_LOG_INFO);
	errno = ENOENT;
	util_log(UTIL_LOG_INFO, "port %d: %m", 7);
	assert_int_equal(errno, ENOENT);
	snprintf(want, sizeof(want), "weft[%d] info: port 7: No such file or directory\n",
		 (int)getpid());
	assert_true(next_line(line, sizeof(line)) > 0);
	assert_string_equal(line, want);
}

static void test_levels(void **state)
{
	char line[2048];

	(void)state;
	util_log_set_level(UTIL_LOG_ERROR);
	assert_false(util_log_enabled(UTIL_LOG_WARN));
	util_log(UTIL_LOG_WARN, "not shown");
	util_log(UTIL_LOG_ERROR, "shown");
	assert_true(next_line(line, sizeof(line)) > 0);
	assert_non_null(strstr(line, "error: shown\n"));
	assert_true(next_line(line, sizeof(line)) < 0);
}

static void test_long(void **state)
{
	char text[3000], line[4096];
	ssize_t n;

	(void)state;
	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	util_log(UTIL_LOG_ERROR, "%s", text);
	n = next_line(line, sizeof(line));
	assert_true(n > 500);
	assert_string_equal(line + n - 4, "...\n");
	/* The longest text that fits has no ellipsis. */
	snprintf(line, sizeof(line), "weft[%d] error: ", (int)getpid());
	text[(size_t)n - 1 - strlen(line)] = '\0';
	util_log(UTIL_LOG_ERROR, "%s", text);
	assert_int_equal(next_line(line, sizeof(line)), n);
	assert_string_equal(line + n - 4, "xxx\n");
}

static atomic_bool once;

static void *shout(void *arg)
{
	for (int i = 0; i < 100; i++)
		util_log_once(&once, UTIL_LOG_ERROR, "first of many");
	return arg;
}

static void test_once(void **state)
{
	pthread_t threads[4];
	char line[2048];

	(void)state;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, shout, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	assert_true(next_line(line, sizeof(line)) > 0);
	assert_true(next_line(line, sizeof(line)) < 0);
}

/* A line that the level hides does not use up the one chance. */
static void test_once_hidden(void **state)
{
	atomic_bool done = false;
	char line[2048];

	(void)state;
	util_log_set_level(UTIL_LOG_ERROR);
	util_log_once(&done, UTIL_LOG_DEBUG, "hidden");
	assert_true(next_line(line, sizeof(line)) < 0);
	util_log_set_level(UTIL_LOG_DEBUG);
	util_log_once(&done, UTIL_LOG_DEBUG, "shown");
	assert_true(next_line(line, sizeof(line)) > 0);
}

int main(void)
{
#define LOG_TEST(f) cmocka_unit_test_setup_teardown(f, capture, release)
	const struct CMUnitTest tests[] = {
		LOG_TEST(test_bad_env), LOG_TEST(test_shape), LOG_TEST(test_levels),
		LOG_TEST(test_long),    LOG_TEST(test_once),  LOG_TEST(test_once_hidden),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
