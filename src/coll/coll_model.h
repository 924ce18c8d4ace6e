/* Which of several ways to do a collective is the fastest: predicted from a few numbers of the
 * machine, corrected by what is measured while the program runs.
 *
 * Every rank has to choose the same, or all of them wait for ever. So whatever a choice depends on
 * is the same on every rank: the number of calls, the sizes, and times that all ranks have agreed
 * on. A rank's own times are only ever reported, and come back as the mean of all.
 *
 * A chooser belongs to one operation, one class of sizes and one communicator. Ways that are
 * predicted to be far from the best are never tried. The others are tried in turn, a few calls
 * each; then everybody agrees on times, and the best is used. From time to time those that were
 * near it are tried again, ever more seldom, since arrivals change. What is used is only left for
 * something that is better by more than noise.
 *
 *	v = coll_chooser_next(c);
 *	… the call …
 *	coll_chooser_note(c, v, &took);
 *	if (coll_chooser_due(c)) {
 *		coll_chooser_report(c, &times);
 *		… times = mean over all ranks of times …
 *		coll_chooser_agree(c, &times);
 *	}
 *
 * Where calls are unlike each other and a rank only knows its own part, as of MPI_Alltoallv, it
 * says of what kind each was for itself, and ways are compared by what they took for calls of one
 * kind.
 *
 * Pure: no clock, no state but the struct.
 */
#ifndef WEFT_COLL_MODEL_H
#define WEFT_COLL_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "coll_kinds.h"

/* ---- predictions ---- */

/* What the machine takes, in nanoseconds. */
struct coll_cost {
	double o;    /* processor time of a message between hosts, at either end */
	double L;    /* from sent to noticed, beyond that */
	double G;    /* per byte between hosts */
	double flag; /* to notice what another process of the host has set, if it has a core */
	double copy; /* per byte, within a host */
	double add;  /* per byte, to reduce */
	uint32_t cores;
};

/* Of a machine on which nothing was measured yet. */
extern const struct coll_cost coll_cost_typical;

struct coll_shape {
	uint32_t ranks, hosts;
	uint32_t per_host; /* on the host that has most */
	double spread;     /* of arrivals: mean of last minus own, ns */
};

/* Nanoseconds beyond the last arrival. bytes: from each rank to each (alltoall), of each rank
 * (allgather), of the whole vector (all others). Infinity for a way that the operation has not. */
double coll_model_predict(const struct coll_cost *cost, const struct coll_shape *shape,
			  enum coll_op op, enum coll_variant v, size_t bytes);

/* Sizes within a factor of four are one class; class 0 is nothing at all. A class ends before
 * coll_model_class_end bytes. */
#define COLL_CLASSES 14
uint32_t coll_model_class(size_t bytes);
uint64_t coll_model_class_end(uint32_t class);

/* ---- the choice ---- */

/* How often a way is tried at most before all agree. Their median counts: now and then one meets
 * the scheduler. */
#define COLL_TRIES 5

/* What a call took on this rank. */
struct coll_took {
	double ns;     /* from the last arrival on this host; or from this rank's own */
	double last;   /* when that was; 0: unknown, ns is from this rank's own */
	double whole;  /* from this rank's own; 0: does not count */
	uint32_t kind; /* below COLL_CLASSES; need not be the same on all ranks */
};

/* What each way took, mean of ranks. 0 for what is not known. */
struct coll_times {
	double ns[COLL_VARIANTS];
	double whole[COLL_VARIANTS];
};

/* What a chooser knows of a way. */
struct coll_tried {
	bool candidate;
	double predicted;
	double agreed; /* mean of all ranks, ns; 0: not yet */
	double whole;
	double factor;                    /* what the whole time adds; below 1: not known */
	bool now;                         /* tried before all agreed the last time */
	uint32_t times;                   /* that all have agreed on it, as far as they count */
	struct coll_took own[COLL_TRIES]; /* this rank's, since all agreed last */
	uint32_t count;
};

struct coll_chooser {
	struct coll_tried way[COLL_VARIANTS];
	enum coll_variant best;
	uint32_t tries;   /* of each way, before all agree */
	double reach;     /* times the best that was measured and weighed: tried again */
	uint32_t calls;   /* since all agreed last */
	uint32_t trying;  /* so many of these are for trying */
	uint32_t until;   /* so many until all agree again */
	uint32_t agreed;  /* how often they did */
	uint32_t changed; /* how often that changed what is used */
};

/* allowed: a bit per variant that can be had here, the same on all ranks. */
void coll_chooser_init(struct coll_chooser *c, unsigned int allowed, const struct coll_cost *cost,
		       const struct coll_shape *shape, enum coll_op op, size_t bytes);
enum coll_variant coll_chooser_next(const struct coll_chooser *c);
void coll_chooser_note(struct coll_chooser *c, enum coll_variant v, const struct coll_took *took);
/* Instead: whether the call is no try, and then counted. */
bool coll_chooser_pass(struct coll_chooser *c);
bool coll_chooser_due(const struct coll_chooser *c);
/* Hosts know only of their own arrivals, and who came early elsewhere has waited for the last of
 * all. Last arrivals on this host, of every try, by a common clock, which is `offset` ahead of
 * ours; and, with the latest of all hosts, what was noted without the wait for these. */
#define COLL_ALL_TRIES (COLL_VARIANTS * COLL_TRIES)
void coll_chooser_lasts(const struct coll_chooser *c, double offset, double last[COLL_ALL_TRIES]);
void coll_chooser_correct(struct coll_chooser *c, double offset,
			  const double latest[COLL_ALL_TRIES]);
/* 0 for what was not tried; and for all, if no two ways were tried in calls of one kind. */
void coll_chooser_report(const struct coll_chooser *c, struct coll_times *times);
void coll_chooser_agree(struct coll_chooser *c, const struct coll_times *times);

#endif
