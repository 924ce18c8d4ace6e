/* CRC32C with the crc32 instruction of SSE4.2.
 *
 * The instruction takes three cycles but a new one can start in each, so long
 * input is cut into three streams that are checksummed side by side. A carry-less
 * multiplication then moves each partial remainder to where its stream ends:
 * clmul(c, x^(n-33)) put through crc32 once more is c * x^n, for n bits. */
#include "wire_crc32c_impl.h"

#if defined(__x86_64__)
#include "wire_crc32c_x86.h"

/* Bytes per stream, and x^(8n-33) modulo the polynomial, bit-reflected, for n of
 * one and of two streams. */
struct cut {
	size_t stream;
	uint32_t by_one, by_two;
};
static const struct cut cut_long = {1024, 0x170076fa, 0xa51b6135};
static const struct cut cut_short = {128, 0x0d3b6092, 0xb9e02b86};

WIRE_INLINE WIRE_SSE42 uint64_t mul(uint64_t crc, uint32_t k)
{
	__m128i a = _mm_cvtsi64_si128((long long)crc), b = _mm_cvtsi32_si128((int)k);

	return (uint64_t)_mm_cvtsi128_si64(_mm_clmulepi64_si128(a, b, 0));
}

WIRE_INLINE WIRE_SSE42 uint64_t three(uint64_t crc, uint8_t *dst, const uint8_t *src,
				      const struct cut *cut)
{
	size_t n = cut->stream;
	uint64_t a = crc, b = 0, c = 0;

	for (size_t i = 0; i < n; i += 8) {
		a = crc32c_word(a, dst ? dst + i : NULL, src + i);
		b = crc32c_word(b, dst ? dst + n + i : NULL, src + n + i);
		c = crc32c_word(c, dst ? dst + 2 * n + i : NULL, src + 2 * n + i);
	}
	return _mm_crc32_u64(0, mul(a, cut->by_two) ^ mul(b, cut->by_one)) ^ c;
}

WIRE_INLINE WIRE_SSE42 uint32_t run(uint32_t start, uint8_t *dst, const uint8_t *src, size_t len)
{
	uint64_t crc = (uint32_t)~start;

	while (len >= 3 * cut_short.stream) {
		const struct cut *cut = len >= 3 * cut_long.stream ? &cut_long : &cut_short;
		size_t n = 3 * cut->stream;

		crc = three(crc, dst, src, cut);
		src += n;
		len -= n;
		if (dst)
			dst += n;
	}
	return ~(uint32_t)crc32c_short(crc, dst, src, len);
}

static WIRE_SSE42 uint32_t crc_sse42(uint32_t crc, const void *data, size_t len)
{
	return run(crc, NULL, data, len);
}

static WIRE_SSE42 uint32_t copy_sse42(uint32_t crc, void *dst, const void *src, size_t len)
{
	return run(crc, dst, src, len);
}

static bool usable(void)
{
	__builtin_cpu_init(); /* may run before the constructors */
	return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("pclmul");
}

const struct wire_crc32c_impl wire_crc32c_impl_sse42 = {
	.name = "sse4.2+pclmul",
	.usable = usable,
	.crc = crc_sse42,
	.copy = copy_sse42,
};
#endif
