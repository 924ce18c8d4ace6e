#include "fabric_stripe.h"

#include <stdio.h>
#include <string.h>

#include "fabric_text.h"

/* ---- names ---- */

/* A number from 1 to max that ends at *end; 0: it is none. */
static uint32_t number(const char *text, uint32_t max, const char **end)
{
	uint32_t n = 0;

	for (; *text >= '0' && *text <= '9' && n <= max; text++)
		n = 10 * n + (uint32_t)(*text - '0');
	*end = text;
	return n <= max ? n : 0;
}

int fabric_stripe_parse(struct fabric_stripe *s, const char *text, char *why, size_t why_size)
{
	struct fabric_stripe got = {1, 1, FABRIC_STRIPE_ALPHA};
	const char *end = text;

	if (!strcmp(text, "original")) {
		end = "";
	} else if (!strncmp(text, "hsam:", 5)) {
		got.paths = got.batch = number(text + 5, FABRIC_STRIPE_PATHS_MAX, &end);
	} else if (!strncmp(text, "bss:", 4)) {
		got.paths = number(text + 4, FABRIC_STRIPE_PATHS_MAX, &end);
		got.batch = *end == ',' ? number(end + 1, got.paths, &end) : 0;
	} else {
		return fabric_refuse(why, why_size,
				     "%s is no way to stripe; known are original, hsam:N and "
				     "bss:N,B",
				     fabric_quote(text).text);
	}
	if (*end || !got.paths || !got.batch)
		return fabric_refuse(why, why_size,
				     "%s is not right; expected hsam:N or bss:N,B with 1 to %d "
				     "paths, and a batch of no more than there are, such as "
				     "bss:12,3",
				     fabric_quote(text).text, FABRIC_STRIPE_PATHS_MAX);
	*s = got;
	return 0;
}

void fabric_stripe_print(const struct fabric_stripe *s, char text[FABRIC_STRIPE_NAME_MAX])
{
	if (s->paths == 1)
		snprintf(text, FABRIC_STRIPE_NAME_MAX, "original");
	else if (s->paths == s->batch)
		snprintf(text, FABRIC_STRIPE_NAME_MAX, "hsam:%u", s->paths);
	else
		snprintf(text, FABRIC_STRIPE_NAME_MAX, "bss:%u,%u", s->paths, s->batch);
}

/* ---- weights ---- */

void fabric_stripe_begin(const struct fabric_stripe *s, double *weight)
{
	for (uint32_t i = 0; i < s->paths; i++)
		weight[i] = 1.0 / s->paths;
}

/* The paths by weight, the heaviest first; equal ones stay in order. There are few. */
static void sort(const struct fabric_stripe *s, const double *weight, uint32_t *path)
{
	for (uint32_t i = 0; i < s->paths; i++) {
		uint32_t at = i;

		for (; at > 0 && weight[path[at - 1]] < weight[i]; at--)
			path[at] = path[at - 1];
		path[at] = i;
	}
}

/* Of the bytes, those up to the part of the whole. Rounded sums rather than rounded shares: the
 * last ends where the message does. */
static uint64_t up_to(uint64_t bytes, double part)
{
	double b = (double)bytes * part;

	return b < (double)bytes ? (uint64_t)b : bytes;
}

uint32_t fabric_stripe_divide(const struct fabric_stripe *s, const double *weight, uint64_t bytes,
			      struct fabric_share *share)
{
	uint32_t path[FABRIC_STRIPE_PATHS_MAX], n = 0;
	double total = 0, sum = 0;
	uint64_t done = 0;

	sort(s, weight, path);
	for (uint32_t i = 0; i < s->batch; i++)
		total += weight[path[i]];
	for (uint32_t i = 0; i < s->batch; i++) {
		uint64_t end;

		sum += weight[path[i]];
		end = i + 1 < s->batch ? up_to(bytes, sum / total) : bytes;
		if (end > done)
			share[n++] = (struct fabric_share){path[i], end - done};
		done = end > done ? end : done;
	}
	return n;
}

void fabric_stripe_learn(const struct fabric_stripe *s, double *weight,
			 const struct fabric_share *share, const uint64_t *time, uint32_t shares)
{
	double batch = 0, rates = 0, rate[FABRIC_STRIPE_PATHS_MAX];

	for (uint32_t i = 0; i < shares; i++) {
		double w = weight[share[i].path];

		rate[i] = w / (time[i] ? (double)time[i] : 1);
		batch += w;
		rates += rate[i];
	}
	for (uint32_t i = 0; i < shares && rates > 0; i++) {
		double *w = &weight[share[i].path];

		*w = (1 - s->alpha) * *w + s->alpha * batch * rate[i] / rates;
	}
}
