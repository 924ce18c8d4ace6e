/* Messages from many buffers, of which some are used more often than others: what a stack gains
 * that knows its buffers, and what it costs a program that has no favourites.
 *
 * spectrum  of 1,000 buffers the i-th is used i times (thesis, section 5.5.1: figures 5.6 and 5.8).
 *           The order is a list of all 500,500 uses, shuffled by Fisher and Yates' method with
 *           random numbers that are the same in every run and on all ranks. A run that is cut short
 *           has used all of them in proportion.
 * reuse     either the buffer of the message before, or one that has not been used yet (section
 *           3.5.2: figure 3.12): of 0 % reuse none is ever used again, of 50 % each one twice, of
 *           100 % there is but one. Both ranks do so, for what they send and what they receive.
 *
 * No address that was used for one row is used for another.
 */
#include "mpi_perf.h"

#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, LINE = 64 };

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static unsigned char *fresh(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED) {
		fprintf(stderr, "weft-mpi-perf: no memory for %zu bytes\n", bytes);
		MPI_Abort(MPI_COMM_WORLD, 1);
	}
	return p;
}

/* The memory goes, the addresses stay taken until the end of the process. */
static void spent(unsigned char *p, size_t bytes)
{
	madvise(p, bytes, MADV_DONTNEED);
}

/* Connections are up and code is in the caches, without any of the buffers; seconds of one. */
static double warm_up(struct mp *mp, enum mp_way way, size_t size)
{
	int warm = mp_warmup(mp);
	double from;

	MPI_Barrier(MPI_COMM_WORLD);
	from = mp_now();
	for (int i = 0; i < warm; i++)
		mp_move(mp, way, mp->out, mp->in, size);
	return (mp_now() - from) / warm;
}

/* ---- spectrum ---- */

enum { BUFFERS = 1000 };
const char *const mp_layouts[] = {"packed", "pages"};

struct spectrum {
	enum mp_way way;
	int buffers;
	uint16_t *order;
	int uses;
};

static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

static void make_order(struct mp *mp, struct spectrum *s)
{
	int all = s->buffers * (s->buffers + 1) / 2, n = 0;
	uint64_t seed = 0x9e3779b97f4a7c15;

	s->order = mp_room((size_t)all * sizeof(*s->order));
	for (int i = 0; i < s->buffers; i++)
		for (int k = 0; k <= i; k++)
			s->order[n++] = (uint16_t)i;
	for (int i = all - 1; i > 0; i--) {
		int k = (int)(next_random(&seed) % ((uint64_t)i + 1));
		uint16_t of = s->order[i];

		s->order[i] = s->order[k];
		s->order[k] = of;
	}
	s->uses = all < mp_iterations(mp) ? all : mp_iterations(mp);
}

static void spectrum_row(struct mp *mp, const struct spectrum *s, size_t size, int layout, int n)
{
	struct mp_cell cells[4 + MP_SUMMARY] = {
		MP_INT("size", size),
		MP_TEXT("by", mp_ways[s->way]),
		MP_TEXT("layout", mp_layouts[layout]),
		MP_INT("buffers", s->buffers),
	};

	mp_summary_us(cells + 4, mp->samples[0], n);
	mp_row(mp, cells, 4 + MP_SUMMARY);
}

static bool spectrum_one(struct mp *mp, const struct spectrum *s, size_t size, int layout, int rows)
{
	size_t stride = layout == MP_PAGES ? round_up(size, PAGE) : size;
	size_t bytes = stride * (size_t)s->buffers;
	unsigned char *buf = fresh(bytes);
	int n = mp_fit(mp, s->uses, warm_up(mp, s->way, size), rows);

	memset(buf, 1, bytes); /* or the first use of a page would be that of the kernel */
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < n; i++)
		mp->samples[0][i] = mp_move(mp, s->way, buf + s->order[i] * stride, mp->in, size);
	for (int i = 0; n && i < s->buffers; i++)
		mp_prove(mp, s->way, buf + (size_t)i * stride, mp->in, size, (unsigned int)i);
	spent(buf, bytes);
	if (n)
		spectrum_row(mp, s, size, layout, n);
	return n > 0;
}

