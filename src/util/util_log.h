/* Log lines on standard error: "weft[1234] warn: what happened".
 *
 * One write(2) per line, so that lines of many threads and processes never mix.
 * Callable from any thread; errno is preserved; not from signal handlers (it
 * formats with printf). WEFT_LOG decides what is shown, `warn` unless told.
 */
#ifndef WEFT_UTIL_LOG_H
#define WEFT_UTIL_LOG_H

#include <stdatomic.h>
#include <stdbool.h>

enum util_log_level {
	UTIL_LOG_ERROR,
	UTIL_LOG_WARN,
	UTIL_LOG_INFO,
	UTIL_LOG_DEBUG,
};

/* Whether a line of this level would be shown: for callers whose arguments are
 * expensive to compute. */
bool util_log_enabled(enum util_log_level level);

/* fmt without a newline. */
void util_log(enum util_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* As util_log, but only for the first caller that finds *done false: for events
 * that a peer could cause a million times. */
void util_log_once(atomic_bool *done, enum util_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Overrides WEFT_LOG; for tests and command line options. */
void util_log_set_level(enum util_log_level level);

#endif
