/* What the files of fabric_names share: lines of hostfiles and rankfiles, and whom they name. */
#ifndef WEFT_FABRIC_NAMES_IN_H
#define WEFT_FABRIC_NAMES_IN_H

#include <inttypes.h>

#include "fabric_order_in.h"
#include "fabric_text.h"

/* ---- lines ---- */

/* One line, without its comment:
 *
 *	host slots=1 max_slots=1	Open MPI
 *	host:1 binding=user:0,1		MPICH
 *	rank 0=host slot=0		a rankfile of Open MPI
 */
struct fabric_line {
	char *text; /* ends with a zero */
	size_t len, room;
	bool zero; /* there is a zero byte in it */

	const char *name; /* NULL: there is nothing but space */
	uint32_t ranks;   /* as slots= says; 0: it does not */
	bool ranked;      /* it is of a rankfile: */
	uint32_t rank;
	uint32_t slot; /* FABRIC_NONE: none, or not a plain number */

	const char *bad, *expected; /* the word that is not understood, and what it should be */
};

/* 1: there was a line, 0: there is no further one, or -ENOMEM. The text is the caller's. */
int fabric_line_read(FILE *f, struct fabric_line *line);
/* Takes it apart; false: see bad and expected. */
bool fabric_line_parse(struct fabric_line *line);

/* ---- whom they name ---- */

/* A host; or a machine with several, of which it is known at the end only how often it is named. */
struct fabric_named {
	uint64_t line;
	uint32_t host; /* of a machine: its first */
	uint32_t rank;
	uint32_t ranks; /* of a machine that run one; 0: it does not say */
	bool machine;
};

struct fabric_names {
	const struct fabric_tree *tree;
	const struct fabric_set *set;
	struct fabric_quote name;
	uint64_t number; /* of the line */
	uint64_t *seen;  /* in which line each host was, 0: in none */
	uint32_t *times; /* how often each machine was named, by its first host */
	struct fabric_named *named;
	size_t n_named, room;
	bool ranked;       /* a rankfile */
	uint32_t rank;     /* of the line; otherwise as many as were before */
	uint32_t ranks;    /* that each host of the line shall run, 0: it does not say */
	const char *style; /* ... and how it says so */
	uint32_t *hosts, count;
	char *why;
	size_t why_size;
};

#define FABRIC_NAMES_REFUSE(r, fmt, ...)                                                           \
	fabric_refuse((r)->why, (r)->why_size, "line %" PRIu64 " of %s" fmt, (r)->number,          \
		      (r)->name.text, ##__VA_ARGS__)

int fabric_names_no_memory(const struct fabric_names *r);

/* Notes a host, or a machine that has several, by the name that the line has for it. */
int fabric_names_add_host(struct fabric_names *r, uint32_t node, const char *text, size_t len);
int fabric_names_add_machine(struct fabric_names *r, const uint32_t *hosts, uint32_t count,
			     const char *text, size_t len);
/* After the last line: the host of each rank. */
int fabric_names_end(struct fabric_names *r);

#endif
