/* Memory that can not be registered: the MPI carries what is received there.
 *
 * MPI_Alltoallv may receive into blocks with anything between them, also nothing: where a page is
 * not mapped, no device registers what spans it. Ranks differ in that, call by call. Each block
 * ends at a page that is not there, so that a byte too many is noticed, too. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "mpi_test.h"

enum { MOST = 300000 }; /* bytes of a block */

struct side {
	int *counts, *at;
	char *buf;
	size_t len;
};

/* From a to b: nothing, a few, or many, also on both sides of what is copied. */
static int bytes_of(int a, int b, int number)
{
	uint64_t x = mt_key(a, b, number) >> 8;

	switch (x % 5) {
	case 0:
		return 0;
	case 1:
		return (int)(x / 5 % 64);
	case 2:
		return 4090 + (int)(x / 5 % 12);
	default:
		return (int)(x / 5 % MOST);
	}
}

static size_t pages(int bytes)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return ((size_t)bytes + page - 1) / page * page;
}

/* Blocks at the ends of whole pages, one page between two of them, which is there or not. */
static void open_side(struct side *s, int number, int is_send, int holes)
{
	size_t page = pages(1), at = 0;

	s->counts = calloc(2 * (size_t)mt.size, sizeof(*s->counts));
	s->at = s->counts + mt.size;
	for (int i = 0; i < mt.size; i++) {
		s->counts[i] =
			is_send ? bytes_of(mt.rank, i, number) : bytes_of(i, mt.rank, number);
		at += pages(s->counts[i]);
		s->at[i] = (int)(at - (size_t)s->counts[i]);
		at += page;
	}
	s->len = at;
	s->buf = mmap(NULL, at, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(s->buf != MAP_FAILED, "no memory");
	for (int i = 0; i < mt.size && holes; i++)
		munmap(s->buf + s->at[i] + s->counts[i], page);
}

static void close_side(struct side *s)
{
	munmap(s->buf, s->len);
	free(s->counts);
}

static void once(int number)
{
	uint64_t draw = mt_key(-1, number, (int)mt.seed);
	/* Nobody, one, some, all. */
	int holes = draw % 4 == 0   ? 0
		    : draw % 4 == 1 ? mt.rank == number % mt.size
		    : draw % 4 == 2 ? mt_key(mt.rank, number, 7) % 2 == 0
				    : 1;
	struct side s, r;

	open_side(&s, number, 1, 0);
	open_side(&r, number, 0, holes);
	for (int i = 0; i < mt.size; i++)
		mt_fill(s.buf + s.at[i], (size_t)s.counts[i], mt_key(mt.rank, i, number));
	mt_nap((int)(mt_key(mt.rank, number, 3) % 4 * 300));
	MPI_Alltoallv(s.buf, s.counts, s.at, MPI_BYTE, r.buf, r.counts, r.at, MPI_BYTE,
		      MPI_COMM_WORLD);
	for (int i = 0; i < mt.size; i++)
		mt_expect(r.buf + r.at[i], (size_t)r.counts[i], mt_key(i, mt.rank, number),
			  "call %d, %s, from %d", number, holes ? "holes" : "no holes", i);
	close_side(&s);
	close_side(&r);
}

static void carried(void)
{
	double start = MPI_Wtime();

	for (int i = 0; i < mt.count && mt_go_on(start, mt.seconds); i++)
		once(i);
}

int main(int argc, char **argv)
{
	mt.count = 100;
	mt_init(argc, argv, 2, MPI_THREAD_SINGLE);
	mt_part("carried", carried);
	return mt_done();
}
