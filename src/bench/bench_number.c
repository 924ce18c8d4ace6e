#include "bench_number.h"

#include <errno.h>
#include <stdio.h>
#include "util_number.h"

int bench_number(const char *program, const char *what, const char *text, uint64_t lo, uint64_t hi,
		 uint64_t *out)
{
	uint64_t v;

	if (util_size(text, &v) || v < lo || v > hi) {
		fprintf(stderr, "%s: %s: `%s` is not a number from %llu to %llu\n", program, what,
			text, (unsigned long long)lo, (unsigned long long)hi);
		return -EINVAL;
	}
	*out = v;
	return 0;
}

int bench_whole(const char *program, const char *what, const char *text, int lo, int hi, int *out)
{
	uint64_t v;
	int ret = bench_number(program, what, text, (uint64_t)lo, (uint64_t)hi, &v);

	if (!ret)
		*out = (int)v;
	return ret;
}
