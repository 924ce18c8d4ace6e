/* weft lab top: the load of the cables, hottest first. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_lab.h"
#include "cli_lab_screen.h"
#include "util_clock.h"

static const char help[] =
	"Usage: weft lab top NAME [OPTIONS]\n"
	"\n"
	"Watches the load of all cables, hottest direction first. In a terminal it fills the\n"
	"screen until q or Ctrl-C; otherwise it prints what it sees once, or --count times.\n"
	"\n"
	"Options:\n"
	"  -i, --interval TIME  look so often: seconds, or 500ms (1 if not given)\n"
	"  -n, --count N        end after N looks; 0: never\n"
	"  -j, --json           one JSON object per look, each on one line\n"
	"  -h, --help           this text\n"
	"\n"
	"Examples:\n"
	"  weft lab top fat\n"
	"  weft lab top fat --count 1 | head -n 5\n"
	"  weft lab top fat --json --count 10 | jq '.flows[0] | .link, .mbit'\n";

/* One direction of a cable. */
struct row {
	uint32_t cable;
	bool up;
	double mbit, utilisation, drops; /* per second */
	uint64_t backlog;
	bool alive;
};

struct top {
	struct lab lab;
	struct cli_lab_measure m;
	struct row *row;
	size_t rows;
	uint64_t interval;
	unsigned long count; /* 0: without end */
	bool utf8, colour;
};

/* In whole percents: of several full cables, the one that drops packets is the hot spot, and
 * the ones behind it are only full. */
static long percent(const struct row *r)
{
	return lround(100 * r->utilisation);
}

static int hotter(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (percent(x) != percent(y))
		return percent(x) > percent(y) ? -1 : 1;
	if (x->drops != y->drops)
		return x->drops > y->drops ? -1 : 1;
	if (x->backlog != y->backlog)
		return x->backlog > y->backlog ? -1 : 1;
	if (x->cable != y->cable)
		return x->cable < y->cable ? -1 : 1;
	return y->up - x->up;
}

static void fill_row(const struct cli_lab_measure *m, uint32_t cable, bool up, struct row *r)
{
	const struct lab_load *load = &m->now[cable], *before = &m->before[cable];
	const struct lab_flow *f = up ? &load->up : &load->down;
	uint64_t drops = cli_lab_since(f->drops, up ? before->up.drops : before->down.drops);

	*r = (struct row){.cable = cable,
			  .up = up,
			  .mbit = cli_lab_mbit(m, cable, up),
			  .utilisation = f->utilisation,
			  .drops = m->seconds > 0 ? (double)drops / m->seconds : 0,
			  .backlog = f->backlog,
			  .alive = load->alive};
}

static int look(struct top *t, struct lab_error *e)
{
	int ret = cli_lab_measure_look(&t->m, e);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < t->m.cables; i++) {
		fill_row(&t->m, i, true, &t->row[2 * i]);
		fill_row(&t->m, i, false, &t->row[2 * i + 1]);
	}
	qsort(t->row, t->rows, sizeof(*t->row), hotter);
	return 0;
}

static struct fabric_cable cable_of(const struct top *t, const struct row *r)
{
	return fabric_cable(&t->lab.spec.tree, r->cable);
}

/* ---- text ---- */

#define BAR_MAX 40
/* Columns of a line besides the names and the bar. */
#define NUMBERS_WIDTH 38

struct layout {
	int name; /* columns of a node's name */
	int bar;
};

static struct layout plan(const struct top *t, int columns)
{
	const struct fabric_pgft *tree = &t->lab.spec.tree;
	struct layout l = {.name = 0};
	char name[FABRIC_NAME_MAX];

	/* The last node of a level has the longest name. */
	for (uint32_t i = 0; i <= tree->h; i++) {
		int len;

		fabric_name((struct fabric_node){i, tree->nodes[i] - 1}, name);
		len = (int)strlen(name);
		l.name = len > l.name ? len : l.name;
	}
	l.bar = columns - NUMBERS_WIDTH - 2 * l.name - (2 * l.name + 6);
	if (l.bar > BAR_MAX)
		l.bar = BAR_MAX;
	if (l.bar < 5)
		l.bar = 0;
	return l;
}

