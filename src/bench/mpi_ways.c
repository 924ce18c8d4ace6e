/* One message at a time, two-sided or one-sided, from whatever buffer: the thesis' figures 5.5 and
 * 5.7, and what the kinds with many buffers (mpi_buffers.c) are made of. */
#include "mpi_perf.h"
#include "bench_copy.h"

#include <stdlib.h>

const char *const mp_ways[] = {"send", "put", "get"};

/* ---- a window, for one-sided operations ---- */

/* Of rank 1's buffer for what comes in. Rank 0 shows nothing: all operations are its own. */
void mp_window_open(struct mp *mp, enum mp_way way, size_t bytes)
{
	mp->win = MPI_WIN_NULL;
	if (way == MP_SEND)
		return;
	MPI_Win_create(mp->in, mp->rank ? (MPI_Aint)bytes : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD,
		       &mp->win);
	MPI_Win_fence(0, mp->win);
}

void mp_window_close(struct mp *mp)
{
	if (mp->win != MPI_WIN_NULL)
		MPI_Win_free(&mp->win);
}

/* ---- one message ---- */

static void send_from(const unsigned char *buf, size_t size, int to)
{
	MPI_Send(buf, (int)size, MPI_BYTE, to, MP_TAG, MPI_COMM_WORLD);
}

static void receive_into(unsigned char *in, size_t size, int from)
{
	MPI_Recv(in, (int)size, MPI_BYTE, from, MP_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void one_sided(struct mp *mp, enum mp_way way, unsigned char *buf, size_t size)
{
	int n = (int)size;

	if (mp->rank == 0 && way == MP_PUT)
		MPI_Put(buf, n, MPI_BYTE, 1, 0, n, MPI_BYTE, mp->win);
	else if (mp->rank == 0)
		MPI_Get(buf, n, MPI_BYTE, 1, 0, n, MPI_BYTE, mp->win);
	MPI_Win_fence(0, mp->win);
}

double mp_move(struct mp *mp, enum mp_way way, unsigned char *buf, unsigned char *in, size_t size)
{
	double from = mp_now();

	if (way != MP_SEND) {
		one_sided(mp, way, buf, size);
		return mp_now() - from;
	}
	if (mp->rank == 0)
		send_from(buf, size, 1);
	receive_into(in, size, !mp->rank);
	if (mp->rank != 0)
		send_from(buf, size, 0);
	return (mp_now() - from) / 2;
}

/* ---- the same, looked at ---- */

/* Each rank says something else. A buffer whose send is complete belongs to the program again: what
 * is written to it then must not arrive. */
static void prove_send(struct mp *mp, unsigned char *buf, unsigned char *in, size_t size,
		       unsigned int n)
{
	unsigned int mine = 2 * n + (unsigned int)mp->rank, theirs = mine ^ 1;

	mp_fill(buf, size, mine);
	if (mp->rank == 0) {
		send_from(buf, size, 1);
		mp_fill(buf, size, mine + 2);
	}
	receive_into(in, size, !mp->rank);
	mp_verify(mp, in, size, theirs);
	if (mp->rank != 0) {
		send_from(buf, size, 0);
		mp_fill(buf, size, mine + 2);
	}
}

/* Between two fences the window is its owner's. */
static void prove_one_sided(struct mp *mp, enum mp_way way, unsigned char *buf, size_t size,
			    unsigned int n)
{
	unsigned char *from = way == MP_PUT ? buf : mp->in, *to = way == MP_PUT ? mp->in : buf;
	bool fills = mp->rank == (way == MP_PUT ? 0 : 1);

	mp_fill(fills ? from : to, size, fills ? n : n + 1);
	MPI_Win_fence(0, mp->win);
	one_sided(mp, way, buf, size);
	if (!fills)
		mp_verify(mp, to, size, n);
}

void mp_prove(struct mp *mp, enum mp_way way, unsigned char *buf, unsigned char *in, size_t size,
	      unsigned int n)
{
	if (way == MP_SEND)
		prove_send(mp, buf, in, size, n);
	else
		prove_one_sided(mp, way, buf, size, n);
}

/* Seconds that it takes to copy a message from `out` to where a stack may keep it. */
static double copy_time(struct mp *mp, size_t size)
{
	unsigned char *bounce = mp_room(size);
	double t = bench_copy_time(bounce, mp->out, size);

	free(bounce);
	return t;
}

/* ---- the kinds ---- */

enum { LOOKS = 4 }; /* messages whose contents are looked at, before and after */

/* How many were timed; 0: there was no time. */
static int by_size(struct mp *mp, enum mp_way way, size_t size, int rows)
{
	int n, warm = mp_warmup(mp);
	double from;

	for (unsigned int i = 0; i < LOOKS; i++)
		mp_prove(mp, way, mp->out, mp->in, size, i);
	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < warm; i++)
		mp_move(mp, way, mp->out, mp->in, size);
	n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / warm, rows);
	for (int i = 0; i < n; i++)
		mp->samples[0][i] = mp_move(mp, way, mp->out, mp->in, size);
	/* A stack that treats a buffer differently once it is known has learnt it by now. */
	for (unsigned int i = 0; i < LOOKS; i++)
		mp_prove(mp, way, mp->out, mp->in, size, LOOKS + i);
	return n;
}

static int all_sizes(struct mp *mp, enum mp_way way)
{
	struct mp_cell cells[2 + MP_SUMMARY];
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes);

	mp_window_open(mp, way, sizes[count - 1]);
	for (int i = 0; i < count; i++) {
		int n = by_size(mp, way, sizes[i], count - i), more = 0;

		if (!n)
			break;
		cells[0] = MP_INT("size", sizes[i]);
		mp_summary_us(cells + 1, mp->samples[0], n);
		if (mp->o.copy)
			cells[1 + MP_SUMMARY + more++] =
				MP_REAL("copy_us", copy_time(mp, sizes[i]) * 1e6, 5);
		mp_row(mp, cells, 1 + MP_SUMMARY + more);
	}
	mp_window_close(mp);
	return 0;
}

int mp_latency(struct mp *mp)
{
	return all_sizes(mp, MP_SEND);
}

int mp_put(struct mp *mp)
{
	return all_sizes(mp, MP_PUT);
}

int mp_get(struct mp *mp)
{
	return all_sizes(mp, MP_GET);
}
