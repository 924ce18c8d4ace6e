/* Collectives that move data as it is. */
#include "mpi_coll.h"

#include <stdlib.h>

/* Bytes per rank: none, odd, and on both sides of what is eager. */
static const int LENS[] = {0, 1, 7, 1024, 8193, 70001};
enum { N_LENS = sizeof(LENS) / sizeof(*LENS) };

void coll_wait(MPI_Request *req)
{
	static int turn;
	int done = 0;

	if (turn++ % 2) {
		MPI_Wait(req, MPI_STATUS_IGNORE);
		return;
	}
	for (; !done; mt_relax())
		MPI_Test(req, &done, MPI_STATUS_IGNORE);
}

static void expect(const void *buf, int len, int from, int to, int step, const char *what)
{
	mt_expect(buf, (size_t)len, mt_key(from, to, step), "%s of %d bytes from %d", what, len,
		  from);
}

/* First, last and middle; each rank would take long for many. */
static int root_of(const struct coll *c, int i)
{
	return i == 0 ? 0 : i == 1 ? c->size - 1 : c->size / 2;
}

/* ---- barrier ---- */

/* Nobody leaves before the last has come. Each rank in turn comes late; the others tell it when
 * they are through. It has heard of nobody when it comes, and of everybody afterwards. */
static void barrier(const struct coll *c)
{
	for (int late = 0; late < c->size && late < 8; late++) {
		int early = 0, from = -1;

		if (c->rank == late) {
			mt_nap(1500);
			MPI_Iprobe(MPI_ANY_SOURCE, 99, c->comm, &early, MPI_STATUS_IGNORE);
			mt_nap(100);
			if (!early)
				MPI_Iprobe(MPI_ANY_SOURCE, 99, c->comm, &early, MPI_STATUS_IGNORE);
			CHECK(!early, "somebody is through before rank %d has come", late);
		}
		COLL(c, Barrier, Ibarrier, c->comm);
		if (c->rank != late)
			MPI_Send(&c->rank, 1, MPI_INT, late, 99, c->comm);
		for (int r = 0; r < c->size && c->rank == late; r++) {
			if (r == late)
				continue;
			MPI_Recv(&from, 1, MPI_INT, r, 99, c->comm, MPI_STATUS_IGNORE);
			CHECK(from == r, "rank %d says that it is %d", r, from);
		}
	}
}

/* ---- rooted ---- */

static void bcast(const struct coll *c)
{
	static const int lens[] = {0, 1, 1000, 8191, 8193, 65536, 300001};

	for (int i = 0; i < 3; i++)
		for (size_t k = 0; k < sizeof(lens) / sizeof(*lens); k++) {
			int root = root_of(c, i), step = i * 10 + (int)k;
			uint8_t *buf = mt_alloc((size_t)lens[k]);

			mt_poison(buf, (size_t)lens[k]);
			if (c->rank == root)
				mt_fill(buf, (size_t)lens[k], mt_key(root, -1, step));
			COLL(c, Bcast, Ibcast, buf, lens[k], MPI_BYTE, root, c->comm);
			expect(buf, lens[k], root, -1, step, "bcast");
			mt_free(buf);
		}
}

/* Blocks with gaps between them, for the v-forms; without gaps for the others. */
struct blocks {
	int n, *len, *at, total;
	uint8_t *buf;
};

/* Block i has len bytes, or with v a length of its own and a gap of 5 behind it. */
static struct blocks blocks_new(int n, int len, int v)
{
	struct blocks b = {.n = n};

	b.len = mt_alloc((size_t)n * sizeof(int));
	b.at = mt_alloc((size_t)n * sizeof(int));
	for (int i = 0; i < n; i++) {
		b.len[i] = v ? (len + i * 13) * (i % 3 != 1) : len;
		b.at[i] = b.total;
		b.total += b.len[i] + (v ? 5 : 0);
	}
	b.buf = mt_alloc((size_t)b.total);
	mt_poison(b.buf, (size_t)b.total);
	return b;
}

static void blocks_free(struct blocks *b)
{
	mt_free(b->len);
	mt_free(b->at);
	mt_free(b->buf);
}

