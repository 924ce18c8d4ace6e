#include "coll_type.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "coll_world.h"

#define DEPTH 8

/* A type that was made by a large name can not be asked for by a small one. */
#if MPI_VERSION >= 4
typedef MPI_Count number;
#else
typedef int number;
#endif

/* How a type was made. */
struct made {
	number ints, addrs, larges, types;
	int combiner;
};

static bool how_made(MPI_Datatype mpi, struct made *m)
{
#if MPI_VERSION >= 4
	return !PMPI_Type_get_envelope_c(mpi, &m->ints, &m->addrs, &m->larges, &m->types,
					 &m->combiner);
#else
	m->larges = 0;
	return !PMPI_Type_get_envelope(mpi, &m->ints, &m->addrs, &m->types, &m->combiner);
#endif
}

/* Those that were asked for by precision and range are, too, though they have no name. */
static bool predefined(const struct made *m)
{
	return m->combiner == MPI_COMBINER_NAMED || m->combiner == MPI_COMBINER_F90_REAL ||
	       m->combiner == MPI_COMBINER_F90_COMPLEX || m->combiner == MPI_COMBINER_F90_INTEGER;
}

/* The one that it repeats; to be freed, unless it is a predefined one. */
static bool repeated(MPI_Datatype mpi, const struct made *m, MPI_Datatype *inner)
{
	MPI_Aint a[1];
	int n[4];
#if MPI_VERSION >= 4
	MPI_Count l[4];
#endif

	if ((m->combiner != MPI_COMBINER_DUP && m->combiner != MPI_COMBINER_CONTIGUOUS) ||
	    m->types != 1 || m->addrs || m->ints > 4 || m->larges > 4)
		return false;
#if MPI_VERSION >= 4
	return !PMPI_Type_get_contents_c(mpi, m->ints, 0, m->larges, 1, n, a, l, inner);
#else
	return !PMPI_Type_get_contents(mpi, m->ints, 0, 1, n, a, inner);
#endif
}

/* Whether one behind the other also means in this order: a type may have its parts turned round
 * without a gap. Sure only of what is built of one predefined type by repeating it. */
static bool in_order(MPI_Datatype mpi, int depth)
{
	MPI_Datatype inner;
	struct made m;
	bool yes;

	if (!how_made(mpi, &m))
		return false;
	if (predefined(&m))
		return true;
	if (!depth || !repeated(mpi, &m, &inner))
		return false;
	yes = in_order(inner, depth - 1);
	if (how_made(inner, &m) && !predefined(&m))
		PMPI_Type_free(&inner);
	return yes;
}

/* What most programs send, without asking: after a computation that has used all of the caches,
 * four questions to the MPI take some microseconds. */
static size_t known_size(MPI_Datatype mpi)
{
	if (mpi == MPI_BYTE || mpi == MPI_CHAR || mpi == MPI_UNSIGNED_CHAR)
		return 1;
	if (mpi == MPI_INT || mpi == MPI_UNSIGNED)
		return sizeof(int);
	if (mpi == MPI_LONG || mpi == MPI_UNSIGNED_LONG)
		return sizeof(long);
	if (mpi == MPI_FLOAT)
		return sizeof(float);
	if (mpi == MPI_DOUBLE)
		return sizeof(double);
	if (mpi == MPI_INT64_T || mpi == MPI_UINT64_T)
		return sizeof(int64_t);
	return 0;
}

/* Nobody can be asked for that. */
static bool committed(const struct coll_type *t)
{
	char none[1];
	int pos = 0;

	return !PMPI_Pack(none, 0, t->mpi, none, 0, &pos, coll_world);
}

int coll_type_of(MPI_Datatype mpi, struct coll_type *t)
{
	MPI_Aint lb, true_lb, true_extent;
	MPI_Count size;

	*t = (struct coll_type){.mpi = mpi, .size = known_size(mpi), .plain = true};
	t->extent = (MPI_Aint)t->size;
	if (t->size)
		return 0;
	if (mpi == MPI_DATATYPE_NULL || PMPI_Type_size_x(mpi, &size) || size < 0 ||
	    PMPI_Type_get_extent(mpi, &lb, &t->extent) ||
	    PMPI_Type_get_true_extent(mpi, &true_lb, &true_extent))
		return -EINVAL;
	if (!committed(t))
		return -EINVAL;
	t->size = (size_t)size;
	t->plain = !size || (t->extent == size && true_extent == size && !lb && !true_lb &&
			     in_order(mpi, DEPTH));
	return 0;
}

/* The MPI counts bytes in int: a piece at a time. */
static int piece(const struct coll_type *t, MPI_Count count)
{
	size_t most = t->size ? (INT_MAX / 2) / t->size : 1;

	return most < 1 ? 1 : (size_t)count < most ? (int)count : (int)most;
}

static int move_some(MPI_Datatype type, char *typed, int count, char *packed, int bytes, bool pack)
{
	int pos = 0, err;

	err = pack ? PMPI_Pack(typed, count, type, packed, bytes, &pos, coll_world)
		   : PMPI_Unpack(packed, bytes, &pos, typed, count, type, coll_world);
	return err || (pack && pos != bytes) ? -EINVAL : 0;
}

/* At MPI_BOTTOM, if that is NULL, where MPICH does not pack: from another place, of a type that
 * begins as far before it. */
static int move_bottom(const struct coll_type *t, int count, char *packed, int bytes, bool pack)
{
	MPI_Aint back = -(MPI_Aint)sizeof(*t);
	MPI_Datatype type;
	int ret = -EINVAL;

	if (PMPI_Type_create_hindexed(1, &count, &back, t->mpi, &type))
		return -EINVAL;
	if (!PMPI_Type_commit(&type))
		ret = move_some(type, (char *)-(intptr_t)back, 1, packed, bytes, pack);
	PMPI_Type_free(&type);
	return ret;
}

/* Between count of the type at `typed` and their bytes in a row at `packed`. */
static int move(const struct coll_type *t, char *typed, MPI_Count count, char *packed, bool pack)
{
	if (t->plain) {
		memcpy(pack ? packed : typed, pack ? typed : packed, (size_t)count * t->size);
		return 0;
	}
	for (MPI_Count at = 0, n; at < count; at += n) {
		char *one = typed + at * t->extent, *other = packed + (size_t)at * t->size;
		int bytes, ret;

		n = piece(t, count - at);
		bytes = (int)((size_t)n * t->size);
		ret = one ? move_some(t->mpi, one, (int)n, other, bytes, pack)
			  : move_bottom(t, (int)n, other, bytes, pack);
		if (ret)
			return ret;
	}
	return 0;
}

int coll_type_pack(const struct coll_type *t, const void *from, MPI_Count count, void *to)
{
	return move(t, (char *)from, count, to, true);
}

int coll_type_unpack(const struct coll_type *t, const void *from, void *to, MPI_Count count)
{
	return move(t, to, count, (char *)from, false);
}
