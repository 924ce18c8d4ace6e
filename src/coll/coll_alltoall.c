#include "coll_alltoall.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "coll_guard.h"
#include "coll_plan.h"
#include "shm_copy.h"
#include "util_clock.h"

const uint8_t *coll_send_at(const struct coll_alltoall *a, uint32_t i)
{
	if (a->offset)
		return a->bytes + a->offset[i];
	if (a->bytes)
		return a->bytes + (size_t)i * coll_block_len(&a->send, 0);
	return (const uint8_t *)coll_block_at(&a->send, i);
}

int coll_deliver(const struct coll_alltoall *a, uint32_t i, const uint8_t *bytes)
{
	return coll_type_unpack(&a->recv.type, bytes, coll_block_at(&a->recv, i),
				coll_block_count(&a->recv, i));
}

/* ---- what is sent ---- */

static int pack_at(struct coll_alltoall *a, struct coll_scratch *s)
{
	uint64_t at = 0;
	int ret = 0;

	if (coll_each_counts(&a->send.each))
		a->offset = calloc(a->c->size, sizeof(*a->offset));
	if (coll_each_counts(&a->send.each) && !a->offset)
		return -ENOMEM;
	for (uint32_t i = 0; i < a->c->size && !ret; i++) {
		if (a->offset)
			a->offset[i] = at;
		ret = coll_type_pack(&a->send.type, coll_block_at(&a->send, i),
				     coll_block_count(&a->send, i), s->at + at);
		at += coll_block_len(&a->send, i);
	}
	a->bytes = s->at;
	a->desc = s->registered ? s->mem.desc : NULL;
	return ret;
}

/* Whether others of this host can copy from where the program has what it sends: memory of a
 * device, for example, can be read by nobody but ourselves. A buffer is one or the other. */
static bool lendable(const struct coll_alltoall *a)
{
	const struct coll_comm *c = a->c;
	struct coll_mail m = coll_mail_of(c);
	struct iovec from[2] = {0}, to;
	uint8_t ends[2];

	for (uint32_t i = 0; i < c->size; i++) {
		size_t len = coll_block_len(&a->send, i);
		char *at = coll_block_at(&a->send, i);

		if (i == c->rank || c->peer[i].host != c->host ||
		    coll_mail_way(&m, len) != COLL_MAIL_FETCHED)
			continue;
		if (!from[0].iov_len)
			from[0] = (struct iovec){at, 1};
		from[1] = (struct iovec){at + len - 1, 1};
	}
	to = (struct iovec){ends, from[0].iov_len + from[1].iov_len};
	return !shm_copy_from(getpid(), (struct shm_vec){&to, 1}, (struct shm_vec){from, 2});
}

/* network: other ranks' hosts are written to from there; lend: others of this host copy from it. */
static int stage(struct coll_alltoall *a, bool network, bool lend)
{
	struct coll_scratch *s;
	uint64_t len = 0;

	if (a->send.type.plain && !a->in_place && !(network && coll_net_local()) &&
	    !(lend && !lendable(a)))
		return 0;
	for (uint32_t i = 0; i < a->c->size; i++)
		len += coll_block_len(&a->send, i);
	s = coll_scratch(a->c, 0, len);
	if (!s)
		return -ENOMEM;
	if (network && coll_net_local() && len && !s->registered)
		return -ENOMEM;
	return len ? pack_at(a, s) : 0;
}

/* ---- choice ---- */

static int go(struct coll_alltoall *a, enum coll_variant v)
{
	bool shm = v == COLL_SHM_DIRECT || v == COLL_PAP_SHM_DIRECT;
	int ret = stage(a, !shm && a->c->hosts > 1, !shm);

	if (!ret)
		ret = shm ? coll_alltoall_shm(a, v == COLL_PAP_SHM_DIRECT)
			  : coll_alltoall_direct(a, v == COLL_PAP_DIRECT);
	if (!ret)
		ret = coll_leave(a->c);
	/* Half of a call leaves the communicator behind the others for ever. */
	if (ret)
		atomic_store(&a->c->err, ret);
	free(a->offset);
	return ret;
}

/* ---- the operation ---- */

static int fill(struct coll_alltoall *a, const struct coll_alltoall_args *args)
{
	int ret;

	a->in_place = args->sendbuf == MPI_IN_PLACE;
	ret = coll_type_of(args->recvtype, &a->recv.type);
	a->recv.buf = args->recvbuf;
	a->recv.count = args->recvcount;
	a->recv.each = args->recv;
	a->send = a->recv;
	if (ret || a->in_place)
		return ret;
	a->send.buf = (char *)(uintptr_t)args->sendbuf;
	a->send.count = args->sendcount;
	a->send.each = args->send;
	return coll_type_of(args->sendtype, &a->send.type);
}

static uint64_t bytes_of(const struct coll_alltoall *a, const struct coll_blocks *b)
{
	uint64_t n = 0;

	for (uint32_t i = 0; i < a->c->size; i++)
		n += coll_block_len(b, i);
	return n;
}

