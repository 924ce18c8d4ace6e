/* Sequences of stages: against the definitions written down a second time, and what they are for.
 */
#include "test_fabric.h"

#include <unistd.h>

#include "fabric_cps.h"

static struct fabric_cps cps(const char *text, uint32_t n, const struct fabric_pgft *t)
{
	struct fabric_cps c;
	char why[320] = "";

	if (fabric_cps_parse(&c, text, n, t, why, sizeof(why)))
		fail_msg("%s of %u: %s", text, n, why);
	return c;
}

/* ---- the definitions, literally ---- */

/* Stages as maps from source to destination. */
enum { N_MAX = 200, STAGES_MAX = 256 };
static uint32_t want[STAGES_MAX][N_MAX];
static uint32_t n_want, ranks;

static void stage(void)
{
	for (uint32_t i = 0; i < ranks; i++)
		want[n_want][i] = FABRIC_NONE;
}

static void flow(uint32_t from, uint32_t to)
{
	if (from < ranks && to < ranks)
		want[n_want][from] = to;
}

/* Empty ones do not count. */
static void done(void)
{
	for (uint32_t i = 0; i < ranks; i++)
		if (want[n_want][i] != FABRIC_NONE) {
			n_want++;
			return;
		}
}

static uint32_t ceil_log2(uint32_t n)
{
	uint32_t k = 0;

	while (1u << k < n)
		k++;
	return k;
}

static uint32_t floor_log2(uint32_t n)
{
	uint32_t k = 0;

	while (2u << k <= n)
		k++;
	return k;
}

static void turn(uint32_t s)
{
	stage();
	for (uint32_t i = 0; i < ranks; i++)
		if ((i + s) % ranks != i)
			flow(i, (i + s) % ranks);
	done();
}

static void literal_shift(const struct fabric_pgft *t)
{
	(void)t;
	for (uint32_t s = 1; s < ranks; s++)
		turn(s);
}

static void literal_ring(const struct fabric_pgft *t)
{
	(void)t;
	turn(1);
}

static void literal_dissemination(const struct fabric_pgft *t)
{
	(void)t;
	for (uint32_t s = 0; s < ceil_log2(ranks); s++)
		turn(1u << s);
}

static void literal_tournament(const struct fabric_pgft *t)
{
	(void)t;
	for (uint32_t s = 0; s < ceil_log2(ranks); s++) {
		stage();
		for (uint32_t i = 0; i < ranks; i++)
			if (i % (2u << s) == 0)
				flow(i + (1u << s), i);
		done();
	}
}

static void literal_binomial(const struct fabric_pgft *t)
{
	(void)t;
	for (uint32_t s = 0; s < ceil_log2(ranks); s++) {
		stage();
		for (uint32_t i = 0; i < 1u << s; i++)
			flow(i, i + (1u << s));
		done();
	}
}

static void doubling(bool halving)
{
	uint32_t L = floor_log2(ranks), P = 1u << L;

	stage();
	for (uint32_t i = 0; i < P; i++)
		flow(i + P, i);
	done();
	for (uint32_t k = 0; k < L; k++) {
		stage();
		for (uint32_t i = 0; i < P; i++)
			flow(i, i ^ (1u << (halving ? L - 1 - k : k)));
		done();
	}
	stage();
	for (uint32_t i = 0; i < P; i++)
		flow(i, i + P);
	done();
}

static void literal_recdbl(const struct fabric_pgft *t)
{
	(void)t;
	doubling(false);
}

static void literal_rechalv(const struct fabric_pgft *t)
{
	(void)t;
	doubling(true);
}

/* Digit l of a rank, exchanged. */
static uint32_t with_digit(const struct fabric_pgft *t, uint32_t i, uint32_t l, uint32_t digit)
{
	uint32_t digits[FABRIC_LEVELS_MAX + 1], v = 0;

	for (uint32_t k = 1; k <= t->h; k++) {
		digits[k] = i % t->m[k];
		i /= t->m[k];
	}
	digits[l] = digit;
	for (uint32_t k = t->h; k >= 1; k--)
		v = v * t->m[k] + digits[k];
	return v;
}

