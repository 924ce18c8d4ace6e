#include "coll_reduce.h"

#include <string.h>

#include "coll_here.h"

/* Kinds of messages. From one host at most one of each comes in a call. */
enum {
	TO_ADD = COLL_ROUND,
	TO_TAKE,
};

/* Longer vectors are left to the MPI unless the environment says otherwise: they would go in more
 * pieces than are worth it, each a call of its own. */
#define PIECES_MAX 8

/* A piece of a reduction. */
struct piece {
	struct coll_reduce *r;
	struct coll_comm *c;
	const struct coll_tree *tree;
	uint32_t call;
	size_t count;   /* elements */
	uint32_t where; /* the vector that has what is reduced so far */
	bool wrong;     /* the MPI did not add */
};

static void add(struct piece *p, uint32_t from, uint32_t to, struct coll_part part)
{
	size_t at = part.first * p->r->size;

	if (part.count && PMPI_Reduce_local(coll_vector(p->c, p->call, from) + at,
					    coll_vector(p->c, p->call, to) + at, (int)part.count,
					    p->r->type, p->r->how))
		p->wrong = true;
}

static struct coll_part whole(const struct piece *p)
{
	return (struct coll_part){.first = 0, .count = p->count};
}

static void join(void *arg, uint32_t left, uint32_t right)
{
	add(arg, right, left, whole(arg));
}

/* ---- between hosts, by their masters ---- */

/* The vector that is received from a host. */
static uint32_t vector_from(const struct piece *p, uint32_t host)
{
	return p->c->size + host;
}

/* A part goes to where it is in the vector, so that those of one host never meet. What is sent
 * from is left alone until the receiver must have it: nobody comes to the next use of this bank
 * before. */
static int send(const struct piece *p, uint32_t host, uint32_t kind, struct coll_part part)
{
	struct coll_comm *c = p->c;
	uint32_t to = coll_master(c, host);
	uint64_t at = part.first * p->r->size;
	uint64_t remote = coll_vector_offset(c, host, p->call, c->size + c->host) + at;
	struct coll_put put = {
		.buf = coll_vector(c, p->call, p->where) + at,
		.len = part.count * p->r->size,
		.desc = c->shm_mem.desc,
		.peer = to,
		.kind = kind,
		.call = p->call,
		.to = {c->peer[to].shm.addr + remote, c->peer[to].shm.key},
	};

	return coll_put(c, &put);
}

/* What is being sent has to stay as it is: what has come is added to where it came, or, since both
 * ends of an exchange are to add in the same order (the larger of 0 and -0 depends on it), both in
 * a vector that nobody uses. There is one for each exchange: a host has ranks of others beside it,
 * which have no vectors here. */
static void combine(struct piece *p, struct coll_step s, uint32_t k)
{
	uint32_t in = vector_from(p, s.peer), spare = p->c->shm.ranks + k;

	if (s.kind == COLL_STEP_ADD ||
	    p->tree->coordinate[p->c->host] < p->tree->coordinate[s.peer]) {
		add(p, p->where, in, whole(p));
		p->where = in;
		return;
	}
	memcpy(coll_vector(p->c, p->call, spare), coll_vector(p->c, p->call, p->where),
	       p->count * p->r->size);
	add(p, in, spare, whole(p));
	p->where = spare;
}

static int take_in(struct piece *p, struct coll_step s, uint32_t k)
{
	bool take = s.kind == COLL_STEP_TAKE;
	int ret = coll_there_wait(p->c, p->call, take ? TO_TAKE : TO_ADD, s.peer);

	if (!ret && take)
		p->where = vector_from(p, s.peer);
	else if (!ret)
		combine(p, s, k);
	return ret;
}

static int whole_step(struct piece *p, uint32_t stage)
{
	const struct coll_tree *t = p->tree;
	struct coll_step s = coll_tree_step(t, p->c->host, stage);
	bool after = stage >= t->folds + t->bits;
	int ret = 0;

	if (s.kind == COLL_STEP_SEND || s.kind == COLL_STEP_SWAP)
		ret = send(p, s.peer, after ? TO_TAKE : TO_ADD, whole(p));
	if (!ret && s.kind != COLL_STEP_SEND && s.kind != COLL_STEP_NONE)
		ret = take_in(p, s, stage - t->folds);
	return ret;
}

/* A half, in the order of combine(). */
static void combine_half(struct piece *p, uint32_t peer, struct coll_part half)
{
	uint32_t in = vector_from(p, peer);
	size_t at = half.first * p->r->size;

	if (p->tree->coordinate[p->c->host] > p->tree->coordinate[peer]) {
		add(p, in, p->where, half);
		return;
	}
	add(p, p->where, in, half);
	memcpy(coll_vector(p->c, p->call, p->where) + at, coll_vector(p->c, p->call, in) + at,
	       half.count * p->r->size);
}

