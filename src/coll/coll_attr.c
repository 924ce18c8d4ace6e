/* A communicator's state as an attribute of the MPI's communicator: found, made, ended with it. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll_agree.h"
#include "coll_boot.h"
#include "coll_env.h"
#include "coll_guard.h"
#include "coll_letter.h"
#include "coll_plan.h"
#include "coll_world.h"
#include "util_log.h"

static int keyval = MPI_KEYVAL_INVALID, end_keyval = MPI_KEYVAL_INVALID;
static int error_code = MPI_ERR_OTHER;
static atomic_bool ready;
static bool ended;
static bool forked; /* this is a child, and all of it is the parent's */

/* The attribute of communicators that are left to the MPI, and of those that have had some calls,
 * but not as many as it takes. */
static struct coll_comm left_alone;
static char had[COLL_AFTER_MAX + 1];

/* How many calls it has had; -1: it is set up, or left alone. */
static int calls_of(const void *value)
{
	uintptr_t n = (uintptr_t)value - (uintptr_t)had;

	return n < sizeof(had) ? (int)n : -1;
}

static struct coll_comm *comm_of(void *value)
{
	return value == &left_alone || calls_of(value) >= 0 ? NULL : value;
}

static void say_stats(const struct coll_comm *c)
{
	if (!coll_env()->stats || c->rank)
		return;
	for (int op = 0; op < COLL_OPS; op++) {
		for (int v = 0; v < COLL_VARIANTS; v++) {
			const struct coll_stats *s = &c->stats[op][v];

			if (s->calls)
				fprintf(stderr,
					"weft-coll: %u ranks on %u hosts: %s by %s: %llu calls, "
					"mean %llu bytes, %.1f us\n",
					c->size, c->hosts, coll_op_names[op], coll_variant_names[v],
					(unsigned long long)s->calls,
					(unsigned long long)(s->bytes / s->calls),
					(double)s->ns / 1e3 / (double)s->calls);
			if (s->passed)
				fprintf(stderr,
					"weft-coll: %u ranks on %u hosts: %s by %s: %llu more "
					"calls\n",
					c->size, c->hosts, coll_op_names[op], coll_variant_names[v],
					(unsigned long long)s->passed);
		}
	}
	if (c->carried)
		fprintf(stderr, "weft-coll:   %llu messages carried by the MPI\n",
			(unsigned long long)c->carried);
	if (c->asks)
		fprintf(stderr, "weft-coll:   asked others %llu times whether they are there\n",
			(unsigned long long)c->asks);
	coll_plan_say(c);
}

static int delete_comm(MPI_Comm comm, int key, void *value, void *extra)
{
	struct coll_comm *c = comm_of(value);

	(void)comm;
	(void)key;
	(void)extra;
	if (ended || !c || forked)
		return MPI_SUCCESS;
	say_stats(c);
	coll_unboot(c);
	return MPI_SUCCESS;
}

static int by_tag(const void *a, const void *b)
{
	const struct coll_comm *x = *(struct coll_comm *const *)a,
			       *y = *(struct coll_comm *const *)b;

	return (x->tag > y->tag) - (x->tag < y->tag);
}

/* Peers may still be waiting for our last writes, which some providers finish only while we are
 * here: nobody goes before all have come. One communicator after another, in an order that is the
 * same on all ranks. */
static void leave_together(void)
{
	struct coll_comm **all = calloc(COLL_MAX_COMMS, sizeof(struct coll_comm *)), *c;
	uint32_t at = 0, n = 0;

	while (all && (c = coll_comm_next(&at)))
		if (c->net && c->hosts > 1)
			all[n++] = c;
	if (all)
		qsort(all, n, sizeof(struct coll_comm *), by_tag);
	for (uint32_t i = 0; i < n; i++)
		if (!coll_comm_broken(all[i]))
			coll_agree(all[i], true);
	free(all);
}

void coll_comm_end_all(void)
{
	struct coll_comm *c;
	uint32_t at = 0;

	coll_guard_end();
	leave_together();
	ended = true;
	while ((c = coll_comm_next(&at))) {
		say_stats(c);
		coll_unboot(c);
	}
}

void coll_comm_close(void)
{
	if (ended && !forked)
		coll_net_close();
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF before anything else, the last one first.
 * Ours is the first (coll_comm_start), so the program's own can still use collectives. */
static int delete_self(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)value;
	(void)extra;
	if (!forked)
		coll_comm_end_all();
	return MPI_SUCCESS;
}

static void in_child(void)
{
	forked = true;
}

