/* weft bench mpi: weft-mpi-perf on one stack, or on several in turn. */
#include "cli_bench.h"

#include <getopt.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_result.h"
#include "cli.h"

static const char help[] =
	"Usage: weft bench mpi KIND... [OPTIONS] [-- OPTIONS OF weft-mpi-perf]\n"
	"\n"
	"Measures an MPI, by an ordinary MPI program that weft run starts. Several stacks take\n"
	"turns, round by round; the first is compared with each of the others. It is called\n"
	"better or worse only when the interval of the ratio (99 %) says so, for which it takes\n"
	"8 rounds at least. 'weft bench --list' has the kinds and the stacks.\n"
	"\n"
	"Options:\n"
	"  -c, --compare A,B,...  these stacks, by name (weft)\n"
	"  -a, --a 'NAME: ...'    a stack: VAR=value ..., and options of weft run behind them\n"
	"  -b, --b 'NAME: ...'    another one; both may be said more than once\n"
	"  -r, --rounds N         1 to 1000 (20; 1 with a single stack)\n"
	"  -n, --ranks N          instead of what the kind has\n"
	"  -l, --lab NAME         between the hosts of a lab; on this machine otherwise\n"
	"      --mpi MPI          openmpi (the default) or mpich\n"
	"  -T, --seconds S        of one run, at most (10)\n"
	"  -q, --quick            8 rounds, 2 seconds\n"
	"  -j, --json FILE        raw samples and the machine, written after each round\n"
	"      --csv FILE         the samples, a row for each\n"
	"  -p, --print            print what would be run, for a cluster of one's own\n"
	"  -h, --help             this text\n"
	"\n"
	"Examples:\n"
	"  weft bench mpi latency bw\n"
	"  weft bench mpi latency --compare weft,tcp --rounds 20 -- -m 8:64K:8\n"
	"  weft bench mpi overlap --lab fat --compare weft,weft-off --json overlap.json\n"
	"  weft bench mpi bw --a 'rd:' --b 'rc: FI_WEFT_TRANSPORT=rc'\n"
	"\n"
	"Exit codes: 0 measured; 1 something failed; 2 wrong usage; 128 and the signal's number\n"
	"when it was told to end: what was measured until then is printed and kept.\n";

enum { STACKS = 8, KINDS = 32 };

struct bench {
	struct bench_stack stack[STACKS];
	const struct bench_mpi_kind *kind[KINDS];
	int stacks, kinds, rounds, ranks, seconds;
	const char *lab, *mpi, *json, *csv;
	bool quick, print, failed;
	char weft[PATH_MAX], program[PATH_MAX];
	char **more; /* options of weft-mpi-perf */
	struct bench_result *result;
};

/* ---- options ---- */

static int add_stack(struct bench *b, const char *text, bool by_name)
{
	struct bench_stack *s = &b->stack[b->stacks];
	int code;

	if (b->stacks == STACKS)
		return cli_error("more than %d stacks", STACKS);
	b->stacks++;
	code = by_name ? bench_stack_known(s, text) : bench_stack_parse(s, text);
	for (int i = 0; !code && i < b->stacks - 1; i++)
		if (!strcmp(b->stack[i].name, s->name))
			return cli_error("two stacks are called '%s'; give one another name by --a",
					 s->name);
	return code;
}

static int add_stacks(struct bench *b, const char *list)
{
	char *copy = strdup(list), *rest = copy, *name;
	int code = 0;

	while (copy && !code && (name = strsep(&rest, ",")))
		code = add_stack(b, name, true);
	free(copy);
	return code;
}