static const char *colour_of(double utilisation)
{
	return utilisation < 0.5 ? "\033[32m" : utilisation < 0.9 ? "\033[33m" : "\033[31m";
}

static void print_bar(const struct top *t, const struct row *r, int width, FILE *to)
{
	double share = r->utilisation < 1 ? r->utilisation : 1;
	int full = (int)(share * width + 0.5);

	if (t->colour)
		fputs(colour_of(r->utilisation), to);
	for (int i = 0; i < full; i++)
		fputs(t->utf8 ? "\u2588" : "#", to);
	if (t->colour)
		fputs("\033[0m", to);
	fprintf(to, "%*s ", width - full, "");
}

static void print_row(const struct top *t, const struct row *r, const struct layout *l, FILE *to)
{
	struct fabric_cable c = cable_of(t, r);
	char link[FABRIC_CABLE_NAME_MAX], from[FABRIC_NAME_MAX], dest[FABRIC_NAME_MAX];
	char drops[16], backlog[16];

	fabric_cable_name(&t->lab.spec.tree, &c, link);
	fabric_name(r->up ? c.lower : c.upper, from);
	fabric_name(r->up ? c.upper : c.lower, dest);
	cli_lab_amount(r->drops, drops);
	cli_lab_amount((double)r->backlog, backlog);
	fprintf(to, "%-*s %*s %s %-*s %9.1f %5.1f%% ", 2 * l->name + 4, link, l->name, from,
		t->utf8 ? "\u2192" : ">", l->name, dest, r->mbit, 100 * r->utilisation);
	if (l->bar)
		print_bar(t, r, l->bar, to);
	fprintf(to, "%7s %7s%s\n", drops, backlog, r->alive ? "" : " failed");
}

static void print_page(const struct top *t, int columns, size_t rows, FILE *to)
{
	struct layout l = plan(t, columns);
	struct cli_lab_texts text;

	cli_lab_texts(&t->lab, &text);
	fprintf(to, "lab %s: %u cables, %s, %s, over %.2g s\n", t->lab.spec.name, t->m.cables,
		text.rate, text.routing, t->m.seconds);
	fprintf(to, "%-*s %-*s %9s %6s ", 2 * l.name + 4, "CABLE", 2 * l.name + 3, "DIRECTION",
		"MBIT/S", "LOAD");
	if (l.bar)
		fprintf(to, "%*s ", l.bar, "");
	fprintf(to, "%7s %7s\n", "DROPS/S", "BACKLOG");
	for (size_t i = 0; i < rows; i++)
		print_row(t, &t->row[i], &l, to);
}

/* ---- JSON ---- */

static void print_json(const struct top *t)
{
	json_t *flows = json_array();

	for (size_t i = 0; i < t->rows; i++) {
		const struct row *r = &t->row[i];
		struct fabric_cable c = cable_of(t, r);
		char link[FABRIC_CABLE_NAME_MAX], from[FABRIC_NAME_MAX], dest[FABRIC_NAME_MAX];

		fabric_cable_name(&t->lab.spec.tree, &c, link);
		fabric_name(r->up ? c.lower : c.upper, from);
		fabric_name(r->up ? c.upper : c.lower, dest);
		json_array_append_new(
			flows, json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:I, s:b}", "link", link,
					 "from", from, "to", dest, "mbit", r->mbit, "utilisation",
					 r->utilisation, "drops", r->drops, "backlog",
					 (json_int_t)r->backlog, "alive", (int)r->alive));
	}
	cli_lab_print_json(json_pack("{s:s, s:I, s:f, s:o}", "name", t->lab.spec.name, "time",
				     (json_int_t)time(NULL), "seconds", t->m.seconds, "flows",
				     flows),
			   true);
}

/* ---- the command ---- */

static int fail(const struct lab_error *e)
{
	cli_error("%s", e->text);
	return CLI_FAILED;
}

