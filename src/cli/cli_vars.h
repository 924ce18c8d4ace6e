/* The environment that puts a program on the software RNIC. `weft verbs` applies
 * it, `weft env` prints it.
 */
#ifndef WEFT_CLI_VARS_H
#define WEFT_CLI_VARS_H

#include <stdbool.h>
#include <stdio.h>

#define CLI_VARS_MAX 8

struct cli_vars {
	int n;
	struct {
		const char *name;
		char *value; /* allocated */
	} var[CLI_VARS_MAX];
};

/* The options that set device tunables, the same for every command that has them. */
#define CLI_DEVICE_OPTIONS                                                                         \
	{"addr", required_argument, NULL, 'a'}, {"netdev", required_argument, NULL, 'n'},          \
	{                                                                                          \
		"log", required_argument, NULL, 'l'                                                \
	}
#define CLI_DEVICE_HELP                                                                            \
	"  -a, --addr ADDRESS   use this local IPv4 address, or several: A,B,C (WEFT_ADDR)\n"      \
	"  -n, --netdev NAME    use the addresses of this network interface (WEFT_NETDEV)\n"       \
	"  -l, --log LEVEL      error, warn, info or debug (WEFT_LOG)\n"

/* Handles one of the options above; returns 0, or -1 after a complaint on standard
 * error. Values are checked here, so that a typing mistake stops the command
 * instead of being one line in the program's output. */
int cli_vars_option(struct cli_vars *vars, int opt, const char *arg);

/* Adds the variables of the loader: Weft's libraries in front of what the user has
 * already, never twice. Returns 0, or -1 after a complaint. */
int cli_vars_loader(struct cli_vars *vars);

/* As shell commands: export NAME='value'. */
void cli_vars_print(const struct cli_vars *vars, FILE *to);

int cli_vars_apply(const struct cli_vars *vars); /* 0 or -errno */
void cli_vars_free(struct cli_vars *vars);

#endif
