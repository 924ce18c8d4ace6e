#include "rnic_fault.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "util_clock.h"
#include "util_log.h"
#include "util_number.h"

#define ONE       (UINT64_C(1) << 32) /* a probability of 1 */
#define DECIMALS  12                  /* of a probability; 2^-32 has ten zeros */
#define DELAY_MAX (60 * UTIL_NS_PER_S)
#define KEYS      "loss, dup, corrupt, reorder, delay and seed"

#define WANT_PROBABILITY "a probability from 0 to 1, as 0.05, or a percentage, as 5%"
#define WANT_DELAY       "a whole number with ns, us, ms or s, as 2ms, up to 60s"
#define WANT_SEED        "a whole number below 2^64"

static int __attribute__((format(printf, 3, 4)))
refuse(char *why, size_t size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

static bool digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "0.05", "1", ".5", "5%", "0.1%". Not strtod, which would read a decimal comma in a program
 * that has set its locale. */
static int parse_probability(const char *text, uint64_t *value)
{
	uint64_t num = 0; /* in units of 10^-DECIMALS */
	int left = DECIMALS, digits = 0;
	double p;

	for (; digit(*text); text++, digits++) {
		num = num * 10 + (uint64_t)(*text - '0');
		if (num > 100)
			return -EINVAL;
	}
	if (*text == '.')
		for (text++; digit(*text); text++, digits++) {
			if (!left--)
				return -EINVAL;
			num = num * 10 + (uint64_t)(*text - '0');
		}
	if (!digits)
		return -EINVAL;
	while (left--)
		num *= 10;
	p = (double)num / 1e12;
	if (*text == '%') {
		p /= 100;
		text++;
	}
	if (*text || p > 1)
		return -EINVAL;
	*value = (uint64_t)(p * (double)ONE + 0.5);
	/* What is too rare to be expressed would never happen. */
	return num && !*value ? -EINVAL : 0;
}

static int parse_delay(const char *text, uint64_t *value)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} unit[] = {{"", UTIL_NS_PER_MS},
		    {"ns", 1},
		    {"us", UTIL_NS_PER_US},
		    {"ms", UTIL_NS_PER_MS},
		    {"s", UTIL_NS_PER_S}};
	const char *end;

	if (util_whole(text, &end, value))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(unit) / sizeof(unit[0]); i++)
		if (!strcmp(end, unit[i].name))
			return __builtin_mul_overflow(*value, unit[i].ns, value) ||
					       *value > DELAY_MAX
				       ? -EINVAL
				       : 0;
	return -EINVAL;
}

static int parse_seed(const char *text, uint64_t *value)
{
	const char *end;

	return util_whole(text, &end, value) || *end ? -EINVAL : 0;
}

static const struct key {
	const char *name;
	size_t offset; /* of the uint64_t in struct rnic_fault */
	int (*parse)(const char *text, uint64_t *value);
	const char *want;
} keys[] = {
	{"loss", offsetof(struct rnic_fault, loss), parse_probability, WANT_PROBABILITY},
	{"dup", offsetof(struct rnic_fault, dup), parse_probability, WANT_PROBABILITY},
	{"corrupt", offsetof(struct rnic_fault, corrupt), parse_probability, WANT_PROBABILITY},
	{"reorder", offsetof(struct rnic_fault, reorder), parse_probability, WANT_PROBABILITY},
	{"delay", offsetof(struct rnic_fault, delay), parse_delay, WANT_DELAY},
	{"seed", offsetof(struct rnic_fault, seed), parse_seed, WANT_SEED},
};
#define N_KEYS (sizeof(keys) / sizeof(keys[0]))

static const struct key *find_key(const char *name, size_t len)
{
	for (size_t i = 0; i < N_KEYS; i++)
		if (strlen(keys[i].name) == len && !strncmp(keys[i].name, name, len))
			return &keys[i];
	return NULL;
}

