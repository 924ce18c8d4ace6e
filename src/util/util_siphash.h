/* SipHash-2-4: a hash that nobody can compute, or make collide, without the key. */
#ifndef WEFT_UTIL_SIPHASH_H
#define WEFT_UTIL_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t util_siphash(const uint64_t key[2], const void *data, size_t len);

#endif
