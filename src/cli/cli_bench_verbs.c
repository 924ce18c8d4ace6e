/* weft bench verbs: becomes weft-verbs-perf, on the software RNIC; hardware stays visible. */
#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cli_bench.h"
#include "cli_vars.h"

#define PROGRAM "weft-verbs-perf"

/* It is beside us, in a build tree as in a prefix. */
static int find_program(char *path, size_t len)
{
	ssize_t n = readlink("/proc/self/exe", path, len - 1);
	char *slash;

	if (n < 0)
		return -errno;
	path[n] = 0;
	slash = strrchr(path, '/');
	if (!slash || (size_t)(slash - path) + sizeof("/" PROGRAM) > len)
		return -ENAMETOOLONG;
	strcpy(slash, "/" PROGRAM);
	return 0;
}

int cli_bench_verbs(int argc, char **argv)
{
	static char path[PATH_MAX];
	struct cli_vars vars = {0};
	int ret = find_program(path, sizeof(path));

	(void)argc;
	if (ret)
		return cli_error("where " PROGRAM " is can not be found out: %s", strerror(-ret));
	if (cli_vars_loader(&vars))
		return CLI_USAGE;
	ret = cli_vars_apply(&vars);
	cli_vars_free(&vars);
	if (ret)
		return cli_error("cannot set the environment: %s", strerror(-ret));
	argv[0] = path;
	return cli_become(argv);
}