/* The half that a peer keeps goes to it, and ours of its vector is added. Near first, as whole
 * vectors go: then numbers are added in the same order, and the far links, which are fewer, carry
 * the shortest parts. */
static int halve(struct piece *p, uint32_t k)
{
	struct coll_step s = coll_tree_step(p->tree, p->c->host, p->tree->folds + k);
	int ret;

	ret = send(p, s.peer, TO_ADD, coll_tree_part(p->tree, s.peer, k + 1, p->count));
	if (!ret)
		ret = coll_there_wait(p->c, p->call, TO_ADD, s.peer);
	if (!ret)
		combine_half(p, s.peer, coll_tree_part(p->tree, p->c->host, k + 1, p->count));
	return ret;
}

static int complete(struct piece *p, uint32_t k)
{
	struct coll_step s = coll_tree_step(p->tree, p->c->host, p->tree->folds + k);
	struct coll_part theirs = coll_tree_part(p->tree, s.peer, k + 1, p->count);
	size_t at = theirs.first * p->r->size;
	int ret;

	ret = send(p, s.peer, TO_TAKE, coll_tree_part(p->tree, p->c->host, k + 1, p->count));
	if (!ret)
		ret = coll_there_wait(p->c, p->call, TO_TAKE, s.peer);
	/* It has what we sent from here, or it would not have come so far. */
	if (!ret)
		memcpy(coll_vector(p->c, p->call, p->where) + at,
		       coll_vector(p->c, p->call, vector_from(p, s.peer)) + at,
		       theirs.count * p->r->size);
	return ret;
}

static int exchange_halves(struct piece *p)
{
	int ret = 0;

	if (p->tree->coordinate[p->c->host] == COLL_NONE)
		return 0;
	for (uint32_t k = 0; k < p->tree->bits && !ret; k++)
		ret = halve(p, k);
	for (uint32_t k = p->tree->bits; k-- > 0 && !ret;)
		ret = complete(p, k);
	return ret;
}

static int between_hosts(struct piece *p, bool halves)
{
	const struct coll_tree *t = p->tree;
	uint32_t stages = coll_tree_stages(t), after = t->folds + t->bits;
	int ret = 0;

	for (uint32_t i = 0; i < stages && !ret; i++) {
		if (halves && i == t->folds) {
			ret = exchange_halves(p);
			i = after;
		}
		if (!ret && i < stages)
			ret = whole_step(p, i);
	}
	return ret;
}

/* ---- a piece ---- */

static int master_part(struct piece *p, bool last, bool halves)
{
	struct coll_comm *c = p->c;
	int ret = last ? 0 : coll_here_wait(c, p->call, COLL_WORD_HERE);

	if (!ret)
		ret = between_hosts(p, halves);
	if (ret)
		return ret;
	atomic_store_explicit(coll_shm_word(&c->shm, 0, COLL_WORD_WHERE + coll_bank(p->call)),
			      p->where, memory_order_relaxed);
	coll_here_set(c, p->call, COLL_WORD_DONE);
	return 0;
}

/* On one host, whoever comes last has the result, and tells the others. */
static int meet(struct piece *p, bool halves)
{
	struct coll_comm *c = p->c;
	bool last = coll_here_arrive(c, p->call, join, p);
	int ret;

	if (c->hosts == 1) {
		if (!last)
			return coll_here_wait(c, p->call, COLL_WORD_DONE);
		coll_here_set(c, p->call, COLL_WORD_DONE);
		return 0;
	}
	if (coll_is_master(c))
		return master_part(p, last, halves);
	if (last)
		coll_here_set(c, p->call, COLL_WORD_HERE);
	ret = coll_here_wait(c, p->call, COLL_WORD_DONE);
	p->where = atomic_load_explicit(
		coll_shm_word(&c->shm, 0, COLL_WORD_WHERE + coll_bank(p->call)),
		memory_order_relaxed);
	return ret;
}

/* The bytes of the result from `at` on, so many of them, are in the vector: those that we want. */
static void take(const struct piece *p, size_t at, size_t len)
{
	const struct coll_reduce *r = p->r;
	size_t from = at > r->first ? at : r->first;
	size_t to = at + len < r->first + r->bytes ? at + len : r->first + r->bytes;

	if (from < to)
		memcpy(r->to + (from - r->first),
		       coll_vector(p->c, p->call, p->where) + (from - at), to - from);
}

