/* The `weft` command: one binary, one file per subcommand.
 *
 * main.c finds the subcommand in cli_commands and calls it with argv[0] set to
 * "weft NAME". Subcommands parse with getopt_long, answer --help by themselves, print
 * results on standard output and complaints on standard error, and return one of
 * the exit codes below. Everything here runs in one thread.
 */
#ifndef WEFT_CLI_H
#define WEFT_CLI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct util_tunable;

enum cli_exit {
	CLI_OK = 0,
	CLI_FAILED = 1, /* the thing that was run, or looked at, failed */
	CLI_USAGE = 2,  /* wrong usage, or it can not be done here */
	/* Where a program is run, as env(1) and nohup(1) do: */
	CLI_NOT_EXECUTABLE = 126,
	CLI_NOT_FOUND = 127,
};

struct cli_command {
	const char *name;
	const char *summary;
	int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_commands[]; /* ends with a NULL name */

int cli_verbs(int argc, char **argv);
int cli_env(int argc, char **argv);
int cli_info(int argc, char **argv);
int cli_lab(int argc, char **argv);
int cli_fabric(int argc, char **argv);
int cli_paths_watch(int argc, char **argv);
int cli_run(int argc, char **argv);
int cli_bench(int argc, char **argv);
int cli_reproduce(int argc, char **argv);
int cli_help(int argc, char **argv);

/* One sentence on standard error, prefixed "weft: " or "weft COMMAND: " for the
 * subcommand that main.c is running. Returns CLI_USAGE, so that a caller can
 * `return cli_error(...)`. */
int cli_error(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The number of an option, 1 to most; or complains. */
int cli_number(const char *option, const char *text, int most, int *out);
/* The same for what a -errno stopped: CLI_FAILED if it is the machine's (no memory, no room on the
 * disk), CLI_USAGE if it is the input's. */
int cli_failed(int err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* After getopt_long has printed its complaint: points at --help, returns CLI_USAGE. */
int cli_try_help(void);

/* Names the subcommand for the two above. */
void cli_set_command(const char *name);

void cli_print_help(FILE *to);
void cli_print_version(void);

/* The name among these commands (which end with a NULL name) that the user most likely
 * meant, or NULL. */
const char *cli_nearest(const struct cli_command *commands, const char *name);

/* Becomes the program argv[0]; returns only when that fails, after a complaint:
 * CLI_NOT_FOUND or CLI_NOT_EXECUTABLE. */
int cli_become(char **argv);
/* Calls fn for each line of a command's standard output; none if there is no such command. */
void cli_each_line(char *const *argv, void (*fn)(char *line, void *arg), void *arg);

/* Flushes standard output. A full disk or a closed pipe is a failure, of which it speaks once. */
int cli_finish(int code);
/* The same, and closes it, for main.c after every command: some disks tell only then. */
int cli_end(int code);

#endif
