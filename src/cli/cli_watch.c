#include "cli_watch.h"

#include <errno.h>
#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cli_lab.h"
#include "cli_screen.h"
#include "util_clock.h"

static int parse_count(const char *text, unsigned long *count)
{
	char *end;

	errno = 0;
	*count = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno)
		return cli_error("--count %s is not understood; expected a number", text);
	return CLI_OK;
}

int cli_watch_option(struct cli_watch *w, int opt, const char *arg)
{
	switch (opt) {
	case 'i':
		return cli_lab_time("--interval", arg, &w->interval);
	case 'n':
		w->counted = true;
		return parse_count(arg, &w->count);
	case 'j':
		w->json = true;
		return CLI_OK;
	default:
		return cli_try_help();
	}
}

static bool on_screen(const struct cli_watch *w)
{
	return !w->json && isatty(STDOUT_FILENO);
}

void cli_watch_prepare(struct cli_watch *w)
{
	const char *no_colour = getenv("NO_COLOR");
	bool screen = on_screen(w);

	setlocale(LC_CTYPE, "");
	w->utf8 = !strcmp(nl_langinfo(CODESET), "UTF-8");
	w->colour = screen && !(no_colour && *no_colour);
	if (!w->interval)
		w->interval = UTIL_NS_PER_S;
	if (!w->counted)
		w->count = screen ? 0 : 1;
}

void cli_watch_bar(const struct cli_watch *w, double share, int width, const char *colour, FILE *to)
{
	int full = (int)((share < 1 ? share : 1) * width + 0.5);

	if (w->colour && colour)
		fputs(colour, to);
	for (int i = 0; i < full; i++)
		fputs(w->utf8 ? "\u2588" : "#", to);
	if (w->colour && colour)
		fputs("\033[0m", to);
	fprintf(to, "%*s ", width - full, "");
}

static int fail(const struct cli_watch *w)
{
	cli_error("%s", w->why);
	return CLI_FAILED;
}

static void draw(const struct cli_watch *w)
{
	int columns, lines;
	size_t size;
	char *page = NULL;
	FILE *to = open_memstream(&page, &size);

	if (!to)
		return;
	cli_screen_size(&columns, &lines);
	/* Two lines at the bottom; the cursor stays on the last. */
	w->page(w, columns, lines > 3 ? (size_t)lines - 2 : 1, to);
	fprintf(to, "q: quit\n");
	fclose(to);
	cli_screen_show(page);
	free(page);
}

/* The first look comes early: nobody likes an empty screen. */
#define FIRST_LOOK (300 * UTIL_NS_PER_MS)

static int watch(struct cli_watch *w)
{
	uint64_t next = util_now_ns() + (w->interval < FIRST_LOOK ? w->interval : FIRST_LOOK);
	unsigned long looks = 0;
	int ret;

	for (;;) {
		enum cli_screen_event event = cli_screen_wait(next);

		if (event == CLI_SCREEN_QUIT)
			return 0;
		if (event == CLI_SCREEN_TIME) {
			if (w->count && looks == w->count)
				return 0;
			ret = w->look(w);
			if (ret)
				return ret;
			looks++;
			next = util_now_ns() + w->interval;
		}
		if (looks)
			draw(w);
	}
}

static int live(struct cli_watch *w)
{
	int ret = cli_screen_open();

	if (ret)
		return cli_error("cannot use the terminal: %s", strerror(-ret));
	ret = watch(w);
	cli_screen_close();
	return ret ? fail(w) : cli_finish(CLI_OK);
}

static int plain(struct cli_watch *w)
{
	for (unsigned long i = 0; !w->count || i < w->count; i++) {
		cli_lab_wait(w->interval);
		if (w->look(w))
			return fail(w);
		if (w->json)
			w->print_json(w);
		else
			w->page(w, 100, 0, stdout);
		if (!w->json && i + 1 != w->count)
			putchar('\n');
		if (cli_finish(CLI_OK))
			return CLI_FAILED;
	}
	return CLI_OK;
}

int cli_watch_run(struct cli_watch *w)
{
	return on_screen(w) ? live(w) : plain(w);
}