static int reduce(void *arg, enum coll_variant v)
{
	struct coll_reduce *r = arg;
	struct coll_comm *c = r->c;
	size_t most = c->vector / r->size;
	int ret = 0;

	for (size_t at = 0, n; at < r->count && !ret; at += n) {
		struct piece p = {.r = r, .c = c, .tree = &c->plan->tree, .call = coll_begin(c)};

		n = r->count - at < most ? r->count - at : most;
		p.count = n;
		memcpy(coll_vector(c, p.call, c->shm.me), r->from + at * r->size, n * r->size);
		ret = meet(&p, v == COLL_HALVING);
		if (!ret && p.wrong)
			ret = -EINVAL;
		if (ret)
			break;
		take(&p, at * r->size, n * r->size);
	}
	return ret;
}

/* ---- the operation ---- */

bool coll_reduce(struct coll_reduce *r, MPI_Comm comm, int *ret)
{
	struct coll_comm *c = coll_comm_of(comm, NULL, NULL);
	struct coll_job job = {
		.op = r->op,
		.bytes = r->count * r->size,
		.ours = reduce,
		.ours_arg = r,
		.mpi = r->mpi,
		.mpi_arg = r->arg,
	};

	if (!c)
		return coll_comm_early(comm, r->mpi, r->arg, ret);
	if (!job.bytes || r->size > c->vector)
		return coll_plan_leave(c, comm, &job, ret);
	r->c = c;
	job.ordered = r->inexact && c->same_sums;
	if (job.bytes <= PIECES_MAX * c->vector)
		job.can = 1u << COLL_TREE | (c->hosts > 1 ? 1u << COLL_HALVING : 0);
	return coll_plan_run(c, comm, &job, ret);
}

/* ---- what is known ---- */

/* Logical operations are not for integers of Fortran, which has a type for that. */
enum type_class { NO_TYPE, INTEGER, FORTRAN_INTEGER, REAL, COMPLEX, LOGICAL, BYTES };

/* Handles are not constants with every MPI. */
static enum type_class class_of(MPI_Datatype t)
{
	const struct {
		MPI_Datatype type;
		enum type_class class;
	} known[] = {
		{MPI_DOUBLE, REAL},
		{MPI_INT, INTEGER},
		{MPI_FLOAT, REAL},
		{MPI_LONG, INTEGER},
		{MPI_LONG_LONG, INTEGER},
		{MPI_SHORT, INTEGER},
		{MPI_UNSIGNED, INTEGER},
		{MPI_UNSIGNED_LONG, INTEGER},
		{MPI_UNSIGNED_LONG_LONG, INTEGER},
		{MPI_UNSIGNED_SHORT, INTEGER},
		{MPI_SIGNED_CHAR, INTEGER},
		{MPI_UNSIGNED_CHAR, INTEGER},
		{MPI_INT8_T, INTEGER},
		{MPI_INT16_T, INTEGER},
		{MPI_INT32_T, INTEGER},
		{MPI_INT64_T, INTEGER},
		{MPI_UINT8_T, INTEGER},
		{MPI_UINT16_T, INTEGER},
		{MPI_UINT32_T, INTEGER},
		{MPI_UINT64_T, INTEGER},
		{MPI_C_BOOL, LOGICAL},
		{MPI_BYTE, BYTES},
		{MPI_C_FLOAT_COMPLEX, COMPLEX},
		{MPI_C_DOUBLE_COMPLEX, COMPLEX},
		{MPI_INTEGER, FORTRAN_INTEGER},
		{MPI_REAL, REAL},
		{MPI_DOUBLE_PRECISION, REAL},
		{MPI_COMPLEX, COMPLEX},
		{MPI_DOUBLE_COMPLEX, COMPLEX},
	};

	for (size_t i = 0; t != MPI_DATATYPE_NULL && i < sizeof(known) / sizeof(known[0]); i++)
		if (known[i].type == t)
			return known[i].class;
	return NO_TYPE;
}

bool coll_reduce_known(MPI_Op op, MPI_Datatype type, size_t *size, bool *inexact)
{
	enum type_class class = class_of(type);
	bool sum = op == MPI_SUM || op == MPI_PROD, most = op == MPI_MAX || op == MPI_MIN;
	bool logical = op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR;
	bool bits = op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR;
	int bytes;

	if (class == NO_TYPE || PMPI_Type_size(type, &bytes) || bytes <= 0)
		return false;
	*size = (size_t)bytes;
	*inexact = sum && (class == REAL || class == COMPLEX);
	switch (class) {
	case INTEGER:
		return sum || most || logical || bits;
	case FORTRAN_INTEGER:
		return sum || most || bits;
	case REAL:
		return sum || most;
	case COMPLEX:
		return sum;
	case LOGICAL:
		return logical;
	default:
		return bits;
	}
}
