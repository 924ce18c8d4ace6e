/* One step of a measurement, as the client leads it and the server follows. */
#ifndef WEFT_BENCH_STEP_H
#define WEFT_BENCH_STEP_H

#include "bench_kind.h"

/* Opens a channel on both sides. */
int bench_chan_open(struct bench_env *env, const struct bench_kind *kind, struct bench_chan **out);
void bench_chan_close(struct bench_chan *chan); /* on both sides */

/* Latency: step->sample gets step->done round trips: step->count of them, or as many as
 * step->budget allows. */
int bench_step_lat(struct bench_chan *chan, struct bench_step *step);
/* Stream: step->rx_* get what arrived; *ns is the time until the server had it all. */
int bench_step_bw(struct bench_chan *chan, struct bench_step *step, uint64_t *ns);

/* The server's part: answers until the client says goodbye or goes away. */
struct bench_watch;
int bench_serve(struct bench_env *env, struct bench_watch *watch);

#endif
