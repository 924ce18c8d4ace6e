/* What was measured, in files: OUT/EXPERIMENT.json, replaced as a whole after each round. */
#include "repro.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX_BYTES (16 << 20)

static int path_of(const struct repro_options *o, const struct repro_experiment *x, char *path)
{
	return (size_t)snprintf(path, PATH_MAX, "%s/%s.json", o->out, x->name) < PATH_MAX
		       ? 0
		       : -ENAMETOOLONG;
}

static void recipe_text(const struct repro_options *o, const struct repro_experiment *x,
			char text[32])
{
	snprintf(text, 32, "%s-%016llx", o->mode == REPRO_QUICK ? "quick" : "full",
		 repro_recipe(x, o->mode));
}

void repro_drop(struct repro_result *r)
{
	for (size_t i = 0; i < r->rounds; i++)
		repro_clear(&r->data[i]);
	r->rounds = 0;
}

/* ---- writing ---- */

static json_t *round_json(const struct repro_data *d)
{
	json_t *o = json_object();

	for (size_t i = 0; i < d->n; i++) {
		json_t *points = json_array();

		for (size_t k = 0; k < d->series[i].n; k++)
			json_array_append_new(points, json_pack("[f, f]", d->series[i].points[k].x,
								d->series[i].points[k].y));
		json_object_set_new(o, d->series[i].name, points);
	}
	return o;
}

int repro_store(const struct repro_options *o, const struct repro_experiment *x,
		const struct repro_result *r)
{
	char path[PATH_MAX], part[PATH_MAX + 8], recipe[32], when[32];
	json_t *rounds = json_array(), *doc;
	time_t now = time(NULL);
	int ret = path_of(o, x, path);

	recipe_text(o, x, recipe);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	for (size_t i = 0; i < r->rounds; i++)
		json_array_append_new(rounds, round_json(&r->data[i]));
	doc = json_pack("{s:s, s:s, s:s, s:s, s:s, s:b, s:f, s:s, s:o}", "program",
			"weft reproduce", "version", o->version, "experiment", x->name, "recipe",
			recipe, "time", when, "complete", r->complete, "seconds", r->seconds,
			"failure", r->failure, "rounds", rounds);
	if (!doc)
		return -ENOMEM;
	snprintf(part, sizeof(part), "%s.part", path);
	if (!ret && json_dump_file(doc, part, JSON_INDENT(1) | JSON_REAL_PRECISION(10)))
		ret = errno ? -errno : -EIO;
	if (!ret && rename(part, path))
		ret = -errno;
	if (ret)
		unlink(part);
	json_decref(doc);
	return ret;
}

/* ---- reading; it may be anybody's file ---- */

static int read_round(const json_t *o, struct repro_data *d)
{
	const char *name;
	const json_t *points;

	if (!json_is_object(o))
		return -EPROTO;
	json_object_foreach((json_t *)o, name, points)
	{
		for (size_t k = 0; k < json_array_size(points); k++) {
			const json_t *p = json_array_get(points, k);
			const json_t *px = json_array_get(p, 0), *py = json_array_get(p, 1);

			if (!json_is_number(px) || !json_is_number(py) ||
			    repro_add(d, name, json_number_value(px), json_number_value(py)))
				return -EPROTO;
		}
	}
	return 0;
}

static const char *text(const json_t *doc, const char *name)
{
	const char *t = json_string_value(json_object_get(doc, name));

	return t ? t : "";
}

static int read_all(const struct repro_options *o, const struct repro_experiment *x,
		    const json_t *doc, struct repro_result *r)
{
	const json_t *rounds = json_object_get(doc, "rounds");
	char recipe[32];

	recipe_text(o, x, recipe);
	if (strcmp(text(doc, "recipe"), recipe) != 0 ||
	    strcmp(text(doc, "version"), o->version) != 0)
		return -ENOENT; /* of something else */
	if (!json_is_array(rounds) || json_array_size(rounds) > REPRO_ROUNDS_MAX)
		return -EPROTO;
	for (size_t i = 0; i < json_array_size(rounds); i++) {
		int ret = read_round(json_array_get(rounds, i), &r->data[r->rounds++]);

		if (ret)
			return ret;
	}
	r->complete = json_is_true(json_object_get(doc, "complete"));
	r->seconds = json_number_value(json_object_get(doc, "seconds"));
	snprintf(r->failure, sizeof(r->failure), "%s", text(doc, "failure"));
	snprintf(r->time, sizeof(r->time), "%s", text(doc, "time"));
	return 0;
}

int repro_load(const struct repro_options *o, const struct repro_experiment *x,
	       struct repro_result *r)
{
	char path[PATH_MAX];
	struct stat st;
	json_error_t err;
	json_t *doc;
	int ret = path_of(o, x, path);

	memset(r, 0, sizeof(*r));
	if (ret)
		return ret;
	if (stat(path, &st))
		return errno == ENOENT ? -ENOENT : -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > FILE_MAX_BYTES)
		return -EPROTO;
	doc = json_load_file(path, JSON_REJECT_DUPLICATES, &err);
	if (!doc)
		return -EPROTO;
	ret = read_all(o, x, doc, r);
	json_decref(doc);
	if (ret) {
		repro_drop(r);
		memset(r, 0, sizeof(*r));
	}
	return ret;
}
