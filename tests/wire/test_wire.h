/* What the tests of this folder share: cmocka, seeded random numbers, and memory
 * that faults when it is read or written beyond its end, sanitizer or not. */
#ifndef WEFT_TEST_WIRE_H
#define WEFT_TEST_WIRE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* splitmix64. WEFT_TEST_SEED repeats a run. */
static uint64_t rnd_state;

static inline uint64_t rnd64(void)
{
	uint64_t z = rnd_state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static inline uint64_t rnd_below(uint64_t n)
{
	return rnd64() % n;
}

static inline void rnd_fill(void *buf, size_t len)
{
	uint8_t *p = buf;

	while (len--)
		*p++ = (uint8_t)rnd64();
}

static inline void rnd_seed(void)
{
	const char *env = getenv("WEFT_TEST_SEED");

	rnd_state = env ? strtoull(env, NULL, 0) : (uint64_t)time(NULL) << 20 ^ (uint64_t)getpid();
	printf("WEFT_TEST_SEED=%#llx\n", (unsigned long long)rnd_state);
	fflush(stdout);
}

/* len bytes of which the last is the last one before an inaccessible page. */
struct fence {
	uint8_t *map;
	size_t size; /* accessible */
};

static inline struct fence fence_new(size_t max)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct fence f = {.size = (max + page - 1) / page * page};

	f.map = mmap(NULL, f.size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	assert_true(f.map != MAP_FAILED);
	assert_int_equal(mprotect(f.map + f.size, page, PROT_NONE), 0);
	return f;
}

static inline void fence_free(struct fence *f)
{
	munmap(f->map, f->size + (size_t)sysconf(_SC_PAGESIZE));
}

static inline uint8_t *fence_put(const struct fence *f, const void *data, size_t len)
{
	uint8_t *p = f->map + f->size - len;

	if (data && len)
		memcpy(p, data, len);
	return p;
}

#endif
