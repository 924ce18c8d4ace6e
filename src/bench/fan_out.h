/* What a run prints and keeps. */
#ifndef WEFT_BENCH_FAN_OUT_H
#define WEFT_BENCH_FAN_OUT_H

#include "bench_result.h"
#include "fan_opts.h"

struct fan_out {
	const struct fan_opts *o;
	struct bench_result *result;
	bool table; /* on standard output */
	uint64_t written;
};

void fan_out_begin(struct fan_out *out, const struct fan_opts *o, unsigned int cores,
		   const struct fan_root *root, const char *link);
/* Writes what there is, unless that was done just now. 0 or -errno, after a word about it. */
int fan_out_keep(struct fan_out *out, bool now);
void fan_out_end(struct fan_out *out);

/* fan_perf.c has the table of these. */
int fan_pingpong(struct fan_root *root, struct fan_out *out);
int fan_conns(struct fan_root *root, struct fan_out *out);
int fan_overhead(struct fan_root *root, struct fan_out *out);
int fan_reg(struct fan_root *root, struct fan_out *out);

/* One size and one n of a type: what pingpong and conns measure, pass by pass (fan_cell.c). */
struct fan_cell {
	const struct fan_type *type;
	size_t size;
	unsigned int n;
	bool stage2;
	struct fan_times t;
	size_t kept; /* rounds that are in the result */
	int error;
	struct bench_result_series *round, *packet, *per_msg;
};

int fan_cell_make(struct fan_cell *c, const struct fan_opts *o);
void fan_cell_free(struct fan_cell *c);
/* One pass: a step of it, and its samples into the result. */
void fan_cell_pass(struct fan_cell *c, struct fan_root *root, struct fan_out *out, size_t pass);
void fan_cell_head(const struct fan_out *out, const char *n);
void fan_cell_row(const struct fan_cell *c, const struct fan_out *out);
/* For each size the n whose messages are cheapest, beside n = 1. */
void fan_cell_best(const struct fan_cell *cells, size_t n, const struct fan_out *out);

#endif
