/* Cases of operations that move data: what they leave in the whole buffer, with what is between the
 * elements of a datatype, is what the MPI's own leaves there. */
#include "coll_check.h"

#include <stdlib.h>

/* What one rank gives to a call. */
struct call {
	int send_count, recv_count, root;
	MPI_Datatype send_type, recv_type;
	int *send_counts, *send_at, *recv_counts, *recv_at; /* of alltoallv */
	size_t send_len, recv_len;                          /* bytes of the buffers */
	void *send, *before, *got, *want;
};

typedef void call_fn(const struct cc_case *c, const struct call *k, void *recv, int own);

static const void *sent(const struct cc_case *c, const struct call *k)
{
	return c->in_place ? MPI_IN_PLACE : k->send;
}

/* Both calls, in an order that is drawn, and all comparisons. */
static void both(struct cc_case *c, struct call *k, call_fn *fn)
{
	int first = (int)util_rand_below(&c->shared, 2);
	uint64_t key = util_rand_next(&c->own);

	k->send = mt_alloc(k->send_len);
	mt_fill(k->send, k->send_len, key);
	k->before = cc_copy(k->send, k->send_len);
	k->got = mt_alloc(k->recv_len);
	if (c->in_place)
		mt_fill(k->got, k->recv_len, key + 1);
	else
		mt_poison(k->got, k->recv_len);
	k->want = cc_copy(k->got, k->recv_len);
	for (int i = 0; i < 2; i++) {
		int own = i ^ first;

		cc_arrive(c);
		fn(c, k, own ? k->want : k->got, own);
	}
	cc_same(c, k->got, k->want, k->recv_len, "received");
	cc_same(c, k->send, k->before, k->send_len, "what was sent has changed");
	mt_free(k->send);
	mt_free(k->before);
	mt_free(k->got);
	mt_free(k->want);
}

/* The element types of one rank's side: bytes, or integers in a layout of its own. */
static size_t draw_side(struct cc_case *c, size_t bytes, int laid_out, int *count,
			MPI_Datatype *type)
{
	const struct cc_layout *l = cc_layout(&c->own);
	int ints = (int)(bytes / (CC_INTS * sizeof(int))) * CC_INTS;

	*count = laid_out ? ints / l->ints : (int)bytes;
	*type = laid_out ? l->type : MPI_BYTE;
	cc_say(c, ", %d %s", *count, laid_out ? l->name : "bytes");
	return (size_t)*count * (size_t)(laid_out ? l->extent : 1);
}

/* ---- MPI_Alltoall, MPI_Allgather ---- */

static void call_alltoall(const struct cc_case *c, const struct call *k, void *recv, int own)
{
	CC_CALL(c, own, Alltoall, sent(c, k), k->send_count, k->send_type, recv, k->recv_count,
		k->recv_type, c->comm);
}

static void call_allgather(const struct cc_case *c, const struct call *k, void *recv, int own)
{
	CC_CALL(c, own, Allgather, sent(c, k), k->send_count, k->send_type, recv, k->recv_count,
		k->recv_type, c->comm);
}

/* `blocks` of them are sent. */
static void draw_blocks(struct cc_case *c, struct call *k, size_t blocks)
{
	size_t bytes = cc_bytes(c, CC_MOST / (size_t)c->size / 3);
	int laid_out = (int)util_rand_below(&c->shared, 2);

	k->send_len = draw_side(c, bytes, laid_out, &k->send_count, &k->send_type) * blocks;
	k->recv_len =
		draw_side(c, bytes, laid_out, &k->recv_count, &k->recv_type) * (size_t)c->size;
}

void cc_alltoall(struct cc_case *c)
{
	struct call k = {0};

	draw_blocks(c, &k, (size_t)c->size);
	both(c, &k, call_alltoall);
}

void cc_allgather(struct cc_case *c)
{
	struct call k = {0};

	draw_blocks(c, &k, 1);
	both(c, &k, call_allgather);
}

/* ---- MPI_Bcast ---- */

/* In place on the root; the others have something else there. */
static void call_bcast(const struct cc_case *c, const struct call *k, void *recv, int own)
{
	CC_CALL(c, own, Bcast, recv, k->recv_count, k->recv_type, k->root, c->comm);
}

