#include "coll_plan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coll_agree.h"
#include "coll_guard.h"
#include "coll_here.h"
#include "coll_letter.h"
#include "coll_measure.h"
#include "coll_place.h"
#include "coll_rounds.h"
#include "util_clock.h"
#include "util_log.h"

/* ---- places ---- */

/* Hosts' places, if all of them are known. */
static int make_tree(struct coll_comm *c, struct coll_plan *p)
{
	static atomic_bool said;
	struct coll_found *all = calloc(c->size, sizeof(*all));
	struct coll_place *places = calloc(c->hosts, sizeof(*places));
	uint32_t levels;
	bool same = true, said_there = false;
	int ret = -ENOMEM;

	if (!coll_agree(c, all && places))
		goto out;
	coll_place_find(&all[c->rank], !c->peer[c->rank].local);
	ret = coll_agree_all(c, all, sizeof(*all));
	if (ret)
		goto out;
	levels = all[coll_master(c, 0)].levels;
	for (uint32_t h = 0; h < c->hosts; h++) {
		const struct coll_found *f = &all[coll_master(c, h)];

		places[h] = f->place;
		said_there |= f->wrong;
		/* They all have to mean the same tree. */
		if (f->levels != levels || f->tree != all[coll_master(c, 0)].tree)
			same = false;
	}
	if (!same && !said_there && !c->rank)
		util_log_once(&said, UTIL_LOG_WARN,
			      "coll: hosts have unlike files of WEFT_COLL_TOPOLOGY, or are "
			      "at different depths in it; places in the tree are not used");
	levels = same ? levels : 0;
	p->levels = levels <= COLL_LEVELS_MAX ? levels : 0;
	ret = coll_tree_make(&p->tree, c->hosts, p->levels ? places : NULL, p->levels);
out:
	/* A broken communicator may have something of the MPI's under way in it. */
	if (!atomic_load(&c->err))
		free(all);
	free(places);
	return ret;
}

/* ---- making one ---- */

static void make(struct coll_comm *c)
{
	struct coll_plan *p = calloc(1, sizeof(*p));
	int ret;

	if (!p)
		abort(); /* the others are on their way into the exchange */
	c->plan = p;
	ret = make_tree(c, p);
	/* Whoever fails in the middle of it has broken the communicator, which others notice. */
	if (!atomic_load(&c->err) && coll_measure(c, &p->cost))
		ret = -EIO;
	p->shape = (struct coll_shape){.ranks = c->size, .hosts = c->hosts};
	for (uint32_t h = 0; h < c->hosts; h++)
		if (coll_host_size(c, h) > p->shape.per_host)
			p->shape.per_host = coll_host_size(c, h);
	p->usable = !atomic_load(&c->err) && coll_agree(c, !ret);
}

static bool usable(struct coll_comm *c)
{
	if (c->hosts > COLL_MAX_HOSTS)
		return false;
	if (!c->plan)
		make(c);
	return c->plan->usable;
}

void coll_plan_end(struct coll_comm *c)
{
	if (!c->plan)
		return;
	coll_tree_free(&c->plan->tree);
	/* A broken communicator may have something of the MPI's under way in it. */
	if (!atomic_load(&c->err))
		free(c->plan);
	c->plan = NULL;
}

/* ---- how barriers are done ---- */

/* The mean of all masters. Whole numbers: all have the same sum. */
static int agree_tried(struct coll_comm *c, uint32_t count)
{
	struct coll_plan *p = c->plan;
	int ret = coll_agree_fold(c, p->tried.ns, p->tried.tmp, count * sizeof(p->tried.ns[0]),
				  coll_sum_u64);

	for (uint32_t i = 0; i < count && !ret; i++)
		p->tried.ns[i] /= c->hosts;
	return ret;
}

/* At the first barrier of ours, when all are in it: communicators without any do not pay for it.
 * Whoever fails has broken the communicator. */
static void find_dissem(struct coll_comm *c)
{
	struct coll_plan *p = c->plan;
	uint32_t count = coll_dissem_tries(c->hosts, p->cost.o, p->cost.L, p->tried.dissem);

	p->dissem = p->tried.dissem[0];
	if (count < 2 || coll_rounds_measure(c, p->tried.dissem, count, p->tried.ns) ||
	    agree_tried(c, count))
		return;
	p->tried.count = count;
	p->dissem = p->tried.dissem[coll_dissem_choose(p->tried.ns, count)];
}

/* ---- choices ---- */

static uint32_t row_of(const struct coll_job *job)
{
	if (job->ordered)
		return COLL_OPS + (job->op == COLL_REDUCE_SCATTER);
	return job->op;
}

static struct coll_chooser *chooser_of(const struct coll_comm *c, const struct coll_job *job)
{
	return &c->plan->chooser[row_of(job)][coll_model_class(job->bytes)];
}

