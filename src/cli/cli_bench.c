/* weft bench: measurements. */
#include "cli_bench.h"

#include "cli_family.h"

static const char help_head[] =
	"Usage: weft bench COMMAND [OPTIONS] [ARGUMENTS]\n"
	"\n"
	"Measures what a network and its libraries really do, with raw samples kept, and\n"
	"says of two that took turns which one is better only when the samples say so.\n"
	"\n"
	"Commands:\n";

static const char help_tail[] =
	"\n"
	"Options:\n"
	"  -h, --help  this text; 'weft bench COMMAND --help' explains a command\n"
	"\n"
	"Examples:\n"
	"  weft bench verbs list\n"
	"  weft bench verbs pingpong --quick --json out.json\n"
	"\n"
	"Manual page: weft-bench(1).\n";

static const struct cli_command commands[] = {
	{"verbs", "verbs devices: 1:n n:1 ping-pong, connections, overhead, registration",
	 cli_bench_verbs},
	{0},
};

int cli_bench(int argc, char **argv)
{
	static const struct cli_family family = {"bench", help_head, help_tail, commands};

	return cli_family(&family, argc, argv);
}
