/* Latency and bandwidth for people (columns as perftest's and OSU's) and for machines. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench_json.h"
#include "bench_rounds.h"

const struct bench_series *bench_series_of(const struct bench_rounds *r,
					   const struct bench_series *s, const char *kind)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->series[i].size == s->size && !strcmp(r->series[i].kind->name, kind))
			return &r->series[i];
	return NULL;
}

bool bench_series_ratio(const struct bench_rounds *r, const struct bench_series *s,
			const struct bench_series *base, struct bench_summary *out)
{
	/* A whole round trip is compared with a whole round trip. */
	double scale = (s->kind->full_trip ? 2.0 : 1) / (base->kind->full_trip ? 2 : 1);
	double *v = malloc(r->rounds * sizeof(*v));
	size_t n;

	if (!v)
		return false;
	n = bench_ratios(s->round, base->round, r->rounds, r->test == BENCH_LAT ? scale : 1, v);
	bench_summarize(v, n, out);
	free(v);
	return n > 0;
}

static const char *test_name(const struct bench_rounds *r)
{
	return r->test == BENCH_LAT ? "lat" : "bw";
}

/* The summary of what the table's columns show; leaves s->round as it is. */
static int summary(const struct bench_rounds *r, struct bench_series *s, struct bench_summary *out)
{
	double *v;

	if (r->test == BENCH_LAT) {
		bench_summarize(s->pool, s->n_pool, out);
		return 0;
	}
	v = malloc(r->rounds * sizeof(*v));
	if (!v)
		return -ENOMEM;
	memcpy(v, s->round, r->rounds * sizeof(*v));
	bench_summarize(v, r->rounds, out);
	free(v);
	return 0;
}

static const char *why(const struct bench_series *s)
{
	return strerror(s->error ? -s->error : ENODATA);
}

static void print_ratio(const struct bench_rounds *r, const struct bench_series *s)
{
	for (int i = 0; s->kind->base[i]; i++) {
		const char *name = s->kind->base[i];
		const struct bench_series *base = bench_series_of(r, s, name);
		const struct bench_target *t;
		struct bench_summary ratio;

		if (!base || !bench_series_ratio(r, s, base, &ratio))
			continue;
		printf("  %5.2f [%.2f..%.2f] x %s", ratio.median, ratio.q1, ratio.q3, name);
		t = bench_target_find(test_name(r), s->kind->name, name, s->size);
		if (t)
			printf(" %s %.2f %s", t->at_most ? "<=" : ">=", t->limit,
			       bench_target_met(t, ratio.median) ? "PASS" : "MISS");
	}
}

static void print_series(const struct bench_rounds *r, const struct bench_series *s,
			 const struct bench_summary *m)
{
	if (!m->n) {
		printf("%-16s %8zu  failed: %s\n", s->kind->name, s->size, why(s));
		return;
	}
	if (r->test == BENCH_LAT)
		printf("%-16s %8zu %10zu %8.2f %8.2f %8.2f %8.2f %8.2f %5llu", s->kind->name,
		       s->size, m->n, m->min, m->p1, m->median, m->mean, m->p99,
		       (unsigned long long)s->lost);
	else
		printf("%-16s %8zu %10llu %9.1f %9.1f %9.1f %10.4f %6.2f", s->kind->name, s->size,
		       (unsigned long long)s->sent, m->min, m->median, m->max,
		       m->median / (double)s->size,
		       s->sent ? 100.0 * (double)s->lost / (double)s->sent : 0);
	print_ratio(r, s);
	printf("\n");
}

static void print_head(const struct bench_rounds *r)
{
	printf("# %s\n# up to %zu rounds, kinds interleaved; ratio: median [quartiles] of the "
	       "rounds'\n",
	       r->test == BENCH_LAT ? "latency, half a round trip (reads: the whole), both polling"
				    : "bandwidth, client to server, payload",
	       r->rounds);
	if (r->test == BENCH_LAT)
		printf("#%-15s %8s %10s %8s %8s %8s %8s %8s %5s  ratio\n", "kind [usec]", "#bytes",
		       "iterations", "t_min", "t_p1", "t_median", "t_mean", "t_p99", "lost");
	else
		printf("#%-15s %8s %10s %9s %9s %9s %10s %6s  ratio\n", "kind [MB/s]", "#bytes",
		       "iterations", "BW min", "BW median", "BW max", "Mmsg/s", "lost%");
}

