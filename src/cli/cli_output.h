/* What commands print, and the files that they write: in one place, so that nothing of a name in
 * somebody's file steers a terminal, no full disk goes unnoticed, and no file is left half
 * written. (Complaints: cli.h.) */
#ifndef WEFT_CLI_OUTPUT_H
#define WEFT_CLI_OUTPUT_H

#include <jansson.h>

#include "cli.h"

/* Text for people on standard output. What would steer a terminal is shown as \xNN. */
void cli_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* A text in JSON; bytes that are no UTF-8, which JSON can not have, are written as \xNN. */
json_t *cli_json_text(const char *text);
/* Prints a document, with these flags of jansson's, and gives it up. */
void cli_print_json(json_t *value, size_t flags);

/* A file that is being written: under another name until all of it is there. */
struct cli_file {
	FILE *to;
	const char *path; /* as it was given */
	char *name, *part;
};

/* Begins one; "-" or NULL is standard output. CLI_OK, or CLI_FAILED after a complaint. */
int cli_create(struct cli_file *f, const char *path);
/* Ends it. err is what writing returned: other than 0, what was there before stays, and why, if
 * there is a sentence, is said. CLI_OK, or an exit code after a complaint. */
int cli_written(struct cli_file *f, int err, const char *why);
/* As if it had not been begun. */
void cli_drop(struct cli_file *f);

#endif
