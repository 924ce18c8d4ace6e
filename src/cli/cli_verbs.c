/* weft verbs: runs any verbs program on the software RNIC. */
#include "cli.h"

#include <getopt.h>
#include <string.h>

#include "cli_vars.h"

static const char help[] =
	"Usage: weft verbs [OPTIONS] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Runs an unmodified program that uses libibverbs on Weft's software RNIC. RDMA\n"
	"hardware, where there is some, stays visible beside it.\n"
	"\n"
	"Options (before PROGRAM):\n" CLI_DEVICE_HELP
	"  -p, --print-env      print the variables as shell commands instead of running\n"
	"  -h, --help           this text\n"
	"\n"
	"Examples:\n"
	"  weft verbs ibv_devinfo -v\n"
	"\n"
	"  weft verbs ibv_rc_pingpong &              a server ...\n"
	"  weft verbs ibv_rc_pingpong 127.0.0.1      ... and its client\n"
	"\n"
	"  weft verbs --netdev eth1 ib_write_bw HOST between two machines\n"
	"\n"
	"  weft verbs env UCX_NET_DEVICES=weft0:1 ucx_perftest ...\n"
	"\n"
	"Exit codes: that of PROGRAM; 127 when it is not found, 126 when it can not be\n"
	"executed, 2 for wrong usage or when Weft's libraries are not found.\n"
	"All tunables: weft info, weft-tunables(7).\n";

int cli_verbs(int argc, char **argv)
{
	static const struct option options[] = {
		CLI_DEVICE_OPTIONS,
		{"print-env", no_argument, NULL, 'p'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct cli_vars vars = {0};
	bool print = false;
	int opt, ret;

	/* '+': what follows PROGRAM belongs to it. */
	while ((opt = getopt_long(argc, argv, "+a:n:l:ph", options, NULL)) != -1) {
		switch (opt) {
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		case 'p':
			print = true;
			break;
		case '?':
			return cli_try_help();
		default:
			if (cli_vars_option(&vars, opt, optarg))
				return CLI_USAGE;
		}
	}
	if (optind == argc && !print) {
		cli_error("which program? For example: weft verbs ibv_devinfo");
		return cli_try_help();
	}
	if (cli_vars_loader(&vars))
		return CLI_USAGE;
	if (print) {
		cli_vars_print(&vars, stdout);
		cli_vars_free(&vars);
		return cli_finish(CLI_OK);
	}
	ret = cli_vars_apply(&vars);
	if (ret)
		return cli_error("cannot set the environment: %s", strerror(-ret));
	cli_vars_free(&vars);
	return cli_become(argv + optind);
}
