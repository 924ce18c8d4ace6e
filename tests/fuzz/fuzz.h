/* What the fuzz targets share.
 *
 * A target is LLVMFuzzerTestOneInput. It checks properties, not only that nothing
 * crashes: HOLDS() fails in every build flavour. The bytes under test always stand
 * in a heap block of exactly their size, so that a read beyond them is an error
 * that AddressSanitizer reports.
 */
#ifndef WEFT_FUZZ_H
#define WEFT_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOLDS(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #cond);  \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static inline uint8_t *exact_copy(const void *data, size_t size)
{
	uint8_t *p = calloc(1, size);

	HOLDS(p || size == 0);
	if (size)
		memcpy(p, data, size);
	return p;
}

#endif
