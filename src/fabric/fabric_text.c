#include "fabric_text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int fabric_refuse(char *why, size_t why_size, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, why_size, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

struct fabric_quote fabric_quote_n(const char *text, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	struct fabric_quote q;
	size_t room = sizeof(q.text) - sizeof("'...'") - 4, at = 0, i;

	q.text[at++] = '\'';
	for (i = 0; i < len && at <= room; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c >= ' ' && c < 0x7f) {
			q.text[at++] = (char)c;
			continue;
		}
		q.text[at++] = '\\';
		q.text[at++] = 'x';
		q.text[at++] = hex[c >> 4];
		q.text[at++] = hex[c & 15];
	}
	strcpy(q.text + at, i < len ? "...'" : "'");
	return q;
}

struct fabric_quote fabric_quote(const char *text)
{
	return fabric_quote_n(text, strlen(text));
}

char *fabric_mask(char *name)
{
	for (char *c = name; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return name;
}

int fabric_seed(const char *what, const char *text, uint64_t *seed, char *why, size_t why_size)
{
	int ret = fabric_decimal(text, seed);

	if (ret == -ERANGE)
		return fabric_refuse(why, why_size,
				     "the seed %s of %s is too large; the most is %" PRIu64,
				     fabric_quote(text).text, what, UINT64_MAX);
	if (ret)
		return fabric_refuse(why, why_size,
				     "%s is no seed for %s; expected a number, such as %s:1",
				     fabric_quote(text).text, what, what);
	return 0;
}

int fabric_open(FILE **f, const char *path, char *why, size_t why_size)
{
	int err;

	if (!*path)
		return fabric_refuse(why, why_size, "file: needs the name of a file, file:F");
	*f = !strcmp(path, "-") ? stdin : fopen(path, "re");
	if (*f)
		return 0;
	err = -errno;
	fabric_refuse(why, why_size, "can not open %s: %s", fabric_quote(path).text,
		      strerror(-err));
	return err;
}

void fabric_close(FILE *f)
{
	if (f && f != stdin)
		fclose(f);
}

const char *fabric_file_name(const char *path)
{
	return strcmp(path, "-") ? path : "standard input";
}

int fabric_flush(FILE *to)
{
	if (!fflush(to) && !ferror(to))
		return 0;
	return errno ? -errno : -EIO;
}
