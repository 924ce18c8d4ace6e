/* The text of a tuple: what is accepted, and what is said of what is not. */
#include "test_fabric.h"

static void test_good(void **state)
{
	static const struct {
		const char *text, *plain;
	} good[] = {
		{"1;5;1;1", "1;5;1;1"},
		{"2;12,12;1,6;1,2", "2;12,12;1,6;1,2"},
		{" 2 ; 12 , 12 ; 1 , 6 ; 1 , 2 ", "2;12,12;1,6;1,2"},
		{"\t2;\n12,12;\r\n1,6;1,2\n", "2;12,12;1,6;1,2"},
		{"PGFT(2;12,12;1,6;1,2)", "2;12,12;1,6;1,2"},
		{" PGFT ( 2; 12, 12; 1, 6; 1, 2 ) ", "2;12,12;1,6;1,2"},
		{"pgft(1;5;1;1)", "1;5;1;1"},
		{"02;012,0012;01,6;1,2", "2;12,12;1,6;1,2"},
		{"8;1,1,1,1,1,1,1,1;1,1,1,1,1,1,1,1;1,1,1,1,1,1,1,1",
		 "8;1,1,1,1,1,1,1,1;1,1,1,1,1,1,1,1;1,1,1,1,1,1,1,1"},
		{"1;16777216;1;1", "1;16777216;1;1"},
		{"1;1;268435455;1", "1;1;268435455;1"},
		{"1;1;1;268435456", "1;1;1;268435456"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(good); i++) {
		struct fabric_pgft t = tree(good[i].text), again;
		char text[FABRIC_TUPLE_MAX];

		fabric_pgft_print(&t, text);
		assert_string_equal(text, good[i].plain);
		again = tree(text);
		assert_memory_equal(&again, &t, sizeof(t));
	}
}

static const struct {
	const char *text, *words; /* that must stand in the sentence */
} bad[] = {
	{"", "the tuple is empty; expected h;m1,..;w1,..;p1,.."},
	{"  \t\n", "empty"},
	{"0;;;", "'0' levels announced; a tree has 1 to 8 levels"},
	{"9;1,1,1,1,1,1,1,1,1;1;1", "'9' levels announced; a tree has 1 to 8"},
	{"4294967297;1;1;1", "'4294967297' levels"},
	{"18446744073709551617;1;1;1", "'18446744073709551617' levels"},
	{"x", "character 1 of the tuple is 'x', expected the number of levels"},
	{"-1;1;1;1", "character 1 of the tuple is '-'"},
	{"+1;1;1;1", "character 1 of the tuple is '+'"},
	{"2", "ends where ';' and the values of m should be"},
	{"2;", "ends where a value of m should be"},
	{"2;12", "2 levels announced, but 1 value of m"},
	{"3;12,12;1,6;1,2", "3 levels announced, but 2 values of m"},
	{"1;12,12;1;1", "1 level announced, but 2 values of m"},
	{"2;12,12;1;1,2", "2 levels announced, but 1 value of w"},
	{"2;12,12;1,6;1,2,3", "2 levels announced, but 3 values of p"},
	{"2;12,12,1,6;1,2", "2 levels announced, but 4 values of m"},
	{"2;12,12", "ends where ';' and the values of w should be"},
	{"2;12,12;1,6", "ends where ';' and the values of p should be"},
	{"2;12,12;1,6;", "ends where a value of p should be"},
	{"2;12,12;1,6;1,", "ends where a value of p should be"},
	{"2;12,12;1,6;1,2;", "character 16 of the tuple is ';', expected the end"},
	{"2;12,12;1,6;1,2 3", "character 17 of the tuple is '3', expected the end"},
	{"2;12,12;1,6;1,2)", "character 16 of the tuple is ')', expected the end"},
	{"2;12,12;1,6;1,2;1,1", "expected the end"},
	{"2;1 2,12;1,6;1,2", "character 5 of the tuple is '2', expected ','"},
	{"2;12,12,12:1,6;1,2", "character 11 of the tuple is ':', expected ';'"},
	{"2;12,,12;1,6;1,2", "character 6 of the tuple is ',', expected a value of m"},
	{"2;,12;1,6;1,2", "character 3 of the tuple is ',', expected a value of m"},
	{"2,12,12;1,6;1,2", "character 2 of the tuple is ',', expected ';' and the values of m"},
	{"2;12;12;1,6;1,2", "2 levels announced, but 1 value of m"},
	{"2;12,x;1,6;1,2", "character 6 of the tuple is 'x', expected a value of m"},
	{"2;12,12;1,6;1,2.5", "character 16 of the tuple is '.'"},
	{"2;12,12;1,0x6;1,2", "level 2 has w = 0"},
	{"2;12,12;0x1,6;1,2", "level 1 has w = 0"},
	{"2;12,-12;1,6;1,2", "character 6 of the tuple is '-'"},
	{"2;12,\x01;1,6;1,2", "is '\\x01'"},
	{"2;12,\xc3\xa9;1,6;1,2", "is '\\xc3'"},
	{"2;0,12;1,6;1,2", "level 1 has m = 0; every number must be at least 1"},
	{"2;12,12;1,0;1,2", "level 2 has w = 0; every number must be at least 1"},
	{"2;12,12;0,1;1,2", "level 1 has w = 0"},
	{"2;12,12;1,6;1,000", "level 2 has p = 0"},
	{"PGFT", "ends where '(' should be"},
	{"PGFT2;12,12;1,6;1,2", "character 5 of the tuple is '2', expected '('"},
	{"PGFT(2;12,12;1,6;1,2", "ends where ')' should be"},
	{"PGFT(2;12,12;1,6;1,2]", "expected ')'"},
	{"PGFT(2;12,12;1,6;1,2) x", "is 'x', expected the end"},
	{"PGFT()", "is ')', expected the number of levels"},
	{"XGFT(1;1;1;1)", "is 'X'"},
	{"(1;1;1;1)", "is '('"},
	{"1;268435457;1;1", "level 1 has m = '268435457'; no number can be more than 268435456"},
	{"1;4294967296;1;1", "level 1 has m = '4294967296'"},
	{"1;1;18446744073709551616;1", "level 1 has w = '18446744073709551616'"},
	{"1;1;1;99999999999999999999999999999999999999999999999999999999999999999999",
	 "99...'; no number can be more than 268435456"},
	{"1;16777217;1;1", "the tree has 16777217 hosts; the most is 16777216"},
	{"2;4097,4096;1,1;1,1", "the tree has 16781312 hosts"},
	{"2;65536,65536;1,1;1,1", "the tree has 4294967296 hosts"},
	{"3;268435456,268435456,268435456;1,1,1;1,1,1", "the tree has more than 2^64 hosts"},
	{"1;1;268435456;1", "the tree has 268435457 nodes or more; the most is 268435456"},
	{"2;1,1;65536,65536;1,1", "the tree has 4294967296 switches at level 2"},
	{"2;4096,4096;1,65537;1,1", "the tree has 268439552 cables or more; the most is 268435456"},
	{"8;1,1,1,1,1,1,1,1;9999,9999,9999,9999,9999,9999,9999,9999;1,1,1,1,1,1,1,1",
	 "switches at level 3"},
	{"2;16777216,1;268435456,1;1,1", "the tree has 285212672 nodes or more"},
	{"2;16777216,1;1,268435456;1,1", "the tree has 285212673 nodes or more"},
	{"1;2;1;268435456", "the tree has 536870912 cables or more; the most is 268435456"},
	{"1;1;65536;65536", "the tree has 4294967296 cables"},
	{"2;1,1;1,1;1,268435456", "the tree has 268435457 cables"},
	{"1;16777216;1;268435456", "the tree has 4503599627370496 cables"},
	{"2;4096,4096;16,1;268435456,1", "cables"},
};

static void test_bad(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct fabric_pgft t, before;
		char why[256] = "";

		memset(&t, 0x5a, sizeof(t));
		before = t;
		if (fabric_pgft_parse(&t, bad[i].text, why, sizeof(why)) != -EINVAL)
			fail_msg("'%s' was accepted", bad[i].text);
		if (!strstr(why, bad[i].words))
			fail_msg("'%s' was refused with \"%s\", without \"%s\"", bad[i].text, why,
				 bad[i].words);
		assert_memory_equal(&t, &before, sizeof(t));
		/* One sentence, whole, in what can be shown. */
		assert_true(strlen(why) < 160);
		for (const char *p = why; *p; p++)
			assert_true(*p >= ' ' && *p < 0x7f);
	}
}

/* As much as a shell can pass, and a buffer as small as can be. */
static void test_long(void **state)
{
	static const char *const parts[] = {"9", "1,", "1;", " ", "(", "PGFT("};
	enum { LONG = 100000 };
	char *text = malloc(LONG + 8), why[200];
	struct fabric_pgft t;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < COUNT(parts); i++) {
		size_t n = strlen(parts[i]);

		strcpy(text, "1;");
		for (size_t at = 2; at + n < LONG; at += n)
			strcpy(text + at, parts[i]);
		assert_int_equal(fabric_pgft_parse(&t, text, why, sizeof(why)), -EINVAL);
		assert_true(strlen(why) > 10 && strlen(why) < 160);
		assert_int_equal(fabric_pgft_parse(&t, text, why, 1), -EINVAL);
		assert_int_equal(why[0], 0);
		assert_int_equal(fabric_pgft_parse(&t, text, NULL, 0), -EINVAL);
	}
	free(text);
}

static void test_round_trip(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++) {
		struct fabric_pgft t = tree(trees[i]);
		char text[FABRIC_TUPLE_MAX];

		fabric_pgft_print(&t, text);
		assert_string_equal(text, trees[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_bad),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