static void level(const struct fabric_pgft *t, uint32_t l, bool halving)
{
	uint32_t below = 1, M, E, bits = floor_log2(t->m[l]);

	for (uint32_t k = 1; k < l; k++)
		below *= t->m[k];
	M = below * t->m[l];
	E = below << bits;
	stage();
	for (uint32_t i = 0; i < ranks; i++)
		if ((i + E) % M >= E)
			flow(i + E, i);
	done();
	for (uint32_t k = 0; k < bits; k++) {
		stage();
		for (uint32_t i = 0; i < ranks; i++)
			if (i % M < E)
				flow(i, with_digit(t, i, l,
						   i / below % t->m[l] ^
							   1u << (halving ? bits - 1 - k : k)));
		done();
	}
	stage();
	for (uint32_t i = 0; i < ranks; i++)
		if ((i + E) % M >= E)
			flow(i, i + E);
	done();
}

static void literal_topo_recdbl(const struct fabric_pgft *t)
{
	for (uint32_t l = 1; l <= t->h; l++)
		level(t, l, false);
}

static void literal_topo_rechalv(const struct fabric_pgft *t)
{
	for (uint32_t l = t->h; l >= 1; l--)
		level(t, l, true);
}

static const struct {
	const char *name;
	void (*literal)(const struct fabric_pgft *t);
} sequences[] = {
	{"shift", literal_shift},
	{"ring", literal_ring},
	{"dissemination", literal_dissemination},
	{"tournament", literal_tournament},
	{"binomial", literal_binomial},
	{"recdbl", literal_recdbl},
	{"rechalv", literal_rechalv},
	{"topo-recdbl", literal_topo_recdbl},
	{"topo-rechalv", literal_topo_rechalv},
	{"drc", literal_shift},
};

/* All ways to ask agree with `want`. */
static void check_stages(const struct fabric_cps *c, const char *what)
{
	struct fabric_flow flows[N_MAX];

	if (c->stages != n_want)
		fail_msg("%s of %u: %u stages, expected %u", what, ranks, c->stages, n_want);
	for (uint32_t s = 0; s < c->stages; s++) {
		uint32_t count = fabric_cps_flows(c, s, flows), k = 0;

		for (uint32_t i = 0; i < ranks; i++) {
			uint32_t to = fabric_cps_to(c, s, i);

			if (to != want[s][i])
				fail_msg("%s of %u, stage %u: %u to %d, expected %d", what, ranks,
					 s, i, (int)to, (int)want[s][i]);
			if (to == FABRIC_NONE)
				continue;
			assert_true(k < count);
			assert_int_equal(flows[k].from, i);
			assert_int_equal(flows[k++].to, to);
		}
		assert_int_equal(k, count);
	}
}

static void check_permutations(const struct fabric_cps *c)
{
	for (uint32_t s = 0; s < c->stages; s++) {
		bool taken[N_MAX] = {0};
		uint32_t n = 0;

		for (uint32_t i = 0; i < c->n; i++) {
			uint32_t to = fabric_cps_to(c, s, i);

			if (to == FABRIC_NONE)
				continue;
			assert_true(to < c->n && to != i && !taken[to]);
			taken[to] = true;
			n++;
		}
		assert_true(n > 0);
	}
}

static void check_sizes(const char *text, uint32_t last)
{
	struct fabric_pgft t = tree(text);

	for (ranks = 1; ranks <= last; ranks++)
		for (size_t i = 0; i < COUNT(sequences); i++) {
			struct fabric_cps c = cps(sequences[i].name, ranks, &t);

			n_want = 0;
			sequences[i].literal(&t);
			check_stages(&c, sequences[i].name);
			check_permutations(&c);
			fabric_cps_free(&c);
		}
}

static void test_definitions(void **state)
{
	(void)state;
	check_sizes("2;12,12;1,6;1,2", 144);
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);

		check_sizes(trees[i], fabric_hosts(&t));
	}
	check_sizes("3;4,3,7;1,4,3;1,1,1", 84);
	check_sizes("2;16,11;1,16;1,1", 176);
}

/* The distances of one step. */
static void test_one_step(void **state)
{
	(void)state;
	for (ranks = 2; ranks < 40; ranks++)
		for (uint32_t s = 1; s < ranks; s++) {
			struct fabric_cps c;
			char text[32];

			n_want = 0;
			turn(s);
			snprintf(text, sizeof(text), "%s:%u", s % 2 ? "shift" : "drc", s);
			c = cps(text, ranks, NULL);
			check_stages(&c, text);
		}
}

