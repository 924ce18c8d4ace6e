/* The command line of weft-verbs-perf, which `weft bench verbs` becomes. */
#ifndef WEFT_BENCH_FAN_OPTS_H
#define WEFT_BENCH_FAN_OPTS_H

#include "fan.h"

#define FAN_MAX_TYPES 20
#define FAN_MAX_LIST  32

enum fan_net { FAN_NET_AUTO, FAN_NET_HOSTS, FAN_NET_LOOPBACK };

struct fan_opts {
	const char *kind;
	const struct fan_type *types[FAN_MAX_TYPES + 1]; /* ends with a NULL */
	uint64_t sizes[FAN_MAX_LIST], ns[FAN_MAX_LIST];
	size_t n_sizes, n_ns;
	uint64_t passes, rounds, step_ms, max_seconds, procs; /* procs 0: as there are cores */
	const char *peers;                                    /* NULL: started here */
	enum fan_net net;
	int port;
	const char *bind, *dev;
	int ib_port, gid_index;
	bool pin, keep, quick, quiet;
	const char *json, *csv;
	char command[512]; /* as the user typed it */
};

/* 0: go on; 1: done, exit with 0 (help); -EINVAL: said what was wrong on stderr. */
int fan_opts_parse(struct fan_opts *o, int argc, char **argv);

/* The largest of the list. */
uint64_t fan_most(const uint64_t *list, size_t n);

__attribute__((format(printf, 2, 3))) void fan_progress(const struct fan_opts *o, const char *fmt,
							...);

#endif
