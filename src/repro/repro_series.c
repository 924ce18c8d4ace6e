/* Points: kept, compared, and taken from what commands print. */
#include "repro.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- keeping ---- */

const struct repro_series *repro_find(const struct repro_data *d, const char *name)
{
	for (size_t i = 0; name && i < d->n; i++)
		if (!strcmp(d->series[i].name, name))
			return &d->series[i];
	return NULL;
}

static struct repro_series *get(struct repro_data *d, const char *name)
{
	struct repro_series *s = (struct repro_series *)repro_find(d, name);

	if (s || d->n == REPRO_SERIES_MAX || strlen(name) >= REPRO_NAME_MAX)
		return s;
	s = &d->series[d->n++];
	memset(s, 0, sizeof(*s));
	strcpy(s->name, name);
	return s;
}

int repro_add(struct repro_data *d, const char *name, double x, double y)
{
	struct repro_series *s;
	struct repro_point *p;
	size_t i;

	if (!isfinite(x) || !isfinite(y))
		return 0;
	s = get(d, name);
	if (!s || s->n == REPRO_POINTS_MAX)
		return -E2BIG;
	if (!isnan(repro_at(s, x)))
		return 0;
	p = realloc(s->points, (s->n + 1) * sizeof(*p));
	if (!p)
		return -ENOMEM;
	s->points = p;
	for (i = s->n++; i > 0 && p[i - 1].x > x; i--)
		p[i] = p[i - 1];
	p[i] = (struct repro_point){x, y};
	return 0;
}

void repro_clear(struct repro_data *d)
{
	for (size_t i = 0; i < d->n; i++)
		free(d->series[i].points);
	d->n = 0;
}

double repro_at(const struct repro_series *s, double x)
{
	for (size_t i = 0; s && i < s->n; i++)
		if (s->points[i].x == x)
			return s->points[i].y;
	return NAN;
}

/* ---- claims ---- */

/* Over all x that both have. */
static double over_all(const struct repro_claim *c, const struct repro_series *a,
		       const struct repro_series *b)
{
	double least = INFINITY, most = -INFINITY;
	size_t both = 0, below = 0;

	for (size_t i = 0; a && b && i < a->n; i++) {
		double other = repro_at(b, a->points[i].x), ratio = a->points[i].y / other;

		if (isnan(other) || !isfinite(ratio))
			continue;
		both++;
		below += a->points[i].y < other;
		least = fmin(least, ratio);
		most = fmax(most, ratio);
	}
	if (!both)
		return NAN;
	if (c->function == REPRO_BELOW)
		return (double)below / (double)both;
	return c->function == REPRO_LEAST ? least : most;
}

static double lowest(const struct repro_series *a)
{
	size_t best = 0;

	for (size_t i = 1; i < a->n; i++)
		if (a->points[i].y < a->points[best].y)
			best = i;
	return a->points[best].x;
}

static double greatest(const struct repro_series *a)
{
	double most = -INFINITY;

	for (size_t i = 0; i < a->n; i++)
		most = fmax(most, a->points[i].y);
	return most;
}

double repro_value(const struct repro_claim *c, const struct repro_data *d)
{
	const struct repro_series *a = repro_find(d, c->a), *b = repro_find(d, c->b);

	if (!a || !a->n)
		return NAN;
	switch (c->function) {
	case REPRO_VALUE:
		return repro_at(a, c->ax);
	case REPRO_RATIO:
		return repro_at(a, c->ax) / repro_at(b, c->bx);
	case REPRO_GAIN:
		return 100 * (1 - repro_at(a, c->ax) / repro_at(b, c->bx));
	case REPRO_LEAST:
	case REPRO_MOST:
	case REPRO_BELOW:
		return over_all(c, a, b);
	case REPRO_RISE:
		return a->n > 1 ? a->points[a->n - 1].y / a->points[0].y : NAN;
	case REPRO_LOWEST:
		return lowest(a);
	case REPRO_MAXIMUM:
		return greatest(a);
	}
	return NAN;
}

/* ---- taking ---- */

