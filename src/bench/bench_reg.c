#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "bench_json.h"
#include "bench_reg.h"
#include "bench_time.h"
#include "bench_verbs.h"

/* Memory that nobody has touched has to be found by whoever registers it, if the device pins what
 * it may use. "again" is the same memory, touched, known to the caches and registered before. */
enum what { REG_FIRST, DEREG_FIRST, REG_AGAIN, DEREG_AGAIN, COPY, WHATS };

static const char *const names[] = {"reg_first", "dereg_first", "reg_again", "dereg_again",
				    "memcpy"};

struct reg {
	struct ibv_pd *pd;
	size_t size;
	char *mem, *copy;
	double *sample[WHATS]; /* microseconds */
	size_t n;
};

static double usec_since(uint64_t from)
{
	return (double)(bench_now() - from) / 1e3;
}

/* Registers and deregisters; the times go to sample[what] and the one behind it. */
static int reg_once(struct reg *r, enum what what)
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

/* One of each, with memory that is new. */
static int once(struct reg *r)
{
	uint64_t from;
	int ret;

	r->mem = mmap(NULL, r->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->mem == MAP_FAILED)
		return -errno;
	ret = reg_once(r, REG_FIRST);
	memset(r->mem, 0x5a, r->size);
	if (!ret)
		ret = reg_once(r, REG_AGAIN); /* which is not what counts: the next one is */
	if (!ret)
		ret = reg_once(r, REG_AGAIN);
	memcpy(r->copy, r->mem, r->size);
	from = bench_now();
	memcpy(r->copy, r->mem, r->size);
	/* Or the compiler may find out that nobody reads it. */
	__asm__ volatile("" : : "r"(r->copy) : "memory");
	r->sample[COPY][r->n] = usec_since(from);
	munmap(r->mem, r->size);
	r->n++;
	return ret;
}

/* Small ones are over soon, and need more than a few. */
static size_t times(const struct bench_opts *opts, size_t size)
{
	size_t many = ((size_t)8 << 20) / size;

	return opts->rounds * (many < 1 ? 1 : many > 100 ? 100 : many);
}

static json_t *report(struct reg *r, const struct bench_opts *opts)
{
	json_t *row = json_pack("{s:I}", "size", (json_int_t)r->size);
	struct bench_summary s;
	char name[32];

	if (bench_json_is_table(opts))
		printf("%-10zu %8zu", r->size, r->n);
	for (int i = 0; i < WHATS; i++) {
		bench_summarize(r->sample[i], r->n, &s);
		snprintf(name, sizeof(name), "%s_us", names[i]);
		json_object_set_new(row, name, bench_json_summary(&s));
		if (bench_json_is_table(opts))
			printf(" %12.3f", s.median);
	}
	if (bench_json_is_table(opts))
		printf("\n");
	return row;
}

static int measure(struct reg *r, const struct bench_opts *opts, uint64_t deadline, json_t *rows)
{
	size_t n = times(opts, r->size);
	int ret = 0;

	r->copy = aligned_alloc(4096, (r->size + 4095) / 4096 * 4096);
	for (int i = 0; i < WHATS; i++)
		r->sample[i] = calloc(n, sizeof(double));
	for (int i = 0; i < WHATS; i++)
		if (!r->sample[i] || !r->copy)
			ret = -ENOMEM;
	for (size_t i = 0; i < n && !ret && bench_now() < deadline; i++)
		ret = once(r);
	if (!ret && r->n)
		json_array_append_new(rows, report(r, opts));
	for (int i = 0; i < WHATS; i++)
		free(r->sample[i]);
	free(r->copy);
	return ret;
}

static void head(const struct bench_opts *opts)
{
	if (!bench_json_is_table(opts))
		return;
	printf("# registering memory, and a copy of it, medians; first: memory that was never "
	       "touched\n#%-9s %8s",
	       "bytes", "times");
	for (int i = 0; i < WHATS; i++)
		printf(" %12s", names[i]);
	printf("  [usec]\n");
}

int bench_reg_run(struct bench_env *env, const struct bench_opts *opts)
{
	uint64_t deadline = bench_now() + opts->max_seconds * BENCH_S;
	json_t *doc, *rows = json_array();
	int ret = bench_dev_get(env);

	if (!ret)
		head(opts);
	for (size_t i = 0; i < opts->n_sizes && !ret; i++) {
		struct reg r = {.pd = env->dev->pd, .size = opts->sizes[i]};

		ret = measure(&r, opts, deadline, rows);
	}
	if (ret) {
		json_decref(rows);
		return ret;
	}
	doc = bench_json_document(env, opts);
	json_object_set_new(doc, "results", rows);
	return bench_json_write(opts, doc);
}
