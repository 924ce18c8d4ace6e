#include "cli_words.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void take(struct cli_words *w, char *word)
{
	char **more = word ? realloc(w->word, (w->n + 2) * sizeof(*more)) : NULL;

	if (!more)
		abort();
	w->word = more;
	w->word[w->n++] = word;
	w->word[w->n] = NULL;
}

void cli_words_add(struct cli_words *w, const char *word)
{
	take(w, strdup(word));
}

void cli_words_addf(struct cli_words *w, const char *fmt, ...)
{
	char *word = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&word, fmt, ap) < 0)
		word = NULL;
	va_end(ap);
	take(w, word);
}

void cli_words_add_all(struct cli_words *w, char *const *words)
{
	for (; *words; words++)
		cli_words_add(w, *words);
}

/* One word from *text on, without its quotes; NULL if a quote is not closed. */
static char *next_word(const char **text)
{
	char *word = malloc(strlen(*text) + 1), *end = word;
	const char *t = *text;
	char quote = '\0';

	if (!word)
		abort();
	for (; *t && (quote || !strchr(" \t\n", *t)); t++) {
		if (!quote && (*t == '\'' || *t == '"')) {
			quote = *t;
		} else if (quote && *t == quote) {
			quote = '\0';
		} else {
			/* Between single quotes a backslash is one. */
			if (*t == '\\' && quote != '\'' && t[1])
				t++;
			*end++ = *t;
		}
	}
	*end = '\0';
	*text = t;
	if (!quote)
		return word;
	free(word);
	return NULL;
}

int cli_words_split(struct cli_words *w, const char *text)
{
	for (;;) {
		char *word;

		text += strspn(text, " \t\n");
		if (!*text)
			return 0;
		word = next_word(&text);
		if (!word)
			return -EINVAL;
		take(w, word);
	}
}

static void print_word(const char *word, FILE *to)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "%+,-./:=@_^";

	if (*word && strspn(word, plain) == strlen(word)) {
		fputs(word, to);
		return;
	}
	fputc('\'', to);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", to);
		else
			fputc(*word, to);
	}
	fputc('\'', to);
}

void cli_words_print(const struct cli_words *w, FILE *to)
{
	for (size_t i = 0; i < w->n; i++) {
		if (i)
			fputc(' ', to);
		print_word(w->word[i], to);
	}
}

void cli_words_free(struct cli_words *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->word[i]);
	free(w->word);
	w->word = NULL;
	w->n = 0;
}
