/* The implementations behind wire_crc32c.h. Private to this folder and its tests.
 *
 * All take and return the public, non-inverted value.
 */
#ifndef WEFT_WIRE_CRC32C_IMPL_H
#define WEFT_WIRE_CRC32C_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wire_crc32c_impl {
	const char *name;
	bool (*usable)(void); /* on this CPU */
	uint32_t (*crc)(uint32_t crc, const void *data, size_t len);
	uint32_t (*copy)(uint32_t crc, void *dst, const void *src, size_t len);
};

extern const struct wire_crc32c_impl wire_crc32c_impl_table;
#if defined(__x86_64__)
extern const struct wire_crc32c_impl wire_crc32c_impl_sse42;
extern const struct wire_crc32c_impl wire_crc32c_impl_avx512;
#elif defined(__aarch64__)
extern const struct wire_crc32c_impl wire_crc32c_impl_arm;
#endif

/* All that this architecture has, fastest first, ended by NULL; the last one
 * before it is usable everywhere. */
extern const struct wire_crc32c_impl *const wire_crc32c_impls[];

#endif
