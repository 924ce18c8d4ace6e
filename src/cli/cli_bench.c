/* weft bench: measurements. */
#include "cli_bench.h"

#include <string.h>

#include "cli_family.h"

static const char help_head[] =
	"Usage: weft bench COMMAND [OPTIONS] [ARGUMENTS]\n"
	"       weft bench --list\n"
	"\n"
	"Measures what a network and its libraries really do, with raw samples kept, and\n"
	"says of two that took turns which one is better only when the samples say so.\n"
	"\n"
	"Commands:\n";

static const char help_tail[] =
	"\n"
	"Options:\n"
	"  -l, --list  what can be measured, and on which stacks\n"
	"  -h, --help  this text; 'weft bench COMMAND --help' explains a command\n"
	"\n"
	"Examples:\n"
	"  weft bench mpi latency bw --quick\n"
	"  weft bench mpi latency --compare weft,tcp\n"
	"  weft bench verbs list\n"
	"  weft bench verbs pingpong --quick --json out.json\n"
	"\n"
	"Manual page: weft-bench(1).\n";

static const struct cli_command commands[] = {
	{"mpi", "MPI: latency, bandwidth, overlap, progress, collectives, ...", cli_bench_mpi},
	{"verbs", "verbs devices: 1:n n:1 ping-pong, connections, overhead, registration",
	 cli_bench_verbs},
	{0},
};

static int list(void)
{
	puts("weft bench mpi KIND:");
	for (const struct bench_mpi_kind *k = bench_mpi_kinds; k->name; k++)
		printf("  %-14s %s [%s]\n", k->name, k->summary, k->unit);
	puts("\nStacks, for --compare:");
	bench_stack_list();
	puts("\nOf verbs devices: see 'weft bench verbs list'.");
	return cli_finish(CLI_OK);
}

int cli_bench(int argc, char **argv)
{
	static const struct cli_family family = {"bench", help_head, help_tail, commands};

	if (argc == 2 && (!strcmp(argv[1], "--list") || !strcmp(argv[1], "-l")))
		return list();
	return cli_family(&family, argc, argv);
}