static enum coll_variant choose(struct coll_comm *c, const struct coll_job *job)
{
	bool *used = &c->plan->used[row_of(job)][coll_model_class(job->bytes)];
	unsigned int can = job->can | (job->ordered ? 0 : 1u << COLL_MPI);
	struct coll_chooser *ch = chooser_of(c, job);

	if (!*used)
		coll_chooser_init(ch, can, &c->plan->cost, &c->plan->shape, job->op, job->bytes);
	/* Predicted for no size at all: only what was measured speaks against the MPI's own. */
	if (!*used && job->loose)
		ch->best = COLL_MPI;
	*used = true;
	return coll_chooser_next(ch);
}

/* Takes from times of this host what was the wait for others. */
static int correct(struct coll_comm *c, struct coll_chooser *ch)
{
	struct coll_plan *p = c->plan;
	double offset;
	int ret = coll_clock_offset(c, &p->clock, &offset);

	if (ret)
		return ret;
	coll_chooser_lasts(ch, offset, p->last);
	ret = coll_agree_fold(c, p->last, p->tmp, sizeof(p->last), coll_max_doubles);
	if (!ret)
		coll_chooser_correct(ch, offset, p->last);
	return ret;
}

/* On the mean of all ranks. */
static int agree(struct coll_comm *c, struct coll_chooser *ch, const struct coll_job *job)
{
	struct coll_plan *p = c->plan;
	int ret = 0;

	if (!job->loose && c->hosts > 1 && c->hosts <= COLL_CLOCK_HOSTS)
		ret = correct(c, ch);
	if (ret)
		return ret;
	coll_chooser_report(ch, &p->all.times);
	p->all.spread = c->shm.me ? 0 : p->spread;
	ret = coll_agree_fold(c, &p->all, &p->of_others, sizeof(p->all), coll_sum_doubles);
	if (ret)
		return ret;
	for (int v = 0; v < COLL_VARIANTS; v++) {
		p->all.times.ns[v] /= c->size;
		p->all.times.whole[v] /= c->size;
	}
	p->shape.spread = p->all.spread / c->hosts;
	coll_chooser_agree(ch, &p->all.times);
	return 0;
}

/* The time after the last arrival on this host, since the rest is nobody's fault; but all of it
 * where one of the ways would not have waited. */
static struct coll_took counts(struct coll_comm *c, const struct coll_job *job, uint64_t began,
			       uint64_t now)
{
	struct coll_plan *p = c->plan;
	struct coll_took took = {.kind = coll_model_class(job->own)};
	struct coll_arrivals a;

	if (job->loose) {
		took.ns = fmax((double)(now - began), 1);
		return took;
	}
	a = coll_here_arrivals(c, p->calls, now);
	p->spread += (a.spread - p->spread) / 16;
	took.ns = fmax(a.since, 1);
	took.last = (double)now - a.since;
	took.whole = (double)(now - began);
	return took;
}

/* Every rank comes here after the same calls, with the same state but for its times. */
static void took(struct coll_comm *c, const struct coll_job *job, enum coll_variant v,
		 uint64_t began)
{
	struct coll_chooser *ch = chooser_of(c, job);
	struct coll_stats *s = &c->stats[job->op][v];
	uint64_t now = util_now_ns();
	struct coll_took t = counts(c, job, began, now);

	s->calls++;
	s->bytes += job->loose ? job->own : job->bytes;
	s->ns += now - began;
	if (c->variant[job->op] != COLL_AUTO)
		return;
	coll_chooser_note(ch, v, &t);
	if (!coll_chooser_due(ch) || !agree(c, ch, job))
		return;
	if (!atomic_load(&c->err))
		atomic_store(&c->err, -EIO);
	coll_letter_broken(c, COLL_LETTER_NS);
}

/* Nothing is to be found out about a call of the MPI's own, as all ranks know: it is only counted,
 * and has nothing else of ours in its way. */
static bool passes(struct coll_comm *c, const struct coll_job *job)
{
	struct coll_stats *s = &c->stats[job->op][COLL_MPI];

	if (!coll_chooser_pass(chooser_of(c, job)))
		return false;
	s->passed++;
	return true;
}

static int ours(struct coll_comm *c, const struct coll_job *job, enum coll_variant v)
{
	int ret = atomic_load(&c->err);

	if (!ret)
		ret = job->ours(job->ours_arg, v);
	if (!ret)
		ret = coll_leave(c);
	/* Half of a call leaves the communicator behind the others for ever. */
	if (ret)
		atomic_store(&c->err, ret);
	return ret;
}

/* Returns whether the communicator is still there. */
static bool by_mpi(struct coll_comm *c, const struct coll_job *job, int *ret)
{
	return coll_guard_run(c, job->op, job->mpi, job->mpi_arg, ret);
}

