/* Pictures: well-formed whatever the texts are, complete, and in order. */
#include "test_fabric.h"

#include <locale.h>
#include <math.h>
#include <unistd.h>

#include "fabric_draw.h"
#include "fabric_svg.h"

/* The picture as text; to be freed. */
static char *draw(const struct fabric_draw *d)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	assert_int_equal(fabric_draw_svg(d, f), 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(strlen(text), len);
	return text;
}

static uint32_t count(const char *text, const char *what)
{
	uint32_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/* ---- a small judge of XML ---- */

static const char *check_entity(const char *p)
{
	static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

	for (size_t i = 0; i < COUNT(known); i++)
		if (!strncmp(p, known[i], strlen(known[i])))
			return p + strlen(known[i]);
	fail_msg("stray & before: %.30s", p);
	return NULL;
}

/* Attributes: name="value", no < in a value. Returns the end of the tag. */
static const char *check_attributes(const char *p)
{
	while (*p == ' ') {
		p += 1 + strspn(p + 1,
				"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789");
		assert_memory_equal(p, "=\"", 2);
		p += 2;
		p += strcspn(p, "\"<&");
		assert_int_equal(*p, '"');
		p++;
	}
	return p;
}

static void check_xml(const char *text)
{
	char open[16][16];
	int depth = 0, roots = 0;

	for (const char *p = text; *p;) {
		size_t n;

		if (*p == '&') {
			p = check_entity(p);
			continue;
		}
		assert_true((unsigned char)*p >= ' ' || *p == '\n' || *p == '\t' || *p == '\r');
		assert_true(*p != '>');
		if (*p != '<') {
			assert_true(depth > 0 || *p == '\n');
			p++;
			continue;
		}
		n = strcspn(++p, " />");
		if (*p == '/') {
			n = strcspn(++p, ">");
			assert_true(depth-- > 0);
			assert_int_equal(strlen(open[depth]), n);
			assert_memory_equal(open[depth], p, n);
			p += n + 1;
			continue;
		}
		assert_true(depth < 16 && n < 16);
		roots += depth == 0;
		snprintf(open[depth], sizeof(open[0]), "%.*s", (int)n, p);
		p = check_attributes(p + n);
		if (*p == '/')
			p++;
		else
			depth++;
		assert_int_equal(*p++, '>');
	}
	assert_int_equal(depth, 0);
	assert_int_equal(roots, 1);
}

/* And a large one, where it is installed. */
static void check_xmllint(const char *text)
{
	FILE *f;

	if (system("xmllint --version >/dev/null 2>&1"))
		return;
	f = popen("xmllint --noout -", "w");
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(pclose(f), 0);
}

/* ---- tests ---- */

/* Loads of all kinds, from nothing known to far too much. */
static struct fabric_draw_cable *some_loads(const struct fabric_pgft *t)
{
	static const double values[] = {-1, 0, 0.1, 0.5, 0.999, 1, 7, NAN, INFINITY, -INFINITY};
	struct fabric_draw_cable *c = calloc(fabric_cables(t), sizeof(*c));

	assert_non_null(c);
	for (uint32_t i = 0; i < fabric_cables(t); i++) {
		c[i].up = values[i % COUNT(values)];
		c[i].down = values[i / 3 % COUNT(values)];
		c[i].broken = i % 7 == 3;
		if (i % 5 == 0)
			snprintf(c[i].note, sizeof(c[i].note), "%u <bytes> & more", i);
	}
	return c;
}

static void check_tree(const char *text)
{
	struct fabric_pgft t = tree(text);
	struct fabric_draw_cable *loads = some_loads(&t);
	struct fabric_draw d = {&t, "A tree", "link load", NULL};
	char *svg, name[FABRIC_CABLE_NAME_MAX + 16], want[2 * FABRIC_CABLE_NAME_MAX];

	for (int pass = 0; pass < 2; pass++) {
		svg = draw(&d);
		check_xml(svg);
		check_xmllint(svg);
		assert_null(strstr(svg, "nan"));
		assert_null(strstr(svg, "inf"));
		assert_int_equal(count(svg, "<g class=\"cable\">"), fabric_cables(&t));
		assert_int_equal(count(svg, "<title>host "), fabric_hosts(&t));
		assert_int_equal(count(svg, "<title>switch "), fabric_nodes(&t) - fabric_hosts(&t));
		for (uint32_t i = 0; i < fabric_cables(&t); i++) {
			struct fabric_cable c = fabric_cable(&t, i);

			fabric_cable_name(&t, &c, name);
			snprintf(want, sizeof(want), "<title>%s%s", name, pass ? "" : "</title>");
			assert_non_null(strstr(svg, want));
		}
		free(svg);
		d.cables = loads;
	}
	free(loads);
}

static void test_trees(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(trees); i++)
		check_tree(trees[i]);
	check_tree("3;12,12,2;1,12,1;1,1,12");
}