static int take_option(struct bench *b, int opt, const char *arg)
{
	switch (opt) {
	case 'c':
		return add_stacks(b, arg);
	case 'a':
	case 'b':
		return add_stack(b, arg, false);
	case 'r':
		return cli_number("--rounds", arg, 1000, &b->rounds);
	case 'n':
		return cli_number("--ranks", arg, 1000000, &b->ranks);
	case 'T':
		return cli_number("--seconds", arg, 86400, &b->seconds);
	case 'l':
		b->lab = arg;
		return 0;
	case 'm':
		b->mpi = arg;
		return strcmp(arg, "openmpi") && strcmp(arg, "mpich")
			       ? cli_error("--mpi %s is not known; expected openmpi or mpich", arg)
			       : 0;
	case 'q':
		b->quick = true;
		return 0;
	case 'j':
		b->json = arg;
		return 0;
	case 'C':
		b->csv = arg;
		return 0;
	case 'p':
		b->print = true;
		return 0;
	}
	return cli_try_help();
}

static int add_kind(struct bench *b, const char *name)
{
	const struct bench_mpi_kind *k = bench_mpi_kind_find(name);

	if (!k)
		return cli_error("there is no kind '%s'; see weft bench --list", name);
	if (b->kinds == KINDS)
		return cli_error("more than %d kinds", KINDS);
	b->kind[b->kinds++] = k;
	return 0;
}

static int take_arguments(struct bench *b, int argc, char **argv)
{
	int code = 0;

	for (int i = 0; !code && i < argc; i++)
		code = add_kind(b, argv[i]);
	if (code || b->kinds)
		return code;
	cli_error("which kind? For example: weft bench mpi latency");
	return cli_try_help();
}

static int complete(struct bench *b)
{
	ssize_t n = readlink("/proc/self/exe", b->weft, sizeof(b->weft) - 32);
	char *slash;

	if (n < 0)
		return cli_error("cannot find myself in /proc");
	b->weft[n] = '\0';
	slash = strrchr(b->weft, '/');
	snprintf(b->program, sizeof(b->program), "%.*s/weft-mpi-perf.%s", (int)(slash - b->weft),
		 b->weft, b->mpi ? b->mpi : "openmpi");
	if (access(b->program, X_OK))
		return cli_error("there is no %s; it is built where that MPI is installed",
				 b->program);
	if (!b->stacks && add_stack(b, "weft", true))
		return CLI_USAGE;
	if (!b->rounds)
		b->rounds = b->stacks == 1 ? 1 : b->quick ? 8 : 20;
	if (!b->seconds)
		b->seconds = b->quick ? 2 : 10;
	return 0;
}

/* ---- one run ---- */

static void command_line(const struct bench *b, const struct bench_mpi_kind *k,
			 const struct bench_stack *s, struct cli_words *w)
{
	cli_words_add(w, b->weft);
	cli_words_add(w, "run");
	cli_words_add(w, "-n");
	cli_words_addf(w, "%d", b->ranks ? b->ranks : k->ranks);
	if (b->lab) {
		cli_words_add(w, "--lab");
		cli_words_add(w, b->lab);
	}
	cli_words_add_all(w, s->options.word ? s->options.word : (char *[]){NULL});
	if (b->print)
		cli_words_add(w, "--print");
	cli_words_add_all(
		w, (char *[]){"--", (char *)b->program, (char *)k->name, "--json", "-T", NULL});
	cli_words_addf(w, "%d", b->seconds);
	cli_words_add_all(w, b->more);
}

static void add_row(struct bench *b, const struct bench_mpi_kind *k, const char *stack, int round,
		    const json_t *row)
{
	const json_t *v = json_object_get(row, k->value);
	const char *only = k->only[0] ? json_string_value(json_object_get(row, k->only[0])) : NULL;
	json_t *params;

	if (k->only[0] && (!only || strcmp(only, k->only[1]) != 0))
		return;
	params = json_pack("{s:s}", "stack", stack);
	for (int i = 0; k->keys[i]; i++) {
		json_t *key = json_object_get(row, k->keys[i]);

		if (json_is_string(key) || json_is_number(key))
			json_object_set(params, k->keys[i], key);
	}
	bench_result_put(bench_result_series(b->result, k->name, k->unit, k->higher, params),
			 (size_t)round, json_is_number(v) ? json_number_value(v) : NAN);
}

