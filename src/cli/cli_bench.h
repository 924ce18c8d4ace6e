/* weft bench: what its parts share.
 *
 *	cli_bench.c       the commands
 *	cli_bench_verbs.c weft bench verbs: becomes weft-verbs-perf
 *	cli_bench_mpi.c   weft bench mpi: options, rounds, tables
 *	cli_bench_run.c   one run of weft-mpi-perf by weft run, and the end of all that it started
 *	cli_bench_kind.c  stacks by name, and which column of a kind is its value
 */
#ifndef WEFT_CLI_BENCH_H
#define WEFT_CLI_BENCH_H

#include <jansson.h>
#include <stdbool.h>

#include "cli_words.h"

int cli_bench_mpi(int argc, char **argv);
int cli_bench_verbs(int argc, char **argv);

/* ---- cli_bench_kind.c ---- */

struct bench_mpi_kind {
	const char *name, *value, *unit, *summary;
	bool higher;
	int ranks;           /* when nothing is said */
	const char *keys[6]; /* columns that say what a row is of; end with a NULL */
	const char *only[2]; /* if set, a column and the text that it must have */
};

extern const struct bench_mpi_kind bench_mpi_kinds[]; /* end with a NULL name */
const struct bench_mpi_kind *bench_mpi_kind_find(const char *name);

/* How to run: variables, and options of weft run. */
struct bench_stack {
	char name[32];
	struct cli_words env, options;
};

/* A known name; 0, or CLI_USAGE after a complaint. */
int bench_stack_known(struct bench_stack *s, const char *name);
/* "NAME: VAR=value ... --option ..." */
int bench_stack_parse(struct bench_stack *s, const char *text);
void bench_stack_free(struct bench_stack *s);
void bench_stack_list(void);

/* ---- cli_bench_run.c ---- */

/* Runs argv[0] with these variables, for so many seconds at most, and takes its standard output for
 * JSON. NULL after a word on what failed. It dies with us, whatever ends us. */
json_t *bench_run_json(const struct cli_words *argv, const struct cli_words *env,
		       unsigned int seconds, const char *what);
/* From now on SIGINT, SIGTERM and SIGHUP only end what runs, and are told by bench_run_told. */
void bench_run_catch(void);
int bench_run_told(void); /* the signal, or 0 */

#endif
