/* weft lab draw: the tree as SVG. */
#include "cli_output.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_lab.h"
#include "fabric_draw.h"
#include "util_clock.h"

static const char help[] =
	"Usage: weft lab draw NAME [OPTIONS]\n"
	"\n"
	"Draws the lab's tree as SVG, every cable coloured by its load. The picture goes to\n"
	"standard output, or, if that is a terminal, to NAME.svg.\n"
	"\n"
	"Options:\n"
	"  -o, --output FILE    write to FILE; '-' is standard output\n"
	"  -i, --interval TIME  measure for so long: seconds, or 500ms (1 if not given)\n"
	"  -h, --help           this text\n"
	"\n"
	"Examples:\n"
	"  weft lab draw fat -o fat.svg\n"
	"  weft lab draw fat | rsvg-convert >fat.png\n";

static struct fabric_draw_cable *cables(const struct cli_lab_measure *m)
{
	struct fabric_draw_cable *list = calloc(m->cables, sizeof(*list));

	for (uint32_t i = 0; list && i < m->cables; i++) {
		list[i].up = m->now[i].up.utilisation;
		list[i].down = m->now[i].down.utilisation;
		list[i].broken = !m->now[i].alive;
		snprintf(list[i].note, sizeof(list[i].note),
			 "up %.1f Mbit/s, down %.1f Mbit/s, %" PRIu64 " dropped",
			 m->now[i].up.bits / 1e6, m->now[i].down.bits / 1e6,
			 m->now[i].up.drops + m->now[i].down.drops);
	}
	return list;
}

static int draw(const struct cli_lab_measure *m, FILE *to)
{
	struct fabric_draw_cable *list = cables(m);
	struct fabric_draw d = {.tree = &m->lab->spec.tree, .scale = "cable load", .cables = list};
	struct cli_lab_texts t;
	char title[FABRIC_TUPLE_MAX + 128];
	int ret;

	if (!list)
		return -ENOMEM;
	cli_lab_texts(m->lab, &t);
	snprintf(title, sizeof(title), "%s: %s, %s, %s", m->lab->spec.name, t.tree, t.rate,
		 t.routing);
	d.title = title;
	ret = fabric_draw_svg(&d, to);
	free(list);
	return ret;
}

static int run(const struct lab *lab, const char *file, uint64_t interval)
{
	char own[LAB_NAME_MAX + sizeof(".svg")];
	struct cli_lab_measure m;
	struct cli_file to;
	int code;

	if (!file && isatty(STDOUT_FILENO)) {
		snprintf(own, sizeof(own), "%s.svg", lab->spec.name);
		file = own;
	}
	code = cli_lab_measure_once(&m, lab, interval);
	if (code)
		return code;
	code = cli_create(&to, file);
	if (!code)
		code = cli_written(&to, draw(&m, to.to), NULL);
	if (!code && file == own)
		printf("%s is written.\n", file);
	cli_lab_measure_close(&m);
	return code;
}

int cli_lab_draw(int argc, char **argv)
{
	static const struct option options[] = {
		{"output", required_argument, NULL, 'o'},
		{"interval", required_argument, NULL, 'i'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	uint64_t interval = UTIL_NS_PER_S;
	const char *file = NULL;
	struct lab lab;
	int opt, code = CLI_OK;

	while (!code && (opt = getopt_long(argc, argv, "o:i:h", options, NULL)) != -1) {
		switch (opt) {
		case 'o':
			file = optarg;
			break;
		case 'i':
			code = cli_lab_time("--interval", optarg, &interval);
			break;
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		default:
			return cli_try_help();
		}
	}
	if (!code)
		code = cli_lab_open_only(&lab, argc, argv);
	return code ? code : run(&lab, file, interval);
}