static void one_run(struct bench *b, const struct bench_mpi_kind *k, const struct bench_stack *s,
		    int round)
{
	struct cli_words line = {0};
	char what[96];
	json_t *doc, *row;
	const char *mpi;
	size_t i;

	command_line(b, k, s, &line);
	snprintf(what, sizeof(what), "%s on %s, round %d", k->name, s->name, round + 1);
	/* The program gives up by itself after twice its time and a minute. */
	doc = bench_run_json(&line, &s->env, 2 * (unsigned int)b->seconds + 90, what);
	cli_words_free(&line);
	b->failed = b->failed || !doc;
	json_array_foreach (json_object_get(doc, "rows"), i, row)
		add_row(b, k, s->name, round, row);
	mpi = json_string_value(json_object_get(doc, "mpi"));
	if (mpi)
		bench_result_env(b->result, "mpi", mpi);
	json_decref(doc);
}

static int keep(struct bench *b)
{
	int ret = b->json ? bench_result_write(b->result, b->json) : 0;

	if (ret)
		return cli_failed(ret, "cannot write %s: %s", b->json, strerror(-ret));
	ret = b->csv ? bench_result_write_csv(b->result, b->csv) : 0;
	return ret ? cli_failed(ret, "cannot write %s: %s", b->csv, strerror(-ret)) : 0;
}

/* Every other round runs backwards, so that nobody is always the first. */
static int measure(struct bench *b)
{
	bench_run_catch();
	for (int round = 0; round < b->rounds; round++) {
		fprintf(stderr, "weft bench mpi: round %d of %d\n", round + 1, b->rounds);
		for (int k = 0; k < b->kinds; k++)
			for (int i = 0; i < b->stacks && !bench_run_told(); i++)
				one_run(b, b->kind[k], &b->stack[round % 2 ? b->stacks - 1 - i : i],
					round);
		if (keep(b))
			return CLI_FAILED;
		if (bench_run_told())
			return 128 + bench_run_told();
	}
	return b->failed ? CLI_FAILED : CLI_OK;
}

/* ---- tables ---- */

static const struct bench_result_series *
same_row(const struct bench *b, const struct bench_result_series *s, const char *stack)
{
	json_t *want = json_copy(s->params);
	const struct bench_result_series *found = NULL;

	json_object_set_new(want, "stack", json_string(stack));
	for (size_t i = 0; i < b->result->n && !found; i++)
		if (!strcmp(b->result->series[i]->name, s->name) &&
		    json_equal(b->result->series[i]->params, want))
			found = b->result->series[i];
	json_decref(want);
	return found;
}

static void print_verdict(const struct bench_result_series *s,
			  const struct bench_result_series *other, const char *stack)
{
	struct bench_comparison c;

	bench_result_compare(s, other, &c);
	printf("  %.3f", c.ratio);
	if (c.verdict != BENCH_TOO_FEW)
		printf(" [%.3f..%.3f]", c.ci.lo, c.ci.hi);
	printf(" %s %s: %s", strcmp(s->unit, "%") ? "x" : "points from", stack,
	       bench_verdicts[c.verdict]);
}

static void print_series(const struct bench *b, const struct bench_mpi_kind *k,
			 const struct bench_result_series *s)
{
	char text[32];
	const char *stack = bench_result_param(s, "stack", text), *key;
	struct bench_summary sum;

	bench_result_summary(s, &sum);
	for (int i = 0; k->keys[i]; i++) {
		char number[32];

		key = bench_result_param(s, k->keys[i], number);
		printf(i ? " %-14s" : "%-10s", key ? key : "-");
	}
	printf(" %-12s %5zu ", stack, sum.n);
	printf(sum.n ? "%11.2f" : "          -", sum.median);
	if (isfinite(sum.ci.lo))
		printf(" [%.2f..%.2f]", sum.ci.lo, sum.ci.hi);
	for (int i = 1; i < b->stacks && !strcmp(stack, b->stack[0].name); i++) {
		const struct bench_result_series *other = same_row(b, s, b->stack[i].name);

		if (other && sum.n)
			print_verdict(s, other, b->stack[i].name);
	}
	putchar('\n');
}

