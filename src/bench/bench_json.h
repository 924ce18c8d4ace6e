/* Results for machines, and the lines that tell people how far it is. */
#ifndef WEFT_BENCH_JSON_H
#define WEFT_BENCH_JSON_H

#include <jansson.h>

#include "bench_opts.h"
#include "bench_result.h"
#include "bench_sample.h"
#include "bench_target.h"

/* Preemptions per second of a process that waits for nobody; a quiet machine has fewer. */
#define BENCH_BUSY 50

/* The frame of a result file: program, command, machine, options. env may be NULL. */
json_t *bench_json_document(const struct bench_env *env, const struct bench_opts *opts);
json_t *bench_json_summary(const struct bench_summary *s);
/* spread may be NULL. */
json_t *bench_json_target(const char *what, const struct bench_target *t, double value,
			  const struct bench_summary *spread);

/* Writes doc where --json says, and drops it. */
int bench_json_write(const struct bench_opts *opts, json_t *doc);
bool bench_json_is_table(const struct bench_opts *opts); /* tables belong on stdout */

__attribute__((format(printf, 2, 3))) void bench_progress(const struct bench_opts *opts,
							  const char *fmt, ...);

/* report and plot: commands on files that were written earlier. 0 to 3, see --help. */
int bench_summary_report(const struct bench_opts *opts);
int bench_summary_plot(const struct bench_opts *opts);

#endif
