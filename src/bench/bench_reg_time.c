#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench_reg.h"
#include "bench_time.h"

const char *const bench_reg_names[] = {"reg_first", "dereg_first", "reg_again", "dereg_again",
				       "memcpy"};

static double usec_since(uint64_t from)
{
	return (double)(bench_now() - from) / 1e3;
}

/* Registers and deregisters; the times go to sample[what] and the one behind it. */
static int reg_once(struct bench_reg *r, enum bench_reg_what what)
{
	const int access =
		IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
	uint64_t from = bench_now();
	struct ibv_mr *mr = ibv_reg_mr(r->pd, r->mem, r->size, access);
	int ret;

	r->sample[what][r->n] = usec_since(from);
	if (!mr)
		return -errno;
	from = bench_now();
	ret = ibv_dereg_mr(mr);
	r->sample[what + 1][r->n] = usec_since(from);
	return -ret;
}

int bench_reg_once(struct bench_reg *r)
{
	uint64_t from;
	int ret;

	r->mem = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->mem == MAP_FAILED)
		return -errno;
	ret = reg_once(r, BENCH_REG_FIRST);
	memset(r->mem, 0x5a, r->size);
	if (!ret)
		ret = reg_once(r, BENCH_REG_AGAIN); /* which is not what counts: the next one is */
	if (!ret)
		ret = reg_once(r, BENCH_REG_AGAIN);
	memcpy(r->copy, r->mem, r->size);
	from = bench_now();
	memcpy(r->copy, r->mem, r->size);
	/* Or the compiler may find out that nobody reads it. */
	__asm__ volatile("" : : "r"(r->copy) : "memory");
	r->sample[BENCH_REG_COPY][r->n] = usec_since(from);
	munmap(r->mem, r->size);
	r->n++;
	return ret;
}

size_t bench_reg_times(size_t rounds, size_t size)
{
	size_t many = ((size_t)8 << 20) / size;

	return rounds * (many < 1 ? 1 : many > 100 ? 100 : many);
}

int bench_reg_make(struct bench_reg *r, size_t n)
{
	r->copy = aligned_alloc(4096, (r->size + 4095) / 4096 * 4096);
	for (int i = 0; i < BENCH_REG_WHATS; i++)
		r->sample[i] = calloc(n, sizeof(double));
	for (int i = 0; i < BENCH_REG_WHATS; i++)
		if (!r->sample[i] || !r->copy)
			return -ENOMEM;
	return 0;
}

void bench_reg_free(struct bench_reg *r)
{
	for (int i = 0; i < BENCH_REG_WHATS; i++)
		free(r->sample[i]);
	free(r->copy);
}
