/* What open, idle queue pairs cost: both processes sleep, and nobody should run. */
#ifndef WEFT_BENCH_IDLE_H
#define WEFT_BENCH_IDLE_H

#include "bench_kind.h"
#include "bench_opts.h"
#include "bench_watch.h"

/* Client: opens the kinds, sends some traffic on each, sleeps, prints what was used. */
int bench_idle_run(struct bench_env *env, const struct bench_opts *opts, struct bench_watch *watch);
/* Server: sleeps as long as msg says, and sends what it used. */
int bench_idle_serve(struct bench_env *env, struct bench_watch *watch, const struct bench_msg *msg);

#endif