/* ---- what they are for ---- */

/* Each rank begins with its own part, and whoever is sent to has what the sender has. Messages of
 * a stage are sent at once. */
static uint32_t complete_ranks(const struct fabric_cps *c)
{
	static uint64_t has[2048][32], after[2048][32];
	uint32_t words = (c->n + 63) / 64, complete = 0;

	assert_true(c->n <= 2048);
	memset(has, 0, sizeof(has));
	for (uint32_t i = 0; i < c->n; i++)
		has[i][i / 64] |= UINT64_C(1) << i % 64;
	for (uint32_t s = 0; s < c->stages; s++) {
		memcpy(after, has, c->n * sizeof(has[0]));
		for (uint32_t i = 0; i < c->n; i++) {
			uint32_t to = fabric_cps_to(c, s, i);

			for (uint32_t k = 0; to != FABRIC_NONE && k < words; k++)
				after[to][k] |= has[i][k];
		}
		memcpy(has, after, c->n * sizeof(has[0]));
	}
	for (uint32_t i = 0; i < c->n; i++) {
		uint32_t parts = 0;

		for (uint32_t k = 0; k < words; k++)
			parts += (uint32_t)__builtin_popcountll(has[i][k]);
		complete += parts == c->n;
	}
	return complete;
}

static void check_complete(const char *name, uint32_t n, const struct fabric_pgft *t)
{
	struct fabric_cps c = cps(name, n, t);
	uint32_t complete = complete_ranks(&c);

	if (complete != n)
		fail_msg("%s of %u: %u ranks end with everything", name, n, complete);
}

static void test_allreduce(void **state)
{
	static const char *const full[] = {"2;12,12;1,6;1,2", "2;18,18;1,9;1,2",
					   "3;12,12,12;1,12,6;1,1,2", "3;18,18,6;1,18,3;1,1,6"};

	(void)state;
	for (uint32_t n = 1; n < 300; n++) {
		check_complete("recdbl", n, NULL);
		check_complete("rechalv", n, NULL);
		check_complete("dissemination", n, NULL);
	}
	for (size_t i = 0; i < COUNT(full) + COUNT(trees); i++) {
		struct fabric_pgft t = tree(i < COUNT(full) ? full[i] : trees[i - COUNT(full)]);

		check_complete("topo-recdbl", fabric_hosts(&t), &t);
		check_complete("topo-rechalv", fabric_hosts(&t), &t);
		check_complete("recdbl", fabric_hosts(&t), &t);
	}
}

/* On part of a tree it is complete if the ranks are whole sub-trees of the level below the top and
 * at least E_h of them (item 5). */
static void test_partial_allreduce(void **state)
{
	struct fabric_pgft t = tree("3;4,3,7;1,4,3;1,1,1");

	(void)state;
	for (uint32_t n = 4 * 12; n <= 84; n += 12) {
		check_complete("topo-recdbl", n, &t);
		check_complete("topo-rechalv", n, &t);
	}
	for (uint32_t n = 49; n < 84; n++) {
		struct fabric_cps c = cps("topo-recdbl", n, &t);

		if (n % 12)
			assert_true(complete_ranks(&c) < n);
	}
}

/* Rank 0's data reaches all, and all data reach rank 0. */
static void test_trees(void **state)
{
	(void)state;
	for (uint32_t n = 1; n < 200; n++) {
		struct fabric_cps down = cps("binomial", n, NULL), up = cps("tournament", n, NULL);
		bool has[200] = {true};
		uint32_t parts[200], reached = 0;

		for (uint32_t i = 0; i < n; i++)
			parts[i] = 1;
		for (uint32_t s = 0; s < down.stages; s++)
			for (uint32_t i = n; i-- > 0;)
				if (has[i] && fabric_cps_to(&down, s, i) != FABRIC_NONE)
					has[fabric_cps_to(&down, s, i)] = true;
		for (uint32_t s = 0; s < up.stages; s++)
			for (uint32_t i = 0; i < n; i++)
				if (fabric_cps_to(&up, s, i) != FABRIC_NONE)
					parts[fabric_cps_to(&up, s, i)] += parts[i];
		for (uint32_t i = 0; i < n; i++)
			reached += has[i];
		assert_int_equal(reached, n);
		assert_int_equal(parts[0], n);
	}
}

