/* A second process that watches the first one sleep.
 *
 * A process that reads its own CPU time uses some. So a child, forked before anything
 * else happens, reads the parent's /proc files at both ends of the interval while all
 * threads of the parent are left alone: then "no CPU time" can mean zero nanoseconds.
 */
#ifndef WEFT_BENCH_WATCH_H
#define WEFT_BENCH_WATCH_H

#include <stdint.h>
#include <sys/types.h>

#define BENCH_MAX_THREADS 16

struct bench_usage {
	uint64_t wall_ns;
	uint64_t cpu_ns;     /* on a CPU, from schedstat, all threads */
	uint64_t ticks;      /* utime + stime, as ps and top see it */
	uint64_t slices;     /* times that a thread was put on a CPU */
	uint64_t vol, invol; /* context switches */
	uint32_t threads;    /* at the end of the interval */
	uint32_t n;          /* of the list below */
	struct {
		char name[16];
		uint64_t cpu_ns, slices;
	} thread[BENCH_MAX_THREADS];
};

struct bench_watch {
	pid_t pid;
	int req, rsp;
};

int bench_watch_start(struct bench_watch *w); /* forks; call it first of all */
/* Blocks for the given time and a little more. */
int bench_watch_run(struct bench_watch *w, uint32_t seconds, struct bench_usage *usage);
void bench_watch_stop(struct bench_watch *w);

#endif
