/* See coll_check.h. */
#include "coll_check.h"

#include <stdio.h>
#include <stdlib.h>

static const struct {
	const char *name;
	void (*run)(struct cc_case *c);
} ops[] = {
	{"alltoall", cc_alltoall},
	{"alltoallv", cc_alltoallv},
	{"allgather", cc_allgather},
	{"bcast", cc_bcast},
	{"allreduce", cc_allreduce},
	{"reduce_scatter", cc_reduce_scatter},
	{"reduce_scatter_block", cc_reduce_scatter_block},
	{"barrier", cc_barrier},
};
enum { OPS = sizeof(ops) / sizeof(*ops) };

/* COLL_CASE: the only one that is run; below 0: all. */
static int only(void)
{
	const char *text = getenv("COLL_CASE");
	char *end;
	long n = text ? strtol(text, &end, 10) : -1;

	if (text && (end == text || *end || n < 0)) {
		fprintf(stderr, "coll_check: COLL_CASE is the number of a case, not '%s'\n", text);
		MPI_Abort(MPI_COMM_WORLD, 2);
	}
	return (int)n;
}

static void one(int op, int number)
{
	struct cc_case c;

	if (cc_case_begin(&c, ops[op].name, number))
		ops[op].run(&c);
	cc_case_end(&c);
}

static void cases(int op)
{
	double start = MPI_Wtime();

	if (only() >= 0) {
		one(op, only());
		return;
	}
	for (int i = 0; i < mt.count; i++) {
		if (i % 8 == 0 && !mt_go_on(start, mt.seconds))
			break;
		one(op, i);
	}
}

/* Operations in turn: what one leaves behind must not be in the way of another. */
static void mixed(void)
{
	double start = MPI_Wtime();
	struct util_rand r = mt_rand_shared(3);

	for (int i = 0; i < mt.count; i++) {
		if (i % 8 == 0 && !mt_go_on(start, mt.seconds))
			break;
		one((int)util_rand_below(&r, OPS), 100000 + i);
	}
}

int main(int argc, char **argv)
{
	mt.count = 100;
	mt_init(argc, argv, 1, MPI_THREAD_SINGLE);
	cc_layouts_make();
	cc_reductions_make();
	cc_comms_make();
	for (int op = 0; op < OPS; op++) {
		if (mt_begin("%s", ops[op].name)) {
			cases(op);
			mt_end();
		}
	}
	mt_part("mixed", mixed);
	mt_part("one behind the other", cc_many);
	mt_part("communicators come and go", cc_lives);
	mt_part("communicators whose roots have gone", cc_gone);
	mt_part("communicators at once", cc_at_once);
	cc_comms_free();
	cc_reductions_free();
	cc_layouts_free();
	return mt_done();
}
