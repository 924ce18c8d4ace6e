/* What processes that divide messages show of their paths: two looks, and what went between them.
 * cli_live.c is the command, cli_live_rows.c what it knows. */
#ifndef WEFT_CLI_LIVE_H
#define WEFT_CLI_LIVE_H

#include "msg_live.h"

/* A peer of a process. */
struct cli_live_row {
	const struct msg_live_proc *proc;
	const struct msg_live_peer *peer;
	double rate;                        /* bytes per second, of all paths */
	double path_rate[STRIPE_PATHS_MAX]; /* of each */
	double busy_rate[STRIPE_PATHS_MAX]; /* the same, only while something was under way */
};

struct cli_live_rows {
	/* Those that are wanted. */
	const char *host; /* NULL: all */
	uint64_t pid;     /* 0: all */

	struct msg_live_proc *proc;
	size_t procs;
	uint64_t when;  /* of the look */
	double seconds; /* since the one before */
	struct cli_live_row *row;
	size_t rows;
};

/* 0, or -errno with a sentence. */
int cli_live_look(struct cli_live_rows *r, char *why, size_t why_size);
void cli_live_free(struct cli_live_rows *r);

/* The busiest first; or by host, process and peer. */
void cli_live_sort(struct cli_live_rows *r, bool busiest);

#endif
