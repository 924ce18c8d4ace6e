/* What the parsers of this layer share. Texts come from outside: nothing of them is
 * repeated in a sentence before it is quoted. */
#ifndef WEFT_FABRIC_TEXT_H
#define WEFT_FABRIC_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "util_number.h"

/* Writes the sentence; returns -EINVAL. */
int fabric_refuse(char *why, size_t why_size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* 'text' in quotes, at most about forty characters of it, bytes that can not be shown as \xNN. */
struct fabric_quote {
	char text[64];
};

struct fabric_quote fabric_quote_n(const char *text, size_t len);
struct fabric_quote fabric_quote(const char *text);

/* Where a name is a remark only: bytes that can not be shown become '?'. Returns the name. */
char *fabric_mask(char *name);

/* A decimal number and nothing else: 0, -EINVAL, or -ERANGE beyond 64 bits. */
static inline int fabric_decimal(const char *text, uint64_t *value)
{
	return util_decimal(text, value);
}

/* The file F of "file:F", to be read; "-" is standard input. Returns 0, or -EINVAL or the errno of
 * the file with one sentence in why. */
int fabric_open(FILE **f, const char *path, char *why, size_t why_size);
void fabric_close(FILE *f);
/* What sentences call it. */
const char *fabric_file_name(const char *path);

/* After the last word that was written: 0, or the -errno of what could not be. */
int fabric_flush(FILE *to);

/* The SEED of "what:SEED". Returns 0, or -EINVAL with one sentence in why. */
int fabric_seed(const char *what, const char *text, uint64_t *seed, char *why, size_t why_size);

#endif