void cc_bcast(struct cc_case *c)
{
	struct call k = {0};
	size_t bytes = cc_bytes(c, 4 << 20);
	int laid_out = (int)util_rand_below(&c->shared, 2);

	k.root = (int)util_rand_below(&c->shared, (uint64_t)c->size);
	cc_say(c, ", root %d", k.root);
	k.recv_len = draw_side(c, bytes, laid_out, &k.recv_count, &k.recv_type);
	c->in_place = 1;
	both(c, &k, call_bcast);
}

/* ---- MPI_Alltoallv ---- */

#if MPI_VERSION >= 4
static void large_alltoallv(const struct cc_case *c, const struct call *k, void *recv, int own)
{
	size_t n = (size_t)c->size;
	MPI_Count *counts = calloc(2 * n, sizeof(*counts));
	MPI_Aint *at = calloc(2 * n, sizeof(*at));

	for (size_t i = 0; i < n; i++) {
		counts[i] = k->send_counts[i];
		counts[n + i] = k->recv_counts[i];
		at[i] = k->send_at[i];
		at[n + i] = k->recv_at[i];
	}
	CC_LARGE(own, Alltoallv, sent(c, k), counts, at, k->send_type, recv, counts + n, at + n,
		 k->recv_type, c->comm);
	free(counts);
	free(at);
}
#endif

static void call_alltoallv(const struct cc_case *c, const struct call *k, void *recv, int own)
{
#if MPI_VERSION >= 4
	if (c->large) {
		large_alltoallv(c, k, recv, own);
		return;
	}
#endif
	CC_SMALL(own, Alltoallv, sent(c, k), k->send_counts, k->send_at, k->send_type, recv,
		 k->recv_counts, k->recv_at, k->recv_type, c->comm);
}

/* Bytes from a to b: a third of the pairs have nothing for each other. In place as many come as
 * go. */
static size_t pair_bytes(const struct cc_case *c, int a, int b, size_t most)
{
	uint64_t x = c->in_place && a > b ? cc_pair(c, b, a) : cc_pair(c, a, b);

	return x % 3 == 0 ? 0 : x / 3 % (most + 1);
}

/* One side: counts, and places in an order of its own, with gaps. Returns the bytes of all. */
static size_t place(struct cc_case *c, const struct cc_layout *l, int laid_out, size_t most,
		    int is_send, int *counts, int *at)
{
	uint64_t start = util_rand_below(&c->own, (uint64_t)c->size);
	int extent = laid_out ? l->extent : 1, next = 0;

	for (int i = 0; i < c->size; i++) {
		int r = (int)((start + (uint64_t)i) % (uint64_t)c->size);
		size_t bytes =
			is_send ? pair_bytes(c, c->rank, r, most) : pair_bytes(c, r, c->rank, most);

		counts[r] = laid_out ? (int)(bytes / (CC_INTS * sizeof(int))) * CC_INTS / l->ints
				     : (int)bytes;
		next += (int)util_rand_below(&c->own, 4);
		at[r] = next;
		next += counts[r];
	}
	return (size_t)next * (size_t)extent;
}

void cc_alltoallv(struct cc_case *c)
{
	size_t most = cc_bytes(c, CC_MOST / (size_t)c->size / 3), n = (size_t)c->size;
	int laid_out = (int)util_rand_below(&c->shared, 2), *room = calloc(4 * n, sizeof(*room));
	const struct cc_layout *s = cc_layout(&c->own), *r = cc_layout(&c->own);
	struct call k = {.send_counts = room,
			 .send_at = room + n,
			 .recv_counts = room + 2 * n,
			 .recv_at = room + 3 * n,
			 .send_type = laid_out ? s->type : MPI_BYTE,
			 .recv_type = laid_out ? r->type : MPI_BYTE};

	k.send_len = place(c, s, laid_out, most, 1, k.send_counts, k.send_at);
	k.recv_len = place(c, r, laid_out, most, 0, k.recv_counts, k.recv_at);
	cc_say(c, ", up to %zu bytes, %s to %s", most, laid_out ? s->name : "bytes",
	       laid_out ? r->name : "bytes");
	both(c, &k, call_alltoallv);
	free(room);
}
