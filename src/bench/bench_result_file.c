/* Results as files: JSON and CSV, and JSON from whoever wrote it. */
#include "bench_result.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* ---- whole or not at all ---- */

struct output {
	FILE *file;
	char *path, *part; /* part is NULL when it is written to as it is */
};

static int output_open(struct output *o, const char *path)
{
	struct stat st;

	*o = (struct output){0};
	if (!strcmp(path, "-")) {
		o->file = stdout;
		return 0;
	}
	/* What a link points to is meant, not the link. */
	o->path = realpath(path, NULL);
	if (!o->path)
		o->path = strdup(path);
	if (!o->path)
		return -ENOMEM;
	if ((stat(o->path, &st) || S_ISREG(st.st_mode)) &&
	    asprintf(&o->part, "%s.part", o->path) < 0)
		o->part = NULL;
	o->file = fopen(o->part ? o->part : o->path, "we");
	return o->file ? 0 : -errno;
}

static int output_close(struct output *o, int ret)
{
	if (o->file == stdout) {
		if (fflush(stdout) && !ret)
			ret = -errno;
	} else if (o->file) {
		if (ferror(o->file) && !ret)
			ret = -EIO;
		if (fclose(o->file) && !ret)
			ret = -errno;
		if (o->part && !ret && rename(o->part, o->path))
			ret = -errno;
		if (o->part && ret)
			remove(o->part);
	}
	free(o->path);
	free(o->part);
	return ret;
}

/* ---- JSON ---- */

static json_t *series_json(const struct bench_result_series *s)
{
	json_t *samples = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(samples, bench_json_number(s->samples[i]));
	return json_pack("{s:s, s:s, s:s, s:O, s:o}", "name", s->name, "unit", s->unit, "better",
			 s->higher ? "higher" : "lower", "params", s->params, "samples", samples);
}

static json_t *document(const struct bench_result *r)
{
	json_t *list = json_array();

	for (size_t i = 0; i < r->n; i++)
		json_array_append_new(list, series_json(r->series[i]));
	return json_pack("{s:i, s:s, s:s, s:f, s:O, s:o}", "weft_bench", 1, "command", r->command,
			 "began", r->began, "took_s", r->took_s, "env", r->env, "series", list);
}

/* Of one that was read, both are as they were. */
static void note_end(struct bench_result *r)
{
	struct timespec t;
	double load;

	if (r->start <= 0)
		return;
	clock_gettime(CLOCK_MONOTONIC, &t);
	r->took_s = (double)t.tv_sec + 1e-9 * (double)t.tv_nsec - r->start;
	if (getloadavg(&load, 1) == 1)
		json_object_set_new(r->env, "load_after", json_real(load));
}

int bench_result_write(struct bench_result *r, const char *path)
{
	struct output o;
	int ret = output_open(&o, path);
	json_t *doc;

	if (ret)
		return output_close(&o, ret);
	note_end(r);
	doc = document(r);
	if (!doc)
		ret = -ENOMEM;
	else if (json_dumpf(doc, o.file, JSON_INDENT(1) | JSON_REAL_PRECISION(9)) ||
		 fputc('\n', o.file) == EOF)
		ret = -EIO;
	json_decref(doc);
	return output_close(&o, ret);
}

/* ---- CSV (RFC 4180) ---- */

static void csv_text(FILE *to, const char *text)
{
	if (!text[strcspn(text, ",\"\r\n")]) {
		fputs(text, to);
		return;
	}
	fputc('"', to);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', to);
		fputc(*text, to);
	}
	fputc('"', to);
}

/* All parameters that any series has, in the order in which they come. */
static json_t *columns(const struct bench_result *r)
{
	json_t *all = json_object(), *v;
	const char *key;

	for (size_t i = 0; i < r->n; i++)
		json_object_foreach(r->series[i]->params, key, v) if (!json_object_get(all, key))
			json_object_set_new(all, key, json_true());
	return all;
}

static void csv_series(FILE *to, const struct bench_result_series *s, json_t *all)
{
	const char *key, *param;
	char text[32];
	json_t *v;

	for (size_t i = 0; i < s->n; i++) {
		csv_text(to, s->name);
		fputc(',', to);
		csv_text(to, s->unit);
		fprintf(to, ",%s", s->higher ? "higher" : "lower");
		json_object_foreach(all, key, v)
		{
			param = bench_result_param(s, key, text);
			fputc(',', to);
			csv_text(to, param ? param : "");
		}
		fprintf(to, isfinite(s->samples[i]) ? ",%zu,%.9g\n" : ",%zu,\n", i, s->samples[i]);
	}
}

int bench_result_write_csv(const struct bench_result *r, const char *path)
{
	struct output o;
	int ret = output_open(&o, path);
	const char *key;
	json_t *all, *v;

	if (ret)
		return output_close(&o, ret);
	all = columns(r);
	fputs("series,unit,better", o.file);
	json_object_foreach(all, key, v)
	{
		fputc(',', o.file);
		csv_text(o.file, key);
	}
	fputs(",sample,value\n", o.file);
	for (size_t i = 0; i < r->n; i++)
		csv_series(o.file, r->series[i], all);
	json_decref(all);
	return output_close(&o, ret);
}

/* ---- reading ---- */

struct reader {
	char *why;
	size_t len;
};

