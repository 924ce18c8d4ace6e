#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "bench_json.h"
#include "bench_verbs.h"

json_t *bench_json_summary(const struct bench_summary *s)
{
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "n", (json_int_t)s->n,
			 "min", bench_json_number(s->min), "p1", bench_json_number(s->p1), "q1",
			 bench_json_number(s->q1), "median", bench_json_number(s->median), "mean",
			 bench_json_number(s->mean), "q3", bench_json_number(s->q3), "p99",
			 bench_json_number(s->p99), "max", bench_json_number(s->max));
}

static json_t *machine(void)
{
	double load[3] = {0};
	struct utsname un;
	char cpu[128];

	uname(&un);
	bench_cpu_model(cpu, sizeof(cpu));
	getloadavg(load, 3);
	return json_pack("{s:s, s:s, s:s, s:I, s:f}", "kernel", un.release, "arch", un.machine,
			 "cpu", cpu, "cpus", (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "load",
			 load[0]);
}

json_t *bench_json_document(const struct bench_env *env, const struct bench_opts *opts)
{
	const struct bench_conf *conf = &opts->conf;
	time_t now = time(NULL);
	char when[32];
	json_t *doc;

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	doc = json_pack("{s:s, s:s, s:s, s:o, s:{s:I, s:I, s:I, s:I, s:I, s:b}}", "program",
			"weft-perf", "command", opts->command, "time", when, "machine", machine(),
			"options", "rounds", (json_int_t)opts->rounds, "depth",
			(json_int_t)conf->depth, "signal_every", (json_int_t)conf->signal_every,
			"ud_max", (json_int_t)conf->ud_max, "ud_window",
			(json_int_t)conf->ud_window, "pinned", opts->pin);
	if (env && env->dev)
		json_object_set_new(doc, "device",
				    json_pack("{s:s, s:s}", "name",
					      ibv_get_device_name(env->dev->ctx->device),
					      "firmware", env->dev->attr.fw_ver));
	return doc;
}

json_t *bench_json_target(const char *what, const struct bench_target *t, double value,
			  const struct bench_summary *spread)
{
	json_t *j =
		json_pack("{s:s, s:o, s:s, s:f, s:b}", "what", what, "value",
			  bench_json_number(value), "relation", t->at_most ? "<=" : ">=", "limit",
			  t->limit, "pass", bench_target_met(t, value));

	if (spread) {
		json_object_set_new(j, "q1", bench_json_number(spread->q1));
		json_object_set_new(j, "q3", bench_json_number(spread->q3));
	}
	return j;
}

bool bench_json_is_table(const struct bench_opts *opts)
{
	return !opts->json || strcmp(opts->json, "-") != 0;
}

int bench_json_write(const struct bench_opts *opts, json_t *doc)
{
	size_t flags = JSON_INDENT(1) | JSON_REAL_PRECISION(7);
	int ret = 0;

	if (opts->json && !bench_json_is_table(opts))
		ret = json_dumpf(doc, stdout, flags) || putchar('\n') == EOF ? -EIO : 0;
	else if (opts->json && json_dump_file(doc, opts->json, flags)) {
		fprintf(stderr, "weft-perf: cannot write %s\n", opts->json);
		ret = -EIO;
	}
	json_decref(doc);
	return ret;
}

void bench_progress(const struct bench_opts *opts, const char *fmt, ...)
{
	va_list ap;

	if (opts->quiet)
		return;
	fflush(stdout);
	fputs("weft-perf: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
}
