/* weft run: what its parts share.
 *
 *	cli_run.c        options, and what to do
 *	cli_run_mpi.c    which MPI a program is linked to, and where its launcher is
 *	cli_run_line.c   the launcher's command line and environment
 *	cli_run_job.c    a launcher on a lab, and the end of all that it has started
 *	cli_run_errors.c what a launcher says on standard error
 */
#ifndef WEFT_CLI_RUN_H
#define WEFT_CLI_RUN_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include "cli_words.h"
#include "lab.h"

enum run_mpi {
	RUN_OPENMPI,
	RUN_MPICH, /* and what shares its binary interface and its launcher, Hydra */
	RUN_MPIS,
};

struct run_mpi_kind {
	const char *option;  /* of --mpi */
	const char *name;    /* for people */
	const char *package; /* of Debian, that has the launcher */
	const char *headers; /* ... and what programs are compiled with */
};

extern const struct run_mpi_kind run_mpi_kinds[RUN_MPIS];

/* ---- cli_run_mpi.c ---- */

/* What a program's dynamic loader says. */
struct run_linkage {
	bool to[RUN_MPIS];
	char library[RUN_MPIS][PATH_MAX]; /* the MPI's own, if the loader finds it; or empty */
};

/* The file that PROGRAM means; 0, or CLI_NOT_FOUND or CLI_NOT_EXECUTABLE after a complaint. */
int run_find_program(const char *program, char path[PATH_MAX]);
/* Does not run the program. What is no dynamically linked program is linked to nothing. */
void run_linkage(const char *path, struct run_linkage *l);
/* Finds the launcher, near the library if one is given, or in PATH. It is a bare name where
 * PATH leads to it. Returns 0 or -ENOENT. */
int run_find_launcher(enum run_mpi mpi, const char *library, char launcher[PATH_MAX]);

/* ---- cli_run_line.c ---- */

struct run_line {
	struct cli_words env; /* NAME=value, for those that the user has not set */
	struct cli_words argv;
};

/* Where ranks go: hosts of a lab, in the order of ranks, over and over. */
struct run_places {
	const struct lab *lab;
	uint32_t *hosts;
	uint32_t count;
};

struct run_job {
	enum run_mpi mpi;
	bool stock; /* on what the MPI itself would take, not on Weft */
	bool coll;  /* with libweft-coll */
	const char *launcher;
	uint32_t ranks;
	const struct run_places *places; /* NULL: on this machine */
	const struct cli_words *extra;   /* of --mpi-args */
	char **program;
};

/* Returns 0, or CLI_USAGE after a complaint. */
int run_line_make(struct run_line *line, const struct run_job *job);
/* As a shell command. */
void run_line_print(const struct run_line *line, const struct run_places *places);
/* Becomes the launcher; as cli_become. */
int run_line_become(const struct run_line *line);
void run_line_free(struct run_line *line);

/* ---- cli_run_job.c ---- */

/* Runs the launcher on the host of rank 0. Returns its exit code; nothing that it has
 * started is left on the lab then. */
int run_on_lab(const struct run_line *line, const struct run_places *places);
/* weft run --agent HOST COMMAND…: how launchers start commands on other hosts of the lab
 * that they run on, in the place of ssh. */
int run_agent(char **words);

/* ---- cli_run_errors.c ---- */

struct run_errors {
	int from; /* of a pipe */
	int to;   /* the launcher's standard error; open as long as we are */
	size_t n;
	char line[512];
};

int run_errors_open(struct run_errors *e); /* 0 or -errno */
/* Passes on what there is. */
void run_errors_pass(struct run_errors *e);
void run_errors_close(struct run_errors *e);

#endif
