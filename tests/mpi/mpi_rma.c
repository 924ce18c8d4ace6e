/* One-sided communication: puts and gets in every kind of epoch and window. */
#include "mpi_test.h"

#include <stdlib.h>
#include <string.h>

static const size_t LENS[] = {1, 8, 1000, 8193, 65537};
enum { N_LENS = sizeof(LENS) / sizeof(*LENS), SLOT = 65600, TOKEN = 3 };

/* A window with a slot for every rank. */
struct window {
	MPI_Win win;
	uint8_t *base;
	int created; /* from memory of our own */
};

static struct window window_new(int created)
{
	struct window w = {.created = created};
	MPI_Aint size = (MPI_Aint)SLOT * mt.size;

	if (created) {
		w.base = mt_alloc((size_t)size);
		MPI_Win_create(w.base, size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w.win);
	} else {
		MPI_Win_allocate(size, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &w.base, &w.win);
	}
	mt_poison(w.base, (size_t)size);
	MPI_Barrier(MPI_COMM_WORLD);
	return w;
}

static void window_free(struct window *w)
{
	MPI_Win_free(&w->win);
	if (w->created)
		mt_free(w->base);
}

static MPI_Aint slot(int rank)
{
	return (MPI_Aint)SLOT * rank;
}

static int next(void)
{
	return (mt.rank + 1) % mt.size;
}

static int prev(void)
{
	return (mt.rank + mt.size - 1) % mt.size;
}

/* ---- fence ---- */

/* Everybody puts into its slot everywhere, and then gets all slots of one rank. */
static void fence_round(struct window *w, size_t len, int step)
{
	uint8_t *out = mt_alloc(len * (size_t)mt.size), *in = mt_alloc(len * (size_t)mt.size);
	int source = (mt.rank + step) % mt.size;

	for (int r = 0; r < mt.size; r++)
		mt_fill(out + len * (size_t)r, len, mt_key(mt.rank, r, step));
	MPI_Win_fence(step % 2 ? MPI_MODE_NOPRECEDE : 0, w->win);
	for (int r = 0; r < mt.size; r++)
		MPI_Put(out + len * (size_t)r, (int)len, MPI_BYTE, r, slot(mt.rank), (int)len,
			MPI_BYTE, w->win);
	MPI_Win_fence(0, w->win);
	for (int r = 0; r < mt.size; r++)
		mt_expect(w->base + slot(r), len, mt_key(r, mt.rank, step), "put by %d", r);
	for (int r = 0; r < mt.size; r++)
		MPI_Get(in + len * (size_t)r, (int)len, MPI_BYTE, source, slot(r), (int)len,
			MPI_BYTE, w->win);
	MPI_Win_fence(step % 2 ? MPI_MODE_NOSUCCEED | MPI_MODE_NOSTORE : 0, w->win);
	for (int r = 0; r < mt.size; r++)
		mt_expect(in + len * (size_t)r, len, mt_key(r, source, step), "got from %d",
			  source);
	mt_free(out);
	mt_free(in);
}

static void fence(void)
{
	for (int created = 0; created < 2; created++) {
		struct window w = window_new(created);

		for (int i = 0; i < 2 * N_LENS; i++)
			fence_round(&w, LENS[i / 2], i);
		window_free(&w);
	}
}

/* ---- post, start, complete, wait ---- */

static MPI_Group group_of(int rank)
{
	MPI_Group world, one;

	MPI_Comm_group(MPI_COMM_WORLD, &world);
	MPI_Group_incl(world, 1, &rank, &one);
	MPI_Group_free(&world);
	return one;
}

