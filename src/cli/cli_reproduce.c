/* weft reproduce: the papers' figures, measured here. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli_facts.h"
#include "cli_output.h"
#include "repro.h"
#include "util_dir.h"

static const char help[] =
	"Usage: weft reproduce [OPTIONS] [PAPER | FIGURE]...\n"
	"       weft reproduce --list\n"
	"\n"
	"Measures, or simulates, what the figures and tables of five papers claim, and says of\n"
	"each: reproduced, same direction, or not here, and why. Ends with a report, one HTML "
	"page.\n"
	"\n"
	"Options:\n"
	"  --list           all figures by name, and what can be measured here\n"
	"  --all            all of them\n"
	"  --quick          few and short rounds, 19 minutes at most\n"
	"  --max-seconds N  for everything: who takes too long has fewer rounds, and says so\n"
	"  --resume         keep what was measured before with the same commands, and go on\n"
	"  --out DIR        results, plots and report (weft-reproduce)\n"
	"  --report FILE    the report (DIR/report.html); with --resume and nothing left to do it\n"
	"                   is only written anew\n"
	"  --json           findings as JSON on standard output\n"
	"  -q, --quiet      no progress on standard error\n"
	"  -h, --help       this text\n"
	"\n"
	"All that is started runs in namespaces of its own and ends with the command, however "
	"that\n"
	"ends; each round is written down when it is through.\n"
	"\n"
	"Examples:\n"
	"  weft reproduce --quick fattree                 a paper\n"
	"  weft reproduce --quick thesis/fig4.13          a figure\n"
	"  weft reproduce --all --quick --out results     everything\n"
	"  weft reproduce --all --quick --out results --resume   after Ctrl-C\n";

#define FIGURES_MAX   256
#define QUICK_SECONDS 1140 /* 20 minutes, with what is done before and after */

struct wish {
	struct repro_options o;
	bool list, all, json;
	const char *report;
	const struct repro_figure *figures[FIGURES_MAX];
	size_t n;
	const struct repro_experiment *experiments[FIGURES_MAX];
	size_t n_experiments;
	char out[PATH_MAX], bin[PATH_MAX];
};

/* ---- which ---- */

static void choose(const struct repro_figure *f, void *arg)
{
	struct wish *w = arg;

	for (size_t i = 0; i < w->n; i++)
		if (w->figures[i] == f)
			return;
	if (w->n < FIGURES_MAX)
		w->figures[w->n++] = f;
}

static int choose_all(struct wish *w, int argc, char **argv)
{
	if (w->all)
		repro_each("all", choose, w);
	for (int i = optind; i < argc; i++) {
		const char *near;

		if (repro_each(argv[i], choose, w))
			continue;
		near = repro_nearest(argv[i]);
		return near ? cli_error("there is no '%s'; did you mean '%s'? --list shows all",
					argv[i], near)
			    : cli_error("there is no '%s'; --list shows all", argv[i]);
	}
	if (!w->n)
		return cli_error("which figures? Name them or a paper, or say --all; --list shows "
				 "them");
	return CLI_OK;
}

static void choose_experiments(struct wish *w)
{
	for (size_t i = 0; i < w->n; i++) {
		const struct repro_experiment *x = w->figures[i]->experiment;
		bool there = !x || repro_missing(&w->o, x);

		for (size_t k = 0; k < w->n_experiments; k++)
			there |= w->experiments[k] == x;
		if (!there)
			w->experiments[w->n_experiments++] = x;
	}
}

/* ---- --list ---- */

static int list(struct wish *w)
{
	json_t *all = json_array();

	for (size_t i = 0; i < w->n; i++) {
		const struct repro_figure *f = w->figures[i];
		const char *why = f->experiment ? repro_missing(&w->o, f->experiment) : f->why;
		unsigned int seconds = f->experiment ? f->experiment->seconds[w->o.mode] : 0;

		if (w->json)
			json_array_append_new(all, json_pack("{s:s, s:s, s:b, s:s, s:I}", "name",
							     f->name, "shows", f->shows, "measured",
							     !why, "why", why ? why : "", "seconds",
							     (json_int_t)seconds));
		else if (why)
			cli_say("%-16s %s\n                 (not here: %s)\n", f->name, f->shows,
				why);
		else
			cli_say("%-16s %s\n                 (about %u s)\n", f->name, f->shows,
				seconds);
	}
	if (w->json)
		cli_print_json(all, 0);
	else
		json_decref(all);
	return cli_finish(CLI_OK);
}

