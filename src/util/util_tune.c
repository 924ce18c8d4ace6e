#include "util_tune.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "util_log.h"
#include "util_number.h"

const struct util_tunable util_tunables[] = {
	[UTIL_TUNE_LOG] =
		{
			.name = "WEFT_LOG",
			.type = UTIL_TUNE_ENUM,
			.def = "warn",
			.choices = "error|warn|info|debug",
			.help = "How much is written to standard error.",
		},
	{0},
};

struct unit {
	const char *name;
	uint64_t factor;
};

static const struct unit size_units[] = {
	{"", 1},
	{"k", UINT64_C(1) << 10},
	{"K", UINT64_C(1) << 10},
	{"m", UINT64_C(1) << 20},
	{"M", UINT64_C(1) << 20},
	{"g", UINT64_C(1) << 30},
	{"G", UINT64_C(1) << 30},
	{NULL, 0},
};

static const struct unit time_units[] = {
	{"", 1000}, {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0},
};

static int __attribute__((format(printf, 3, 4)))
refuse(char *why, size_t why_len, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, why_len, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

/* A number and one of the units. -EINVAL: not that; -ERANGE: more than 64 bits. */
static int parse_number(const char *text, const struct unit *units, uint64_t *value)
{
	const char *end;
	int ret = util_whole(text, &end, value);

	if (ret)
		return ret;
	for (; units->name; units++)
		if (!strcmp(end, units->name))
			return __builtin_mul_overflow(*value, units->factor, value) ? -ERANGE : 0;
	return -EINVAL;
}

static int parse_bool(const char *text, uint64_t *value)
{
	static const char *const yes[] = {"1", "yes", "on", "true", "y"};
	static const char *const no[] = {"0", "no", "off", "false", "n"};

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		*value = !strcasecmp(text, yes[i]);
		if (*value || !strcasecmp(text, no[i]))
			return 0;
	}
	return -EINVAL;
}

static int parse_choice(const char *text, const char *choices, uint64_t *value)
{
	size_t want = strlen(text);

	for (*value = 0;; (*value)++) {
		size_t len = strcspn(choices, "|");

		if (len == want && !strncmp(text, choices, len))
			return 0;
		if (!choices[len])
			return -EINVAL;
		choices += len + 1;
	}
}

static void print_ns(char *buf, size_t len, uint64_t ns)
{
	if (ns >= 1000000000 && ns % 1000000000 == 0)
		snprintf(buf, len, "%" PRIu64 "s", ns / 1000000000);
	else if (ns >= 1000000 && ns % 1000000 == 0)
		snprintf(buf, len, "%" PRIu64 "ms", ns / 1000000);
	else if (ns >= 1000 && ns % 1000 == 0)
		snprintf(buf, len, "%" PRIu64 "us", ns / 1000);
	else
		snprintf(buf, len, "%" PRIu64 "ns", ns);
}

static void print_limit(const struct util_tunable *t, char *buf, size_t len, uint64_t v)
{
	if (t->type == UTIL_TUNE_DURATION)
		print_ns(buf, len, v);
	else
		snprintf(buf, len, "%" PRIu64, v);
}

void util_tune_type_str(const struct util_tunable *t, char *buf, size_t len)
{
	const char *kind = t->type == UTIL_TUNE_DURATION
				   ? "time with ns, us, ms or s (a number alone: us)"
				   : "number";
	char lo[32], hi[32];

	switch (t->type) {
	case UTIL_TUNE_STR:
		snprintf(buf, len, "text");
		return;
	case UTIL_TUNE_BOOL:
		snprintf(buf, len, "yes or no");
		return;
	case UTIL_TUNE_ENUM:
		snprintf(buf, len, "one of %s", t->choices);
		return;
	case UTIL_TUNE_UINT:
	case UTIL_TUNE_DURATION:
		break;
	}
	print_limit(t, lo, sizeof(lo), t->min);
	print_limit(t, hi, sizeof(hi), t->max);
	if (t->max)
		snprintf(buf, len, "%s, %s to %s", kind, lo, hi);
	else if (t->min)
		snprintf(buf, len, "%s, at least %s", kind, lo);
	else
		snprintf(buf, len, "%s", kind);
}

static int parse_typed(const struct util_tunable *t, const char *text, struct util_tune_value *v,
		       char *why, size_t why_len)
{
	char want[160];
	int ret = 0;

	v->str = text;
	v->num = 0;
	switch (t->type) {
	case UTIL_TUNE_STR:
		return 0;
	case UTIL_TUNE_BOOL:
		ret = parse_bool(text, &v->num);
		break;
	case UTIL_TUNE_ENUM:
		ret = parse_choice(text, t->choices, &v->num);
		break;
	case UTIL_TUNE_UINT:
		ret = parse_number(text, size_units, &v->num);
		break;
	case UTIL_TUNE_DURATION:
		ret = parse_number(text, time_units, &v->num);
		break;
	}
	util_tune_type_str(t, want, sizeof(want));
	if (ret == -EINVAL)
		return refuse(why, why_len, "%s=%s is not understood: expected %s", t->name, text,
			      want);
	if (t->type != UTIL_TUNE_UINT && t->type != UTIL_TUNE_DURATION)
		return 0;
	if (ret == -ERANGE || (t->max && v->num > t->max))
		return refuse(why, why_len, "%s=%s is too large: expected %s", t->name, text, want);
	if (v->num < t->min)
		return refuse(why, why_len, "%s=%s is too small: expected %s", t->name, text, want);
	return 0;
}

int util_tune_parse(const struct util_tunable *t, const char *text, struct util_tune_value *v,
		    char *why, size_t why_len)
{
	int ret = parse_typed(t, text, v, why, why_len);
	char wrong[256];

	if (ret || !t->check || !t->check(text, v->num, wrong, sizeof(wrong)))
		return ret;
	return refuse(why, why_len, "%s=%s: %s", t->name, text, wrong);
}

static struct util_tune_value current_value(const struct util_tunable *t)
{
	struct util_tune_value v = {.str = t->def};
	const char *text = getenv(t->name);
	char why[512];

	if (text && *text) {
		if (!util_tune_parse(t, text, &v, why, sizeof(why)))
			return v;
		util_log(UTIL_LOG_ERROR, "%s; using the default, %s", why,
			 t->def ? t->def : "none");
		v.str = t->def;
	}
	/* Only a string can do without a default; a test parses all of the others. */
	if (t->def && util_tune_parse(t, t->def, &v, why, sizeof(why)))
		assert(!"a default that does not parse");
	return v;
}

unsigned long util_tune_uint(const struct util_tunable *t)
{
	assert(t->type == UTIL_TUNE_UINT);
	return current_value(t).num;
}

bool util_tune_bool(const struct util_tunable *t)
{
	assert(t->type == UTIL_TUNE_BOOL);
	return current_value(t).num;
}

const char *util_tune_str(const struct util_tunable *t)
{
	return current_value(t).str;
}

unsigned int util_tune_enum(const struct util_tunable *t)
{
	assert(t->type == UTIL_TUNE_ENUM);
	return (unsigned int)current_value(t).num;
}

uint64_t util_tune_ns(const struct util_tunable *t)
{
	assert(t->type == UTIL_TUNE_DURATION);
	return current_value(t).num;
}