static void test_broken(void **state)
{
	struct fabric_pgft t = tree("2;4,4;1,2;1,2");
	struct fabric_draw_cable *c = calloc(fabric_cables(&t), sizeof(*c));
	struct fabric_draw d = {&t, NULL, NULL, c};
	char *svg = draw(&d);
	uint32_t before = count(svg, "class=\"cut\"");

	(void)state;
	free(svg);
	c[5].broken = c[9].broken = true;
	strcpy(c[9].note, "since noon");
	svg = draw(&d);
	assert_int_equal(count(svg, "class=\"cut\""), before + 2);
	assert_int_equal(count(svg, " broken</title>"), 1);
	assert_int_equal(count(svg, " since noon</title>"), 1);
	free(svg);
	free(c);
}

static void check_escaped(const char *text, const char *want)
{
	struct fabric_pgft t = tree("1;2;1;1");
	struct fabric_draw_cable c[2] = {{.up = 0.5}, {.up = 1}};
	struct fabric_draw d = {&t, text, text, c};
	char *svg;

	memset(c[1].note, 'x', sizeof(c[1].note)); /* no zero at the end */
	strncpy(c[0].note, text, sizeof(c[0].note) - 1);
	svg = draw(&d);
	check_xml(svg);
	check_xmllint(svg);
	if (count(svg, want) < 4)
		fail_msg("\"%s\" is not in %s", want, svg);
	free(svg);
}

static void test_escapes(void **state)
{
	(void)state;
	check_escaped("a<b>&\"c'", "a&lt;b&gt;&amp;&quot;c&#39;");
	check_escaped("</title><script>alert(1)</script>",
		      "&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;");
	check_escaped("]]>%s%n", "]]&gt;%s%n");
	check_escaped("bell \a esc \x1b[2J", "bell \xef\xbf\xbd esc \xef\xbf\xbd[2J");
	check_escaped("caf\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x8c\xb2",
		      "caf\xc3\xa9 \xe2\x86\x92 \xf0\x9f\x8c\xb2");
	check_escaped("cut \xe2\x86", "cut \xef\xbf\xbd\xef\xbf\xbd");
	check_escaped("latin \xe9t\xe9", "latin \xef\xbf\xbdt\xef\xbf\xbd");
	check_escaped("overlong \xc0\xbc \xe0\x80\xbc",
		      "overlong \xef\xbf\xbd\xef\xbf\xbd \xef\xbf\xbd");
	check_escaped("surrogate \xed\xa0\x80.", "surrogate \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.");
	check_escaped("no character \xef\xbf\xbe.",
		      "no character \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.");
	check_escaped("beyond \xf4\x90\x80\x80.", "beyond \xef\xbf\xbd");
}

static void test_colours(void **state)
{
	uint32_t calm = fabric_svg_colour(0), hot = fabric_svg_colour(1);
	int before = 1000;

	(void)state;
	assert_true((calm & 0xff) > (calm >> 16));              /* rather blue */
	assert_true((hot >> 16) > 0xb0 && (hot & 0xff) < 0x40); /* red */
	assert_int_equal(fabric_svg_colour(-1), calm);
	assert_int_equal(fabric_svg_colour(9), hot);
	/* Darker and darker, and no step leaps. */
	for (int i = 0; i <= 100; i++) {
		uint32_t c = fabric_svg_colour(i / 100.0);
		int luma = (int)((c >> 16) * 299 + (c >> 8 & 0xff) * 587 + (c & 0xff) * 114) / 1000;

		assert_true(luma <= before + 1 && (i == 0 || luma > before - 8));
		before = luma;
	}
}

/* Numbers must not follow the user's language. */
static void test_locale(void **state)
{
	static const char *const commas[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8"};
	struct fabric_pgft t = tree("2;4,4;1,2;1,2");
	struct fabric_draw_cable *c = some_loads(&t);
	struct fabric_draw d = {&t, "x", "y", c};
	char *plain = draw(&d), *other;

	(void)state;
	for (size_t i = 0; i < COUNT(commas); i++)
		if (setlocale(LC_ALL, commas[i]))
			break;
	other = draw(&d);
	setlocale(LC_ALL, "C");
	assert_string_equal(plain, other);
	free(plain);
	free(other);
	free(c);
}

static void test_write_errors(void **state)
{
	struct fabric_pgft t = tree("2;12,12;1,6;1,2");
	struct fabric_draw d = {&t, "x", NULL, NULL};
	FILE *f = fopen("/dev/full", "w");

	(void)state;
	assert_non_null(f);
	assert_int_equal(fabric_draw_svg(&d, f), -ENOSPC);
	fclose(f);
	f = fopen("/dev/null", "r");
	assert_non_null(f);
	assert_int_equal(fabric_draw_svg(&d, f), -EBADF);
	fclose(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trees),   cmocka_unit_test(test_broken),
		cmocka_unit_test(test_escapes), cmocka_unit_test(test_colours),
		cmocka_unit_test(test_locale),  cmocka_unit_test(test_write_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
