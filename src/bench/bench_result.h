/* What a run has measured, with everything that it was measured on: one JSON document.
 *
 *	{"weft_bench": 1, "command": "weft bench mpi latency", "began": "2024-05-01T10:00:00Z",
 *	 "took_s": 12.3,
 *	 "env": {"host": ..., "kernel": ..., "cpu": ..., "cores": 2, "load_before": 0.1,
 *	         "load_after": 1.9, "mpi": ..., "provider": ..., "device": ..., "link": ...,
 *	         "variables": {"FI_PROVIDER": ...}},
 *	 "series": [{"name": "latency", "unit": "us", "better": "lower",
 *	             "params": {"stack": "weft", "size": 8}, "samples": [4.1, null, 4.3]}]}
 *
 * Samples are raw, in the order in which they were taken; null is one that failed. Where stacks
 * took turns, the i-th of each is of the same round, so that series can be compared by
 * bench_result_compare. A CSV file has the same samples, a row for each.
 *
 * Of those that build a result, running out of memory ends the program. Files are read with limits
 * and checked: whoever reads one gets strings without control characters, and numbers.
 * A result belongs to one thread.
 */
#ifndef WEFT_BENCH_RESULT_H
#define WEFT_BENCH_RESULT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "bench_sample.h"

enum {
	BENCH_RESULT_BYTES = 64 << 20, /* of a file that is read */
	BENCH_RESULT_SERIES = 4096,
	BENCH_RESULT_PARAMS = 16,
	BENCH_RESULT_NAME = 128, /* characters of a name, of a unit */
	BENCH_RESULT_TEXT = 4096 /* of other strings */
};

struct bench_result_series {
	char *name, *unit; /* "%" is compared by difference, everything else by ratio */
	bool higher;       /* is better */
	json_t *params;    /* an object of strings and numbers */
	double *samples;   /* NaN: failed */
	size_t n, room;
};

struct bench_result {
	char *command, *began;
	double took_s;
	json_t *env;
	struct bench_result_series **series;
	size_t n;
	double start; /* on the monotonic clock; 0: was read */
};

/* ---- making one ---- */

/* Begins now, on this machine: host, kernel, processor, load, and the variables that matter. */
struct bench_result *bench_result_new(const char *command);
void bench_result_free(struct bench_result *r); /* NULL: nothing */
/* "mpi", "provider", "device", "link", ...: strings without control characters. */
void bench_result_env(struct bench_result *r, const char *name, const char *value);
/* The series with this name and these parameters (taken over; NULL: none), a new one if need be. */
struct bench_result_series *bench_result_series(struct bench_result *r, const char *name,
						const char *unit, bool higher, json_t *params);
void bench_result_add(struct bench_result_series *s, double sample);
/* As number `at`, counted from 0; what is between it and the last one has failed. */
void bench_result_put(struct bench_result_series *s, size_t at, double sample);

/* ---- files ---- */

/* Whole or not at all: a reader, or a run that is killed, finds the one before or the new one. What
 * is no ordinary file (a pipe, a terminal) is simply written to; "-" is standard output. Time and
 * load are as of now. 0 or -errno. */
int bench_result_write(struct bench_result *r, const char *path);
int bench_result_write_csv(const struct bench_result *r, const char *path);

/* 0, or -errno with one sentence in why: -EINVAL for what is no result, -EFBIG for too large. */
int bench_result_read(struct bench_result **r, const char *path, char *why, size_t why_len);
int bench_result_parse(struct bench_result **r, const char *text, size_t len, char *why,
		       size_t why_len);

/* ---- looking at one ---- */

void bench_result_summary(const struct bench_result_series *s, struct bench_summary *out);
/* a beside b. */
void bench_result_compare(const struct bench_result_series *a, const struct bench_result_series *b,
			  struct bench_comparison *out);
/* A parameter as text, in `text` if it is a number; NULL: there is none. */
const char *bench_result_param(const struct bench_result_series *s, const char *name,
			       char text[32]);

/* ---- for others that write documents ---- */

void bench_cpu_model(char *buf, size_t len);
json_t *bench_json_number(double value); /* null when it is not one */

#endif
