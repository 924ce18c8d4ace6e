/* The command line of weft-perf. */
#ifndef WEFT_BENCH_OPTS_H
#define WEFT_BENCH_OPTS_H

#include "bench_kind.h"

#define BENCH_MAX_KINDS 24
#define BENCH_MAX_SIZES 32

struct bench_opts {
	const char *command;
	char **args; /* what follows the options */
	int n_args;
	int port, wait_ms;
	const char *bind;
	int cpu; /* -1: the role's default */
	bool pin, keep, quiet, strict;
	bool busy;      /* who measured saw other work on the machine */
	bool all_kinds; /* none was asked for by name */
	const char *dev;
	int ib_port, gid_index;
	struct bench_conf conf;
	const struct bench_kind *kinds[BENCH_MAX_KINDS + 1]; /* ends with a NULL */
	size_t sizes[BENCH_MAX_SIZES];
	size_t n_sizes;
	uint64_t iters, rounds, round_ms, max_seconds;
	unsigned int max_peers, seconds;
	const char *json; /* NULL: none; "-": standard output instead of tables */
};

/* 0: go on; 1: done, exit with 0 (help); -EINVAL: said what was wrong on stderr. */
int bench_opts_parse(struct bench_opts *opts, int argc, char **argv);

#endif
