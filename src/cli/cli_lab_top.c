/* weft lab top: the load of the cables, hottest first. */
#include "cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli_lab.h"
#include "cli_watch.h"
#include "util_list.h"

static const char help[] =
	"Usage: weft lab top NAME [OPTIONS]\n"
	"\n"
	"Watches the load of all cables, hottest direction first. In a terminal it fills the\n"
	"screen until q or Ctrl-C; otherwise it prints what it sees once, or --count times.\n"
	"\n"
	"Options:\n" CLI_WATCH_HELP "\n"
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
	struct cli_watch watch;
	struct lab lab;
	struct cli_lab_measure m;
	struct row *row;
	size_t rows;
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

static int look(struct cli_watch *w)
{
	struct top *t = container_of(w, struct top, watch);
	struct lab_error e;

	if (cli_lab_measure_look(&t->m, &e)) {
		snprintf(w->why, sizeof(w->why), "%s", e.text);
		return CLI_FAILED;
	}
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
#define HEAD_LINES    2

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

static void print_row(const struct top *t, const struct row *r, const struct layout *l, FILE *to)
{
	const struct lab_flow *f = &r->flow;
	char drops[16], backlog[16];
	struct names n;

	name_row(t, r, &n);
	cli_lab_amount(f->losses, drops);
	cli_lab_amount((double)f->backlog, backlog);
	fprintf(to, "%-*s %*s %s %-*s %9.1f %5.1f%% ", 2 * l->name + 4, n.link, l->name, n.from,
		t->watch.utf8 ? "\u2192" : ">", l->name, n.to, f->bits / 1e6, 100 * f->utilisation);
	if (l->bar)
		cli_watch_bar(&t->watch, f->utilisation, l->bar, colour_of(f->utilisation), to);
	fprintf(to, "%7s %7s%s\n", drops, backlog, r->alive ? "" : " failed");
}

static void print_page(const struct cli_watch *w, int columns, size_t lines, FILE *to)
{
	const struct top *t = container_of(w, const struct top, watch);
	struct layout l = plan(t, columns);
	struct cli_lab_texts text;
	size_t rows = t->rows;

	if (lines && lines < rows + HEAD_LINES)
		rows = lines > HEAD_LINES ? lines - HEAD_LINES : 0;

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
	if (rows < t->rows)
		fprintf(to, "%zu cooler directions do not fit. ", t->rows - rows);
}

/* ---- JSON ---- */

static void print_json(const struct cli_watch *w)
{
	const struct top *t = container_of(w, const struct top, watch);
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

static int run(struct top *t)
{
	struct lab_error e;
	int code;

	if (cli_lab_measure_open(&t->m, &t->lab, &e))
		return cli_error("%s", e.text);
	t->rows = 2 * (size_t)t->m.cables;
	t->row = calloc(t->rows, sizeof(*t->row));
	code = t->row ? cli_watch_run(&t->watch) : cli_error("out of memory");
	free(t->row);
	cli_lab_measure_close(&t->m);
	return code;
}

int cli_lab_top(int argc, char **argv)
{
	static const struct option options[] = {CLI_WATCH_OPTIONS, {0}};
	struct top t = {
		.watch = {.look = look, .page = print_page, .print_json = print_json},
	};
	int opt, code = CLI_OK;

	while (!code && (opt = getopt_long(argc, argv, CLI_WATCH_SHORT, options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		}
		code = cli_watch_option(&t.watch, opt, optarg);
	}
	if (!code)
		code = cli_lab_open_only(&t.lab, argc, argv);
	if (code)
		return code;
	cli_watch_prepare(&t.watch);
	return run(&t);
}
