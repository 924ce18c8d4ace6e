/* weft: finds the subcommand and runs it. */
#include "cli.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

const struct cli_command cli_commands[] = {
	{"verbs", "run a verbs program on the software RNIC", cli_verbs},
	{"env", "print the variables that do the same, for eval", cli_env},
	{"lab", "build virtual clusters: fat trees of network namespaces", cli_lab},
	{"run", "start an MPI program, on a lab or locally", cli_run},
	{"fabric", "fat trees: routes, rank orders, hot spots, simulation", cli_fabric},
	{"paths", "watch which paths divided messages take, live", cli_paths_watch},
	{"bench", "measure verbs devices, and MPI stacks side by side", cli_bench},
	{"reproduce", "measure what the papers claim, and report", cli_reproduce},
	{"info", "show devices, libraries, tunables and what is missing", cli_info},
	{"help", "explain a command", cli_help},
	{0},
};

static const struct cli_command *find_command(const char *name)
{
	const struct cli_command *c;

	for (c = cli_commands; c->name; c++)
		if (!strcmp(c->name, name))
			return c;
	return NULL;
}

static int run_command(const struct cli_command *command, int argc, char **argv)
{
	static char title[32];

	/* getopt_long starts its complaints with argv[0]. */
	snprintf(title, sizeof(title), "weft %s", command->name);
	argv[0] = title;
	cli_set_command(command->name);
	/* Whatever a command printed, and however it ended. */
	return cli_end(command->run(argc, argv));
}

/* Who starts us without them: what we open next must not be taken for standard output. */
static void fill_standard_descriptors(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	const struct cli_command *command;
	const char *name = argc > 1 ? argv[1] : NULL;
	const char *near;

	fill_standard_descriptors();
	if (!name) {
		cli_print_help(stderr);
		return CLI_USAGE;
	}
	if (!strcmp(name, "--help") || !strcmp(name, "-h")) {
		cli_print_help(stdout);
		return cli_finish(CLI_OK);
	}
	if (!strcmp(name, "--version") || !strcmp(name, "-V")) {
		cli_print_version();
		return cli_finish(CLI_OK);
	}
	command = find_command(name);
	if (command)
		return run_command(command, argc - 1, argv + 1);
	near = cli_nearest(cli_commands, name);
	if (name[0] == '-')
		cli_error("unknown option '%s'", name);
	else if (near)
		cli_error("unknown command '%s'; did you mean '%s'?", name, near);
	else
		cli_error("unknown command '%s'", name);
	return cli_try_help();
}
