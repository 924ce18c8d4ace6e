/* How fast each CRC32C implementation of this machine is, hot in the cache.
 * Prints GB/s and, for short pieces, nanoseconds per call. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire_crc32c.h"
#include "wire_crc32c_impl.h"

static volatile uint32_t sink;

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec * 1e-9;
}

enum what { CRC, COPY, MEMCPY };

static double seconds_per_call(const struct wire_crc32c_impl *impl, enum what what, uint8_t *dst,
			       const uint8_t *src, size_t len)
{
	size_t rounds = (64u << 20) / (len + 64) + 1;
	double best = 1e9;

	for (int attempt = 0; attempt < 7; attempt++) {
		double t = now();

		for (size_t i = 0; i < rounds; i++) {
			if (what == CRC)
				sink = impl->crc(sink, src, len);
			else if (what == COPY)
				sink = impl->copy(sink, dst, src, len);
			else
				memcpy(dst, src, len);
			__asm__ volatile("" ::"r"(dst), "r"(src) : "memory");
		}
		t = (now() - t) / (double)rounds;
		if (t < best)
			best = t;
	}
	return best;
}

static void line(const char *name, const struct wire_crc32c_impl *impl, enum what what, uint8_t *d,
		 const uint8_t *s)
{
	static const size_t sizes[] = {8, 24, 64, 128, 256, 1024, 4096, 32768, 1 << 20};

	printf("%-26s", name);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		double t = seconds_per_call(impl, what, d, s, sizes[i]);

		printf(" %6.1f/%-7.1f", (double)sizes[i] / t * 1e-9, t * 1e9);
	}
	printf("\n");
}

int main(void)
{
	uint8_t *s = aligned_alloc(64, 1 << 20), *d = aligned_alloc(64, 1 << 20);
	char name[64];

	if (!s || !d)
		return 1;
	memset(s, 1, 1 << 20);
	memset(d, 2, 1 << 20);
	printf("%-26s %-14s %-14s %-14s %-14s %-14s %-14s %-14s %-14s %-14s\n",
	       "GB/s / ns per call", "8 B", "24 B", "64 B", "128 B", "256 B", "1 KB", "4 KB",
	       "32 KB", "1 MB");
	for (const struct wire_crc32c_impl *const *i = wire_crc32c_impls; *i; i++) {
		if (!(*i)->usable())
			continue;
		snprintf(name, sizeof(name), "%s crc", (*i)->name);
		line(name, *i, CRC, d, s);
		snprintf(name, sizeof(name), "%s copy", (*i)->name);
		line(name, *i, COPY, d, s);
	}
	line("memcpy", NULL, MEMCPY, d, s);
	free(s);
	free(d);
	return 0;
}
