/* CRC32C with the CRC instructions of ARMv8. */
#include "wire_crc32c_impl.h"

#if defined(__aarch64__)
#include <endian.h>
#include <string.h>
#include <sys/auxv.h>

#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif

/* In assembly, because arm_acle.h offers these only if the whole file is compiled
 * for a CPU that has them. */
static inline uint32_t step8(uint32_t crc, uint64_t v)
{
	__asm__(".arch_extension crc\n\tcrc32cx %w0, %w0, %x1" : "+r"(crc) : "r"(le64toh(v)));
	return crc;
}

static inline uint32_t step1(uint32_t crc, uint8_t v)
{
	__asm__(".arch_extension crc\n\tcrc32cb %w0, %w0, %w1" : "+r"(crc) : "r"((uint32_t)v));
	return crc;
}

static uint32_t crc_arm(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t v;

		memcpy(&v, p, sizeof(v));
		crc = step8(crc, v);
	}
	while (len--)
		crc = step1(crc, *p++);
	return ~crc;
}

static uint32_t copy_arm(uint32_t crc, void *dst, const void *src, size_t len)
{
	const uint8_t *s = src;
	uint8_t *d = dst;

	crc = ~crc;
	for (; len >= 8; s += 8, d += 8, len -= 8) {
		uint64_t v;

		memcpy(&v, s, sizeof(v));
		memcpy(d, &v, sizeof(v));
		crc = step8(crc, v);
	}
	while (len--) {
		uint8_t v = *s++;

		*d++ = v;
		crc = step1(crc, v);
	}
	return ~crc;
}

static bool usable(void)
{
	return getauxval(AT_HWCAP) & HWCAP_CRC32;
}

const struct wire_crc32c_impl wire_crc32c_impl_arm = {
	.name = "armv8",
	.usable = usable,
	.crc = crc_arm,
	.copy = copy_arm,
};
#endif