/* Handles of another MPI mean nothing here, and have been cut by the time that a call comes: so
 * such a program ends before it begins. May be called before MPI_Init. */
__attribute__((constructor)) static void check_mpi(void)
{
	static char text[1 << 16]; /* the other MPI's may be longer than ours says that it is */
	int len;
	bool open;

	PMPI_Get_library_version(text, &len);
	open = !strncmp(text, "Open MPI", 8);
#ifdef OPEN_MPI
	if (open)
		return;
#else
	if (!open)
		return;
#endif
	fprintf(stderr,
		"weft-coll: this is libweft-coll.%s.so, and the program runs on %s: preload "
		"libweft-coll.%s.so instead, or use weft run --coll\n",
		open ? "mpich" : "openmpi", open ? "Open MPI" : "MPICH",
		open ? "openmpi" : "mpich");
	_exit(1);
}

/* In a class of our own: MPICH has other texts for codes of its own classes. */
static void make_error(void)
{
	int class;

	if (PMPI_Add_error_class(&class) || PMPI_Add_error_code(class, &error_code))
		return;
	PMPI_Add_error_string(class, "weft-coll: the communicator is broken");
	PMPI_Add_error_string(error_code, "weft-coll: a rank of this communicator has died or can "
					  "not be reached");
}

/* Where all ranks are, so that there may be something of the MPI's for all of them. */
static void start(void)
{
	if (coll_world_init())
		return;
	pthread_atfork(NULL, NULL, in_child);
	if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_comm, &keyval, NULL))
		return;
	if (!PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_self, &end_keyval, NULL))
		PMPI_Comm_set_attr(MPI_COMM_SELF, end_keyval, NULL);
	make_error();
	atomic_store(&ready, true);
}

/* What decides what a rank does before it knows anything of the others. Launchers need not give all
 * of them the same environment, Open MPI's for one: so here, where all ranks are, they agree on the
 * most that any of them has. */
enum { OFF, SAME_SUMS, AFTER, SETTINGS };

static void say_unlike(const int most[SETTINGS], const int least[SETTINGS])
{
	static const char *const names[SETTINGS] = {
		[OFF] = "WEFT_COLL=off",
		[SAME_SUMS] = "WEFT_COLL_SAME_SUMS",
		[AFTER] = "WEFT_COLL_AFTER",
	};

	for (int i = 0; i < SETTINGS; i++)
		if (most[i] != least[i] && !(i == AFTER && most[SAME_SUMS]))
			util_log(
				UTIL_LOG_WARN,
				"coll: %s is not the same on all ranks; the most that one has, %d, "
				"holds for all. Launchers do not always give what is set to other "
				"hosts (Open MPI's: -x NAME)",
				names[i], most[i]);
}

void coll_comm_init(void)
{
	const struct coll_env *e = coll_env();
	int mine[2][SETTINGS] = {
		{[OFF] = e->choice.off, [SAME_SUMS] = e->same_sums, [AFTER] = (int)e->after}};
	int all[2][SETTINGS], rank;

	for (int i = 0; i < SETTINGS; i++)
		mine[1][i] = -mine[0][i];
	if (PMPI_Allreduce(mine, all, 2 * SETTINGS, MPI_INT, MPI_MAX, MPI_COMM_WORLD))
		return;
	for (int i = 0; i < SETTINGS; i++)
		all[1][i] = -all[1][i];
	if (!PMPI_Comm_rank(MPI_COMM_WORLD, &rank) && !rank)
		say_unlike(all[0], all[1]);
	coll_env_settle(all[0][OFF], all[0][SAME_SUMS], (unsigned int)all[0][AFTER]);
	if (coll_env()->choice.off)
		return;
	start();
	/* From then on ranks can be looked after, whatever communicator they are in. */
	coll_comm_of(MPI_COMM_WORLD, NULL, NULL);
}

/* The attribute, if there can be one: not before MPI_Init, which programs that have only sessions
 * never call. */
static bool can_have(MPI_Comm comm)
{
	return atomic_load_explicit(&ready, memory_order_acquire) && !ended && !forked &&
	       comm != MPI_COMM_NULL;
}

static const char *why_left(int err)
{
	switch (err) {
	case -EPROTO:
		return "ranks have unlike WEFT_COLL_COPY_FAR or WEFT_COLL_PROVIDER";
	case -ECANCELED:
		return "another rank could not set it up";
	}
	return strerror(-err);
}

