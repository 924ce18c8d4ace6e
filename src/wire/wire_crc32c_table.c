/* CRC32C without help from the CPU: eight bytes per step by eight tables. */
#include "wire_crc32c.h"

#include <endian.h>
#include <string.h>

#include "wire_crc32c_impl.h"

/* Table k maps a byte to its remainder with k zero bytes behind it. Remainders are
 * linear, so eight numbers give a whole table: those of the bytes with one bit set. */
#define ENTRY(i, b0, b1, b2, b3, b4, b5, b6, b7)                                                   \
	(((i)&1 ? (b0) : 0) ^ ((i)&2 ? (b1) : 0) ^ ((i)&4 ? (b2) : 0) ^ ((i)&8 ? (b3) : 0) ^       \
	 ((i)&16 ? (b4) : 0) ^ ((i)&32 ? (b5) : 0) ^ ((i)&64 ? (b6) : 0) ^ ((i)&128 ? (b7) : 0))
#define ROW4(i, ...)                                                                               \
	ENTRY(i, __VA_ARGS__), ENTRY(i + 1, __VA_ARGS__), ENTRY(i + 2, __VA_ARGS__),               \
		ENTRY(i + 3, __VA_ARGS__)
#define ROW16(i, ...)                                                                              \
	ROW4(i, __VA_ARGS__), ROW4(i + 4, __VA_ARGS__), ROW4(i + 8, __VA_ARGS__),                  \
		ROW4(i + 12, __VA_ARGS__)
#define ROW64(i, ...)                                                                              \
	ROW16(i, __VA_ARGS__), ROW16(i + 16, __VA_ARGS__), ROW16(i + 32, __VA_ARGS__),             \
		ROW16(i + 48, __VA_ARGS__)
#define TABLE(...)                                                                                 \
	{                                                                                          \
		ROW64(0, __VA_ARGS__), ROW64(64, __VA_ARGS__), ROW64(128, __VA_ARGS__),            \
			ROW64(192, __VA_ARGS__)                                                    \
	}

static const uint32_t table[8][256] = {
	TABLE(0xf26b8303, 0xe13b70f7, 0xc79a971f, 0x8ad958cf, 0x105ec76f, 0x20bd8ede, 0x417b1dbc,
	      0x82f63b78),
	TABLE(0x13a29877, 0x274530ee, 0x4e8a61dc, 0x9d14c3b8, 0x3fc5f181, 0x7f8be302, 0xff17c604,
	      0xfbc3faf9),
	TABLE(0xa541927e, 0x4f6f520d, 0x9edea41a, 0x38513ec5, 0x70a27d8a, 0xe144fb14, 0xc76580d9,
	      0x8b277743),
	TABLE(0xdd45aab8, 0xbf672381, 0x7b2231f3, 0xf64463e6, 0xe964b13d, 0xd725148b, 0xaba65fe7,
	      0x52a0c93f),
	TABLE(0x38116fac, 0x7022df58, 0xe045beb0, 0xc5670b91, 0x8f2261d3, 0x1ba8b557, 0x37516aae,
	      0x6ea2d55c),
	TABLE(0xef306b19, 0xdb8ca0c3, 0xb2f53777, 0x6006181f, 0xc00c303e, 0x85f4168d, 0x0e045beb,
	      0x1c08b7d6),
	TABLE(0x68032cc8, 0xd0065990, 0xa5e0c5d1, 0x4e2dfd53, 0x9c5bfaa6, 0x3d5b83bd, 0x7ab7077a,
	      0xf56e0ef4),
	TABLE(0x493c7d27, 0x9278fa4e, 0x211d826d, 0x423b04da, 0x847609b4, 0x0d006599, 0x1a00cb32,
	      0x34019664),
};

static inline uint32_t step1(uint32_t crc, uint8_t byte)
{
	return table[0][(crc ^ byte) & 0xff] ^ crc >> 8;
}

static inline uint32_t step8(uint32_t crc, const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	v = le64toh(v) ^ crc;
	return table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^ table[5][v >> 16 & 0xff] ^
	       table[4][v >> 24 & 0xff] ^ table[3][v >> 32 & 0xff] ^ table[2][v >> 40 & 0xff] ^
	       table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
}

uint32_t wire_crc32c_portable(uint32_t crc, const void *data, size_t len)
{
	const uint8_t *p = data;

	crc = ~crc;
	for (; len >= 8; p += 8, len -= 8)
		crc = step8(crc, p);
	while (len--)
		crc = step1(crc, *p++);
	return ~crc;
}

/* The checksum is taken of the copy, so it holds even if the source changes. */
static uint32_t copy_table(uint32_t crc, void *dst, const void *src, size_t len)
{
	uint8_t *d = dst;
	const uint8_t *s = src;

	crc = ~crc;
	for (; len >= 8; d += 8, s += 8, len -= 8) {
		memcpy(d, s, 8);
		crc = step8(crc, d);
	}
	while (len--) {
		*d = *s++;
		crc = step1(crc, *d++);
	}
	return ~crc;
}

static bool always(void)
{
	return true;
}

const struct wire_crc32c_impl wire_crc32c_impl_table = {
	.name = "table",
	.usable = always,
	.crc = wire_crc32c_portable,
	.copy = copy_table,
};
