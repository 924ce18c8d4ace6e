/* Numbers of a command line. What is wrong is said on standard error, as from this program. */
#ifndef WEFT_BENCH_NUMBER_H
#define WEFT_BENCH_NUMBER_H

#include <stdint.h>

/* A number from lo to hi, with an optional K, M or G (powers of two). Returns 0 or -EINVAL. */
int bench_number(const char *program, const char *what, const char *text, uint64_t lo, uint64_t hi,
		 uint64_t *out);
int bench_whole(const char *program, const char *what, const char *text, int lo, int hi, int *out);

#endif
