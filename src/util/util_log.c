#include "util_log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "util_tune.h"

#define LINE_MAX_BYTES 1024

static const char *const level_names[] = {
	[UTIL_LOG_ERROR] = "error",
	[UTIL_LOG_WARN] = "warn",
	[UTIL_LOG_INFO] = "info",
	[UTIL_LOG_DEBUG] = "debug",
};

#define LEVEL_UNSET (-1)

/* Relaxed everywhere: the level guards no other data. */
static atomic_int current = LEVEL_UNSET;

void util_log_set_level(enum util_log_level level)
{
	atomic_store_explicit(&current, (int)level, memory_order_relaxed);
}

/* WEFT_LOG is read here without util_tune_enum, which would log a bad value before
 * there is a level to log it at. */
static int level_from_env(char *why, size_t why_len)
{
	const struct util_tunable *t = &util_tunables[UTIL_TUNE_LOG];
	const char *text = getenv(t->name);
	struct util_tune_value v;

	why[0] = '\0';
	if (text && *text && !util_tune_parse(t, text, &v, why, why_len))
		return (int)v.num;
	return UTIL_LOG_WARN;
}

bool util_log_enabled(enum util_log_level level)
{
	int now = atomic_load_explicit(&current, memory_order_relaxed);

	if (now == LEVEL_UNSET) {
		char why[512];
		int first = level_from_env(why, sizeof(why));

		/* Whoever sets the level also tells what was wrong with it. */
		if (atomic_compare_exchange_strong(&current, &now, first)) {
			now = first;
			if (why[0])
				util_log(UTIL_LOG_ERROR, "%s; using the default, %s", why,
					 util_tunables[UTIL_TUNE_LOG].def);
		}
	}
	return (int)level <= now;
}

static void log_line(enum util_log_level level, const char *fmt, va_list ap)
{
	char line[LINE_MAX_BYTES];
	int saved = errno;
	size_t len;
	int n;

	/* Room for the newline, and for an ellipsis where the text does not fit. */
	n = snprintf(line, sizeof(line), "weft[%d] %s: ", (int)getpid(), level_names[level]);
	len = (size_t)n;
	errno = saved; /* for %m */
	n = vsnprintf(line + len, sizeof(line) - 1 - len, fmt, ap);
	if (n < 0)
		n = 0;
	len += (size_t)n;
	if (len > sizeof(line) - 2) {
		len = sizeof(line) - 2;
		memcpy(line + len - 3, "...", 3);
	}
	line[len++] = '\n';
	/* A log that can not be written has nobody to tell. */
	while (write(STDERR_FILENO, line, len) < 0 && errno == EINTR)
		;
	errno = saved;
}

void util_log(enum util_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!util_log_enabled(level))
		return;
	va_start(ap, fmt);
	log_line(level, fmt, ap);
	va_end(ap);
}

void util_log_once(atomic_bool *done, enum util_log_level level, const char *fmt, ...)
{
	va_list ap;

	if (!util_log_enabled(level))
		return;
	/* The load first: the common case must not write to a shared cache line. */
	if (atomic_load_explicit(done, memory_order_relaxed) ||
	    atomic_exchange_explicit(done, true, memory_order_relaxed))
		return;
	va_start(ap, fmt);
	log_line(level, fmt, ap);
	va_end(ap);
}
