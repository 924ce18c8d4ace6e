/* weft-mpi-perf on several MPI stacks, run in turn (bench_mpi.sh), brought together.
 *
 * A *series* is one kind of measurement in one place, such as latency between two hosts. It was
 * run on each *stack* (weft, Open MPI's tcp, ...), once a *round*; each run left a JSON document,
 *
 *	SERIES.STACK.ROUND[.MORE].json
 *
 * whose rows are found again by their keys: sizes, sides, models. What is judged is the stack
 * "weft", by the median of its rounds, or by that of its ratios to a *base* in the same round. A
 * base is another stack, or "best": the one with the best median that is neither Weft nor raw.
 */
#ifndef WEFT_BENCH_MPI_H
#define WEFT_BENCH_MPI_H

#include <stdbool.h>
#include <stddef.h>

#include "bench_sample.h"

enum {
	BENCH_MPI_KEYS = 4,
	BENCH_MPI_STACKS = 12,
	BENCH_MPI_ROUNDS = 64,
	BENCH_MPI_ROWS = 192,
	BENCH_MPI_NAME = 32
};

/* What a series is made of. */
struct bench_mpi_spec {
	const char *series, *title, *unit;
	const char *keys[BENCH_MPI_KEYS + 1], *value; /* columns of weft-mpi-perf */
	const char *only[2];  /* if set, a column and the text that it must have */
	const char *judged;   /* the key, besides the first, that targets depend on; or NULL */
	const char *bases[3]; /* ends with a NULL */
	bool more;            /* is better */
};

struct bench_mpi_row {
	char key[BENCH_MPI_KEYS][BENCH_MPI_NAME];
	size_t size;                                  /* the first key, if it is a number */
	double v[BENCH_MPI_STACKS][BENCH_MPI_ROUNDS]; /* NaN: was not measured */
};

struct bench_mpi {
	const struct bench_mpi_spec *spec;
	char stacks[BENCH_MPI_STACKS][BENCH_MPI_NAME]; /* in the order of their files */
	struct bench_mpi_row *rows[BENCH_MPI_ROWS];
	size_t n_stacks, n_rows, rounds;
	size_t cut; /* documents of runs whose time was over before they were done */
};

/* Adds a document. All must be of one series. 0, or -errno after a word on what is wrong. */
int bench_mpi_load(struct bench_mpi *m, const char *path);
void bench_mpi_free(struct bench_mpi *m);
const struct bench_mpi_spec *bench_mpi_spec_find(const char *series);

/* The stack's number; -1: it is not there. */
int bench_mpi_stack(const struct bench_mpi *m, const char *name);
/* The stack that is meant by a base, see above; -1: none. */
int bench_mpi_base(const struct bench_mpi *m, const struct bench_mpi_row *r, const char *base);
/* Of the rounds; n is 0 where there are none. Leave the row as it is. */
void bench_mpi_summary(const struct bench_mpi *m, const struct bench_mpi_row *r, int stack,
		       struct bench_summary *s);
void bench_mpi_ratio(const struct bench_mpi *m, const struct bench_mpi_row *r, int stack, int base,
		     struct bench_summary *s);

struct bench_opts;
/* The command: tables on standard output, JSON where --json says. 0 to 2, see --help. */
int bench_mpi_report(const struct bench_opts *opts);

#endif
