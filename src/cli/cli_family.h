/* Commands that have commands: weft lab, weft fabric. */
#ifndef WEFT_CLI_FAMILY_H
#define WEFT_CLI_FAMILY_H

#include "cli.h"

struct cli_family {
	const char *name;
	/* The help is head, the commands, tail. */
	const char *head, *tail;
	const struct cli_command *commands; /* end with a NULL name */
};

/* Finds the command and runs it, with argv[0] "weft NAME COMMAND". */
int cli_family(const struct cli_family *f, int argc, char **argv);

#endif
