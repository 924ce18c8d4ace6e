/* weft-perf reg: what it costs to register memory with a device, beside a copy of it (figure 3.10
 * of the thesis). One process, nobody at the other end. */
#ifndef WEFT_BENCH_REG_H
#define WEFT_BENCH_REG_H

#include "bench_kind.h"
#include "bench_opts.h"

/* 0 or -errno. Opens env->dev, which the caller closes. */
int bench_reg_run(struct bench_env *env, const struct bench_opts *opts);

#endif
