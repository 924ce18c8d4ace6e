/* CRC32C of short pieces with the crc32 instruction. Private to this folder.
 *
 * State is the inverted, internal one. With `dst` each word is stored as it was
 * loaded, so what was checksummed is what was copied.
 */
#ifndef WEFT_WIRE_CRC32C_X86_H
#define WEFT_WIRE_CRC32C_X86_H

#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define WIRE_SSE42  __attribute__((target("sse4.2,pclmul")))
#define WIRE_INLINE static inline __attribute__((always_inline))

WIRE_INLINE WIRE_SSE42 uint64_t crc32c_word(uint64_t crc, uint8_t *dst, const uint8_t *src)
{
	uint64_t v;

	memcpy(&v, src, sizeof(v));
	if (dst)
		memcpy(dst, &v, sizeof(v));
	return _mm_crc32_u64(crc, v);
}

/* Fewer than eight bytes. */
WIRE_INLINE WIRE_SSE42 uint64_t crc32c_rest(uint64_t crc, uint8_t *dst, const uint8_t *src,
					    size_t len)
{
	if (len & 4) {
		uint32_t v;

		memcpy(&v, src, sizeof(v));
		if (dst) {
			memcpy(dst, &v, sizeof(v));
			dst += 4;
		}
		crc = _mm_crc32_u32((uint32_t)crc, v);
		src += 4;
	}
	if (len & 2) {
		uint16_t v;

		memcpy(&v, src, sizeof(v));
		if (dst) {
			memcpy(dst, &v, sizeof(v));
			dst += 2;
		}
		crc = _mm_crc32_u16((uint32_t)crc, v);
		src += 2;
	}
	if (len & 1) {
		uint8_t v = *src;

		if (dst)
			*dst = v;
		crc = _mm_crc32_u8((uint32_t)crc, v);
	}
	return crc;
}

WIRE_INLINE WIRE_SSE42 uint64_t crc32c_short(uint64_t crc, uint8_t *dst, const uint8_t *src,
					     size_t len)
{
	for (; len >= 8; len -= 8) {
		crc = crc32c_word(crc, dst, src);
		src += 8;
		if (dst)
			dst += 8;
	}
	return crc32c_rest(crc, dst, src, len);
}

#endif
