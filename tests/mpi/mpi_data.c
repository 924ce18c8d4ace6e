/* Memory with guards, patterns, and what a receive has brought. */
#include "mpi_test.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, GUARD_BYTE = 0xa5, POISON = 0xee };

/* ---- memory ---- */

/* In front of what is given out, 64 bytes so that alignment stays. */
struct head {
	size_t len;
	uint8_t guard[GUARD - sizeof(size_t)];
};

void *mt_alloc(size_t len)
{
	struct head *h = malloc(sizeof(*h) + len + GUARD);

	if (!h) {
		fprintf(stderr, "rank %d: no memory for %zu bytes\n", mt.rank, len);
		MPI_Abort(MPI_COMM_WORLD, 2);
		abort();
	}
	h->len = len;
	memset(h->guard, GUARD_BYTE, sizeof(h->guard));
	memset((uint8_t *)(h + 1) + len, GUARD_BYTE, GUARD);
	return h + 1;
}

static int intact(const uint8_t *p, size_t len)
{
	while (len && *p == GUARD_BYTE) {
		p++;
		len--;
	}
	return len == 0;
}

void mt_free(void *p)
{
	struct head *h = (struct head *)p - 1;

	if (!p)
		return;
	CHECK(intact(h->guard, sizeof(h->guard)), "written before a buffer");
	CHECK(intact((uint8_t *)p + h->len, GUARD), "written beyond a buffer of %zu bytes", h->len);
	free(h);
}

/* ---- patterns ---- */

static uint64_t mix(uint64_t z)
{
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint64_t mt_key(int from, int to, int step)
{
	return mix(mix(mix((uint64_t)(uint32_t)from + 1) + (uint32_t)to) + (uint32_t)step);
}

static uint64_t word(uint64_t key, size_t at)
{
	uint64_t x = (key + at) * UTIL_RAND_STEP;

	return x ^ (x >> 29);
}

void mt_fill(void *buf, size_t len, uint64_t key)
{
	uint8_t *p = buf;

	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t w = word(key, at);

		memcpy(p + at, &w, len - at < sizeof(w) ? len - at : sizeof(w));
	}
}

void mt_poison(void *buf, size_t len)
{
	memset(buf, POISON, len);
}

size_t mt_poisoned(const void *buf, size_t len)
{
	const uint8_t *p = buf;
	size_t n = 0;

	while (n < len && p[n] == POISON)
		n++;
	return n;
}

/* The first byte that differs, or len. */
static size_t differs(const uint8_t *p, size_t len, uint64_t key)
{
	for (size_t at = 0; at < len; at += sizeof(uint64_t)) {
		uint64_t w = word(key, at);
		size_t n = len - at < sizeof(w) ? len - at : sizeof(w);
		const uint8_t *want = (const uint8_t *)&w;

		if (memcmp(p + at, want, n) == 0)
			continue;
		while (p[at] == *want) {
			at++;
			want++;
		}
		return at;
	}
	return len;
}

static size_t wrong_bytes(const uint8_t *p, size_t len, uint64_t key)
{
	size_t n = 0;

	for (size_t at = 0; at < len; at++) {
		uint64_t w = word(key, at & ~(size_t)7);

		n += p[at] != ((const uint8_t *)&w)[at & 7];
	}
	return n;
}

void mt_expect(const void *buf, size_t len, uint64_t key, const char *fmt, ...)
{
	size_t at = differs(buf, len, key);
	char what[120];
	const char *note = "";
	va_list ap;

	if (at == len) {
		mt_good();
		return;
	}
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	if (mt_poisoned((const uint8_t *)buf + at, len - at) == len - at)
		note = ", nothing was written from there on";
	mt_bad("data", 0, "%s: %zu bytes, wrong from byte %zu on, %zu of them%s", what, len, at,
	       wrong_bytes(buf, len, key), note);
}

void mt_expect_status(const MPI_Status *st, int source, int tag, size_t bytes, const char *what)
{
	int count = -1;

	MPI_Get_count(st, MPI_BYTE, &count);
	CHECK(st->MPI_SOURCE == source && st->MPI_TAG == tag && (size_t)count == bytes,
	      "%s: status has source %d, tag %d, %d bytes instead of %d, %d, %zu", what,
	      st->MPI_SOURCE, st->MPI_TAG, count, source, tag, bytes);
}

static int ascending(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

int mt_sizes(size_t *sizes, int room, size_t max)
{
	static const size_t odd[] = {0, 12345, 23170, 100003, 299993, 777777};
	int n = 0, kept = 0;

	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd) && n < room; i++)
		sizes[n++] = odd[i];
	for (size_t p = 1; p <= max && n + 3 <= room; p *= 2) {
		sizes[n++] = p - 1;
		sizes[n++] = p;
		sizes[n++] = p + 1;
	}
	qsort(sizes, (size_t)n, sizeof(*sizes), ascending);
	for (int i = 0; i < n; i++)
		if (sizes[i] <= max && (kept == 0 || sizes[i] != sizes[kept - 1]))
			sizes[kept++] = sizes[i];
	return kept;
}
