/* weft bench mpi: weft-mpi-perf on one stack, or on several in turn. Its options. */
#include "cli_bench_mpi.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* ---- options ---- */

static int add_stack(struct bench_mpi *b, const char *text, bool by_name)
{
	struct bench_stack *s = &b->stack[b->stacks];
	int code;

	if (b->stacks == BENCH_STACKS)
		return cli_error("more than %d stacks", BENCH_STACKS);
	b->stacks++;
	code = by_name ? bench_stack_known(s, text) : bench_stack_parse(s, text);
	for (int i = 0; !code && i < b->stacks - 1; i++)
		if (!strcmp(b->stack[i].name, s->name))
			return cli_error("two stacks are called '%s'; give one another name by --a",
					 s->name);
	return code;
}

static int add_stacks(struct bench_mpi *b, const char *list)
{
	char *copy = strdup(list), *rest = copy, *name;
	int code = 0;

	while (copy && !code && (name = strsep(&rest, ",")))
		code = add_stack(b, name, true);
	free(copy);
	return code;
}

static int take_option(struct bench_mpi *b, int opt, const char *arg)
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
		return strcmp(arg, "openmpi") != 0 && strcmp(arg, "mpich") != 0
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

static int add_kind(struct bench_mpi *b, const char *name)
{
	const struct bench_mpi_kind *k = bench_mpi_kind_find(name);

	if (!k)
		return cli_error("there is no kind '%s'; see weft bench --list", name);
	if (b->kinds == BENCH_KINDS)
		return cli_error("more than %d kinds", BENCH_KINDS);
	b->kind[b->kinds++] = k;
	return 0;
}

static int take_arguments(struct bench_mpi *b, int argc, char **argv)
{
	int code = 0;

	for (int i = 0; !code && i < argc; i++)
		code = add_kind(b, argv[i]);
	if (code || b->kinds)
		return code;
	cli_error("which kind? For example: weft bench mpi latency");
	return cli_try_help();
}

static int complete(struct bench_mpi *b)
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

/* ---- all ---- */

static void command_text(int argc, char **argv, char *text, size_t len)
{
	size_t n = 0;

	for (int i = 0; i < argc && n < len; i++)
		n += (size_t)snprintf(text + n, len - n, "%s%s", i ? " " : "", argv[i]);
}

static int run(struct bench_mpi *b, const char *text)
{
	int code = complete(b);

	if (code || b->print)
		return code ? code : bench_mpi_print_lines(b);
	b->result = bench_result_new(text);
	if (b->lab)
		bench_result_env(b->result, "link", b->lab);
	code = bench_mpi_measure(b);
	for (int k = 0; k < b->kinds; k++)
		bench_mpi_table(b, b->kind[k]);
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
	static struct bench_mpi b;
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