static void say_left(const struct coll_comm *c, int err)
{
	static atomic_bool said_many, said_tags, said_room;

	if (c->rank)
		return;
	if (err == -EDQUOT)
		util_log_once(&said_many, UTIL_LOG_INFO,
			      "coll: communicators beyond %u (WEFT_COLL_COMMS) are left to the MPI",
			      coll_env()->comms);
	else if (err == -EADDRNOTAVAIL)
		util_log_once(&said_tags, UTIL_LOG_WARN,
			      "coll: communicators are left to the MPI, which has too few tags "
			      "(MPI_TAG_UB) for %d ranks",
			      coll_world_size());
	else if (err == -ENOSPC)
		util_log_once(&said_room, UTIL_LOG_WARN,
			      "coll: a communicator of %u ranks is left to the MPI, as all will be "
			      "for which a host has no room in /dev/shm",
			      c->size);
	else
		util_log(UTIL_LOG_WARN, "coll: a communicator of %u ranks is left to the MPI: %s",
			 c->size, why_left(err));
}

struct coll_comm *coll_comm_known(MPI_Comm comm)
{
	void *value;
	int found;

	if (!can_have(comm) || PMPI_Comm_get_attr(comm, keyval, &value, &found) || !found)
		return NULL;
	return comm_of(value);
}

/* Returns NULL if it is left to the MPI. */
static struct coll_comm *make(MPI_Comm comm, const int *ranks)
{
	struct coll_comm *c = calloc(1, sizeof(*c)), *world = coll_comm_known(MPI_COMM_WORLD);
	bool guarded;
	int ret;

	if (!c)
		abort(); /* the others are on their way into the exchange */
	guarded = coll_guard_others(world, comm, COLL_GUARD_SETUP);
	ret = coll_boot(c, comm, ranks);
	if (guarded)
		coll_guard_others_end(world);
	if (ret) {
		say_left(c, ret);
		coll_unboot(c);
		c = NULL;
	}
	PMPI_Comm_set_attr(comm, keyval, c ? c : &left_alone);
	return c;
}

/* Ranks call the operations of a communicator in the same order, and have agreed on how many are
 * too early, so all of them count alike. */
static bool too_early(MPI_Comm comm, int calls)
{
	if (comm == MPI_COMM_WORLD || calls >= (int)coll_env()->after)
		return false;
	PMPI_Comm_set_attr(comm, keyval, &had[calls + 1]);
	return true;
}

bool coll_comm_early(MPI_Comm comm, int (*mpi)(const void *arg), const void *arg, int *ret)
{
	struct coll_comm *world;
	void *value;
	int found;

	if (!can_have(comm) || PMPI_Comm_get_attr(comm, keyval, &value, &found) || !found ||
	    calls_of(value) < 0)
		return false;
	world = coll_comm_known(MPI_COMM_WORLD);
	if (!coll_guard_others(world, comm, COLL_GUARD_EARLY))
		return false;
	*ret = mpi(arg);
	coll_guard_others_end(world);
	return true;
}

static bool eligible(MPI_Comm comm, int *size)
{
	int inter;

	return !PMPI_Comm_test_inter(comm, &inter) && !inter && !PMPI_Comm_size(comm, size) &&
	       *size > 1 && *size <= (int)COLL_MAX_RANKS;
}

struct coll_comm *coll_comm_of(MPI_Comm comm, bool (*wrong)(const void *args, int size),
			       const void *args)
{
	struct coll_comm *c = NULL;
	void *value;
	int found, size, calls = 0, *ranks;

	coll_guard_out();
	if (!can_have(comm) || PMPI_Comm_get_attr(comm, keyval, &value, &found))
		return NULL;
	if (found) {
		calls = calls_of(value);
		if (calls < 0)
			return comm_of(value);
	}
	if (!eligible(comm, &size) || (wrong && wrong(args, size)) || too_early(comm, calls))
		return NULL;
	ranks = calloc((size_t)size, sizeof(*ranks));
	if (!ranks)
		abort(); /* the others are on their way into the exchange */
	/* Whoever has one of another MPI_COMM_WORLD with it is of another to that one. */
	if (coll_world_ranks(comm, size, ranks))
		c = make(comm, ranks);
	else
		PMPI_Comm_set_attr(comm, keyval, &left_alone);
	free(ranks);
	return c;
}

int coll_comm_error(MPI_Comm comm, int err)
{
	int code = err == -ENOMEM     ? MPI_ERR_NO_MEM
		   : err == -EMSGSIZE ? MPI_ERR_TRUNCATE
		   : err == -EINVAL   ? MPI_ERR_INTERN
				      : error_code;
	struct coll_comm *c = coll_comm_known(comm);

	if (c)
		coll_letter_broken(c, COLL_LETTER_NS);
	PMPI_Comm_call_errhandler(comm, code);
	return code;
}
