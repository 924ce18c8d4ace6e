/* Chooses the implementation of CRC32C, once. */
#include "wire_crc32c.h"

#include <stdatomic.h>

#include "wire_crc32c_impl.h"

const struct wire_crc32c_impl *const wire_crc32c_impls[] = {
#if defined(__x86_64__)
	&wire_crc32c_impl_avx512,
	&wire_crc32c_impl_sse42,
#elif defined(__aarch64__)
	&wire_crc32c_impl_arm,
#endif
	&wire_crc32c_impl_table,
	NULL,
};

static _Atomic(const struct wire_crc32c_impl *) chosen;

static const struct wire_crc32c_impl *choose(void)
{
	const struct wire_crc32c_impl *const *i = wire_crc32c_impls;

	while (!(*i)->usable())
		i++;
	atomic_store_explicit(&chosen, *i, memory_order_relaxed);
	return *i;
}

/* Relaxed is enough: what it points to is constant since before main(), and two
 * threads that both choose store the same value. */
static inline const struct wire_crc32c_impl *impl(void)
{
	const struct wire_crc32c_impl *i = atomic_load_explicit(&chosen, memory_order_relaxed);

	return __builtin_expect(i != NULL, 1) ? i : choose();
}

uint32_t wire_crc32c(uint32_t crc, const void *data, size_t len)
{
	return impl()->crc(crc, data, len);
}

uint32_t wire_crc32c_copy(uint32_t crc, void *dst, const void *src, size_t len)
{
	return impl()->copy(crc, dst, src, len);
}

const char *wire_crc32c_name(void)
{
	return impl()->name;
}