/* What a word stands for; the first if there is none. */
static int word_of(const char *const *words, int n, const char *word)
{
	for (int i = 0; word && i < n; i++)
		if (!strcmp(words[i], word))
			return i;
	return 0;
}

int mp_spectrum(struct mp *mp)
{
	struct spectrum s = {.way = (enum mp_way)word_of(mp_ways, MP_WAYS, mp->o.by),
			     .buffers = mp->o.buffers ? mp->o.buffers : BUFFERS};
	int each = mp->o.layout ? 1 : MP_LAYOUTS,
	    first = word_of(mp_layouts, MP_LAYOUTS, mp->o.layout);
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes) * each;

	make_order(mp, &s);
	mp_window_open(mp, s.way, sizes[count / each - 1]);
	for (int i = 0; i < count; i++)
		if (!spectrum_one(mp, &s, sizes[i / each], first + i % each, count - i))
			break;
	mp_window_close(mp);
	free(s.order);
	return 0;
}

/* ---- reuse ---- */

#define REUSE_BYTES ((size_t)256 << 20) /* of a row, on each rank and each way */

struct reuse {
	size_t size, stride;
	int percent;
	unsigned char *out, *in;
};

/* Which buffer the i-th message uses. */
static size_t buffer_of(const struct reuse *r, int i)
{
	return (size_t)i * (size_t)(100 - r->percent) / 100;
}

static unsigned int number(int rank, size_t buffer)
{
	return 2 * (unsigned int)buffer + (unsigned int)rank;
}

/* Everything that was timed is looked at: a buffer still has what has come last. */
static void reuse_check(struct mp *mp, const struct reuse *r, size_t buffers)
{
	for (size_t i = 0; i < buffers; i++)
		mp_verify(mp, r->in + i * r->stride, r->size, number(!mp->rank, i));
}

static void reuse_row(struct mp *mp, const struct reuse *r, int n)
{
	struct mp_cell cells[3 + MP_SUMMARY] = {
		MP_INT("size", r->size),
		MP_INT("reuse_pct", r->percent),
		MP_INT("buffers", buffer_of(r, n - 1) + 1),
	};

	mp_summary_us(cells + 3, mp->samples[0], n);
	mp_row(mp, cells, 3 + MP_SUMMARY);
}

static bool reuse_one(struct mp *mp, struct reuse *r, int rows)
{
	int n = mp_fit(mp, mp_iterations(mp), warm_up(mp, MP_SEND, r->size), rows);
	size_t buffers, bytes;

	r->stride = round_up(r->size, LINE);
	while (n > 1 && (buffer_of(r, n - 1) + 1) * r->stride > REUSE_BYTES)
		n--;
	if (!n)
		return false;
	buffers = buffer_of(r, n - 1) + 1;
	bytes = buffers * r->stride;
	r->out = fresh(bytes);
	r->in = fresh(bytes);
	memset(r->in, 0, bytes);
	for (size_t i = 0; i < buffers; i++)
		mp_fill(r->out + i * r->stride, r->size, number(mp->rank, i));
	MPI_Barrier(MPI_COMM_WORLD);
	for (int i = 0; i < n; i++) {
		size_t at = buffer_of(r, i) * r->stride;

		mp->samples[0][i] = mp_move(mp, MP_SEND, r->out + at, r->in + at, r->size);
	}
	reuse_check(mp, r, buffers);
	spent(r->out, bytes);
	spent(r->in, bytes);
	reuse_row(mp, r, n);
	return true;
}

int mp_reuse(struct mp *mp)
{
	static const int percents[] = {0, 50, 100};
	int each = mp->o.percent < 0 ? (int)(sizeof(percents) / sizeof(percents[0])) : 1;
	size_t sizes[MP_SIZES];
	int count = mp_sizes(mp, sizes) * each;

	for (int i = 0; i < count; i++) {
		struct reuse r = {
			.size = sizes[i / each],
			.percent = mp->o.percent < 0 ? percents[i % each] : mp->o.percent,
		};

		if (!reuse_one(mp, &r, count - i))
			break;
	}
	return 0;
}
