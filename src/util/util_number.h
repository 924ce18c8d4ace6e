/* Numbers as people write them. */
#ifndef WEFT_UTIL_NUMBER_H
#define WEFT_UTIL_NUMBER_H

#include <stdint.h>

/* A decimal number and nothing else: 0, -EINVAL, or -ERANGE beyond 64 bits. */
int util_decimal(const char *text, uint64_t *value);

/* A number as variables have them, decimal (010 is ten) or behind 0x hexadecimal, and what follows
 * it. 0, -EINVAL or -ERANGE. */
int util_whole(const char *text, const char **end, uint64_t *value);

/* A decimal one, with K, M or G behind it if it is in units of 2^10, 2^20 or 2^30. */
int util_size(const char *text, uint64_t *value);

#endif