/* ---- files ---- */

static int parse_text(struct fabric_cps *c, const char *bytes, size_t len, uint32_t n, char *why,
		      size_t why_size)
{
	FILE *f = tmpfile();
	int ret;

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	rewind(f);
	ret = fabric_cps_read(c, f, "pattern", n, why, why_size);
	fclose(f);
	return ret;
}

static void check_file(const char *text, uint32_t n, const char *again)
{
	struct fabric_flow flows[16];
	char why[256] = "", out[256] = "";
	struct fabric_cps c;
	size_t at = 0;

	if (parse_text(&c, text, strlen(text), n, why, sizeof(why)))
		fail_msg("%s", why);
	for (uint32_t s = 0; s < c.stages; s++) {
		uint32_t count = fabric_cps_flows(&c, s, flows), found = 0;

		assert_true(count <= c.widest);
		for (uint32_t k = 0, nth = 0; k < count; k++) {
			nth = k && flows[k].from == flows[k - 1].from ? nth + 1 : 0;
			at += (size_t)snprintf(out + at, sizeof(out) - at, "%u>%u ", flows[k].from,
					       flows[k].to);
			assert_int_equal(fabric_cps_nth(&c, s, flows[k].from, nth), flows[k].to);
		}
		for (uint32_t i = 0; i < n; i++)
			for (uint32_t k = 0; fabric_cps_nth(&c, s, i, k) != FABRIC_NONE; k++)
				found++;
		assert_int_equal(found, count);
		at += (size_t)snprintf(out + at, sizeof(out) - at, "; ");
	}
	assert_string_equal(out, again);
	fabric_cps_free(&c);
}

static void test_files(void **state)
{
	(void)state;
	check_file("0>1 2>3\n0>2\n+ 1>3\n", 4, "0>1 2>3 ; 0>2 1>3 ; ");
	check_file("# x\n\n  \t3>0,2>1 , 1>2 #0>9\r\n\n\n#\n  + 0>3", 4, "0>3 1>2 2>1 3>0 ; ");
	check_file("0>1\n0>1\n0>1", 2, "0>1 ; 0>1 ; 0>1 ; ");
	check_file("1>0 2>0 3>0\n", 9, "1>0 2>0 3>0 ; ");
	check_file("5>0\n+\n+#\n+1>2\n", 9, "1>2 5>0 ; ");
	check_file("007>001\n", 9, "7>1 ; ");
	/* Not every pattern is a permutation. */
	check_file("0>2 1>2\n+ 3>2\n+ 0>1\n2>0", 4, "0>1 0>2 1>2 3>2 ; 2>0 ; ");
	check_file("0>1 0>1 0>1 2>1 2>0\n", 3, "0>1 0>1 0>1 2>0 2>1 ; ");
	check_file("1>0 1>2 1>0\n", 3, "1>0 1>0 1>2 ; ");
}

static void check_bad(const char *bytes, size_t len, uint32_t n, const char *words)
{
	char why[256] = "";
	struct fabric_cps c;

	assert_int_equal(parse_text(&c, bytes, len, n, why, sizeof(why)), -EINVAL);
	if (!strstr(why, words))
		fail_msg("refused with \"%s\", without \"%s\"", why, words);
	for (const char *p = why; *p; p++)
		assert_true(*p >= ' ' && *p < 0x7f);
	assert_null(c.flows);
}

#define BAD(text, n, words) check_bad(text, sizeof(text) - 1, n, words)

static void test_bad_files(void **state)
{
	(void)state;
	BAD("0>1\n\n1-2\n", 4, "pattern:3: '1-2' is no flow; expected FROM>TO, such as 0>1");
	BAD("0>1 1>\n", 4, "pattern:1: '1>' is no flow");
	BAD(">1\n", 4, "'>1' is no flow");
	BAD("0>1>2\n", 4, "'0>1>2' is no flow");
	BAD("0 > 1\n", 4, "'0' is no flow");
	BAD("-1>1\n", 4, "'-1>1' is no flow");
	BAD("0>1\0\n", 4, "'0>1\\x00' is no flow");
	BAD("0>1\n+ 2>4\n", 4, "pattern:2: '2>4': there is no rank 4; expected 0 to 3");
	BAD("99999999999999999999>0\n", 4, "there is no rank");
	BAD("4294967296>0\n", 4, "there is no rank 4294967296");
	BAD("2>2\n", 4, "pattern:1: rank 2 sends to itself");
	BAD("+ 0>1\n", 4, "pattern:1: there is no stage to continue");
	BAD("", 4, "pattern has no flow");
	BAD("#0>1\n \n", 4, "pattern has no flow");
}

