#include "bench_copy.h"

#include <string.h>

#include "bench_sample.h"
#include "bench_time.h"

enum { TIMES = 31, MANY = 1000, BYTES = 1 << 18 };

double bench_copy_time(void *to, const void *from, size_t size)
{
	size_t many = size * MANY <= BYTES ? MANY : size < BYTES ? BYTES / size : 1;
	struct bench_summary s;
	double t[TIMES];

	for (int i = 0; i < TIMES; i++) {
		uint64_t begin = bench_now();

		for (size_t k = 0; k < many; k++) {
			memcpy(to, from, size);
			/* Or the compiler may find out that nobody reads it. */
			__asm__ volatile("" : : "r"(to) : "memory");
		}
		t[i] = (double)(bench_now() - begin) / (double)many / 1e9;
	}
	bench_summarize(t, TIMES, &s);
	return s.median;
}