/* ---- where ---- */

static int find_places(struct wish *w)
{
	ssize_t n = readlink("/proc/self/exe", w->bin, sizeof(w->bin) - 1);
	char *slash;

	if (n <= 0)
		return cli_error("cannot find Weft's own programs: %s", strerror(errno));
	w->bin[n] = '\0';
	slash = strrchr(w->bin, '/');
	if (slash)
		*slash = '\0';
	w->o.bin = w->bin;
	return CLI_OK;
}

static int make_out(struct wish *w, const char *out)
{
	char path[PATH_MAX];
	int ret;

	if (strlen(out) >= sizeof(path))
		return cli_error("--out: the name is too long");
	strcpy(path, out);
	ret = util_dir_make(path, 0755);
	if (ret || !realpath(out, w->out))
		return cli_error("cannot make %s: %s", out, strerror(ret ? -ret : errno));
	w->o.out = w->out;
	return CLI_OK;
}

static void miss(json_t *to, const char *text)
{
	size_t i;
	json_t *have;

	json_array_foreach (to, i, have)
		if (!strcmp(json_string_value(have), text))
			return;
	json_array_append_new(to, json_string(text));
}

/* ---- running and telling ---- */

static int run(void *arg)
{
	struct wish *w = arg;

	return repro_run(&w->o, w->experiments, w->n_experiments);
}

/* 0, or the signal that ended it. */
static int measure(struct wish *w)
{
	int number = 0, ret;

	if (!w->n_experiments)
		return 0;
	ret = repro_keep(&w->o, run, w, &number);
	if (ret == -EINTR && number)
		return number;
	if (ret >= 0)
		return 0;
	cli_error("no namespaces of our own (%s): without labs, and what is killed may leave "
		  "something behind",
		  strerror(-ret));
	w->o.alone = true;
	w->n_experiments = 0;
	choose_experiments(w);
	run(w);
	return 0;
}

static void tell(const struct repro_finding *r)
{
	cli_say("%-16s %-15s %s%s\n", r->figure->name, repro_verdict_name(r->verdict),
		r->verdict == REPRO_REPRODUCED ? "" : r->why,
		r->rounds < r->wanted && r->rounds ? " (not all rounds)" : "");
	if (r->note[0] && !strstr(r->why, r->note))
		cli_say("    on the way: %s\n", r->note);
	for (size_t i = 0; i < r->n && r->rounds; i++) {
		const struct repro_claim *c = &r->figure->claims[i];

		if (!r->claims[i].n) {
			cli_say("    %s: %s; %s: %s\n", c->says, c->published, r->claims[i].why,
				repro_verdict_name(r->claims[i].verdict));
			continue;
		}
		cli_say("    %s: %s; here %.3g%s%s [%.3g to %.3g]: %s\n", c->says, c->published,
			r->claims[i].value, c->unit ? " " : "", c->unit ? c->unit : "",
			r->claims[i].low, r->claims[i].high,
			repro_verdict_name(r->claims[i].verdict));
	}
}

static int write_page(const struct wish *w, const struct repro_finding *r, const json_t *missing)
{
	char path[PATH_MAX + 16];
	struct cli_file file;
	json_t *e;
	int code;

	snprintf(path, sizeof(path), "%s/report.html", w->out);
	code = cli_create(&file, w->report ? w->report : path);
	if (code)
		return code;
	e = cli_facts_place(w->o.version);
	code = cli_written(&file, repro_page(file.to, &w->o, r, w->n, e, missing) ? -EIO : 0, NULL);
	json_decref(e);
	if (!code && !w->o.quiet)
		fprintf(stderr, "The report: %s\n", w->report ? w->report : path);
	return code;
}

