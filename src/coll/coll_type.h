/* Datatypes: bytes on the way, whatever they look like in memory. */
#ifndef WEFT_COLL_TYPE_H
#define WEFT_COLL_TYPE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include <mpi.h>

struct coll_type {
	MPI_Datatype mpi;
	size_t size;     /* bytes on the way */
	MPI_Aint extent; /* from one to the next in memory */
	bool plain;      /* in memory as on the way, one behind the other */
};

/* The MPI packs no more bytes at once, and an element can not be cut. One rank's block may be one
 * element where that of another is many: so longer blocks are left to the MPI by all of them. */
#define COLL_BLOCK_MAX ((size_t)INT_MAX)

/* Whether it can be packed, or need not. */
static inline bool coll_type_fits(const struct coll_type *t)
{
	return t->plain || t->size <= COLL_BLOCK_MAX;
}

/* Returns 0, or -EINVAL for one that the MPI does not know, or that is not
 * committed. */
int coll_type_of(MPI_Datatype mpi, struct coll_type *t);

/* Whether nothing of this type can be there, though there should be `bytes` of it: for the MPI to
 * complain about. What is not plain may be anywhere (MPI_BOTTOM). */
static inline bool coll_type_nowhere(const struct coll_type *t, const void *buf, size_t bytes)
{
	return bytes && (buf == MPI_IN_PLACE || (!buf && t->plain));
}

/* count of them, from or to where the program has them. bytes: count * t->size. */
int coll_type_pack(const struct coll_type *t, const void *from, MPI_Count count, void *to);
int coll_type_unpack(const struct coll_type *t, const void *from, void *to, MPI_Count count);

#endif
