/* Lists of words: command lines and environments that are put together piece by piece.
 * Words are copies. Running out of memory ends the program, since nothing was done yet.
 */
#ifndef WEFT_CLI_WORDS_H
#define WEFT_CLI_WORDS_H

#include <stddef.h>
#include <stdio.h>

struct cli_words {
	char **word; /* ends with NULL; itself NULL while there are none */
	size_t n;
};

void cli_words_add(struct cli_words *w, const char *word);
void cli_words_addf(struct cli_words *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void cli_words_add_all(struct cli_words *w, char *const *words);
/* Splits as a shell does, knowing quotes and backslashes and nothing else. Returns 0, or
 * -EINVAL for a quote that is not closed. */
int cli_words_split(struct cli_words *w, const char *text);
/* With blanks between them, and quotes where a shell needs them. */
void cli_words_print(const struct cli_words *w, FILE *to);
void cli_words_free(struct cli_words *w);

#endif