static void pscw(void)
{
	struct window w = window_new(0);
	MPI_Group from = group_of(prev()), to = group_of(next());
	uint8_t *buf = mt_alloc(SLOT), *back = mt_alloc(SLOT);

	mt_fill(w.base + slot(0), SLOT, mt_key(mt.rank, 1, 0));
	for (int i = 0; i < 4 * N_LENS; i++) {
		size_t len = LENS[i % N_LENS];
		int done = 0;

		mt_fill(buf, len, mt_key(mt.rank, next(), i));
		MPI_Win_post(from, 0, w.win);
		MPI_Win_start(to, 0, w.win);
		MPI_Put(buf, (int)len, MPI_BYTE, next(), slot(1), (int)len, MPI_BYTE, w.win);
		MPI_Get(back, (int)len, MPI_BYTE, next(), slot(0), (int)len, MPI_BYTE, w.win);
		MPI_Win_complete(w.win);
		for (; i % 2 && !done; mt_relax())
			MPI_Win_test(w.win, &done);
		if (!done)
			MPI_Win_wait(w.win);
		mt_expect(w.base + slot(1), len, mt_key(prev(), mt.rank, i), "put in epoch %d", i);
		mt_expect(back, len, mt_key(next(), 1, 0), "got in epoch %d", i);
	}
	MPI_Group_free(&from);
	MPI_Group_free(&to);
	mt_free(buf);
	mt_free(back);
	window_free(&w);
}

/* ---- locks ---- */

/* A counter that is read, raised and written back: without exclusion some rounds get lost. */
static void exclusive(void)
{
	enum { ROUNDS = 25 };
	struct window w = window_new(0);
	int64_t *counter = (int64_t *)w.base, v;

	for (int i = 0; i < 2; i++)
		counter[i] = 0;
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 2 * ROUNDS; i++) {
		int target = i % 2 ? 0 : mt.size - 1;

		v = -1;
		MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w.win);
		MPI_Get(&v, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, w.win);
		MPI_Win_flush(target, w.win);
		v++;
		MPI_Put(&v, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, w.win);
		MPI_Win_unlock(target, w.win);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < 2; i++) {
		int target = i % 2 ? 0 : mt.size - 1;

		MPI_Win_lock(MPI_LOCK_SHARED, target, 0, w.win);
		MPI_Get(&v, 1, MPI_INT64_T, target, 0, 1, MPI_INT64_T, w.win);
		MPI_Win_unlock(target, w.win);
		CHECK(v == (int64_t)ROUNDS * mt.size, "counter of rank %d is %lld instead of %d",
		      target, (long long)v, ROUNDS * mt.size);
	}
	MPI_Barrier(MPI_COMM_WORLD);
	window_free(&w);
}

static void shared_locks(void)
{
	struct window w = window_new(1);
	uint8_t *buf = mt_alloc(SLOT);

	for (int i = 0; i < N_LENS; i++)
		for (int r = 0; r < mt.size; r++) {
			int to = (mt.rank + r) % mt.size;
			size_t len = LENS[i];

			mt_fill(buf, len, mt_key(mt.rank, to, i));
			MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win);
			MPI_Put(buf, (int)len, MPI_BYTE, to, slot(mt.rank), (int)len, MPI_BYTE,
				w.win);
			MPI_Win_unlock(to, w.win);
			mt_poison(buf, len); /* complete here */
			MPI_Win_lock(MPI_LOCK_SHARED, to, 0, w.win);
			MPI_Get(buf, (int)len, MPI_BYTE, to, slot(mt.rank), (int)len, MPI_BYTE,
				w.win);
			MPI_Win_unlock(to, w.win);
			mt_expect(buf, len, mt_key(mt.rank, to, i), "read back from %d", to);
		}
	mt_free(buf);
	MPI_Barrier(MPI_COMM_WORLD);
	window_free(&w);
}

