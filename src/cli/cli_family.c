/* Commands that have commands. */
#include "cli_family.h"

#include <getopt.h>
#include <string.h>

static void print_help(const struct cli_family *f, FILE *to)
{
	size_t width = 0;

	for (const struct cli_command *c = f->commands; c->name; c++)
		width = strlen(c->name) > width ? strlen(c->name) : width;
	fputs(f->head, to);
	for (const struct cli_command *c = f->commands; c->name; c++)
		fprintf(to, "  %-*s  %s\n", (int)width, c->name, c->summary);
	fputs(f->tail, to);
}

static int run(const struct cli_family *f, const struct cli_command *c, int argc, char **argv)
{
	static char title[48];

	/* getopt_long starts its complaints with argv[0]. */
	snprintf(title, sizeof(title), "weft %s %s", f->name, c->name);
	argv[0] = title;
	cli_set_command(title + strlen("weft "));
	return c->run(argc, argv);
}

static int unknown(const struct cli_family *f, const char *name)
{
	const char *near = cli_nearest(f->commands, name);

	if (near)
		cli_error("unknown command '%s'; did you mean '%s'?", name, near);
	else
		cli_error("unknown command '%s'", name);
	return cli_try_help();
}

/* Options in front of the command: there is only --help. */
static int options_only(const struct cli_family *f, int argc, char **argv)
{
	static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {0}};

	if (getopt_long(argc, argv, "+h", options, NULL) != 'h')
		return cli_try_help();
	print_help(f, stdout);
	return cli_finish(CLI_OK);
}

int cli_family(const struct cli_family *f, int argc, char **argv)
{
	char *help[] = {NULL, NULL, "--help", NULL};

	if (argc < 2) {
		print_help(f, stderr);
		return CLI_USAGE;
	}
	if (argv[1][0] == '-')
		return options_only(f, argc, argv);
	if (!strcmp(argv[1], "help")) {
		if (argc == 2) {
			print_help(f, stdout);
			return cli_finish(CLI_OK);
		}
		help[1] = argv[2];
		argv = help;
		argc = 3;
	}
	for (const struct cli_command *c = f->commands; c->name; c++)
		if (!strcmp(c->name, argv[1]))
			return run(f, c, argc - 1, argv + 1);
	return unknown(f, argv[1]);
}
