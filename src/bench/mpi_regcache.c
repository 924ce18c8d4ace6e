/* What a cache of registrations is worth, and whether it can be trusted (thesis, section 3.5.1:
 * figure 3.11). A ping-pong from and into buffers that take turns, on pages of their own:
 *
 * first     no message has come from, or gone to, this buffer before
 * again     it has, and is still there
 * remapped  it was unmapped since, and another one is at its address: a registration that is kept
 *           beyond the memory that it was for would send, or write, what is not there any more
 *
 * All that arrives is looked at. On the sides of a cache: how the stack is set up, for example
 * FI_WEFT_CACHE=on and off (with FI_WEFT_LOCAL=pieces; a device of Weft's own needs none).
 */
#include "mpi_perf.h"

#include <stdio.h>
#include <sys/mman.h>

enum { FIRST, AGAIN, REMAPPED, USES };

static const char *const uses[] = {"first", "again", "remapped"};

enum { BUFFERS = 64, PAGE = 4096 };

struct regcache {
	size_t size, stride;
	int buffers;
	unsigned char *out, *in;
	unsigned int number;
};

/* At the same address, if there was one and no other thread has taken it meanwhile. */
static unsigned char *map(unsigned char *at, size_t bytes)
{
	int how = MAP_PRIVATE | MAP_ANONYMOUS;
	void *p = MAP_FAILED;

	if (at)
		p = mmap(at, bytes, PROT_READ | PROT_WRITE, how | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED)
		p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how, -1, 0);
	if (p == MAP_FAILED) {
		fprintf(stderr, "weft-mpi-perf: no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

static double once(struct mp *mp, struct regcache *r, int i)
{
	size_t at = (size_t)i * r->stride;
	unsigned int mine = 2 * r->number + (unsigned int)mp->rank;
	double t;

	mp_fill(r->out + at, r->size, mine);
	mp_fill(r->in + at, r->size, mine + 1); /* the kernel's first touch is not timed */
	MPI_Barrier(MPI_COMM_WORLD);
	t = mp_move(mp, MP_SEND, r->out + at, r->in + at, r->size);
	mp_verify(mp, r->in + at, r->size, mine ^ 1);
	r->number++;
	return t;
}

/* One after the other, so that a gap of the machine does not hit one kind of use only. */
static int turn(struct mp *mp, struct regcache *r, int n)
{
	size_t bytes = r->stride * (size_t)r->buffers;

	r->out = map(NULL, bytes);
	r->in = map(NULL, bytes);
	for (int i = 0; i < r->buffers; i++)
		mp->samples[FIRST][n + i] = once(mp, r, i);
	for (int i = 0; i < r->buffers; i++)
		mp->samples[AGAIN][n + i] = once(mp, r, i);
	munmap(r->out, bytes);
	munmap(r->in, bytes);
	r->out = map(r->out, bytes);
	r->in = map(r->in, bytes);
	for (int i = 0; i < r->buffers; i++)
		mp->samples[REMAPPED][n + i] = once(mp, r, i);
	munmap(r->out, bytes);
	munmap(r->in, bytes);
	return n + r->buffers;
}

static void print_rows(struct mp *mp, const struct regcache *r, int n)
{
	for (int use = 0; use < USES; use++) {
		struct mp_cell cells[3 + MP_SUMMARY] = {
			MP_INT("size", r->size),
			MP_INT("buffers", r->buffers),
			MP_TEXT("use", uses[use]),
		};

		mp_summary_us(cells + 3, mp->samples[use], n);
		mp_row(mp, cells, 3 + MP_SUMMARY);
	}
}

int mp_regcache(struct mp *mp)
{
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes);

	for (int i = 0; i < count; i++) {
		int most = mp_iterations(mp), n = 0, turns;
		struct regcache r = {
			.size = sizes[i],
			.stride = (sizes[i] + PAGE - 1) / PAGE * PAGE,
			.buffers = mp->o.buffers ? mp->o.buffers : BUFFERS,
		};
		double from;

		if (r.buffers > most)
			r.buffers = most;
		turn(mp, &r, 0); /* connections, and all that is done once */
		MPI_Barrier(MPI_COMM_WORLD);
		/* What is done once says nothing of how many of these there is time for. */
		from = mp_now();
		turn(mp, &r, 0);
		turns = mp_fit(mp, most / r.buffers, mp_now() - from, count - i);
		for (int k = 0; k < turns; k++)
			n = turn(mp, &r, n);
		if (!n)
			break;
		print_rows(mp, &r, n);
	}
	return 0;
}
