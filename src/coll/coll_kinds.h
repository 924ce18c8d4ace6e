/* Operations, and the ways to do them, by name. Pure.
 *
 * WEFT_COLL says which way is taken: "auto" (the default), "off", or a list of OPERATION=VARIANT,
 * for example "alltoall=pap_shm_direct,barrier=mpi". What the list does not name stays automatic.
 * reduce_scatter_block is another name of reduce_scatter.
 */
#ifndef WEFT_COLL_KINDS_H
#define WEFT_COLL_KINDS_H

#include <stdbool.h>
#include <stddef.h>

enum coll_op {
	COLL_ALLTOALL,
	COLL_ALLTOALLV,
	COLL_ALLGATHER,
	COLL_BCAST,
	COLL_ALLREDUCE,
	COLL_REDUCE_SCATTER,
	COLL_BARRIER,
	COLL_OPS,
};

enum coll_variant {
	COLL_AUTO,
	COLL_MPI, /* the MPI's own */
	COLL_DIRECT,
	COLL_PAP_DIRECT,
	COLL_SHM_DIRECT,
	COLL_PAP_SHM_DIRECT,
	COLL_DISSEM,
	COLL_TREE,
	COLL_HALVING,
	COLL_VARIANTS,
};

extern const char *const coll_op_names[COLL_OPS];
extern const char *const coll_variant_names[COLL_VARIANTS];

struct coll_choice {
	bool off; /* nothing is interposed at all */
	enum coll_variant variant[COLL_OPS];
};

/* Whether the operation has this variant. COLL_AUTO and COLL_MPI always. */
bool coll_has(enum coll_op op, enum coll_variant v);
#define COLL_WHY_MAX 192 /* bytes of the longest sentence */

/* text may be NULL. Returns 0, or -EINVAL with a sentence in why, of what is wrong and what would
 * be right; then everything is automatic. */
int coll_choice_parse(const char *text, struct coll_choice *c, char *why, size_t size);

#endif
