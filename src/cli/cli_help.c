/* weft help, weft --help, weft --version. */
#include "cli.h"

#include <string.h>

void cli_print_version(void)
{
	printf("weft %s\n", WEFT_VERSION);
}

void cli_print_help(FILE *to)
{
	const struct cli_command *c;

	fputs("Usage: weft COMMAND [OPTIONS] [ARGUMENTS]\n"
	      "\n"
	      "Weft runs RDMA programs on machines without RDMA hardware: a software RNIC in\n"
	      "user space, without a kernel module and without root. It has reliable datagrams\n"
	      "besides, one queue pair for all peers, builds clusters on one machine, and finds\n"
	      "routes and rank orders without hot spots for real ones.\n"
	      "\n"
	      "Commands:\n",
	      to);
	for (c = cli_commands; c->name; c++)
		fprintf(to, "  %-9s %s\n", c->name, c->summary);
	fputs("\n"
	      "Options:\n"
	      "  -h, --help     this text; 'weft COMMAND --help' explains a command\n"
	      "  -V, --version  print the version\n"
	      "\n"
	      "Examples:\n"
	      "  weft info                                what is here, and what is missing\n"
	      "  weft verbs ibv_devinfo                   the device as verbs programs see it\n"
	      "  weft verbs ib_send_lat &                 a perftest server ...\n"
	      "  weft verbs ib_send_lat 127.0.0.1         ... and its client\n"
	      "  weft lab up fat --pgft \"2;12,2;1,12;1,1\" a cluster of 24 hosts on this machine\n"
	      "  weft run --lab fat -n 24 ./program       ... and an MPI program on it\n"
	      "  weft paths                               which paths its messages take\n"
	      "  weft fabric hsd --topology net --cps shift   hot spots of a real cluster\n"
	      "\n"
	      "Exit codes: 0 done; 1 what was run or examined failed; 2 wrong usage, or it\n"
	      "can not be done here. Manual pages: weft(1), weft-verbs(1), weft-lab(1),\n"
	      "weft-fabric(1), weft-run(1), weft-paths(1), weft-bench(1),\n"
	      "weft-reproduce(1), weft-info(1), weft-perf(1), weft-mpi-perf(1),\n"
	      "weft-tunables(7), weft-coll(7), weftdv(7), fi_weft(7).\n",
	      to);
}

int cli_help(int argc, char **argv)
{
	const struct cli_command *c;
	char *help[3] = {NULL, "--help", NULL};
	const char *near;

	if (argc < 2 || !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
		cli_print_help(stdout);
		return cli_finish(CLI_OK);
	}
	for (c = cli_commands; c->name; c++) {
		if (strcmp(c->name, argv[1]) != 0 || c->run == cli_help)
			continue;
		cli_set_command(c->name);
		help[0] = argv[1];
		return c->run(2, help);
	}
	if (!strcmp(argv[1], "help")) {
		cli_print_help(stdout);
		return cli_finish(CLI_OK);
	}
	near = cli_nearest(cli_commands, argv[1]);
	return near ? cli_error("unknown command '%s'; did you mean '%s'?", argv[1], near)
		    : cli_error("unknown command '%s'", argv[1]);
}

#define WORD_MAX 16

static size_t min3(size_t a, size_t b, size_t c)
{
	size_t m = a < b ? a : b;

	return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap of neighbours) that turn a into b. */
static size_t distance(const char *a, const char *b)
{
	size_t la = strlen(a), lb = strlen(b);
	size_t d[WORD_MAX + 1][WORD_MAX + 1];

	if (la > WORD_MAX || lb > WORD_MAX)
		return WORD_MAX;
	for (size_t i = 0; i <= la; i++)
		d[i][0] = i;
	for (size_t j = 0; j <= lb; j++)
		d[0][j] = j;
	for (size_t i = 1; i <= la; i++) {
		for (size_t j = 1; j <= lb; j++) {
			size_t change = a[i - 1] != b[j - 1];

			d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + change);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
			    d[i - 2][j - 2] + 1 < d[i][j])
				d[i][j] = d[i - 2][j - 2] + 1;
		}
	}
	return d[la][lb];
}

const char *cli_nearest(const struct cli_command *commands, const char *name)
{
	const struct cli_command *c;
	const char *best = NULL;
	size_t best_distance = 3; /* farther than two edits is a guess, not a typo */

	for (c = commands; c->name; c++) {
		size_t d = distance(name, c->name);

		/* "in" for info, "verb" for verbs: the start of a word counts as one edit. */
		if (name[0] && !strncmp(name, c->name, strlen(name)) && d > 1)
			d = 1;
		/* Two edits of a two-letter word say nothing. */
		if (d >= strlen(name))
			continue;
		if (d < best_distance) {
			best_distance = d;
			best = c->name;
		}
	}
	return best;
}
