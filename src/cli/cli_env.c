/* weft env: the variables of `weft verbs`, for people who start jobs themselves. */
#include "cli.h"

#include <getopt.h>

#include "cli_vars.h"

static const char help[] =
	"Usage: weft env [OPTIONS]\n"
	"\n"
	"Prints the environment variables that put verbs programs on the software RNIC, as\n"
	"shell commands. Use it where 'weft verbs PROGRAM' does not fit: job scripts, MPI\n"
	"launchers, debuggers.\n"
	"\n"
	"Options:\n" CLI_DEVICE_HELP "  -h, --help           this text\n"
	"\n"
	"Examples:\n"
	"  eval \"$(weft env)\"                       every program from here on\n"
	"  ibv_devinfo\n"
	"\n"
	"  eval \"$(weft env --netdev eth1)\"         on the addresses of eth1\n"
	"  mpirun -n 2 -x LD_PRELOAD -x LD_LIBRARY_PATH ./program\n"
	"\n"
	"  (eval \"$(weft env)\"; gdb ./program)      only inside the parentheses\n";

static const char hints[] =
	"# For UCX and the MPIs that use it (rc_v: RC that connects through UD; or ud_v):\n"
	"#export UCX_NET_DEVICES='weft0:1'\n"
	"#export UCX_TLS='rc_v,self'\n"
	"# Open MPI passes variables to other hosts only when told:\n"
	"#   mpirun -x LD_PRELOAD -x LD_LIBRARY_PATH ...\n";

int cli_env(int argc, char **argv)
{
	static const struct option options[] = {
		CLI_DEVICE_OPTIONS,
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct cli_vars vars = {0};
	int opt;

	while ((opt = getopt_long(argc, argv, "a:n:l:h", options, NULL)) != -1) {
		switch (opt) {
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		case '?':
			return cli_try_help();
		default:
			if (cli_vars_option(&vars, opt, optarg))
				return CLI_USAGE;
		}
	}
	if (optind < argc) {
		cli_error("unexpected argument '%s'; to run a program use 'weft verbs'",
			  argv[optind]);
		return cli_try_help();
	}
	if (cli_vars_loader(&vars))
		return CLI_USAGE;
	cli_vars_print(&vars, stdout);
	fputs(hints, stdout);
	cli_vars_free(&vars);
	return cli_finish(CLI_OK);
}
