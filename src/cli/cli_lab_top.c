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
	bool up, alive;
	struct lab_flow flow;
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
	return lround(100 * r->flow.utilisation);
}

static int hotter(const void *a, const void *b)
{
	const struct row *x = a, *y = b;

	if (percent(x) != percent(y))
		return percent(x) > percent(y) ? -1 : 1;
	if (x->flow.losses != y->flow.losses)
		return x->flow.losses > y->flow.losses ? -1 : 1;
	if (x->flow.backlog != y->flow.backlog)
		return x->flow.backlog > y->flow.backlog ? -1 : 1;
	if (x->cable != y->cable)
		return x->cable < y->cable ? -1 : 1;
	return y->up - x->up;
}

static int look(struct top *t, struct lab_error *e)
{
	int ret = cli_lab_measure_look(&t->m, e);

	if (ret)
		return ret;
	for (uint32_t i = 0; i < t->m.cables; i++) {
		const struct lab_load *load = &t->m.now[i];

		t->row[2 * i] = (struct row){i, true, load->alive, load->up};
		t->row[2 * i + 1] = (struct row){i, false, load->alive, load->down};
	}
	qsort(t->row, t->rows, sizeof(*t->row), hotter);
	return 0;
}

struct names {
	char link[FABRIC_CABLE_NAME_MAX], from[FABRIC_NAME_MAX], to[FABRIC_NAME_MAX];
};

static void name_row(const struct top *t, const struct row *r, struct names *n)
{
	struct fabric_cable c = fabric_cable(&t->lab.spec.tree, r->cable);

	fabric_cable_name(&t->lab.spec.tree, &c, n->link);
	fabric_name(r->up ? c.lower : c.upper, n->from);
	fabric_name(r->up ? c.upper : c.lower, n->to);
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
	double load = r->flow.utilisation, share = load < 1 ? load : 1;
	int full = (int)(share * width + 0.5);

	if (t->colour)
		fputs(colour_of(load), to);
	for (int i = 0; i < full; i++)
		fputs(t->utf8 ? "\u2588" : "#", to);
	if (t->colour)
		fputs("\033[0m", to);
	fprintf(to, "%*s ", width - full, "");
}

static void print_row(const struct top *t, const struct row *r, const struct layout *l, FILE *to)
{
	const struct lab_flow *f = &r->flow;
	char drops[16], backlog[16];
	struct names n;

	name_row(t, r, &n);
	cli_lab_amount(f->losses, drops);
	cli_lab_amount((double)f->backlog, backlog);
	fprintf(to, "%-*s %*s %s %-*s %9.1f %5.1f%% ", 2 * l->name + 4, n.link, l->name, n.from,
		t->utf8 ? "\u2192" : ">", l->name, n.to, f->bits / 1e6, 100 * f->utilisation);
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
		const struct lab_flow *f = &r->flow;
		struct names n;

		name_row(t, r, &n);
		json_array_append_new(flows,
				      json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:I, s:b}", "link",
						n.link, "from", n.from, "to", n.to, "mbit",
						f->bits / 1e6, "utilisation", f->utilisation,
						"drops", f->losses, "backlog",
						(json_int_t)f->backlog, "alive", (int)r->alive));
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
	struct lab_error e;

	for (unsigned long i = 0; !t->count || i < t->count; i++) {
		cli_lab_wait(t->interval);
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