static void draw(const struct top *t)
{
	int columns, lines;
	size_t rows, size;
	char *page = NULL;
	FILE *to = open_memstream(&page, &size);

	if (!to)
		return;
	cli_screen_size(&columns, &lines);
	/* Two lines of heading, two at the bottom; the cursor stays on the last. */
	rows = lines > 4 ? (size_t)lines - 4 : 0;
	rows = rows < t->rows ? rows : t->rows;
	print_page(t, columns, rows, to);
	if (rows < t->rows)
		fprintf(to, "%zu cooler directions do not fit. ", t->rows - rows);
	fprintf(to, "q: quit\n");
	fclose(to);
	cli_screen_show(page);
	free(page);
}

/* The first look comes early: nobody likes an empty screen. */
#define FIRST_LOOK (300 * UTIL_NS_PER_MS)

static int watch(struct top *t, struct lab_error *e)
{
	uint64_t next = util_now_ns() + (t->interval < FIRST_LOOK ? t->interval : FIRST_LOOK);
	unsigned long looks = 0;
	int ret;

	for (;;) {
		enum cli_screen_event event = cli_screen_wait(next);

		if (event == CLI_SCREEN_QUIT)
			return 0;
		if (event == CLI_SCREEN_TIME) {
			if (t->count && looks == t->count)
				return 0;
			ret = look(t, e);
			if (ret)
				return ret;
			looks++;
			next = util_now_ns() + t->interval;
		}
		if (looks)
			draw(t);
	}
}

static int live(struct top *t)
{
	struct lab_error e;
	int ret = cli_screen_open();

	if (ret)
		return cli_error("cannot use the terminal: %s", strerror(-ret));
	ret = watch(t, &e);
	cli_screen_close();
	return ret ? fail(&e) : cli_finish(CLI_OK);
}

static int plain(struct top *t, bool json)
{
	struct timespec ts = {.tv_sec = (time_t)(t->interval / UTIL_NS_PER_S),
			      .tv_nsec = (long)(t->interval % UTIL_NS_PER_S)};
	struct lab_error e;

	for (unsigned long i = 0; !t->count || i < t->count; i++) {
		clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL);
		if (look(t, &e))
			return fail(&e);
		if (json)
			print_json(t);
		else
			print_page(t, 100, t->rows, stdout);
		if (!json && i + 1 != t->count)
			putchar('\n');
		if (cli_finish(CLI_OK))
			return CLI_FAILED;
	}
	return CLI_OK;
}

static int parse_count(const char *text, unsigned long *count)
{
	char *end;

	errno = 0;
	*count = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno)
		return cli_error("--count %s is not understood; expected a number", text);
	return CLI_OK;
}

static int run(struct top *t, bool screen, bool json)
{
	const char *no_colour = getenv("NO_COLOR");
	struct lab_error e;
	int code;

	setlocale(LC_CTYPE, "");
	t->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	t->colour = screen && !(no_colour && *no_colour);
	if (cli_lab_measure_open(&t->m, &t->lab, &e))
		return cli_error("%s", e.text);
	t->rows = 2 * (size_t)t->m.cables;
	t->row = calloc(t->rows, sizeof(*t->row));
	if (!t->row)
		code = cli_error("out of memory");
	else
		code = screen ? live(t) : plain(t, json);
	free(t->row);
	cli_lab_measure_close(&t->m);
	return code;
}

int cli_lab_top(int argc, char **argv)
{
	static const struct option options[] = {
		{"interval", required_argument, NULL, 'i'},
		{"count", required_argument, NULL, 'n'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct top t = {.interval = UTIL_NS_PER_S};
	bool json = false, counted = false, screen;
	int opt, code = CLI_OK;

	while (!code && (opt = getopt_long(argc, argv, "i:n:jh", options, NULL)) != -1) {
		switch (opt) {
		case 'i':
			code = cli_lab_time("--interval", optarg, &t.interval);
			break;
		case 'n':
			code = parse_count(optarg, &t.count);
			counted = true;
			break;
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		default:
			return cli_try_help();
		}
	}
	if (!code)
		code = cli_lab_open_only(&t.lab, argc, argv);
	if (code)
		return code;
	screen = !json && isatty(STDOUT_FILENO);
	if (!counted)
		t.count = screen ? 0 : 1;
	return run(&t, screen, json);
}