/* As coll_plan counts, which does so for what was chosen. */
static void count(struct coll_alltoall *a, enum coll_op op, enum coll_variant v, uint64_t ns)
{
	struct coll_stats *s = &a->c->stats[op][v];

	s->calls++;
	s->bytes += op == COLL_ALLTOALLV ? bytes_of(a, &a->send) + bytes_of(a, &a->recv)
					 : coll_block_len(&a->recv, 0);
	s->ns += ns;
}

/* Whether no rank of MPI_Alltoallv's can have counts and places like these. */
static bool wrong_each(const struct coll_each *e, int size)
{
	if (!coll_each_counts(e) || !(e->displs || e->far))
		return true;
	for (int i = 0; i < size; i++)
		if (coll_each_count(e, (uint32_t)i) < 0)
			return true;
	return false;
}

/* Arguments that are wrong are for the MPI to complain about; it does so without talking to
 * anybody. */
static bool wrong(const void *arg, int size)
{
	const struct coll_alltoall_args *args = arg;
	bool in_place = args->sendbuf == MPI_IN_PLACE;

	(void)size;
	return args->recvcount < 0 || (!in_place && args->sendcount < 0);
}

static bool wrong_v(const void *arg, int size)
{
	const struct coll_alltoall_args *args = arg;
	bool in_place = args->sendbuf == MPI_IN_PLACE;

	return wrong_each(&args->recv, size) || (!in_place && wrong_each(&args->send, size));
}

static bool nowhere(const struct coll_alltoall *a, const struct coll_blocks *b)
{
	return (!b->buf || (void *)b->buf == MPI_IN_PLACE) &&
	       coll_type_nowhere(&b->type, b->buf, bytes_of(a, b));
}

static bool fits(const struct coll_alltoall *a, const struct coll_blocks *b)
{
	return coll_type_fits(&b->type) || !bytes_of(a, b);
}

/* Lengths of MPI_Alltoallv are not known to all: only this rank's types are looked at. */
static bool too_long(enum coll_op op, const struct coll_alltoall *a)
{
	if (op == COLL_ALLTOALLV)
		return !fits(a, &a->send) || !fits(a, &a->recv);
	return coll_block_len(&a->recv, 0) > COLL_BLOCK_MAX;
}

static int ours(void *arg, enum coll_variant v)
{
	return go(arg, v);
}

static int by_mpi(const void *arg)
{
	const struct coll_alltoall_args *a = arg;

	return a->mpi(a);
}

/* The unaware variants are there to be compared with; nothing speaks for them. Lengths of
 * MPI_Alltoallv are not known to all: one way is chosen for all of its calls, by what they take. */
static bool best(struct coll_alltoall *a, enum coll_op op, const struct coll_alltoall_args *args,
		 int *ret)
{
	bool v = op == COLL_ALLTOALLV;
	struct coll_job job = {
		.op = op,
		.bytes = v ? 0 : coll_block_len(&a->recv, 0),
		.loose = v,
		.own = v ? bytes_of(a, &a->send) + bytes_of(a, &a->recv) : 0,
		.can = 1u << COLL_PAP_DIRECT | (v ? 0 : 1u << COLL_PAP_SHM_DIRECT),
		.ours = ours,
		.ours_arg = a,
		.mpi = by_mpi,
		.mpi_arg = args,
	};

	return coll_plan_run(a->c, args->comm, &job, ret);
}

bool coll_alltoall(enum coll_op op, const struct coll_alltoall_args *args, int *ret)
{
	bool (*is_wrong)(const void *arg, int size) = op == COLL_ALLTOALLV ? wrong_v : wrong;
	struct coll_comm *c = coll_comm_of(args->comm, is_wrong, args);
	struct coll_alltoall a = {.c = c};
	enum coll_variant v;
	uint64_t start;

	if (!c)
		return coll_comm_early(args->comm, by_mpi, args, ret);
	if (is_wrong(args, (int)c->size) || fill(&a, args) || nowhere(&a, &a.recv) ||
	    (!a.in_place && nowhere(&a, &a.send)))
		return false;
	v = c->variant[op];
	if (coll_comm_broken(c)) {
		*ret = coll_comm_error(args->comm, atomic_load(&c->err));
		return true;
	}
	if (v == COLL_MPI)
		return false;
	if (too_long(op, &a)) {
		coll_guard_run(c, op, by_mpi, args, ret);
		return true;
	}
	*ret = MPI_SUCCESS;
	/* As much on every rank. */
	if (op == COLL_ALLTOALL && !coll_block_len(&a.recv, 0))
		return true;
	if (v == COLL_AUTO)
		return best(&a, op, args, ret);
	start = util_now_ns();
	if (go(&a, v))
		*ret = coll_comm_error(args->comm, atomic_load(&c->err));
	else
		count(&a, op, v, util_now_ns() - start);
	return true;
}
