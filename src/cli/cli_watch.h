/* Commands that look at something again and again: in a terminal they fill the screen until q,
 * otherwise they print what they see, as text or as a line of JSON for each look. */
#ifndef WEFT_CLI_WATCH_H
#define WEFT_CLI_WATCH_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct cli_watch {
	/* From the command line; 1 s if not given. */
	uint64_t interval;
	unsigned long count; /* looks; 0: without end */
	bool counted, json;
	/* What the output can show. */
	bool utf8, colour;

	/* The command's. look: 0, or another number with a sentence in why. */
	int (*look)(struct cli_watch *w);
	/* Lines that end in \n, at most so many, if not 0; then, if not all fitted, a sentence
	 * about the rest and a blank. */
	void (*page)(const struct cli_watch *w, int columns, size_t lines, FILE *to);
	void (*print_json)(const struct cli_watch *w);
	char why[512];
};

#define CLI_WATCH_SHORT "i:n:jh"
/* clang-format off */
#define CLI_WATCH_OPTIONS \
	{"interval", required_argument, NULL, 'i'}, \
	{"count", required_argument, NULL, 'n'}, \
	{"json", no_argument, NULL, 'j'}, \
	{"help", no_argument, NULL, 'h'}
/* clang-format on */
#define CLI_WATCH_HELP                                                                             \
	"  -i, --interval TIME  look so often: seconds, or 500ms (1 if not given)\n"               \
	"  -n, --count N        end after N looks; 0: never\n"                                     \
	"  -j, --json           one JSON object per look, each on one line\n"                      \
	"  -h, --help           this text\n"

/* One of these options, except for --help: CLI_OK, or CLI_USAGE after a complaint. */
int cli_watch_option(struct cli_watch *w, int opt, const char *arg);
/* Before anything is opened: how many looks there will be, and on what. */
void cli_watch_prepare(struct cli_watch *w);
int cli_watch_run(struct cli_watch *w);

/* A bar of this share of a width, blanks behind it; colour: NULL, or how that begins. */
void cli_watch_bar(const struct cli_watch *w, double share, int width, const char *colour,
		   FILE *to);

#endif
