/* Reductions whose result every rank gets, or a part of it: MPI_Allreduce, MPI_Reduce_scatter and
 * MPI_Reduce_scatter_block.
 *
 * Vectors of a host's ranks are joined in shared memory (coll_here.h), those of hosts along the
 * tree of their places (coll_tree.h), and the result is read from shared memory by each.
 *
 *	tree     whole vectors in every exchange: the fewest steps
 *	halving  halves of what is left, and back: the fewest bytes
 *
 * Only operations and types that MPI has itself, which are commutative, in any order as good as in
 * any other. The order is the same in every call, in both variants and on every rank, so that all
 * get the same result, bit by bit. Everything else is handed to the MPI. It adds in an order of its
 * own: so, if WEFT_COLL_SAME_SUMS asks for it, it is not tried where the order shows, and a
 *program's numbers do not depend on what was faster.
 */
#ifndef WEFT_COLL_REDUCE_H
#define WEFT_COLL_REDUCE_H

#include "coll_plan.h"

struct coll_reduce {
	struct coll_comm *c;
	enum coll_op op;
	const uint8_t *from;
	uint8_t *to; /* what is taken of the result: from byte `first` on, so many */
	size_t first, bytes;
	size_t count; /* elements, of each rank */
	size_t size;  /* bytes of one */
	bool inexact; /* sums of floating-point numbers: other bits in another order */
	MPI_Datatype type;
	MPI_Op how;
	int (*mpi)(const void *arg); /* the MPI's own */
	const void *arg;
};

/* Whether there is such a reduction here; then the size of an element, and whether the order in
 * which it is done shows in the result. The same on every rank. */
bool coll_reduce_known(MPI_Op op, MPI_Datatype type, size_t *size, bool *inexact);

/* Returns whether it is done, with *ret for the program; false: the MPI shall do it. */
bool coll_reduce(struct coll_reduce *r, MPI_Comm comm, int *ret);

#endif