/* No byte was written into a gap. */
static void blocks_gaps(const struct blocks *b, const char *what)
{
	for (int i = 0; i < b->n; i++) {
		int end = b->at[i] + b->len[i];
		int gap = (i + 1 < b->n ? b->at[i + 1] : b->total) - end;

		CHECK(mt_poisoned(b->buf + end, (size_t)gap) == (size_t)gap,
		      "%s: written behind block %d", what, i);
	}
}

static void gather(const struct coll *c, int len, int root, int v, int step)
{
	struct blocks b = blocks_new(c->size, len, v);
	int mine = b.len[c->rank], in_place = c->rank == root && step % 2;
	uint8_t *out = mt_alloc((size_t)mine);
	const void *send = in_place ? MPI_IN_PLACE : (const void *)out;

	mt_fill(out, (size_t)mine, mt_key(c->rank, root, step));
	if (in_place)
		mt_fill(b.buf + b.at[root], (size_t)mine, mt_key(root, root, step));
	if (v)
		COLL(c, Gatherv, Igatherv, send, mine, MPI_BYTE, b.buf, b.len, b.at, MPI_BYTE, root,
		     c->comm);
	else
		COLL(c, Gather, Igather, send, mine, MPI_BYTE, b.buf, len, MPI_BYTE, root, c->comm);
	for (int i = 0; i < c->size && c->rank == root; i++)
		expect(b.buf + b.at[i], b.len[i], i, root, step, "gather");
	blocks_gaps(&b, "gather");
	mt_free(out);
	blocks_free(&b);
}

static void scatter(const struct coll *c, int len, int root, int v, int step)
{
	struct blocks b = blocks_new(c->size, len, v);
	int mine = b.len[c->rank], in_place = c->rank == root && step % 2;
	uint8_t *in = mt_alloc((size_t)mine);
	void *recv = in_place ? MPI_IN_PLACE : (void *)in;

	mt_poison(in, (size_t)mine);
	for (int i = 0; i < c->size; i++)
		mt_fill(b.buf + b.at[i], (size_t)b.len[i], mt_key(root, i, step));
	if (v)
		COLL(c, Scatterv, Iscatterv, b.buf, b.len, b.at, MPI_BYTE, recv, mine, MPI_BYTE,
		     root, c->comm);
	else
		COLL(c, Scatter, Iscatter, b.buf, len, MPI_BYTE, recv, mine, MPI_BYTE, root,
		     c->comm);
	if (!in_place)
		expect(in, mine, root, c->rank, step, "scatter");
	for (int i = 0; i < c->size; i++)
		expect(b.buf + b.at[i], b.len[i], root, i, step, "source of scatter");
	mt_free(in);
	blocks_free(&b);
}

static void rooted(const struct coll *c, void (*fn)(const struct coll *, int, int, int, int))
{
	for (int i = 0; i < 3; i++)
		for (int k = 0; k < N_LENS; k++)
			for (int v = 0; v < 2; v++)
				fn(c, LENS[k], root_of(c, i), v, i * 7 + k);
}

/* ---- without root ---- */

static void allgather(const struct coll *c, int len, int v, int step)
{
	struct blocks b = blocks_new(c->size, len, v);
	int mine = b.len[c->rank], in_place = step % 2;
	uint8_t *out = mt_alloc((size_t)mine);
	const void *send = in_place ? MPI_IN_PLACE : (const void *)out;

	mt_fill(out, (size_t)mine, mt_key(c->rank, -1, step));
	if (in_place)
		mt_fill(b.buf + b.at[c->rank], (size_t)mine, mt_key(c->rank, -1, step));
	if (v)
		COLL(c, Allgatherv, Iallgatherv, send, mine, MPI_BYTE, b.buf, b.len, b.at, MPI_BYTE,
		     c->comm);
	else
		COLL(c, Allgather, Iallgather, send, mine, MPI_BYTE, b.buf, len, MPI_BYTE, c->comm);
	for (int i = 0; i < c->size; i++)
		expect(b.buf + b.at[i], b.len[i], i, -1, step, "allgather");
	blocks_gaps(&b, "allgather");
	mt_free(out);
	blocks_free(&b);
}

