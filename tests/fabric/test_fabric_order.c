/* Node orders: the portable shuffle, and files that people and programs write. */
#include "test_fabric.h"

#include <unistd.h>

#include "fabric_order.h"

#define TREE "2;12,2;1,12;1,1" /* 24 hosts */

static char path[64];

/* Writes the order file; returns "file:…" of it. */
static const char *file(const char *bytes, size_t len)
{
	static char text[80];
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
	snprintf(text, sizeof(text), "file:%s", path);
	return text;
}

static void check_order(const char *text, const uint32_t *want, uint32_t n)
{
	struct fabric_pgft t = tree(TREE);
	uint32_t hosts[24], count = 99;
	char why[256] = "";

	if (fabric_order(&t, text, hosts, &count, why, sizeof(why)))
		fail_msg("%s: %s", text, why);
	assert_int_equal(count, n);
	assert_memory_equal(hosts, want, n * sizeof(*want));
}

static void check_refused(const char *text, int code, const char *words)
{
	struct fabric_pgft t = tree(TREE);
	uint32_t hosts[24], count;
	char why[256] = "";

	assert_int_equal(fabric_order(&t, text, hosts, &count, why, sizeof(why)), -code);
	if (!strstr(why, words))
		fail_msg("refused with \"%s\", without \"%s\"", why, words);
	for (const char *p = why; *p; p++)
		assert_true(*p >= ' ' && *p < 0x7f);
}

static void test_routing_order(void **state)
{
	uint32_t want[24];

	(void)state;
	for (uint32_t i = 0; i < 24; i++)
		want[i] = i;
	check_order("routing", want, 24);
}

/* The rule, written down a second time: for i = n−1 … 1 swap with next() mod (i+1). */
static void test_random_order(void **state)
{
	static const uint64_t seeds[] = {0, 1, 7, 1234567, UINT64_MAX};
	static const uint32_t pinned[24] = {7, 20, 21, 12, 23, 22, 11, 3, 5,  16, 18, 15,
					    4, 19, 10, 8,  6,  9,  13, 1, 14, 0,  2,  17};

	(void)state;
	check_order("random:1", pinned, 24);
	for (size_t k = 0; k < COUNT(seeds); k++) {
		uint64_t s = seeds[k];
		uint32_t want[24];
		char text[40];

		for (uint32_t i = 0; i < 24; i++)
			want[i] = i;
		for (uint32_t i = 23; i > 0; i--) {
			uint32_t j = (uint32_t)(splitmix64(&s) % (i + 1)), x = want[i];

			want[i] = want[j];
			want[j] = x;
		}
		snprintf(text, sizeof(text), "random:%llu", (unsigned long long)seeds[k]);
		check_order(text, want, 24);
	}
}

static void test_no_order(void **state)
{
	(void)state;
	check_refused("", EINVAL, "'' is no order; known are routing, random:SEED and file:F");
	check_refused("Routing", EINVAL, "'Routing' is no order");
	check_refused("routing ", EINVAL, "is no order");
	check_refused("random", EINVAL, "is no order");
	check_refused("random:", EINVAL, "'' is no seed for random");
	check_refused("random:x", EINVAL, "'x' is no seed");
	check_refused("random:18446744073709551616", EINVAL, "too large");
	check_refused("file:", EINVAL, "needs the name of a file");
	check_refused("file", EINVAL, "is no order");
	check_refused("\n\n", EINVAL, "'\\x0a\\x0a' is no order");
}

#define FILE_OF(s) file(s, sizeof(s) - 1)
#define ORDER(...)                                                                                 \
	(const uint32_t[])                                                                         \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

static void test_files(void **state)
{
	(void)state;
	check_order(FILE_OF("h3\nh1\nh2\n"), ORDER(3, 1, 2), 3);
	check_order(FILE_OF("h3\nh1\nh23"), ORDER(3, 1, 23), 3);
	check_order(FILE_OF("h3\r\nh1\r\n\r\nh2\r\n"), ORDER(3, 1, 2), 3);
	check_order(FILE_OF("# all\n\n  h3 # third\n\t\n\th1#x\n #h5\nh0 slots=2 max\n"),
		    ORDER(3, 1, 0), 3);
	check_order(FILE_OF("\n\n\nh0\n\n\n"), ORDER(0), 1);
	check_order(FILE_OF("h0 h1 h1 nonsense\nh1\n"), ORDER(0, 1), 2);
}