/* How often somebody else got the core, by force or because it was offered. Other work
 * takes from all kinds, but not alike, so it spoils ratios too. Only raw kinds can tell:
 * with a device in the process, its own threads may be what took over. */
static double preemption_rate(const struct bench_rounds *r)
{
	double seconds = 0, n = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->series[i].kind->verbs)
			continue;
		n += (double)r->series[i].preempted;
		seconds += r->series[i].seconds;
	}
	return seconds > 0 ? n / seconds : 0;
}

static void print_tail(const struct bench_rounds *r)
{
	double rate = preemption_rate(r);

	if (rate > BENCH_BUSY)
		printf("# NOTE: the machine is busy with other work (client preempted %.0f times "
		       "per second):\n# neither absolute values nor ratios are reliable\n",
		       rate);
	printf("\n");
}

static json_t *ratios_json(const struct bench_rounds *r, const struct bench_series *s,
			   json_t *targets)
{
	json_t *list = json_array();

	for (int i = 0; s->kind->base[i]; i++) {
		const char *name = s->kind->base[i];
		const struct bench_series *base = bench_series_of(r, s, name);
		const struct bench_target *t;
		struct bench_summary ratio;
		char what[96];

		if (!base || !bench_series_ratio(r, s, base, &ratio))
			continue;
		json_array_append_new(list, json_pack("{s:s, s:o}", "base", name, "ratio",
						      bench_json_summary(&ratio)));
		t = bench_target_find(test_name(r), s->kind->name, name, s->size);
		if (!t)
			continue;
		snprintf(what, sizeof(what), "%s at %zu bytes: %s / %s",
			 r->test == BENCH_LAT ? "latency" : "bandwidth", s->size, s->kind->name,
			 name);
		json_array_append_new(targets, bench_json_target(what, t, ratio.median, &ratio));
	}
	return list;
}

static json_t *series_json(const struct bench_rounds *r, const struct bench_series *s,
			   const struct bench_summary *m, json_t *targets)
{
	json_t *rounds = json_array(), *j;

	if (!m->n) {
		json_decref(rounds);
		return json_pack("{s:s, s:I, s:s}", "kind", s->kind->name, "size",
				 (json_int_t)s->size, "error", why(s));
	}
	for (size_t i = 0; i < r->rounds; i++)
		json_array_append_new(rounds, bench_json_number(s->round[i]));
	j = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o, s:o}", "kind", s->kind->name,
		      "size", (json_int_t)s->size, "per_round", (json_int_t)s->count, "sent",
		      (json_int_t)s->sent, "received", (json_int_t)s->received, "lost",
		      (json_int_t)s->lost, "preempted", (json_int_t)s->preempted,
		      r->test == BENCH_LAT ? "usec" : "MBps", bench_json_summary(m), "rounds",
		      rounds, "ratios", ratios_json(r, s, targets));
	if (s->failures)
		json_object_set_new(j, "failures", json_integer(s->failures));
	if (s->error)
		json_object_set_new(j, "error", json_string(why(s)));
	return j;
}

int bench_rounds_report(const struct bench_env *env, const struct bench_opts *opts,
			struct bench_rounds *r)
{
	json_t *doc = bench_json_document(env, opts);
	json_t *list = json_array(), *targets = json_array();
	bool table = bench_json_is_table(opts);

	if (table)
		print_head(r);
	for (size_t i = 0; i < r->n; i++) {
		struct bench_series *s = &r->series[i];
		struct bench_summary m;

		if (summary(r, s, &m))
			continue;
		if (table)
			print_series(r, s, &m);
		json_array_append_new(list, series_json(r, s, &m, targets));
	}
	if (table)
		print_tail(r);
	json_object_set_new(doc, "preemptions_per_second", bench_json_number(preemption_rate(r)));
	json_object_set_new(doc, "results", list);
	json_object_set_new(doc, "targets", targets);
	return bench_json_write(opts, doc);
}
