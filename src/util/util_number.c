#include "util_number.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* All digits; returns what follows them, or NULL if there are none. */
static const char *digits(const char *text, uint64_t *value, int *ret)
{
	const char *at = text;
	uint64_t v = 0;

	*ret = 0;
	for (; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(v, 10, &v) ||
		    __builtin_add_overflow(v, (uint64_t)(*at - '0'), &v))
			*ret = -ERANGE;
	*value = v;
	return at > text ? at : NULL;
}

int util_decimal(const char *text, uint64_t *value)
{
	uint64_t v;
	int ret;
	const char *end = digits(text, &v, &ret);

	if (!end || *end)
		return -EINVAL;
	*value = v;
	return ret;
}

int util_whole(const char *text, const char **end, uint64_t *value)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	char *rest;
	int ret;

	/* Not base 0, which takes 010 for 8. */
	if (!hex) {
		*end = digits(text, value, &ret);
		return *end ? ret : -EINVAL;
	}
	errno = 0;
	*value = strtoull(text, &rest, 16);
	*end = rest;
	return errno ? -ERANGE : 0;
}

int util_size(const char *text, uint64_t *value)
{
	static const char units[] = "KkMmGg";
	uint64_t v;
	int ret;
	const char *end = digits(text, &v, &ret), *unit;

	if (!end)
		return -EINVAL;
	if (*end) {
		unit = strchr(units, *end);
		if (!unit || end[1])
			return -EINVAL;
		if (__builtin_mul_overflow(v, UINT64_C(1) << (10 * (1 + (unit - units) / 2)), &v))
			ret = -ERANGE;
	}
	*value = v;
	return ret;
}
