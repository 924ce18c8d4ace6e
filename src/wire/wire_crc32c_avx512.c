/* CRC32C by folding with VPCLMULQDQ on 512-bit registers.
 *
 * After Gopal et al., "Fast CRC Computation for Generic Polynomials Using
 * PCLMULQDQ Instruction" (Intel, 2009). Each 128-bit lane is a polynomial that is
 * carried forward by D bits, to where other data of the same lane stands, and added
 * there. In bit-reflected order the low half needs x^(D+31), the high half x^(D-33),
 * both modulo the CRC's polynomial and reflected. What remains at the end is short
 * enough for the crc32 instruction, which also does all short input, where setting
 * up costs more than folding gains. */
#include "wire_crc32c_impl.h"

#if defined(__x86_64__)
#include "wire_crc32c_x86.h"

#define WIRE_AVX512 __attribute__((target("avx512f,avx512vl,avx512dq,vpclmulqdq,sse4.2,pclmul")))

/* {low half's factor, high half's factor} for a distance in bits. */
#define FOLD_2048 0xdcb17aa4, 0xb9e02b86
#define FOLD_1024 0x6992cea2, 0x0d3b6092
#define FOLD_512  0x740eef02, 0x9e4addf8
#define FOLD_384  0x1c291d04, 0xddc0152b
#define FOLD_256  0x3da6d0cb, 0xba4fc28e
#define FOLD_128  0xf20c0dfe, 0x493c7d27

#define LANES(...) _mm512_setr_epi64(__VA_ARGS__)
#define FACTORS(d) LANES(d, d, d, d)

#define STRIDE   256 /* four registers */
#define WORTH_IT 128 /* below, the crc32 instruction alone is as fast (measured on Zen 4) */

WIRE_INLINE WIRE_AVX512 __m512i fold(__m512i acc, __m512i k, __m512i add)
{
	__m512i lo = _mm512_clmulepi64_epi128(acc, k, 0x00);
	__m512i hi = _mm512_clmulepi64_epi128(acc, k, 0x11);

	return _mm512_ternarylogic_epi64(lo, hi, add, 0x96); /* lo ^ hi ^ add */
}

WIRE_INLINE WIRE_AVX512 __m512i take(uint8_t *dst, const uint8_t *src, size_t at)
{
	__m512i v = _mm512_loadu_si512(src + at);

	if (dst)
		_mm512_storeu_si512(dst + at, v);
	return v;
}

/* Four lanes into one, and that into 32 bits. */
WIRE_INLINE WIRE_AVX512 uint64_t reduce(__m512i acc)
{
	/* Lane i goes 3 - i lanes forward; the last stays where it is, outside. */
	const __m512i k = LANES(FOLD_384, FOLD_256, FOLD_128, 0, 0);
	__m512i f = fold(acc, k, _mm512_setzero_si512());
	__m128i r = _mm512_extracti64x2_epi64(acc, 3);
	uint64_t crc;

	r = _mm_ternarylogic_epi64(r, _mm512_castsi512_si128(f), _mm512_extracti64x2_epi64(f, 1),
				   0x96);
	r = _mm_xor_si128(r, _mm512_extracti64x2_epi64(f, 2));
	crc = _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(r));
	return _mm_crc32_u64(crc, (uint64_t)_mm_extract_epi64(r, 1));
}

/* All whole 64-byte pieces of at least one, beginning with the state in the first
 * 32 bits of the input. */
WIRE_INLINE WIRE_AVX512 uint64_t bulk(uint32_t crc, uint8_t *dst, const uint8_t *src, size_t len)
{
	const __m512i k512 = FACTORS(FOLD_512);
	__m512i a, b, c, d;
	size_t at = 64;

	a = _mm512_xor_si512(take(dst, src, 0),
			     _mm512_zextsi128_si512(_mm_cvtsi32_si128((int)crc)));
	if (len >= STRIDE) {
		const __m512i k2048 = FACTORS(FOLD_2048), k1024 = FACTORS(FOLD_1024);

		b = take(dst, src, 64);
		c = take(dst, src, 128);
		d = take(dst, src, 192);
		for (at = STRIDE; at + STRIDE <= len; at += STRIDE) {
			a = fold(a, k2048, take(dst, src, at));
			b = fold(b, k2048, take(dst, src, at + 64));
			c = fold(c, k2048, take(dst, src, at + 128));
			d = fold(d, k2048, take(dst, src, at + 192));
		}
		c = fold(a, k1024, c);
		d = fold(b, k1024, d);
		a = fold(c, k512, d);
	}
	for (; at + 64 <= len; at += 64)
		a = fold(a, k512, take(dst, src, at));
	return reduce(a);
}

WIRE_INLINE WIRE_AVX512 uint32_t run(uint32_t start, uint8_t *dst, const uint8_t *src, size_t len)
{
	uint64_t crc = (uint32_t)~start;

	if (len >= WORTH_IT) {
		size_t done = len & ~(size_t)63;

		crc = bulk((uint32_t)crc, dst, src, len);
		src += done;
		len -= done;
		if (dst)
			dst += done;
	}
	return ~(uint32_t)crc32c_short(crc, dst, src, len);
}

static WIRE_AVX512 uint32_t crc_avx512(uint32_t crc, const void *data, size_t len)
{
	return run(crc, NULL, data, len);
}

static WIRE_AVX512 uint32_t copy_avx512(uint32_t crc, void *dst, const void *src, size_t len)
{
	return run(crc, dst, src, len);
}

static bool usable(void)
{
	__builtin_cpu_init(); /* may run before the constructors */
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("vpclmulqdq") &&
	       __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.2");
}

const struct wire_crc32c_impl wire_crc32c_impl_avx512 = {
	.name = "avx512+vpclmulqdq",
	.usable = usable,
	.crc = crc_avx512,
	.copy = copy_avx512,
};
#endif
