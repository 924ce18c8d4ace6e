/* Bandwidth between two ranks, measured as the OSU benchmarks do, and late receives. */
#include "mpi_perf.h"

static void send_to(const struct mp *mp, size_t size)
{
	MPI_Send(mp->out, (int)size, MPI_BYTE, !mp->rank, MP_TAG, MPI_COMM_WORLD);
}

static void receive(const struct mp *mp, size_t size)
{
	MPI_Recv(mp->in, (int)size, MPI_BYTE, !mp->rank, MP_TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* ---- ping-pong ---- */

/* Seconds of one measurement of a kind. */
typedef double (*measure)(struct mp *mp, size_t size);

static double round_trip(struct mp *mp, size_t size)
{
	return mp_move(mp, MP_SEND, mp->out, mp->in, size);
}

/* From the call of MPI_Recv to its end, of a message that was sent a delay before. */
static double late_receive(struct mp *mp, size_t size)
{
	double zero = mp_meet(mp);

	mp_wait_turn(mp, zero, mp->rank != 0);
	if (mp->rank)
		send_to(mp, size);
	else
		receive(mp, size);
	return mp_now() - zero;
}

/* The same, but both begin at once: what a receive tells in advance meets the announcement of the
 * message on the way, and is of no use. */
static double crossing(struct mp *mp, size_t size)
{
	double zero = mp_meet(mp);

	mp_wait_turn(mp, zero, false);
	if (mp->rank)
		send_to(mp, size);
	else
		receive(mp, size);
	return mp_now() - zero;
}

static int repeat(struct mp *mp, measure once, size_t size, int rows)
{
	int n, warm = mp_warmup(mp);
	double from;

	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < warm; i++)
		once(mp, size);
	n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / warm, rows);
	for (int i = 0; i < n; i++)
		mp->samples[0][i] = once(mp, size);
	return n;
}

/* The overhead of speculation where it can not profit (fig. 4.19 of the thesis), to be run with
 * and without it. "crossing" is the timing that is meant there. An ordinary ping-pong can not
 * profit either: a rank announces its answer as soon as it has the message, and only after that the
 * other, whose send is complete, posts its receive. Rows "send-first" make sure of that order. */
int mp_pingpong_late(struct mp *mp)
{
	static const measure how[] = {round_trip, crossing, late_receive};
	static const char *const names[] = {"ping-pong", "crossing", "send-first"};
	enum { HOW = sizeof(how) / sizeof(how[0]) };
	struct mp_cell cells[2 + MP_SUMMARY];
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes);

	for (int i = 0; i < HOW * count; i++) {
		size_t size = sizes[i / HOW];
		int n = repeat(mp, how[i % HOW], size, HOW * count - i);

		if (!n)
			break;
		cells[0] = MP_INT("size", size);
		cells[1] = MP_TEXT("timing", names[i % HOW]);
		mp_summary_us(cells + 2, mp->samples[0], n);
		mp_row(mp, cells, 2 + MP_SUMMARY);
	}
	return 0;
}

/* ---- streams ---- */

static void post_window(const struct mp *mp, size_t size, bool sends, MPI_Request *r)
{
	for (int i = 0; i < mp_window(mp); i++) {
		if (sends)
			MPI_Isend(mp->out, (int)size, MPI_BYTE, !mp->rank, MP_TAG, MPI_COMM_WORLD,
				  &r[i]);
		else
			MPI_Irecv(mp->in, (int)size, MPI_BYTE, !mp->rank, MP_TAG, MPI_COMM_WORLD,
				  &r[i]);
	}
}

enum ways { ONE_WAY, BOTH_WAYS, IN_TURN };

/* A window of messages one way, or both ways at once, and an answer of four bytes; seconds. */
static double window(struct mp *mp, size_t size, bool both)
{
	MPI_Request r[2 * MP_WINDOW_MOST];
	MPI_Status status[2 * MP_WINDOW_MOST];
	double from = mp_now();
	int n = 0, ack = 0, to = !mp->rank;

	if (both || mp->rank != 0) {
		post_window(mp, size, false, r);
		n += mp_window(mp);
	}
	if (both || mp->rank == 0) {
		post_window(mp, size, true, r + n);
		n += mp_window(mp);
	}
	MPI_Waitall(n, r, status);
	if (mp->rank == 0)
		MPI_Recv(&ack, 1, MPI_INT, to, MP_ACK, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	else
		MPI_Send(&ack, 1, MPI_INT, to, MP_ACK, MPI_COMM_WORLD);
	return mp_now() - from;
}

/* The mean is that of all bytes in all of the time, not that of the windows' rates. */
static void bandwidth_row(struct mp *mp, size_t size, double bytes, int n)
{
	double *t = mp->samples[0], sum = 0;
	struct mp_cell cells[1 + MP_SUMMARY];

	for (int i = 0; i < n; i++) {
		sum += t[i];
		t[i] = bytes / t[i] / 1e6;
	}
	cells[0] = MP_INT("size", size);
	mp_summary_mbps(cells + 1, t, n);
	cells[3].number = bytes * n / sum / 1e6;
	mp_row(mp, cells, 1 + MP_SUMMARY);
}

/* A window there, and then one back: the direction changes, and each waits for the other. */
static double to_and_fro(struct mp *mp, size_t size)
{
	MPI_Request r[MP_WINDOW_MOST];
	MPI_Status status[MP_WINDOW_MOST];
	double from = mp_now();

	for (int i = 0; i < 2; i++) {
		post_window(mp, size, mp->rank == i, r);
		MPI_Waitall(mp_window(mp), r, status);
	}
	return mp_now() - from;
}

static double once(struct mp *mp, size_t size, enum ways how)
{
	return how == IN_TURN ? to_and_fro(mp, size) : window(mp, size, how == BOTH_WAYS);
}

static int stream(struct mp *mp, enum ways how)
{
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes), warm = mp_warmup(mp);

	for (int i = 0; i < count; i++) {
		double from, bytes = (double)sizes[i] * mp_window(mp) * (how == ONE_WAY ? 1 : 2);
		int n;

		MPI_Barrier(MPI_COMM_WORLD);
		from = mp_now();
		for (int k = 0; k < warm; k++)
			once(mp, sizes[i], how);
		n = mp_fit(mp, mp_iterations(mp), (mp_now() - from) / warm, count - i);
		if (!n)
			break;
		for (int k = 0; k < n; k++)
			mp->samples[0][k] = once(mp, sizes[i], how);
		bandwidth_row(mp, sizes[i], bytes, n);
	}
	return 0;
}

int mp_bw(struct mp *mp)
{
	return stream(mp, ONE_WAY);
}

int mp_bibw(struct mp *mp)
{
	return stream(mp, BOTH_WAYS);
}

int mp_bidir(struct mp *mp)
{
	return stream(mp, IN_TURN);
}