/* A member by its path, "usec.median". */
static const json_t *member(const json_t *row, const char *path)
{
	char name[64];

	while (path && *path) {
		size_t len = strcspn(path, ".");

		if (len >= sizeof(name))
			return NULL;
		memcpy(name, path, len);
		name[len] = '\0';
		/* A name may have a dot: overlap_1.5_pct. */
		if (json_object_get(row, path))
			return json_object_get(row, path);
		row = json_object_get(row, name);
		path += len + (path[len] == '.');
	}
	return row;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Of samples, the median; what is no number among them was not measured. */
static double median(const json_t *samples)
{
	size_t n = 0;
	double *v = calloc(json_array_size(samples) + 1, sizeof(*v)), m = NAN;

	for (size_t i = 0; v && i < json_array_size(samples); i++)
		if (json_is_number(json_array_get(samples, i)))
			v[n++] = json_number_value(json_array_get(samples, i));
	if (n) {
		qsort(v, n, sizeof(*v), by_value);
		m = (v[(n - 1) / 2] + v[n / 2]) / 2;
	}
	free(v);
	return m;
}

static double number(const json_t *row, const char *path)
{
	const json_t *v = member(row, path);

	if (json_is_array(v))
		return median(v);
	return json_is_number(v) ? json_number_value(v) : NAN;
}

static bool is(const json_t *v, const char *text, size_t len)
{
	char number_text[32];
	const char *have = json_string_value(v);

	if (json_is_number(v)) {
		snprintf(number_text, sizeof(number_text), "%.15g", json_number_value(v));
		have = number_text;
	}
	return have && strlen(have) == len && !memcmp(have, text, len);
}

static bool fits(const json_t *row, const char *where)
{
	while (where && *where) {
		size_t len = strcspn(where, ","), name = strcspn(where, "=");
		char key[64];

		if (name >= len || name >= sizeof(key))
			return false;
		memcpy(key, where, name);
		key[name] = '\0';
		if (!is(member(row, key), where + name + 1, len - name - 1))
			return false;
		where += len + (where[len] == ',');
	}
	return true;
}

static int take_row(const struct repro_step *s, const struct repro_take *t, const json_t *row,
		    struct repro_data *d)
{
	double x = t->x ? number(row, t->x) : s->x, y = number(row, t->y);
	const char *key = t->key ? json_string_value(member(row, t->key)) : "";
	char name[2 * REPRO_NAME_MAX];
	int ret;

	if (!key || !fits(row, t->where) || isnan(x) || isnan(y))
		return 0;
	snprintf(name, sizeof(name), "%s%s%.60s", s->label, t->series ? t->series : "", key);
	ret = repro_add(d, name, x, y);
	return ret ? ret : 1;
}

static int take_all(const struct repro_step *s, const struct repro_take *t, const json_t *doc,
		    struct repro_data *d)
{
	const json_t *rows = t->rows ? member(doc, t->rows) : doc;
	int n = 0, ret;

	if (!json_is_array(rows))
		return rows ? take_row(s, t, rows, d) : 0;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		ret = take_row(s, t, json_array_get(rows, i), d);
		if (ret < 0)
			return ret;
		n += ret;
	}
	return n;
}

/* A table for people, lines of blank-separated columns and comments, as rows with members "1",
 * "2"... */
static json_t *table(const char *text, size_t len)
{
	json_t *rows = json_array();

	while (len) {
		const char *end = memchr(text, '\n', len);
		size_t line = end ? (size_t)(end - text) : len;
		json_t *row = json_object();
		char column[16], word[64];

		for (size_t i = 0, n = 1; i < line && *text != '#' && n < 64; n++) {
			size_t w = 0;
			char *stop;

			while (i < line && (text[i] == ' ' || text[i] == ','))
				i++;
			while (i < line && text[i] != ' ' && text[i] != ',' && w < sizeof(word) - 1)
				word[w++] = text[i++];
			word[w] = '\0';
			snprintf(column, sizeof(column), "%zu", n);
			if (isfinite(strtod(word, &stop)) && w && !*stop)
				json_object_set_new(row, column, json_real(strtod(word, NULL)));
			else if (w)
				json_object_set_new(row, column, json_string(word));
		}
		json_array_append_new(rows, row);
		text += line + (end != NULL);
		len -= line + (end != NULL);
	}
	return rows;
}

int repro_take(const struct repro_step *s, const char *text, size_t len, struct repro_data *d,
	       char why[160])
{
	json_error_t err = {0};
	json_t *doc =
		s->table ? table(text, len) : json_loadb(text, len, JSON_DISABLE_EOF_CHECK, &err);
	int n = 0, ret = 0;

	if (!doc) {
		snprintf(why, 160, "what it printed is no JSON (line %d: %.100s)", err.line,
			 err.text);
		return -EPROTO;
	}
	for (const struct repro_take *t = s->takes; t->y && ret >= 0; t++) {
		ret = take_all(s, t, doc, d);
		n += ret > 0 ? ret : 0;
	}
	json_decref(doc);
	if (ret < 0)
		snprintf(why, 160, "what it printed does not fit: %s", strerror(-ret));
	else if (!n)
		snprintf(why, 160, "it printed nothing that was asked for");
	return ret < 0 ? ret : n ? n : -ENODATA;
}