/* Who names the MPI's own has it as it is without us. */
bool coll_plan_leave(struct coll_comm *c, MPI_Comm comm, const struct coll_job *job, int *ret)
{
	if (coll_comm_broken(c))
		*ret = coll_comm_error(comm, atomic_load(&c->err));
	else if (c->variant[job->op] == COLL_MPI)
		return false;
	else
		by_mpi(c, job, ret);
	return true;
}

bool coll_plan_run(struct coll_comm *c, MPI_Comm comm, const struct coll_job *job, int *ret)
{
	enum coll_variant v = c->variant[job->op];
	uint64_t began;

	if (coll_comm_broken(c) || v == COLL_MPI || (v == COLL_AUTO && !job->can) || !usable(c))
		return coll_plan_leave(c, comm, job, ret);
	if (v == COLL_AUTO)
		v = choose(c, job);
	if (v == COLL_MPI && passes(c, job)) {
		by_mpi(c, job, ret);
		return true;
	}
	if (v == COLL_DISSEM && !c->plan->dissem.ranks)
		find_dissem(c);
	began = util_now_ns();
	/* Two of these are kept, which is enough as long as nobody leaves before all have come. */
	if (!job->loose)
		coll_here_came(c, ++c->plan->calls, began);
	*ret = MPI_SUCCESS;
	if (v == COLL_MPI && !by_mpi(c, job, ret))
		return true;
	if (v != COLL_MPI && ours(c, job, v))
		*ret = coll_comm_error(comm, atomic_load(&c->err));
	/* Also if the MPI complains: it may do so on some ranks only. */
	if (v == COLL_MPI || *ret == MPI_SUCCESS)
		took(c, job, v, began);
	return true;
}

/* ---- what is said ---- */

static void say_way(const char *name, const struct coll_tried *w)
{
	fprintf(stderr, "; %s predicted %.1f us, ", name, w->predicted / 1e3);
	if (w->agreed == 0) {
		fprintf(stderr, "not measured");
		return;
	}
	fprintf(stderr, "measured %.1f", w->agreed / 1e3);
	if (w->whole > 0)
		fprintf(stderr, " of %.1f", w->whole / 1e3);
	fprintf(stderr, " us");
}

static void say_chooser(uint32_t row, uint32_t class, const struct coll_chooser *ch)
{
	char size[32] = "of any size";
	bool ordered = row >= COLL_OPS;
	enum coll_op op = !ordered ? row : row == COLL_OPS ? COLL_ALLREDUCE : COLL_REDUCE_SCATTER;

	if (op != COLL_ALLTOALLV)
		snprintf(size, sizeof(size), "below %llu bytes",
			 (unsigned long long)coll_model_class_end(class));
	fprintf(stderr, "weft-coll:   %s%s %s: %s", coll_op_names[op],
		ordered ? " of floating-point sums" : "", size, coll_variant_names[ch->best]);
	for (int v = 0; v < COLL_VARIANTS; v++)
		if (ch->way[v].candidate)
			say_way(coll_variant_names[v], &ch->way[v]);
	fprintf(stderr, "; agreed %u times, changed %u\n", ch->agreed, ch->changed);
}

static void say_dissem(const struct coll_plan *p)
{
	if (!p->dissem.ranks || !p->dissem.rounds)
		return;
	fprintf(stderr, "; barrier %u ways in %u rounds", p->dissem.ways, p->dissem.rounds);
	for (uint32_t i = 0; i < p->tried.count; i++)
		fprintf(stderr, "%s%u way%s %.1f us",
			i ? ", " : " (measured: ", p->tried.dissem[i].ways,
			p->tried.dissem[i].ways > 1 ? "s" : "", (double)p->tried.ns[i] / 1e3);
	if (p->tried.count)
		fprintf(stderr, ")");
}

void coll_plan_say(const struct coll_comm *c)
{
	const struct coll_plan *p = c->plan;

	if (!p)
		return;
	fprintf(stderr, "weft-coll:   ");
	if (c->hosts > 1)
		fprintf(stderr, "a message %.2f us, its way %.2f us, %.3f ns a byte; ",
			p->cost.o / 1e3, p->cost.L / 1e3, p->cost.G);
	fprintf(stderr, "copying %.3f, adding %.3f ns a byte; %u cores", p->cost.copy, p->cost.add,
		p->cost.cores);
	say_dissem(p);
	if (c->hosts > 1)
		fprintf(stderr, "; tree of %u levels", p->levels);
	fprintf(stderr, "; arrivals %.1f us apart\n", p->spread / 1e3);
	for (uint32_t row = 0; row < COLL_ROWS; row++)
		for (uint32_t class = 0; class < COLL_CLASSES; class ++)
			if (p->used[row][class])
				say_chooser(row, class, &p->chooser[row][class]);
}