/* Lengths are symmetric, so the same blocks serve both directions: i to j as j to i. */
static void set_pair_lengths(const struct coll *c, struct blocks *b, int len)
{
	b->total = 0;
	for (int i = 0; i < c->size; i++) {
		b->len[i] = (len + 11 * (i + c->rank)) * ((i + c->rank) % 3 != 1);
		b->at[i] = b->total;
		b->total += b->len[i] + 5;
	}
	mt_free(b->buf);
	b->buf = mt_alloc((size_t)b->total);
	mt_poison(b->buf, (size_t)b->total);
}

static void call_alltoall(const struct coll *c, struct blocks *out, struct blocks *in, int len,
			  int kind, int in_place)
{
	const void *send = in_place ? MPI_IN_PLACE : (const void *)out->buf;
	MPI_Datatype *types;

	if (kind == 0) {
		COLL(c, Alltoall, Ialltoall, send, len, MPI_BYTE, in->buf, len, MPI_BYTE, c->comm);
		return;
	}
	if (kind == 1) {
		COLL(c, Alltoallv, Ialltoallv, send, out->len, out->at, MPI_BYTE, in->buf, in->len,
		     in->at, MPI_BYTE, c->comm);
		return;
	}
	types = mt_alloc((size_t)c->size * sizeof(MPI_Datatype));
	for (int i = 0; i < c->size; i++)
		types[i] = i % 2 ? MPI_BYTE : MPI_UNSIGNED_CHAR;
	COLL(c, Alltoallw, Ialltoallw, send, out->len, out->at, types, in->buf, in->len, in->at,
	     types, c->comm);
	mt_free(types);
}

/* kind: 0 alltoall, 1 alltoallv, 2 alltoallw. */
static void alltoall(const struct coll *c, int len, int kind, int in_place, int step)
{
	struct blocks out = blocks_new(c->size, len, kind > 0);
	struct blocks in = blocks_new(c->size, len, kind > 0);
	struct blocks *filled = in_place ? &in : &out;

	if (kind > 0) {
		set_pair_lengths(c, &out, len);
		set_pair_lengths(c, &in, len);
	}
	for (int i = 0; i < c->size; i++)
		mt_fill(filled->buf + filled->at[i], (size_t)filled->len[i],
			mt_key(c->rank, i, step));
	call_alltoall(c, &out, &in, len, kind, in_place);
	for (int i = 0; i < c->size; i++)
		expect(in.buf + in.at[i], in.len[i], i, c->rank, step, "alltoall");
	blocks_gaps(&in, "alltoall");
	blocks_free(&out);
	blocks_free(&in);
}

static void allgathers(const struct coll *c)
{
	for (int k = 0; k < N_LENS; k++)
		for (int v = 0; v < 4; v++)
			allgather(c, LENS[k], v / 2, k * 4 + v);
}

/* Open MPI 4.1.4's non-blocking v and w forms in place give wrong data or never end, over TCP and
 * over libfabric alike. */
static int in_place_is_bad(const struct coll *c, int kind)
{
	return c->nonblocking && kind > 0 && mt_library("Open MPI");
}

static void alltoalls(const struct coll *c)
{
	for (int k = 0; k < N_LENS; k++)
		for (int kind = 0; kind < 3; kind++)
			for (int in_place = 0; in_place < 2 - in_place_is_bad(c, kind); in_place++)
				alltoall(c, c->size > 8 ? LENS[k] / 4 : LENS[k], kind, in_place,
					 k * 6 + kind * 2 + in_place);
}

void coll_move(const struct coll *c)
{
	int in = c->comm != MPI_COMM_NULL;

	if (mt_begin("barrier, %s", c->name)) {
		if (in)
			barrier(c);
		mt_end();
	}
	if (mt_begin("bcast, %s", c->name)) {
		if (in)
			bcast(c);
		mt_end();
	}
	if (mt_begin("gather, %s", c->name)) {
		if (in)
			rooted(c, gather);
		mt_end();
	}
	if (mt_begin("scatter, %s", c->name)) {
		if (in)
			rooted(c, scatter);
		mt_end();
	}
	if (mt_begin("allgather, %s", c->name)) {
		if (in)
			allgathers(c);
		mt_end();
	}
	if (mt_begin("alltoall, %s", c->name)) {
		if (in)
			alltoalls(c);
		mt_end();
	}
}
