/* CRC32C: RFC 3720 vectors, and every implementation against a bit-by-bit one. */
#include "test_wire.h"

#include <pthread.h>

#include "wire_crc32c.h"
#include "wire_crc32c_impl.h"

#define MAX_ALIGN 64
#define MAX_LEN   1100

/* The definition, one bit at a time. */
static uint32_t by_definition(uint32_t crc, const uint8_t *p, size_t len)
{
	crc = ~crc;
	while (len--) {
		crc ^= *p++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78 : 0);
	}
	return ~crc;
}

/* RFC 3720 appendix B.4 prints the CRC as it is sent, least significant byte
 * first: "aa 36 91 8a" is 0x8a9136aa. */
static const uint8_t scsi_read[48] = {
	0x01, 0xc0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x00, 0x00, 0x04, 0x00,
	0x00, 0x00, 0x00, 0x14, 0x00, 0x00, 0x00, 0x18, 0x28, 0x00, 0x00, 0x00,
	0x00, 0x00, 0x00, 0x00, 0x02, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
};

static void check_vectors(uint32_t (*crc)(uint32_t, const void *, size_t))
{
	uint8_t b[32];

	memset(b, 0, sizeof(b));
	assert_int_equal(crc(0, b, sizeof(b)), 0x8a9136aa);
	memset(b, 0xff, sizeof(b));
	assert_int_equal(crc(0, b, sizeof(b)), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		b[i] = (uint8_t)i;
	assert_int_equal(crc(0, b, sizeof(b)), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		b[i] = (uint8_t)(31 - i);
	assert_int_equal(crc(0, b, sizeof(b)), 0x113fdb5c);
	assert_int_equal(crc(0, scsi_read, sizeof(scsi_read)), 0xd9963a56);
	assert_int_equal(crc(0, "123456789", 9), 0xe3069283); /* the usual check value */
	assert_int_equal(crc(0, b, 0), 0);
	assert_int_equal(crc(0x12345678, b, 0), 0x12345678);
}

static void vectors(void **state)
{
	(void)state;
	check_vectors(wire_crc32c);
	check_vectors(wire_crc32c_portable);
	for (const struct wire_crc32c_impl *const *i = wire_crc32c_impls; *i; i++) {
		if ((*i)->usable())
			check_vectors((*i)->crc);
	}
}

static void portable_is_the_definition(void **state)
{
	uint8_t b[700];

	(void)state;
	rnd_fill(b, sizeof(b));
	for (size_t len = 0; len <= sizeof(b); len++) {
		uint32_t start = (uint32_t)rnd64();

		assert_int_equal(wire_crc32c_portable(start, b, len), by_definition(start, b, len));
	}
}

/* Every alignment and length, input and output ending at a forbidden page, and
 * nothing written before the destination. */
static void check_all_sizes(const struct wire_crc32c_impl *impl)
{
	struct fence in = fence_new(MAX_LEN + MAX_ALIGN), out = fence_new(MAX_LEN + MAX_ALIGN);
	size_t in_size = in.size, out_size = out.size;

	rnd_fill(in.map, in_size);
	for (size_t align = 0; align < MAX_ALIGN; align++) {
		for (size_t len = 0; len <= MAX_LEN; len++) {
			const uint8_t *src = in.map + in_size - align - len;
			size_t shift = rnd_below(MAX_ALIGN);
			uint8_t *dst = out.map + out_size - shift - len;
			uint32_t start = (uint32_t)rnd64();
			uint32_t want = wire_crc32c_portable(start, src, len);

			assert_int_equal(impl->crc(start, src, len), want);
			memset(dst - 8, 0xa5, len + 8 + shift);
			assert_int_equal(impl->copy(start, dst, src, len), want);
			assert_memory_equal(dst, src, len);
			for (int i = 1; i <= 8; i++)
				assert_int_equal(dst[-i], 0xa5);
			for (size_t i = 0; i < shift; i++)
				assert_int_equal(dst[len + i], 0xa5);
		}
	}
	fence_free(&in);
	fence_free(&out);
}

static void all_alignments_and_lengths(void **state)
{
	(void)state;
	for (const struct wire_crc32c_impl *const *i = wire_crc32c_impls; *i; i++) {
		if ((*i)->usable())
			check_all_sizes(*i);
		else
			printf("%s: not on this CPU\n", (*i)->name);
	}
}

static void long_random(void **state)
{
	size_t max = 200000;
	uint8_t *b = malloc(max), *c = malloc(max);

	(void)state;
	assert_non_null(b);
	assert_non_null(c);
	rnd_fill(b, max);
	for (int round = 0; round < 300; round++) {
		size_t at = rnd_below(max), len = rnd_below(max - at + 1);
		uint32_t start = (uint32_t)rnd64();
		uint32_t want = wire_crc32c_portable(start, b + at, len);

		for (const struct wire_crc32c_impl *const *i = wire_crc32c_impls; *i; i++) {
			if (!(*i)->usable())
				continue;
			assert_int_equal((*i)->crc(start, b + at, len), want);
			memset(c, 0, len);
			assert_int_equal((*i)->copy(start, c, b + at, len), want);
			assert_memory_equal(c, b + at, len);
		}
	}
	free(b);
	free(c);
}

static void chained_pieces(void **state)
{
	uint8_t b[5000], c[5000];

	(void)state;
	rnd_fill(b, sizeof(b));
	for (int round = 0; round < 500; round++) {
		size_t len = rnd_below(sizeof(b) + 1);
		uint32_t crc = 0, copied = 0;

		for (size_t at = 0; at < len;) {
			size_t n = 1 + rnd_below(rnd_below(4) ? 64 : 2048);

			if (n > len - at)
				n = len - at;
			crc = wire_crc32c(crc, b + at, n);
			copied = wire_crc32c_copy(copied, c + at, b + at, n);
			at += n;
		}
		assert_int_equal(crc, wire_crc32c_portable(0, b, len));
		assert_int_equal(copied, crc);
		assert_memory_equal(c, b, len);
	}
}

static void *first_use(void *arg)
{
	uint8_t b[512] = {0};

	*(uint32_t *)arg = wire_crc32c(0, b, sizeof(b));
	return NULL;
}

/* Must be the first test: threads that race to choose must all be right. */
static void first_use_by_many_threads(void **state)
{
	uint8_t b[512] = {0};
	pthread_t t[8];
	uint32_t got[8];

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&t[i], NULL, first_use, &got[i]), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(t[i], NULL);
		assert_int_equal(got[i], by_definition(0, b, sizeof(b)));
	}
}

static void has_a_name(void **state)
{
	(void)state;
	assert_true(strlen(wire_crc32c_name()) > 0);
	printf("using %s\n", wire_crc32c_name());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_use_by_many_threads),
		cmocka_unit_test(vectors),
		cmocka_unit_test(portable_is_the_definition),
		cmocka_unit_test(all_alignments_and_lengths),
		cmocka_unit_test(long_random),
		cmocka_unit_test(chained_pieces),
		cmocka_unit_test(has_a_name),
	};

	rnd_seed();
	return cmocka_run_group_tests_name("wire.crc32c", tests, NULL, NULL);
}