/* Under one lock of all: what is flushed is there when a message afterwards says so. */
static void lock_all(void)
{
	struct window w = window_new(0);
	uint8_t *buf = mt_alloc(SLOT);

	MPI_Win_lock_all(0, w.win);
	for (int i = 0; i < 6 * N_LENS; i++) {
		size_t len = LENS[i % N_LENS];
		int step;

		mt_fill(buf, len, mt_key(mt.rank, next(), i));
		MPI_Put(buf, (int)len, MPI_BYTE, next(), slot(mt.rank), (int)len, MPI_BYTE, w.win);
		if (i % 3 == 0) {
			MPI_Win_flush_local(next(), w.win);
			mt_poison(buf, len); /* ours again */
		}
		if (i % 2)
			MPI_Win_flush(next(), w.win);
		else
			MPI_Win_flush_all(w.win);
		MPI_Sendrecv(&i, 1, MPI_INT, next(), TOKEN, &step, 1, MPI_INT, prev(), TOKEN,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
		MPI_Win_sync(w.win);
		mt_expect(w.base + slot(prev()), len, mt_key(prev(), mt.rank, i), "flushed by %d",
			  prev());
		MPI_Sendrecv(&i, 1, MPI_INT, prev(), TOKEN, &step, 1, MPI_INT, next(), TOKEN,
			     MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	}
	MPI_Win_unlock_all(w.win);
	mt_free(buf);
	window_free(&w);
}

/* Puts and gets with requests. */
static void requests(void)
{
	enum { N = 40 };
	struct window w = window_new(0);
	uint8_t *buf = mt_alloc(N * 1000);
	MPI_Request req[N];

	MPI_Win_lock_all(0, w.win);
	for (int i = 0; i < N; i++) {
		mt_fill(buf + i * 1000, 1000, mt_key(mt.rank, next(), i));
		MPI_Rput(buf + i * 1000, 1000, MPI_BYTE, next(), slot(1) + i * 1000, 1000, MPI_BYTE,
			 w.win, &req[i]);
	}
	MPI_Waitall(N, req, MPI_STATUSES_IGNORE);
	mt_poison(buf, N * 1000);
	MPI_Win_flush(next(), w.win);
	for (int i = 0; i < N; i++)
		MPI_Rget(buf + i * 1000, 1000, MPI_BYTE, next(), slot(1) + i * 1000, 1000, MPI_BYTE,
			 w.win, &req[i]);
	for (int k = 0; k < N; k++) {
		int i = -1;

		MPI_Waitany(N, req, &i, MPI_STATUS_IGNORE);
		mt_expect(buf + i * 1000, 1000, mt_key(mt.rank, next(), i), "rget %d", i);
	}
	MPI_Win_unlock_all(w.win);
	mt_free(buf);
	MPI_Barrier(MPI_COMM_WORLD);
	window_free(&w);
}

/* Many small ones at once, next to each other, and one that is large. */
static void many_and_large(void)
{
	enum { N = 2000, LARGE = 4 << 20 };
	uint8_t *base, *out = mt_alloc(LARGE);
	MPI_Win win;

	MPI_Win_allocate(LARGE, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &win);
	mt_fill(out, LARGE, mt_key(mt.rank, next(), 1));
	for (int large = 0; large < 2; large++) {
		size_t len = large ? LARGE : N * 8;

		mt_poison(base, LARGE);
		MPI_Win_fence(0, win);
		for (int i = 0; i < N && !large; i++)
			MPI_Put(out + i * 8, 8, MPI_BYTE, next(), i * 8, 8, MPI_BYTE, win);
		if (large)
			MPI_Put(out, LARGE, MPI_BYTE, next(), 0, LARGE, MPI_BYTE, win);
		MPI_Win_fence(0, win);
		mt_expect(base, len, mt_key(prev(), mt.rank, 1), large ? "large" : "many");
		CHECK(mt_poisoned(base + len, LARGE - len) == LARGE - len, "written behind");
		MPI_Win_fence(0, win);
	}
	MPI_Win_free(&win);
	mt_free(out);
}

int main(int argc, char **argv)
{
	mt_init(argc, argv, 0, MPI_THREAD_SINGLE);
	mt_part("fence", fence);
	mt_part("post, start, complete, wait", pscw);
	mt_part("exclusive locks", exclusive);
	mt_part("shared locks", shared_locks);
	mt_part("lock_all and flush", lock_all);
	mt_part("requests", requests);
	mt_part("many and large", many_and_large);
	return mt_done();
}
