/* Tunables: environment variables with a type, a default and a help text.
 *
 * Each layer keeps one constant table, ended by an entry without a name, indexed
 * by an enum beside it:
 *
 *	enum { RNIC_TUNE_ADDR, RNIC_TUNE_RING };
 *	const struct util_tunable rnic_tunables[] = {
 *		[RNIC_TUNE_ADDR] = { .name = "WEFT_ADDR", .type = UTIL_TUNE_STR, ... },
 *		[RNIC_TUNE_RING] = { .name = "WEFT_RING", .type = UTIL_TUNE_UINT,
 *				     .def = "1k", .min = 16, .max = 65536, ... },
 *		{ 0 },
 *	};
 *
 * Nothing registers itself: who prints tunables (`weft info`, the manual page)
 * names the tables. Who uses one reads it once, when its object is set up, and
 * keeps the value: each read looks at the environment again, and complains again.
 *
 * A value that does not fit is reported on standard error (the value, what is
 * wrong, what would be right) and the default is used. It is never clamped. A
 * variable that is set but empty counts as not set.
 *
 * Callable from any thread, as long as nobody calls setenv(3) meanwhile.
 */
#ifndef WEFT_UTIL_TUNE_H
#define WEFT_UTIL_TUNE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum util_tune_type {
	UTIL_TUNE_STR,      /* any text */
	UTIL_TUNE_UINT,     /* 123, 0x7b, 4k, 2M, 1G (powers of 1024) */
	UTIL_TUNE_BOOL,     /* yes no on off true false 1 0 */
	UTIL_TUNE_ENUM,     /* one word of `choices` */
	UTIL_TUNE_DURATION, /* 20us, 5ms, 2s, 100ns; a plain number counts microseconds */
};

struct util_tunable {
	const char *name;
	enum util_tune_type type;
	const char *def;     /* as text, as a user would write it; NULL for "not set" (STR) */
	const char *help;    /* one or more sentences, without a line break */
	uint64_t min, max;   /* UINT: the value, DURATION: ns; max 0 means no upper limit */
	const char *choices; /* ENUM: "error|warn|info|debug" */
	/* What the type can not say; NULL: nothing. 0, or -EINVAL with what is wrong and what
	 * would be right in why. Pure. */
	int (*check)(const char *text, uint64_t num, char *why, size_t why_len);
};

struct util_tune_value {
	const char *str; /* the text that was parsed */
	uint64_t num;    /* UINT: value, BOOL: 0 or 1, ENUM: index of the choice, DURATION: ns */
};

/* Parses text as a value of t. Returns 0, or -EINVAL with a sentence in why. Pure:
 * reads no environment, prints nothing. */
int util_tune_parse(const struct util_tunable *t, const char *text, struct util_tune_value *v,
		    char *why, size_t why_len);

/* The value in force: the environment's, or else the default. */
unsigned long util_tune_uint(const struct util_tunable *t);
bool util_tune_bool(const struct util_tunable *t);
const char *util_tune_str(const struct util_tunable *t);
unsigned int util_tune_enum(const struct util_tunable *t); /* index into choices */
uint64_t util_tune_ns(const struct util_tunable *t);

/* What a user may write: "text", "number, 16 to 65536", "yes or no". */
void util_tune_type_str(const struct util_tunable *t, char *buf, size_t len);

#define util_tune_for_each(t, table) for ((t) = (table); (t)->name; (t)++)

/* The tunables of this layer. */
enum { UTIL_TUNE_LOG };
extern const struct util_tunable util_tunables[];

#endif
