/* From what was measured to what is said of a figure. */
#include "repro.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* The median over the rounds of each point. */
static void medians(const struct repro_result *r, struct repro_data *all)
{
	double v[REPRO_ROUNDS_MAX];

	for (size_t i = 0; i < r->rounds; i++) {
		for (size_t s = 0; s < r->data[i].n; s++) {
			const struct repro_series *have = &r->data[i].series[s];

			for (size_t k = 0; k < have->n; k++) {
				size_t n = 0;

				for (size_t j = 0; j < r->rounds; j++) {
					v[n] = repro_at(repro_find(&r->data[j], have->name),
							have->points[k].x);
					n += !isnan(v[n]);
				}
				qsort(v, n, sizeof(*v), by_value);
				if (n)
					repro_add(all, have->name, have->points[k].x,
						  (v[(n - 1) / 2] + v[n / 2]) / 2);
			}
		}
	}
}

static void judge_all(const struct repro_result *r, struct repro_finding *f)
{
	const struct repro_claim *c = f->figure->claims;
	double values[REPRO_ROUNDS_MAX];

	for (; c && c->says && f->n < REPRO_CLAIMS_MAX; c++) {
		for (size_t i = 0; i < r->rounds; i++)
			values[i] = repro_value(c, &r->data[i]);
		repro_judge(c, values, r->rounds, &f->claims[f->n++]);
	}
	f->verdict = repro_worst(f->claims, f->n);
	for (size_t i = 0; i < f->n && !f->why[0]; i++)
		if (f->claims[i].verdict == f->verdict)
			snprintf(f->why, sizeof(f->why), "%s", f->claims[i].why);
}

static void not_measured(struct repro_finding *f, const char *why)
{
	const struct repro_claim *c = f->figure->claims;

	f->verdict = REPRO_NOT_HERE;
	snprintf(f->why, sizeof(f->why), "%s", why);
	for (; c && c->says && f->n < REPRO_CLAIMS_MAX; c++)
		f->claims[f->n++] = (struct repro_outcome){
			.verdict = REPRO_NOT_HERE, .value = NAN, .low = NAN, .high = NAN};
}

void repro_conclude(const struct repro_options *o, const struct repro_figure *figure,
		    struct repro_finding *f)
{
	const struct repro_experiment *x = figure->experiment;
	const char *missing = x ? repro_missing(o, x) : NULL;
	struct repro_result *r;

	memset(f, 0, sizeof(*f));
	f->figure = figure;
	if (!x || missing) {
		not_measured(f, x ? missing : figure->why);
		return;
	}
	f->wanted = x->rounds[o->mode];
	r = malloc(sizeof(*r));
	if (!r || repro_load(o, x, r)) {
		not_measured(f, "it was not measured yet");
		free(r);
		return;
	}
	f->rounds = r->rounds;
	f->seconds = r->seconds;
	medians(r, &f->data);
	judge_all(r, f);
	snprintf(f->note, sizeof(f->note), "%s", r->failure);
	if (r->failure[0] && f->verdict == REPRO_NOT_HERE)
		snprintf(f->why, sizeof(f->why), "something could not be measured: %s", r->failure);
	repro_drop(r);
	free(r);
}

void repro_finding_free(struct repro_finding *f)
{
	repro_clear(&f->data);
	free(f->svg);
	f->svg = NULL;
}

/* ---- JSON ---- */

static json_t *real(double v)
{
	return isfinite(v) ? json_real(v) : json_null();
}

/* Texts are from the tables, or were made here. */
static json_t *words(const char *text)
{
	json_t *t = json_string(text ? text : "");

	return t ? t : json_string("?");
}

static json_t *claim_json(const struct repro_claim *c, const struct repro_outcome *o)
{
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:s, s:o}", "claim",
			 words(c->says), "published", words(c->published), "published_value",
			 real(c->want), "here", real(o->value), "low", real(o->low), "high",
			 real(o->high), "unit", words(c->unit), "rounds", (json_int_t)o->n,
			 "verdict", repro_verdict_name(o->verdict), "why", words(o->why));
}

static json_t *commands_json(const struct repro_experiment *x, enum repro_mode mode)
{
	json_t *list = json_array();

	for (const struct repro_step *s = x ? x->steps : NULL; s && s->command; s++) {
		char *command = repro_command(s->command, mode);

		json_array_append_new(list, words(command));
		free(command);
	}
	return list;
}

json_t *repro_finding_json(const struct repro_finding *f, enum repro_mode mode)
{
	json_t *claims = json_array();

	for (size_t i = 0; i < f->n; i++)
		json_array_append_new(claims, claim_json(&f->figure->claims[i], &f->claims[i]));
	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:I, s:I, s:f, s:o, s:o}", "name",
			 f->figure->name, "shows", words(f->figure->shows), "verdict",
			 repro_verdict_name(f->verdict), "why", words(f->why), "note",
			 words(f->note), "rounds", (json_int_t)f->rounds, "rounds_wanted",
			 (json_int_t)f->wanted, "seconds", f->seconds, "claims", claims, "commands",
			 commands_json(f->figure->experiment, mode));
}