enum { N = 100000 };

static uint32_t huge_to(uint32_t i)
{
	return i / 2 == N - 1 - i ? 1 : i / 2;
}

/* Long words and lines cost nothing but their flows. */
static void test_huge_file(void **state)
{
	char *text = malloc(N * 16 + 16), why[256] = "";
	struct fabric_cps c;
	size_t at = 0;

	(void)state;
	assert_non_null(text);
	memset(text, '1', N * 16);
	check_bad(text, N * 16, 4, "1111...' is no flow");
	text[0] = '#';
	check_bad(text, N * 16, 4, "has no flow");
	for (uint32_t i = 0; i < N; i++)
		at += (size_t)sprintf(text + at, "%u>%u\n", N - 1 - i, huge_to(i));
	assert_int_equal(parse_text(&c, text, at, N, why, sizeof(why)), 0);
	assert_int_equal(c.stages, N);
	for (uint32_t i = 0; i < N; i += 99)
		assert_int_equal(fabric_cps_to(&c, i, N - 1 - i), huge_to(i));
	fabric_cps_free(&c);
	for (size_t i = 0; i < at; i++)
		if (text[i] == '\n')
			text[i] = ' ';
	assert_int_equal(parse_text(&c, text, at, N, why, sizeof(why)), 0);
	assert_int_equal(c.stages, 1);
	for (uint32_t i = 0; i < N; i++)
		assert_int_equal(fabric_cps_to(&c, 0, N - 1 - i), huge_to(i));
	fabric_cps_free(&c);
	free(text);
}

static void check_refused(const char *text, uint32_t n, const struct fabric_pgft *t, int code,
			  const char *words)
{
	struct fabric_cps c;
	char why[320] = "";

	assert_int_equal(fabric_cps_parse(&c, text, n, t, why, sizeof(why)), -code);
	if (!strstr(why, words))
		fail_msg("refused with \"%s\", without \"%s\"", why, words);
}

static void test_names(void **state)
{
	struct fabric_pgft t = tree("2;12,2;1,12;1,1");

	(void)state;
	check_refused("", 4, &t, EINVAL, "'' is no sequence; known are shift, ring");
	check_refused("shifts", 4, &t, EINVAL, "'shifts' is no sequence");
	check_refused("ring:1", 4, &t, EINVAL, "'ring:1' is no sequence");
	check_refused("shift:0", 4, &t, EINVAL, "'0' is no step of shift with 4 ranks; expected a");
	check_refused("drc:4", 4, &t, EINVAL, "'4' is no step of drc with 4 ranks");
	check_refused("drc:", 4, &t, EINVAL, "'' is no step of drc");
	check_refused("shift:1", 1, &t, EINVAL, "'1' is no step of shift");
	check_refused("shift", 0, &t, EINVAL, "0 ranks; expected 1 to");
	check_refused("topo-recdbl", 4, NULL, EINVAL, "follows a tree, and none is given");
	check_refused("topo-rechalv", 25, &t, EINVAL, "needs as many hosts; the tree has 24");
	check_refused("file:", 4, &t, EINVAL, "needs the name of a file");
	check_refused("file:/nonexistent/x", 4, &t, ENOENT, "can not open '/nonexistent/x'");
	check_refused("file:/tmp", 4, &t, EISDIR, "can not read /tmp: Is a directory");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_definitions), cmocka_unit_test(test_one_step),
		cmocka_unit_test(test_allreduce),   cmocka_unit_test(test_partial_allreduce),
		cmocka_unit_test(test_trees),       cmocka_unit_test(test_files),
		cmocka_unit_test(test_bad_files),   cmocka_unit_test(test_huge_file),
		cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