/* One "key=value" of len bytes; seen has a bit for each key that was there before. */
static int parse_item(struct rnic_fault *f, const char *item, size_t len, unsigned int *seen,
		      char *why, size_t size)
{
	const char *equals = memchr(item, '=', len);
	const struct key *key = equals ? find_key(item, (size_t)(equals - item)) : NULL;
	char value[64];
	size_t n;

	if (!equals)
		return refuse(why, size, "\"%.*s\" is not KEY=VALUE; keys are " KEYS, (int)len,
			      item);
	if (!key)
		return refuse(why, size, "\"%.*s\" is not known; keys are " KEYS,
			      (int)(equals - item), item);
	if (*seen & (1u << (key - keys)))
		return refuse(why, size, "%s is there twice; give it once", key->name);
	*seen |= 1u << (key - keys);
	n = len - (size_t)(equals + 1 - item);
	/* No value that is right is as long as that. */
	if (n < sizeof(value)) {
		memcpy(value, equals + 1, n);
		value[n] = '\0';
		if (!key->parse(value, (uint64_t *)(void *)((char *)f + key->offset)))
			return 0;
	}
	return refuse(why, size, "%s=%.*s is not right: expected %s", key->name, (int)n, equals + 1,
		      key->want);
}

static int parse_items(struct rnic_fault *f, const char *spec, char *why, size_t size)
{
	unsigned int seen = 0;

	for (;;) {
		size_t len = strcspn(spec, ",");
		int ret = parse_item(f, spec, len, &seen, why, size);

		if (ret)
			return ret;
		if (!spec[len])
			break;
		spec += len + 1;
	}
	f->seeded = seen & (1u << (find_key("seed", 4) - keys));
	return 0;
}

/* A seed of our own, so that a run without one can be repeated too. */
static void draw_seed(struct rnic_fault *f)
{
	if (util_random_key(&f->seed, sizeof(f->seed)))
		f->seed = util_now_ns();
	util_log(UTIL_LOG_WARN, "faults on purpose: seed=%" PRIu64 " makes the same choices again",
		 f->seed);
}

int rnic_fault_parse(struct rnic_fault *f, const char *spec, char *why, size_t size)
{
	struct rnic_fault parsed = {0};
	int ret;

	memset(f, 0, sizeof(*f));
	if (!spec || !*spec)
		return 0;
	ret = parse_items(&parsed, spec, why, size);
	if (ret)
		return ret; /* and no faults: half of a specification is not what was asked */
	if (!parsed.seeded && rnic_fault_any(&parsed))
		draw_seed(&parsed);
	util_rand_seed(&parsed.rand, parsed.seed);
	*f = parsed;
	return 0;
}

int rnic_fault_check(const char *spec, char *why, size_t size)
{
	struct rnic_fault parsed = {0};

	return *spec ? parse_items(&parsed, spec, why, size) : 0;
}

bool rnic_fault_any(const struct rnic_fault *f)
{
	return f->loss || f->dup || f->corrupt || f->reorder || f->delay;
}

static bool happens(struct rnic_fault *f, uint64_t probability)
{
	return util_rand_next(&f->rand) >> 32 < probability;
}

/* Every datagram takes six numbers, whatever is switched on: adding one fault to a
 * specification does not change what happens by another. */
struct rnic_fault_verdict rnic_fault_next(struct rnic_fault *f, size_t len)
{
	struct rnic_fault_verdict v = {0};
	uint64_t bit, late;

	if (!rnic_fault_any(f))
		return v;
	v.drop = happens(f, f->loss);
	v.again = happens(f, f->dup);
	v.flip = happens(f, f->corrupt) && len;
	bit = util_rand_next(&f->rand);
	v.reorder = happens(f, f->reorder);
	late = util_rand_next(&f->rand);
	if (v.flip)
		v.bit = (uint32_t)(bit % (8 * (uint64_t)len));
	if (f->delay)
		v.delay = late % (f->delay + 1);
	return v;
}
