/* coll_check: collectives by their MPI_ names, which an interposer answers to, beside the MPI's own
 * results, by the PMPI_ names.
 *
 * A part of the program is an operation; it consists of cases. All that is random in a case follows
 * from the seed, the part and the number of the case: what all ranks have to agree on from
 *`shared`, what may differ, such as the layout of a datatype and when a rank arrives, from `own`. A
 * case can be repeated by itself:
 *
 *	COLL_CASE=17 mpirun -n 5 coll_check -s 1 -p alltoallv
 *
 * Without an interposer both names are the same function, and the program tests itself.
 */
#ifndef WEFT_TESTS_COLL_CHECK_H
#define WEFT_TESTS_COLL_CHECK_H

#include "mpi_test.h"

enum { CC_MOST = 64 << 20 }; /* bytes of a buffer */

struct cc_case {
	const char *op;
	int number;
	struct util_rand shared, own;
	MPI_Comm comm;
	int rank, size; /* in comm */
	int in_place;
	int large;      /* this rank calls the large name, if the MPI has one */
	char text[128]; /* what it is, for whoever has to repeat it */
};

/* The name that an interposer answers to, or the MPI's own; the small one or the large one, which
 * takes wider counts. */
#define CC_SMALL(own, name, ...) ((own) ? PMPI_##name : MPI_##name)(__VA_ARGS__)
#if MPI_VERSION >= 4
#define CC_LARGE(own, name, ...) ((own) ? PMPI_##name##_c : MPI_##name##_c)(__VA_ARGS__)
#define CC_CALL(c, own, name, ...)                                                                 \
	((c)->large ? CC_LARGE(own, name, __VA_ARGS__) : CC_SMALL(own, name, __VA_ARGS__))
#else
#define CC_CALL(c, own, name, ...) CC_SMALL(own, name, __VA_ARGS__)
#endif

/* ---- what a case is made of (coll_case.c) ---- */

/* Communicators that live as long as the program. */
void cc_comms_make(void);
void cc_comms_free(void);

/* Draws; false: this rank has no part in it. cc_case_end frees what was made for the case. */
int cc_case_begin(struct cc_case *c, const char *op, int number);
void cc_case_end(struct cc_case *c);
/* Says what is drawn for the operation, behind what is there. */
void cc_say(struct cc_case *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Comes at another time than the other ranks, sometimes. */
void cc_arrive(struct cc_case *c);

/* How many bytes: 0, a few, some, many; not above `most`. */
size_t cc_bytes(struct cc_case *c, size_t most);

/* The same numbers for a pair of ranks wherever they are drawn. */
uint64_t cc_pair(const struct cc_case *c, int a, int b);

/* So many integers of a signature, laid out somehow: count of type, with the extent. */
struct cc_layout {
	MPI_Datatype type;
	const char *name;
	int ints;   /* of one */
	int extent; /* bytes */
};
void cc_layouts_make(void);
void cc_layouts_free(void);
const struct cc_layout *cc_layout(struct util_rand *r);
enum { CC_INTS = 6 }; /* a multiple of what any layout has */

/* What a reduction works on, and how. */
struct cc_reduction {
	const char *name;
	MPI_Datatype type;
	MPI_Op op;
	size_t bytes; /* of one */
	int exact;    /* in whatever order */
	void (*fill)(struct util_rand *r, void *buf, int n);
};
void cc_reductions_make(void);
void cc_reductions_free(void);
const struct cc_reduction *cc_reduction(struct cc_case *c);

/* ---- results (coll_case.c) ---- */

void *cc_copy(const void *buf, size_t len); /* mt_alloc */
/* One check: what came is what the MPI's own has. Says where and what the first difference is, and
 * how to repeat it. */
void cc_same(const struct cc_case *c, const void *got, const void *want, size_t len,
	     const char *what);
/* The same of n doubles that were added up in an order that nobody promises. */
void cc_near(const struct cc_case *c, const double *got, const double *want, int n);

/* ---- operations ---- */

void cc_alltoall(struct cc_case *c);
void cc_alltoallv(struct cc_case *c);
void cc_allgather(struct cc_case *c);
void cc_bcast(struct cc_case *c);
void cc_allreduce(struct cc_case *c);
void cc_reduce_scatter(struct cc_case *c);
void cc_reduce_scatter_block(struct cc_case *c);
void cc_barrier(struct cc_case *c);

/* ---- many calls (coll_many.c) ---- */

/* n short calls of all kinds on comm, one right behind the other, with results that are known
 * beforehand: no call of the MPI's own brings the ranks together in between. Callable from several
 * threads, each with its own communicator. */
void cc_sequence(MPI_Comm comm, int which, int n);
void cc_many(void);
void cc_lives(void);
void cc_gone(void);
void cc_at_once(void);

#endif