static int refuse(const struct reader *in, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(in->why, in->len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* A string without control characters, which a terminal would obey; NULL: it is none. */
static const char *text_of(const json_t *v, size_t most)
{
	const char *text = json_string_value(v);

	if (!text || json_string_length(v) > most || strlen(text) != json_string_length(v))
		return NULL;
	for (const char *c = text; *c; c++)
		if ((unsigned char)*c < ' ' || *c == 0x7f ||
		    ((unsigned char)*c == 0xc2 && (unsigned char)c[1] < 0xa0)) /* C1 */
			return NULL;
	return text;
}

static bool is_name(const char *text)
{
	json_t *v = json_string(text);
	bool good = v && *text && text_of(v, BENCH_RESULT_NAME);

	json_decref(v);
	return good;
}

/* Strings and numbers only; with `nested`, objects of them, too. */
static bool is_flat(const json_t *object, size_t most, bool nested)
{
	const char *key;
	json_t *v;

	if (!json_is_object(object) || json_object_size(object) > most)
		return false;
	json_object_foreach((json_t *)object, key, v)
	{
		if (!is_name(key))
			return false;
		if (json_is_number(v) || json_is_boolean(v) || text_of(v, BENCH_RESULT_TEXT) ||
		    (nested && (json_is_null(v) || is_flat(v, 1000, false))))
			continue;
		return false;
	}
	return true;
}

static int read_samples(const struct reader *in, struct bench_result_series *s, const json_t *list,
			size_t at)
{
	json_t *v;
	size_t i;

	if (!json_is_array(list))
		return refuse(in, "series %zu has no array of samples", at);
	json_array_foreach (list, i, v) {
		if (!json_is_number(v) && !json_is_null(v))
			return refuse(in, "sample %zu of series %zu is no number", i, at);
		bench_result_add(s, json_is_null(v) ? NAN : json_number_value(v));
	}
	return 0;
}

static int read_series(const struct reader *in, struct bench_result *r, const json_t *v, size_t at)
{
	const char *name = text_of(json_object_get(v, "name"), BENCH_RESULT_NAME);
	const char *unit = text_of(json_object_get(v, "unit"), BENCH_RESULT_NAME);
	const char *better = text_of(json_object_get(v, "better"), BENCH_RESULT_NAME);
	json_t *params = json_object_get(v, "params");
	size_t before = r->n;
	struct bench_result_series *s;

	if (!name || !*name || !unit || !better)
		return refuse(in, "series %zu has no name, no unit or no \"better\"", at);
	if (strcmp(better, "lower") != 0 && strcmp(better, "higher") != 0)
		return refuse(in, "series %zu: better is neither lower nor higher", at);
	if (!is_flat(params, BENCH_RESULT_PARAMS, false))
		return refuse(in, "series %zu: params are no object of strings and numbers", at);
	s = bench_result_series(r, name, unit, !strcmp(better, "higher"), json_incref(params));
	if (r->n == before)
		return refuse(in, "series %zu is there twice", at);
	return read_samples(in, s, json_object_get(v, "samples"), at);
}

static int read_document(const struct reader *in, struct bench_result *r, const json_t *doc)
{
	const char *command = text_of(json_object_get(doc, "command"), BENCH_RESULT_TEXT);
	const char *began = text_of(json_object_get(doc, "began"), BENCH_RESULT_NAME);
	const json_t *took = json_object_get(doc, "took_s"), *list = json_object_get(doc, "series");
	json_t *env = json_object_get(doc, "env"), *v;
	size_t i;
	int ret = 0;

	if (json_integer_value(json_object_get(doc, "weft_bench")) != 1)
		return refuse(in, "no result of weft bench: there is no \"weft_bench\": 1");
	if (!command || !began || !json_is_number(took))
		return refuse(in, "command, began or took_s is missing");
	if (!is_flat(env, 100, true))
		return refuse(in, "env is no object of strings and numbers");
	if (!json_is_array(list) || json_array_size(list) > BENCH_RESULT_SERIES)
		return refuse(in, "series are no array of at most %d", BENCH_RESULT_SERIES);
	r->command = strdup(command);
	r->began = strdup(began);
	r->took_s = json_number_value(took);
	r->env = json_incref(env);
	if (!r->command || !r->began)
		return -ENOMEM;
	json_array_foreach (list, i, v) {
		ret = read_series(in, r, v, i);
		if (ret)
			break;
	}
	return ret;
}

int bench_result_parse(struct bench_result **r, const char *text, size_t len, char *why,
		       size_t why_len)
{
	struct reader in = {why, why_len};
	json_error_t err;
	json_t *doc;
	int ret;

	*r = NULL;
	if (len > BENCH_RESULT_BYTES) {
		refuse(&in, "more than %d bytes", BENCH_RESULT_BYTES);
		return -EFBIG;
	}
	doc = json_loadb(text, len, JSON_REJECT_DUPLICATES, &err);
	if (!doc) /* not err.text: it quotes the file */
		return refuse(&in, "no JSON: line %d, column %d", err.line, err.column);
	*r = calloc(1, sizeof(**r));
	ret = *r ? read_document(&in, *r, doc) : -ENOMEM;
	json_decref(doc);
	if (!ret)
		return 0;
	if (ret == -ENOMEM)
		refuse(&in, "there is not enough memory");
	bench_result_free(*r);
	*r = NULL;
	return ret;
}

int bench_result_read(struct bench_result **r, const char *path, char *why, size_t why_len)
{
	FILE *f = fopen(path, "re");
	char *text = f ? malloc(BENCH_RESULT_BYTES + 1) : NULL;
	int ret = text ? 0 : -errno;
	size_t n;

	*r = NULL;
	if (!ret) {
		n = fread(text, 1, BENCH_RESULT_BYTES + 1, f);
		ret = ferror(f) ? -EIO : bench_result_parse(r, text, n, why, why_len);
	}
	if (ret && (!text || ret == -EIO))
		snprintf(why, why_len, "cannot be read: %s", strerror(-ret));
	free(text);
	if (f)
		fclose(f);
	return ret;
}
