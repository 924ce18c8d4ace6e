#include "coll_allgather.h"

#include <errno.h>
#include <string.h>

#include "coll_here.h"
#include "coll_plan.h"
#include "coll_type.h"

/* Vectors (coll_here.h) of all ranks are one area here. Blocks are in the order of hosts. */
struct gather {
	struct coll_comm *c;
	const struct coll_allgather_args *args;
	struct coll_type from, to;
	size_t bytes; /* of a block */
	uint32_t call;
	uint32_t left;                 /* hosts whose blocks are to be taken */
	uint8_t taken[COLL_MAX_HOSTS]; /* by host */
};

static uint8_t *block_at(const struct gather *g, uint32_t place)
{
	return coll_vector(g->c, g->call, 0) + place * g->bytes;
}

static char *recv_at(const struct gather *g, uint32_t rank)
{
	const struct coll_allgather_args *a = g->args;

	return (char *)a->recvbuf + (MPI_Aint)rank * (MPI_Aint)a->recvcount * g->to.extent;
}

static int put_mine(struct gather *g)
{
	const struct coll_allgather_args *a = g->args;
	const struct coll_comm *c = g->c;
	uint8_t *to = block_at(g, c->first[c->host] + c->shm.me);

	if (a->sendbuf == MPI_IN_PLACE)
		return coll_type_pack(&g->to, recv_at(g, c->rank), a->recvcount, to);
	return coll_type_pack(&g->from, a->sendbuf, a->sendcount, to);
}

static int send_all(struct gather *g)
{
	struct coll_comm *c = g->c;
	uint32_t place = c->first[c->host];
	int ret = 0;

	for (uint32_t i = 1; i < c->hosts && !ret; i++) {
		uint32_t host = (c->host + i) % c->hosts, to = coll_master(c, host);
		uint64_t at = coll_vector_offset(c, host, g->call, 0) + place * g->bytes;
		struct coll_put p = {
			.buf = block_at(g, place),
			.len = coll_host_size(c, c->host) * g->bytes,
			.desc = c->shm_mem.desc,
			.peer = to,
			.kind = COLL_ROUND,
			.call = g->call,
			.to = {c->peer[to].shm.addr + at, c->peer[to].shm.key},
		};

		ret = coll_put(c, &p);
	}
	return ret;
}

/* Our own block is where it belongs if it was sent from there. */
static int take_from(struct gather *g, uint32_t host)
{
	const struct coll_allgather_args *a = g->args;
	const struct coll_comm *c = g->c;
	int ret = 0;

	for (uint32_t i = c->first[host]; i < c->first[host + 1] && !ret; i++) {
		uint32_t rank = c->by_host[i];

		if (rank != c->rank || a->sendbuf != MPI_IN_PLACE)
			ret = coll_type_unpack(&g->to, block_at(g, i), recv_at(g, rank),
					       a->recvcount);
	}
	g->taken[host] = 1;
	g->left--;
	return ret;
}

/* What has come for the master, it tells the others of. Returns whether anything has happened, or
 * -errno. */
static int turn(struct gather *g)
{
	struct coll_comm *c = g->c;
	uint32_t before = g->left;
	int ret = 0;

	for (uint32_t h = 0; h < c->hosts && !ret; h++) {
		if (g->taken[h])
			continue;
		if (h != c->host && coll_is_master(c) && coll_there_came(c, g->call, COLL_ROUND, h))
			coll_host_set(c, g->call, h);
		if (coll_host_is_set(c, g->call, h))
			ret = take_from(g, h);
	}
	return ret ? ret : g->left != before;
}

/* Of other hosts the master hears first; there is no end before it has heard of all. */
static int waits_for(const struct gather *g)
{
	const struct coll_comm *c = g->c;

	return coll_is_master(c) && g->left > !g->taken[c->host] ? COLL_FOR_NET : COLL_FOR_SHM;
}

/* Whoever sends, it is the master that must be there. */
static bool missing(const void *arg, uint32_t rank)
{
	const struct gather *g = arg;
	uint32_t host = g->c->peer[rank].host;

	return !g->taken[host] && coll_master(g->c, host) == rank;
}

static int gather(void *arg, enum coll_variant v)
{
	struct gather *g = arg;
	struct coll_comm *c = g->c;
	struct coll_wait w;
	int ret;

	(void)v;
	g->call = coll_begin(c);
	g->left = c->hosts;
	ret = put_mine(g);
	if (ret)
		return ret;
	/* The last one of a host to come is running: it sends, and then wakes others. */
	if (coll_here_arrive(c, g->call, NULL, NULL)) {
		ret = send_all(g);
		coll_host_set(c, g->call, c->host);
	}
	coll_wait_begin(c, &w, waits_for(g));
	w.missing = missing;
	w.arg = g;
	while (g->left && ret >= 0) {
		ret = turn(g);
		w.what = waits_for(g);
		if (!ret && g->left)
			ret = coll_wait(c, &w);
	}
	return ret < 0 ? ret : 0;
}

static int by_mpi(const void *arg)
{
	const struct coll_allgather_args *a = arg;

	return a->mpi(a);
}

static bool wrong(const void *arg, int size)
{
	const struct coll_allgather_args *a = arg;

	(void)size;
	return a->recvcount < 0 || (a->sendbuf != MPI_IN_PLACE && a->sendcount < 0);
}

bool coll_allgather(const struct coll_allgather_args *args, int *ret)
{
	struct coll_comm *c = coll_comm_of(args->comm, wrong, args);
	struct gather g = {.c = c, .args = args};
	struct coll_job job = {
		.op = COLL_ALLGATHER,
		.can = 1u << COLL_TREE,
		.ours = gather,
		.ours_arg = &g,
		.mpi = by_mpi,
		.mpi_arg = args,
	};

	if (!c)
		return coll_comm_early(args->comm, by_mpi, args, ret);
	if (c->hosts > COLL_MAX_HOSTS || wrong(args, (int)c->size) ||
	    coll_type_of(args->recvtype, &g.to))
		return false;
	g.bytes = (size_t)args->recvcount * g.to.size;
	/* As much on every rank, whatever the types look like. */
	if (!g.bytes || g.bytes > c->vector)
		return coll_plan_leave(c, args->comm, &job, ret);
	/* What follows is wrong on this rank only, and the MPI would say so without the others. */
	if (coll_type_nowhere(&g.to, args->recvbuf, g.bytes))
		return false;
	if (args->sendbuf != MPI_IN_PLACE && (coll_type_of(args->sendtype, &g.from) ||
					      (size_t)args->sendcount * g.from.size != g.bytes ||
					      coll_type_nowhere(&g.from, args->sendbuf, g.bytes)))
		return false;
	job.bytes = g.bytes;
	return coll_plan_run(c, args->comm, &job, ret);
}
