/* What registering memory with a device costs. */
#ifndef WEFT_BENCH_REG_H
#define WEFT_BENCH_REG_H

#include <infiniband/verbs.h>
#include <stddef.h>

struct bench_env;
struct bench_opts;

/* Memory that nobody has touched has to be found by whoever registers it, if the device pins what
 * it may use. "again" is the same memory, touched, known to the caches and registered before. */
enum bench_reg_what {
	BENCH_REG_FIRST,
	BENCH_DEREG_FIRST,
	BENCH_REG_AGAIN,
	BENCH_DEREG_AGAIN,
	BENCH_REG_COPY,
	BENCH_REG_WHATS,
};
extern const char *const bench_reg_names[];

struct bench_reg {
	struct ibv_pd *pd;
	size_t size;
	char *mem, *copy;
	double *sample[BENCH_REG_WHATS]; /* microseconds */
	size_t n;
};

/* bench_reg_time.c. pd and size are set; room for n of each. 0 or -errno, and free in any case. */
int bench_reg_make(struct bench_reg *r, size_t n);
void bench_reg_free(struct bench_reg *r);
int bench_reg_once(struct bench_reg *r); /* one of each, with memory that is new */
/* How often: small ones are over soon, and need more than a few. */
size_t bench_reg_times(size_t rounds, size_t size);

/* `weft-perf reg`. */
int bench_reg_run(struct bench_env *env, const struct bench_opts *opts);

#endif
