#include "util_rand.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/types.h>

void util_rand_shuffle(struct util_rand *r, uint32_t *a, size_t n)
{
	for (size_t i = n; i-- > 1;) {
		size_t j = (size_t)util_rand_below(r, i + 1);
		uint32_t t = a[i];

		a[i] = a[j];
		a[j] = t;
	}
}

void util_rand_bytes(struct util_rand *r, void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len > 0) {
		uint64_t v = util_rand_next(r);

		for (int i = 0; i < 8 && len > 0; i++, len--, v >>= 8)
			*p++ = (uint8_t)v;
	}
}

/* Keys are taken from a per-thread buffer: no lock, so a fork can not leave one
 * held in the child. A copy of the buffer would hand the child the parent's bytes;
 * therefore each buffer carries the generation of the process that filled it, and
 * the generation lives in a page that the kernel zeroes in every child. A process
 * id would not do: parent and child can both be 1, each in its own namespace. */
#define POOL_BYTES 512 /* one getrandom(2) for 128 keys of 32 bits */

struct pool {
	uint64_t generation;
	size_t avail;
	uint8_t bytes[POOL_BYTES];
};

static _Thread_local struct pool pool;
static _Atomic(uint64_t) *generation; /* NULL: the kernel can not wipe, do not buffer */
static pthread_once_t generation_once = PTHREAD_ONCE_INIT;

static void generation_init(void)
{
#ifdef MADV_WIPEONFORK
	void *page = mmap(NULL, sizeof(*generation), PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (page == MAP_FAILED)
		return;
	/* Rounded up by the kernel to the page that it is. */
	if (madvise(page, sizeof(*generation), MADV_WIPEONFORK)) {
		munmap(page, sizeof(*generation));
		return;
	}
	generation = page;
#endif
}

static int kernel_random(void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len > 0) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0) {
			if (errno == EINTR)
				continue;
			return -errno;
		}
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The generation of this process; the first thread that asks chooses it. */
static int generation_get(uint64_t *gen)
{
	uint64_t seen = atomic_load(generation);
	uint64_t fresh;
	int ret;

	if (seen == 0) {
		ret = kernel_random(&fresh, sizeof(fresh));
		if (ret)
			return ret;
		fresh |= 1; /* zero means "just forked" */
		if (atomic_compare_exchange_strong(generation, &seen, fresh))
			seen = fresh;
	}
	*gen = seen;
	return 0;
}

int util_random_key(void *buf, size_t len)
{
	uint64_t gen;
	int ret;

	pthread_once(&generation_once, generation_init);
	if (!generation || len > POOL_BYTES)
		return kernel_random(buf, len);

	ret = generation_get(&gen);
	if (ret)
		return ret;
	if (pool.generation != gen || pool.avail < len) {
		pool.avail = 0;
		ret = kernel_random(pool.bytes, POOL_BYTES);
		if (ret)
			return ret;
		pool.avail = POOL_BYTES;
		pool.generation = gen;
	}
	pool.avail -= len;
	memcpy(buf, pool.bytes + pool.avail, len);
	/* What was handed out is nobody else's to find. */
	memset(pool.bytes + pool.avail, 0, len);
	return 0;
}
