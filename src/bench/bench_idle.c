#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_idle.h"
#include "bench_json.h"
#include "bench_step.h"
#include "bench_target.h"
#include "bench_time.h"

#define WARM 1000 /* round trips on each channel before the sleep */

int bench_idle_serve(struct bench_env *env, struct bench_watch *watch, const struct bench_msg *msg)
{
	struct bench_usage usage = {0};
	struct bench_msg result = {.op = BENCH_OP_RESULT};
	int ret;

	result.status = bench_watch_run(watch, (uint32_t)msg->arg[0], &usage);
	ret = bench_ctl_send(&env->ctl, &result);
	return ret ? ret : bench_ctl_write(&env->ctl, &usage, sizeof(usage));
}

static int sleep_both(struct bench_env *env, struct bench_watch *watch, unsigned int seconds,
		      struct bench_usage use[2])
{
	struct bench_msg msg = {.op = BENCH_OP_IDLE, .arg = {seconds}};
	int ret = bench_ctl_send(&env->ctl, &msg), theirs;

	if (ret)
		return ret;
	ret = bench_watch_run(watch, seconds, &use[0]);
	theirs = bench_ctl_expect(&env->ctl, BENCH_OP_RESULT, NULL, (int)seconds * 1000 + 10000);
	if (ret || theirs)
		return ret ? ret : theirs;
	return bench_ctl_read(&env->ctl, &use[1], sizeof(use[1]), 5000);
}

static json_t *usage_json(const char *who, const struct bench_usage *u)
{
	json_t *threads = json_array();

	for (uint32_t i = 0; i < u->n; i++)
		json_array_append_new(threads,
				      json_pack("{s:s, s:I, s:I}", "name", u->thread[i].name,
						"cpu_ns", (json_int_t)u->thread[i].cpu_ns, "slices",
						(json_int_t)u->thread[i].slices));
	return json_pack("{s:s, s:f, s:I, s:I, s:I, s:I, s:I, s:o}", "process", who, "seconds",
			 (double)u->wall_ns / 1e9, "cpu_ns", (json_int_t)u->cpu_ns, "ticks",
			 (json_int_t)u->ticks, "slices", (json_int_t)u->slices,
			 "voluntary_switches", (json_int_t)u->vol, "involuntary_switches",
			 (json_int_t)u->invol, "threads", threads);
}

static void print_usage(const char *who, const struct bench_usage *u)
{
	const struct bench_target *t = bench_target_find("idle", "", "", 0);

	printf("%-8s %8u %9.2f %12llu %6llu %8llu %10llu %12llu  %s\n", who, u->threads,
	       (double)u->wall_ns / 1e9, (unsigned long long)u->cpu_ns,
	       (unsigned long long)u->ticks, (unsigned long long)u->slices,
	       (unsigned long long)u->vol, (unsigned long long)u->invol,
	       bench_target_met(t, (double)u->cpu_ns) ? "PASS" : "MISS");
	for (uint32_t i = 0; i < u->n; i++)
		if (u->thread[i].cpu_ns)
			printf("#   thread %s: %llu ns in %llu slices\n", u->thread[i].name,
			       (unsigned long long)u->thread[i].cpu_ns,
			       (unsigned long long)u->thread[i].slices);
}

static int report(const struct bench_env *env, const struct bench_opts *opts,
		  const struct bench_usage use[2])
{
	double worst = (double)(use[0].cpu_ns > use[1].cpu_ns ? use[0].cpu_ns : use[1].cpu_ns);
	const struct bench_target *t = bench_target_find("idle", "", "", 0);
	json_t *doc = bench_json_document(env, opts), *targets = json_array();

	json_array_append_new(targets, bench_json_target("idle CPU time [ns]", t, worst, NULL));
	json_object_set_new(
		doc, "results",
		json_pack("[o, o]", usage_json("client", &use[0]), usage_json("server", &use[1])));
	json_object_set_new(doc, "targets", targets);
	if (bench_json_is_table(opts)) {
		printf("# idle after traffic, all threads: limit 0 ns\n");
		printf("#%-7s %8s %9s %12s %6s %8s %10s %12s\n", "process", "threads", "t[sec]",
		       "cpu[ns]", "ticks", "slices", "voluntary", "involuntary");
		print_usage("client", &use[0]);
		print_usage("server", &use[1]);
		printf("\n");
	}
	return bench_json_write(opts, doc);
}

/* Leaves no channel unused: a queue pair that never carried anything proves little. */
static int warm(struct bench_chan *chan, double *sample)
{
	struct bench_step step = {.size = 8, .count = WARM, .budget = BENCH_S, .sample = sample};
	uint64_t ns;

	if (chan->kind->tests & BENCH_LAT)
		return bench_step_lat(chan, &step);
	return bench_step_bw(chan, &step, &ns);
}

int bench_idle_run(struct bench_env *env, const struct bench_opts *opts, struct bench_watch *watch)
{
	struct bench_chan *chan[BENCH_MAX_KINDS] = {NULL};
	double *sample = calloc(WARM, sizeof(*sample));
	struct bench_usage use[2] = {0};
	int ret = sample ? 0 : -ENOMEM;

	for (int i = 0; opts->kinds[i] && !ret; i++) {
		ret = bench_chan_open(env, opts->kinds[i], &chan[i]);
		if (!ret)
			ret = warm(chan[i], sample);
		if (ret)
			fprintf(stderr, "weft-perf: %s: %s\n", opts->kinds[i]->name,
				strerror(-ret));
	}
	free(sample);
	if (!ret) {
		bench_progress(opts, "idle: both sides sleep for %u s", opts->seconds);
		ret = sleep_both(env, watch, opts->seconds, use);
	}
	if (!ret)
		ret = report(env, opts, use);
	for (int i = 0; i < BENCH_MAX_KINDS; i++)
		if (chan[i])
			bench_chan_close(chan[i]);
	return ret;
}
