/* The terminal as a screen: a page of its own, given back on every way out. */
#ifndef WEFT_CLI_SCREEN_H
#define WEFT_CLI_SCREEN_H

#include <stdbool.h>
#include <stdint.h>

enum cli_screen_event {
	CLI_SCREEN_TIME, /* the time is over */
	CLI_SCREEN_QUIT, /* q, Ctrl-C, or a signal that ends programs */
	CLI_SCREEN_DRAW, /* another size, or back from the background */
};

/* Only one at a time. open returns 0 or -errno. */
int cli_screen_open(void);
void cli_screen_close(void);

/* Of the terminal that standard output is, or 80 columns and 24 rows. */
void cli_screen_size(int *columns, int *rows);

/* Waits until a moment of util_now_ns(), or for an event. */
enum cli_screen_event cli_screen_wait(uint64_t until);

/* Writes a page: lines that end in \n. */
void cli_screen_show(const char *page);

#endif