static void test_bad_files(void **state)
{
	(void)state;
	check_refused(FILE_OF("h0\nh24\n"), EINVAL,
		      "': 'h24' is no host of this tree; its hosts are h0 to h23");
	check_refused(FILE_OF("# x\n\nh0\r\nhost7\n"), EINVAL, "line 4 of '");
	check_refused(FILE_OF("h00\n"), EINVAL, "'h00' is no host");
	check_refused(FILE_OF("7\n"), EINVAL, "'7' is no host");
	check_refused(FILE_OF("h1,h2\n"), EINVAL, "'h1,h2' is no host");
	check_refused(FILE_OF("h1\ns1.0\n"), EINVAL, "'s1.0' is a switch; ranks run on hosts");
	check_refused(FILE_OF("h1\n\nh2\nh1\n"), EINVAL,
		      "'h1' is in line 1 already; a host may be named once");
	check_refused(FILE_OF("h1\n\nh2\nh1\n"), EINVAL, "line 4 of '");
	check_refused(FILE_OF(""), EINVAL, "names no host; expected one of h0 to h23 per line");
	check_refused(FILE_OF("\n# nothing\n  \r\n"), EINVAL, "names no host");
	check_refused(FILE_OF("h1\nh2\0\n"), EINVAL, "line 2 of '");
	check_refused(FILE_OF("h1\nh2\0\n"), EINVAL, "zero byte");
	check_refused(FILE_OF("\0"), EINVAL, "zero byte");
	check_refused(FILE_OF("h1 # \0\n"), EINVAL, "zero byte");
	check_refused(FILE_OF("h1\n\xef\xbb\xbfh2\n"), EINVAL, "'\\xef\\xbb\\xbfh2' is no host");
	check_refused(FILE_OF("\x1b[31mh1\n"), EINVAL, "'\\x1b[31mh1' is no host");
}

static void test_unreadable(void **state)
{
	(void)state;
	check_refused("file:/nonexistent/order", ENOENT,
		      "can not open '/nonexistent/order': No such file");
	check_refused("file:/tmp", EISDIR, "can not read '/tmp': Is a directory");
}

/* A line of megabytes: as a comment it is nothing, as a name it is none. */
static void test_huge_lines(void **state)
{
	enum { HUGE_LINE = 4 << 20 };
	char *line = malloc(HUGE_LINE + 5);

	(void)state;
	assert_non_null(line);
	memset(line, 'h', HUGE_LINE);
	strcpy(line + HUGE_LINE, "\nh1\n");
	check_refused(file(line, HUGE_LINE + 4), EINVAL, "hhhhhh...' is no host");
	line[0] = '#';
	check_order(file(line, HUGE_LINE + 4), ORDER(1), 1);
	memset(line, ' ', HUGE_LINE);
	check_order(file(line, HUGE_LINE + 4), ORDER(1), 1);
	line[0] = 'h';
	line[1] = '2';
	check_order(file(line, HUGE_LINE + 4), ORDER(2, 1), 2);
	memset(line, '\n', HUGE_LINE);
	check_order(file(line, HUGE_LINE + 4), ORDER(1), 1);
	memset(line, '0', HUGE_LINE);
	line[0] = 'h';
	check_refused(file(line, HUGE_LINE + 4), EINVAL, "is no host");
	free(line);
}

/* Every host named, backwards, and one more. */
static void test_full_file(void **state)
{
	char text[24 * 5 + 8] = "";
	uint32_t want[24];
	size_t at = 0;

	(void)state;
	for (uint32_t i = 0; i < 24; i++) {
		want[i] = 23 - i;
		at += (size_t)snprintf(text + at, sizeof(text) - at, "h%u\n", want[i]);
	}
	check_order(file(text, at), want, 24);
	strcat(text, "h9\n");
	check_refused(file(text, strlen(text)), EINVAL, "'h9' is in line 15 already");
}

static int setup(void **state)
{
	int fd;

	(void)state;
	strcpy(path, "/tmp/weft-order-XXXXXX");
	fd = mkstemp(path);
	return fd < 0 ? -1 : close(fd);
}

static int teardown(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routing_order), cmocka_unit_test(test_random_order),
		cmocka_unit_test(test_no_order),      cmocka_unit_test(test_files),
		cmocka_unit_test(test_bad_files),     cmocka_unit_test(test_unreadable),
		cmocka_unit_test(test_huge_lines),    cmocka_unit_test(test_full_file),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