static void print_kind(const struct bench *b, const struct bench_mpi_kind *k)
{
	printf("# %s: %s, %s; median of up to %d rounds [95 %%]%s\n", k->name, k->summary, k->unit,
	       b->rounds, b->stacks > 1 ? ", and the first stack beside others [99 %]" : "");
	for (int i = 0; k->keys[i]; i++)
		printf(i ? " %-14s" : "# %-8s", k->keys[i]);
	printf(" %-12s %5s %11s\n", "stack", "n", k->unit);
	for (size_t i = 0; i < b->result->n; i++)
		if (!strcmp(b->result->series[i]->name, k->name))
			print_series(b, k, b->result->series[i]);
	putchar('\n');
}

/* ---- all ---- */

/* What weft run would become, by its own --print; a cluster's hosts are for the user to add. */
static int print_line(const struct bench_stack *s, const struct cli_words *line)
{
	int status = 0;
	pid_t child;

	cli_words_print(&s->env, stdout);
	fputs(s->env.n ? " " : "", stdout);
	fflush(stdout);
	child = fork();
	if (!child)
		_exit(cli_become(line->word));
	if (child < 0 || waitpid(child, &status, 0) != child)
		return cli_error("cannot start %s", line->word[0]);
	return WIFEXITED(status) ? WEXITSTATUS(status) : CLI_FAILED;
}

static int print_lines(struct bench *b)
{
	int code = 0;

	for (int k = 0; k < b->kinds; k++)
		for (int i = 0; !code && i < b->stacks; i++) {
			struct cli_words line = {0};

			command_line(b, b->kind[k], &b->stack[i], &line);
			code = print_line(&b->stack[i], &line);
			cli_words_free(&line);
		}
	return cli_finish(code);
}

static void command_text(int argc, char **argv, char *text, size_t len)
{
	size_t n = 0;

	for (int i = 0; i < argc && n < len; i++)
		n += (size_t)snprintf(text + n, len - n, "%s%s", i ? " " : "", argv[i]);
}

static int run(struct bench *b, const char *text)
{
	int code = complete(b);

	if (code || b->print)
		return code ? code : print_lines(b);
	b->result = bench_result_new(text);
	if (b->lab)
		bench_result_env(b->result, "link", b->lab);
	code = measure(b);
	for (int k = 0; k < b->kinds; k++)
		print_kind(b, b->kind[k]);
	bench_result_free(b->result);
	return cli_finish(code);
}

int cli_bench_mpi(int argc, char **argv)
{
	static const struct option options[] = {
		{"compare", required_argument, NULL, 'c'},
		{"a", required_argument, NULL, 'a'},
		{"b", required_argument, NULL, 'b'},
		{"rounds", required_argument, NULL, 'r'},
		{"ranks", required_argument, NULL, 'n'},
		{"lab", required_argument, NULL, 'l'},
		{"mpi", required_argument, NULL, 'm'},
		{"seconds", required_argument, NULL, 'T'},
		{"quick", no_argument, NULL, 'q'},
		{"json", required_argument, NULL, 'j'},
		{"csv", required_argument, NULL, 'C'},
		{"print", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	static struct bench b;
	static char text[1024];
	int opt, code = 0, own = 1;

	command_text(argc, argv, text, sizeof(text));
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	b.more = argv + (own < argc ? own + 1 : argc);
	/* What follows "--" is not ours. */
	while (!code &&
	       (opt = getopt_long(own, argv, "c:a:b:r:n:l:T:qj:ph", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		}
		code = take_option(&b, opt, optarg);
	}
	if (!code)
		code = take_arguments(&b, own - optind, argv + optind);
	if (!code)
		code = run(&b, text);
	for (int i = 0; i < b.stacks; i++)
		bench_stack_free(&b.stack[i]);
	return code;
}
