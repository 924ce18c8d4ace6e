/* CRC32C with the CRC instructions of ARMv8. */
#include "wire_crc32c_impl.h"

#if defined(__aarch64__)
#include <arm_acle.h>
#include <endian.h>
#include <string.h>
#include <sys/auxv.h>

#ifndef HWCAP_CRC32
#define HWCAP_CRC32 (1 << 7)
#endif
#if defined(__clang__)
#define WIRE_CRC __attribute__((target("crc")))
#else
#define WIRE_CRC __attribute__((target("+crc")))
#endif

static WIRE_CRC uint32_t crc_arm(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (; len >= 8; p += 8, len -= 8) {
		uint64_t v;

		memcpy(&v, p, sizeof(v));
		crc = __crc32cd(crc, le64toh(v));
	}
	while (len--)
		crc = __crc32cb(crc, *p++);
	return ~crc;
}

static WIRE_CRC uint32_t copy_arm(uint32_t crc, void *dst, const void *src, size_t len)
{
	const uint8_t *s = src;
	uint8_t *d = dst;

	crc = ~crc;
	for (; len >= 8; s += 8, d += 8, len -= 8) {
		uint64_t v;

		memcpy(&v, s, sizeof(v));
		memcpy(d, &v, sizeof(v));
		crc = __crc32cd(crc, le64toh(v));
	}
	while (len--) {
		uint8_t v = *s++;

		*d++ = v;
		crc = __crc32cb(crc, v);
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
