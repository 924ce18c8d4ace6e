/* Results in memory, and the machine that they are of. */
#include "bench_result.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void *must(void *p)
{
	if (!p)
		abort();
	return p;
}

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double load_now(void)
{
	double load = NAN;

	return getloadavg(&load, 1) == 1 ? load : NAN;
}

json_t *bench_json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

/* ---- the machine ---- */

void bench_cpu_model(char *buf, size_t len)
{
	FILE *f = fopen("/proc/cpuinfo", "re");
	char line[256], *p;

	snprintf(buf, len, "unknown");
	while (f && fgets(line, sizeof(line), f)) {
		if (strncmp(line, "model name", 10) != 0 || !(p = strchr(line, ':')))
			continue;
		p[strcspn(p, "\n")] = 0;
		snprintf(buf, len, "%s", p + 1 + strspn(p + 1, " "));
		break;
	}
	if (f)
		fclose(f);
}

/* What a reader accepts: no control characters, no broken UTF-8, not too long; each is shown. */
static json_t *clean_text(const char *value)
{
	size_t n = strnlen(value, BENCH_RESULT_TEXT + 1);
	char *copy = must(strndup(value, n < BENCH_RESULT_TEXT ? n : BENCH_RESULT_TEXT));
	json_t *j;

	if (n > BENCH_RESULT_TEXT)
		memcpy(copy + BENCH_RESULT_TEXT - 3, "...", sizeof("..."));
	for (char *c = copy; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f)
			*c = '?';
	j = json_string(copy);
	for (char *c = copy; !j && *c; c++)
		if ((unsigned char)*c >= 0x80)
			*c = '?';
	j = j ? j : must(json_string(copy));
	free(copy);
	return j;
}

static json_t *variables(void)
{
	static const char *const prefixes[] = {"FI_", "WEFT_", "OMPI_MCA_", "UCX_", "MPIR_CVAR_"};
	json_t *all = must(json_object());

	for (char **e = environ; *e; e++) {
		const char *equals = strchr(*e, '=');
		char name[BENCH_RESULT_NAME];

		if (!equals || (size_t)(equals - *e) >= sizeof(name))
			continue;
		for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
			if (strncmp(*e, prefixes[i], strlen(prefixes[i])) != 0)
				continue;
			snprintf(name, sizeof(name), "%.*s", (int)(equals - *e), *e);
			json_object_set_new(all, name, clean_text(equals + 1));
		}
	}
	return all;
}

static json_t *environment(void)
{
	json_t *env = must(json_object());
	struct utsname un;
	char cpu[128];

	uname(&un);
	bench_cpu_model(cpu, sizeof(cpu));
	json_object_set_new(env, "host", clean_text(un.nodename));
	json_object_set_new(env, "kernel", clean_text(un.release));
	json_object_set_new(env, "arch", clean_text(un.machine));
	json_object_set_new(env, "cpu", clean_text(cpu));
	json_object_set_new(env, "cores", json_integer(sysconf(_SC_NPROCESSORS_ONLN)));
	json_object_set_new(env, "load_before", bench_json_number(load_now()));
	json_object_set_new(env, "variables", variables());
	return env;
}

void bench_result_env(struct bench_result *r, const char *name, const char *value)
{
	json_object_set_new(r->env, name, clean_text(value));
}

/* ---- making one ---- */

struct bench_result *bench_result_new(const char *command)
{
	struct bench_result *r = must(calloc(1, sizeof(*r)));
	time_t t = time(NULL);
	struct tm tm;
	char when[32];

	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &tm));
	r->command = must(strdup(command));
	r->began = must(strdup(when));
	r->env = environment();
	r->start = now();
	return r;
}

static void series_free(struct bench_result_series *s)
{
	json_decref(s->params);
	free(s->name);
	free(s->unit);
	free(s->samples);
	free(s);
}

void bench_result_free(struct bench_result *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++)
		series_free(r->series[i]);
	free(r->series);
	json_decref(r->env);
	free(r->command);
	free(r->began);
	free(r);
}

struct bench_result_series *bench_result_series(struct bench_result *r, const char *name,
						const char *unit, bool higher, json_t *params)
{
	struct bench_result_series *s;

	if (!params)
		params = must(json_object());
	for (size_t i = 0; i < r->n; i++) {
		s = r->series[i];
		if (strcmp(s->name, name) != 0 || !json_equal(s->params, params))
			continue;
		json_decref(params);
		return s;
	}
	s = must(calloc(1, sizeof(*s)));
	*s = (struct bench_result_series){.name = must(strdup(name)),
					  .unit = must(strdup(unit)),
					  .higher = higher,
					  .params = params};
	r->series = must(realloc(r->series, (r->n + 1) * sizeof(struct bench_result_series *)));
	r->series[r->n++] = s;
	return s;
}

void bench_result_add(struct bench_result_series *s, double sample)
{
	if (s->n == s->room) {
		s->room = s->room ? 2 * s->room : 16;
		s->samples = must(realloc(s->samples, s->room * sizeof(*s->samples)));
	}
	s->samples[s->n++] = sample;
}

void bench_result_put(struct bench_result_series *s, size_t at, double sample)
{
	while (s->n <= at)
		bench_result_add(s, NAN);
	s->samples[at] = sample;
}

/* ---- looking at one ---- */

void bench_result_summary(const struct bench_result_series *s, struct bench_summary *out)
{
	double *v = must(malloc((s->n + 1) * sizeof(*v)));

	if (s->n)
		memcpy(v, s->samples, s->n * sizeof(*v));
	bench_summarize(v, s->n, out);
	free(v);
}

void bench_result_compare(const struct bench_result_series *a, const struct bench_result_series *b,
			  struct bench_comparison *out)
{
	struct bench_how how = {.higher = a->higher, .difference = !strcmp(a->unit, "%")};
	size_t n = a->n < b->n ? a->n : b->n;
	double *scratch = must(malloc((n + 1) * sizeof(*scratch)));

	bench_compare(a->samples, b->samples, n, &how, scratch, out);
	free(scratch);
}

const char *bench_result_param(const struct bench_result_series *s, const char *name, char text[32])
{
	const json_t *v = json_object_get(s->params, name);

	if (!v)
		return NULL;
	if (json_is_string(v))
		return json_string_value(v);
	if (json_is_integer(v))
		snprintf(text, 32, "%lld", (long long)json_integer_value(v));
	else
		snprintf(text, 32, "%g", json_number_value(v));
	return text;
}
