/* A run of weft bench mpi: what was asked for, and what came of it. Options fill it
 * (cli_bench_mpi.c), runs add to its result (cli_bench_mpi_run.c), tables show that
 * (cli_bench_mpi_table.c). */
#ifndef WEFT_CLI_BENCH_MPI_H
#define WEFT_CLI_BENCH_MPI_H

#include <limits.h>
#include <stdbool.h>

#include "bench_result.h"
#include "cli_bench.h"

enum { BENCH_STACKS = 8, BENCH_KINDS = 32 };

struct bench_mpi {
	struct bench_stack stack[BENCH_STACKS];
	const struct bench_mpi_kind *kind[BENCH_KINDS];
	int stacks, kinds, rounds, ranks, seconds;
	const char *lab, *mpi, *json, *csv;
	bool quick, print, failed;
	char weft[PATH_MAX], program[PATH_MAX];
	char **more; /* options of weft-mpi-perf */
	struct bench_result *result;
};

/* All rounds, in turn; an exit code. */
int bench_mpi_measure(struct bench_mpi *b);
/* What would be run, instead of running it; an exit code. */
int bench_mpi_print_lines(const struct bench_mpi *b);
/* Medians of a kind, and the first stack beside the others. */
void bench_mpi_table(const struct bench_mpi *b, const struct bench_mpi_kind *k);

#endif
