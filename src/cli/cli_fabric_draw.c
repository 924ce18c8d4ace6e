/* weft fabric draw: the tree, links coloured by degree. */
#include "cli_fabric.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_draw.h"
#include "fabric_hsd.h"
#include "fabric_page.h"

static const char help[] =
	"Usage: weft fabric draw --pgft SPEC | --topology FILE [OPTIONS]\n"
	"\n"
	"Draws the tree: as SVG, links coloured by the worst degree that they have in any stage; "
	"or,\n"
	"if the file is called .html, as a page for a browser, in which one can zoom, pick a "
	"stage,\n"
	"and pick a link and see its flows.\n"
	"\n"
	"Options:\n" CLI_FABRIC_TREE_HELP CLI_FABRIC_ROUTE_HELP "  --order O          as for hsd\n"
	"  --cps NAME         as for hsd; without it the tree is drawn without flows\n"
	"  -o, --output FILE  write to FILE: SVG, or HTML if it ends with .html\n"
	"  -h, --help         this text\n"
	"\n"
	"Examples:\n"
	"  weft fabric draw --pgft \"2;12,12;1,6;1,2\" --cps shift --order random:1 -o tree.html\n"
	"  weft fabric draw --topology net --cps drc:12 >tree.svg\n";

/* The worst degree of each directed link over all stages. */
struct worst {
	uint32_t n, *of;
};

static int keep_worst(void *arg, uint32_t stage, const uint32_t *degree)
{
	struct worst *k = arg;

	(void)stage;
	for (uint32_t i = 0; i < k->n; i++)
		k->of[i] = degree[i] > k->of[i] ? degree[i] : k->of[i];
	return 0;
}

static int degrees(const struct cli_fabric *f, uint32_t *worst, uint32_t *most)
{
	struct worst k = {2 * fabric_cables(&f->tree.pgft), worst};
	struct fabric_hsd_job job = {.routes = &f->routes,
				     .cps = &f->cps,
				     .hosts = f->order,
				     .links = keep_worst,
				     .arg = &k};
	struct fabric_hsd r;
	int err = fabric_hsd(&job, &r);

	if (err)
		return err;
	*most = r.worst.all;
	fabric_hsd_free(&r);
	return 0;
}

static int draw_svg(const struct cli_fabric *f, const char *title, bool flows, FILE *to)
{
	uint32_t n = fabric_cables(&f->tree.pgft), most = 1;
	struct fabric_draw_cable *cables = calloc(n, sizeof(*cables));
	uint32_t *worst = calloc(2 * (size_t)n, sizeof(*worst));
	struct fabric_draw d = {.tree = &f->tree.pgft, .title = title, .cables = cables};
	int err = cables && worst ? 0 : -ENOMEM;
	char scale[64];

	if (!err && flows)
		err = degrees(f, worst, &most);
	for (uint32_t i = 0; !err && i < n; i++) {
		cables[i].up = flows ? (double)worst[2 * i] / most : -1;
		cables[i].down = flows ? (double)worst[2 * i + 1] / most : -1;
		cables[i].broken = !fabric_tree_has_cable(&f->tree, i);
		if (flows)
			snprintf(cables[i].note, sizeof(cables[i].note), "degree up %u, down %u",
				 worst[2 * i], worst[2 * i + 1]);
	}
	snprintf(scale, sizeof(scale), "worst degree, of %u", most);
	d.scale = scale;
	if (!err)
		err = fabric_draw_svg(&d, to);
	free(cables);
	free(worst);
	return err;
}

static bool is_page(const char *path)
{
	size_t n = path ? strlen(path) : 0;

	return n > 5 && !strcmp(path + n - 5, ".html");
}

static int draw(const struct cli_fabric *f, const struct cli_fabric_args *a, const char *path)
{
	char tuple[FABRIC_TUPLE_MAX], title[FABRIC_TUPLE_MAX + 256];
	struct fabric_page page = {.routes = &f->routes,
				   .title = title,
				   .cps = a->cps ? &f->cps : NULL,
				   .hosts = f->order};
	struct cli_file file;
	int err, code = cli_create(&file, path);

	if (code)
		return code;
	fabric_pgft_print(&f->tree.pgft, tuple);
	snprintf(title, sizeof(title), "%.80s%s%s, %.60s%s%.60s", a->topology ? a->topology : "",
		 a->topology ? ": " : "", tuple, a->routing ? a->routing : "dmodk",
		 a->cps ? ", " : "", a->cps ? a->cps : "");
	err = is_page(path) ? fabric_page(&page, file.to) : draw_svg(f, title, a->cps, file.to);
	return cli_written(&file, err, NULL);
}

static int run(const struct cli_fabric_args *a, const char *path)
{
	struct cli_fabric f = {0};
	int code = cli_fabric_ready(&f, a, a->cps);

	if (!code)
		code = draw(&f, a, path);
	cli_fabric_close(&f);
	return code;
}

int cli_fabric_draw(int argc, char **argv)
{
	static const struct option options[] = {
		CLI_FABRIC_TREE_OPTIONS,
		CLI_FABRIC_ROUTE_OPTIONS,
		{"order", required_argument, NULL, CLI_FABRIC_ORDER},
		{"cps", required_argument, NULL, CLI_FABRIC_CPS},
		{"output", required_argument, NULL, 'o'},
		{0}};
	struct cli_fabric_args a = {0};
	const char *path = NULL;
	int opt, code;

	while ((opt = cli_fabric_option(argc, argv, "ho:", options, 0)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		}
		if (opt == 'o')
			path = optarg;
		else if (!cli_fabric_take(&a, opt))
			return cli_try_help();
	}
	code = cli_fabric_end(argc, argv);
	return code ? code : run(&a, path);
}