static int conclude(struct wish *w)
{
	struct repro_finding *r = calloc(w->n, sizeof(*r));
	json_t *all = json_array(), *missing = json_array();
	int code;

	if (!r)
		return cli_failed(-ENOMEM, "no memory");
	for (size_t i = 0; i < w->n; i++) {
		const struct repro_experiment *x = w->figures[i]->experiment;

		repro_conclude(&w->o, w->figures[i], &r[i]);
		if (x && repro_missing(&w->o, x))
			miss(missing, repro_missing(&w->o, x));
		if (r[i].data.n && repro_plot(&w->o, &r[i]))
			miss(missing, "no plots: gnuplot is missing, or failed (apt-get install "
				      "gnuplot-nox)");
		if (w->json)
			json_array_append_new(all, repro_finding_json(&r[i], w->o.mode));
		else
			tell(&r[i]);
	}
	for (size_t i = 0; i < json_array_size(missing); i++)
		fprintf(stderr, "weft reproduce: missing: %s\n",
			json_string_value(json_array_get(missing, i)));
	code = write_page(w, r, missing);
	if (w->json)
		cli_print_json(json_incref(all), JSON_REAL_PRECISION(10));
	json_decref(all);
	json_decref(missing);
	for (size_t i = 0; i < w->n; i++)
		repro_finding_free(&r[i]);
	free(r);
	return code ? code : cli_finish(CLI_OK);
}

static int reproduce(struct wish *w, const char *out, int argc, char **argv)
{
	int code = find_places(w), number;

	if (!code && w->list && optind == argc)
		w->all = true;
	if (!code)
		code = choose_all(w, argc, argv);
	if (code || w->list)
		return code ? code : list(w);
	code = make_out(w, out);
	if (code)
		return code;
	choose_experiments(w);
	number = measure(w);
	code = conclude(w);
	if (!number)
		return code;
	fprintf(stderr, "weft reproduce: interrupted; the same with --resume goes on from here\n");
	return 128 + number;
}

int cli_reproduce(int argc, char **argv)
{
	enum { LIST = 256, ALL, QUICK, RESUME, OUT, REPORT, JSON, SECONDS };
	static const struct option options[] = {
		{"list", no_argument, NULL, LIST},
		{"all", no_argument, NULL, ALL},
		{"quick", no_argument, NULL, QUICK},
		{"resume", no_argument, NULL, RESUME},
		{"out", required_argument, NULL, OUT},
		{"report", required_argument, NULL, REPORT},
		{"json", no_argument, NULL, JSON},
		{"quiet", no_argument, NULL, 'q'},
		{"help", no_argument, NULL, 'h'},
		{"max-seconds", required_argument, NULL, SECONDS},
		{0},
	};
	static struct wish w;
	const char *out = "weft-reproduce";
	int opt, seconds;

	w = (struct wish){.o = {.mode = REPRO_FULL, .version = WEFT_VERSION}};
	while ((opt = getopt_long(argc, argv, "qh", options, NULL)) != -1) {
		switch (opt) {
		case LIST:
			w.list = true;
			break;
		case ALL:
			w.all = true;
			break;
		case QUICK:
			w.o.mode = REPRO_QUICK;
			break;
		case RESUME:
			w.o.resume = true;
			break;
		case OUT:
			out = optarg;
			break;
		case REPORT:
			w.report = optarg;
			break;
		case JSON:
			w.json = true;
			break;
		case SECONDS:
			if (cli_number("--max-seconds", optarg, 1000000, &seconds))
				return CLI_USAGE;
			w.o.seconds = seconds;
			break;
		case 'q':
			w.o.quiet = true;
			break;
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		default:
			return cli_try_help();
		}
	}
	if (w.o.mode == REPRO_QUICK && w.o.seconds <= 0)
		w.o.seconds = QUICK_SECONDS;
	return reproduce(&w, out, argc, argv);
}
