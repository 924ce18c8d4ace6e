/* weft fabric: fat trees, their routes, orders and hot spots. */
#include "cli_fabric.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli_family.h"
#include "fabric_beside.h"
#include "fabric_lft.h"
#include "fabric_text.h"
#include "util_clock.h"

static const char help_head[] =
	"Usage: weft fabric COMMAND [OPTIONS]\n"
	"\n"
	"Reads the fabric there is, or takes one that could be built; computes routes and rank\n"
	"orders without hot spots, shows where there are any, and writes the files that OpenSM,\n"
	"Slurm, Open MPI and MPICH take. Nothing is changed on any network.\n"
	"\n"
	"Commands:\n";

static const char help_tail[] =
	"\n"
	"Options:\n"
	"  -h, --help  this text; 'weft fabric COMMAND --help' explains a command\n"
	"\n"
	"A fabric is a tuple \"h; m_1,...,m_h; w_1,...,w_h; p_1,...,p_h\" (--pgft): h levels of\n"
	"switches, each level l with m_l children below, w_l parents for each child, p_l cables\n"
	"between the two. \"2;18,18;1,9;1,2\" is 324 hosts on 18 leaf switches with 36 ports,\n"
	"joined by 9 spines with two cables to each leaf. Or it is a file (--topology).\n"
	"\n"
	"Examples:\n"
	"  ibnetdiscover >net; weft fabric check --topology net     is it a fat tree, is it "
	"whole?\n"
	"  weft fabric hsd --topology net --cps shift               hot spots of an all-to-all "
	"...\n"
	"  weft fabric hsd --topology net --cps shift --order random:1 --hottest 3\n"
	"  weft fabric route --topology net --opensm dir            tables for OpenSM ...\n"
	"  weft fabric order --topology net --hosts job --as openmpi-rankfile >ranks\n"
	"  weft fabric sim --pgft \"2;18,18;1,9;1,2\" --cps recdbl --bytes 64K\n"
	"  weft fabric draw --pgft \"2;12,12;1,6;1,2\" --cps drc:12 -o tree.html\n"
	"\n"
	"Exit codes: 0 done; 1 it is no whole fat tree, or could not be written; 2 wrong usage "
	"or\n"
	"input. Files to read may be '-', standard input. Manual page: weft-fabric(1).\n";

static const struct cli_command commands[] = {
	{"check", "say what a fabric is, and what is wrong with it", cli_fabric_check},
	{"route", "compute routes, and write them for OpenSM", cli_fabric_route},
	{"order", "write a rank order for a launcher", cli_fabric_order},
	{"hsd", "hot-spot degree: how many flows share a link", cli_fabric_hsd},
	{"sim", "simulate traffic packet by packet", cli_fabric_sim},
	{"draw", "draw the tree, links coloured by degree", cli_fabric_draw},
	{"convert", "write a fabric as ibnetdiscover does, or as a tuple", cli_fabric_convert},
	{0},
};

int cli_fabric(int argc, char **argv)
{
	static const struct cli_family family = {"fabric", help_head, help_tail, commands};

	return cli_family(&family, argc, argv);
}

/* ---- options ---- */

#define OPTIONS_MAX 320 /* their values */

int cli_fabric_option(int argc, char **argv, const char *letters, const struct option *options,
		      int again)
{
	/* As of getopt_long(): it goes along one command line. */
	static bool given[OPTIONS_MAX];
	int opt = getopt_long(argc, argv, letters, options, NULL);

	if (opt < 0 || opt >= OPTIONS_MAX || opt == again || opt == CLI_FABRIC_WITHOUT || !optarg)
		return opt;
	if (!given[opt]) {
		given[opt] = true;
		return opt;
	}
	while (options->name && options->val != opt)
		options++;
	cli_error("--%s was given twice", options->name);
	return '?';
}

bool cli_fabric_take(struct cli_fabric_args *a, int opt)
{
	static const size_t texts[] = {
		[CLI_FABRIC_PGFT - CLI_FABRIC_PGFT] = offsetof(struct cli_fabric_args, pgft),
		[CLI_FABRIC_TOPOLOGY - CLI_FABRIC_PGFT] =
			offsetof(struct cli_fabric_args, topology),
		[CLI_FABRIC_ROUTING - CLI_FABRIC_PGFT] = offsetof(struct cli_fabric_args, routing),
		[CLI_FABRIC_LIDS - CLI_FABRIC_PGFT] = offsetof(struct cli_fabric_args, lids),
		[CLI_FABRIC_ORDER - CLI_FABRIC_PGFT] = offsetof(struct cli_fabric_args, order),
		[CLI_FABRIC_EXCLUDE - CLI_FABRIC_PGFT] = offsetof(struct cli_fabric_args, exclude),
		[CLI_FABRIC_HOSTS - CLI_FABRIC_PGFT] = offsetof(struct cli_fabric_args, hosts),
		[CLI_FABRIC_CPS - CLI_FABRIC_PGFT] = offsetof(struct cli_fabric_args, cps),
	};

	if (opt < CLI_FABRIC_PGFT || opt >= CLI_FABRIC_OWN)
		return false;
	if (opt == CLI_FABRIC_JSON)
		a->json = true;
	else if (opt != CLI_FABRIC_WITHOUT)
		*(const char **)((char *)a + texts[opt - CLI_FABRIC_PGFT]) = optarg;
	else if (a->n_without < CLI_FABRIC_CUTS_MAX)
		a->without[a->n_without++] = optarg;
	return true;
}

int cli_fabric_end(int argc, char **argv)
{
	if (optind == argc)
		return CLI_OK;
	cli_error("unexpected argument '%s'", argv[optind]);
	return cli_try_help();
}

/* ---- the fabric ---- */

static int open_tuple(struct cli_fabric *f, const char *text)
{
	struct fabric_pgft pgft;
	char why[512];

	if (fabric_pgft_parse(&pgft, text, why, sizeof(why)))
		return cli_error("%s", why);
	fabric_tree_init(&f->tree, &pgft);
	return CLI_OK;
}

static int open_topology(struct cli_fabric *f, const char *path)
{
	struct fabric_net *net = calloc(1, sizeof(*net));
	FILE *from = NULL;
	char why[512];
	int code = CLI_USAGE, err = net ? fabric_open(&from, path, why, sizeof(why)) : -ENOMEM;

	if (!net)
		return cli_failed(err, "%s", strerror(-err));
	if (!err)
		err = fabric_net_read(net, from, fabric_file_name(path), why, sizeof(why));
	if (err) {
		code = cli_failed(err, "%s", why);
	} else if ((err = fabric_shape(&f->tree, net, &f->defects, why, sizeof(why)))) {
		code = cli_failed(err, "%s", why);
		fabric_net_free(net);
	} else {
		net = NULL; /* the tree's */
		code = CLI_OK;
	}
	free(net);
	fabric_close(from);
	return code;
}

/* Nodes of the tree, of which a machine may have several. -ENOENT: there is none. */
static int leave_out_nodes(struct cli_fabric *f, const char *name)
{
	const uint32_t *hosts;
	uint32_t node, count = fabric_tree_machine(&f->tree, name, &hosts);
	int err = 0;

	if (count < 2 && !fabric_tree_find(&f->tree, name, &node))
		return fabric_tree_remove(&f->tree, node);
	for (uint32_t i = 0; !err && i < count; i++)
		err = fabric_tree_remove(&f->tree, hosts[i]);
	return count ? err : -ENOENT;
}

static int leave_out(struct cli_fabric *f, const char *name)
{
	int err = leave_out_nodes(f, name), beside;
	uint32_t cable;
	char why[512];

	if (err == -ENOENT && !fabric_tree_find_cable(&f->tree, name, &cable, why, sizeof(why))) {
		err = fabric_tree_cut(&f->tree, cable);
	} else if (!err || err == -ENOENT) {
		/* A machine may have adapters both in the tree and beside it. */
		beside = fabric_beside_cut(&f->tree, name);
		err = beside != -ENOENT ? beside : err;
	}
	if (err == -ENXIO)
		return cli_error("--without: there is no cable %s", fabric_quote(name).text);
	if (err == -ENOENT)
		return cli_error("--without: %s", why);
	return err ? cli_failed(err, "%s", strerror(-err)) : CLI_OK;
}

static const char *file_of(const char *text)
{
	return text && !strncmp(text, "file:", 5) ? text + 5 : NULL;
}

/* What was given but would not be looked at, or can not be had twice. */
static int check_args(const struct cli_fabric_args *a)
{
	const char *const files[] = {
		a->topology,         a->hosts,          a->lids,
		file_of(a->routing), file_of(a->order), file_of(a->cps),
	};
	unsigned int n = 0;

	if (!a->pgft == !a->topology) {
		cli_error("which fabric? Give either --pgft or --topology");
		return cli_try_help();
	}
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		n += files[i] && (!strcmp(files[i], "-") || !strcmp(files[i], "/dev/stdin"));
	if (n > 1)
		return cli_error("standard input can be read once, but is to be %u files", n);
	if (a->lids && !file_of(a->routing))
		return cli_error("--lids is for tables of a file, --routing file:LFTS");
	if (a->n_without == CLI_FABRIC_CUTS_MAX)
		return cli_error("--without was given too often; at most %u times",
				 CLI_FABRIC_CUTS_MAX - 1);
	return CLI_OK;
}

int cli_fabric_open(struct cli_fabric *f, const struct cli_fabric_args *a)
{
	int code = check_args(a);

	if (!code)
		code = a->pgft ? open_tuple(f, a->pgft) : open_topology(f, a->topology);
	for (unsigned int i = 0; !code && i < a->n_without; i++)
		code = leave_out(f, a->without[i]);
	if (!code && f->defects.count && !a->check)
		cli_error("warning: the fabric has %u defect%s, '%s' is the first; 'weft fabric "
			  "check' lists them",
			  f->defects.count, f->defects.count == 1 ? "" : "s", f->defects.text[0]);
	return code;
}

/* ---- who takes part, routes ---- */

int cli_fabric_take_part(struct cli_fabric *f, const struct cli_fabric_args *a)
{
	char why[512] = "";
	int err;

	if (a->exclude && a->hosts)
		return cli_error("--exclude and --hosts exclude each other");
	if (a->exclude)
		err = fabric_set_exclude(&f->set, &f->tree, a->exclude, why, sizeof(why));
	else if (a->hosts)
		err = fabric_set_file(&f->set, &f->tree, a->hosts, why, sizeof(why));
	else
		err = fabric_set_all(&f->set, &f->tree);
	return err ? cli_failed(err, "%s", *why ? why : strerror(-err)) : CLI_OK;
}

static int read_tables(struct cli_fabric *f, const char *path, const char *lids_path)
{
	FILE *from = NULL, *lids = NULL;
	char why[512];
	int err = fabric_open(&from, path, why, sizeof(why));

	if (!err && lids_path)
		err = fabric_open(&lids, lids_path, why, sizeof(why));
	if (!err)
		err = fabric_lft_read(&f->routes, &f->tree, from, fabric_file_name(path), lids,
				      lids ? fabric_file_name(lids_path) : NULL, why, sizeof(why));
	fabric_close(from);
	fabric_close(lids);
	return err ? cli_failed(err, "%s", why) : CLI_OK;
}

int cli_fabric_no_routes(int err)
{
	if (err == -ERANGE)
		return cli_error("a switch has more than %u ports, which tables have no room for",
				 UINT16_MAX);
	return cli_failed(err, "cannot compute routes: %s", strerror(-err));
}

int cli_fabric_routes(struct cli_fabric *f, const struct cli_fabric_args *a)
{
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	bool compact = a->routing && !strcmp(a->routing, "compact");
	int code = cli_fabric_take_part(f, a), err;
	char why[512];

	if (code)
		return code;
	if (file_of(a->routing))
		return read_tables(f, file_of(a->routing), a->lids);
	if (compact) {
		f->index = fabric_set_index(&f->set, &f->tree);
		if (!f->index)
			return cli_failed(-ENOMEM, "%s", strerror(ENOMEM));
	} else if (a->routing && fabric_routing_parse(&rule, a->routing, why, sizeof(why))) {
		return cli_error("%s; also compact and file:LFTS", why);
	}
	err = fabric_routes_make(&f->routes, &f->tree, &rule, f->index);
	if (err == -EINVAL)
		return cli_error("ecmp has no tables: switches choose by themselves");
	return err ? cli_fabric_no_routes(err) : CLI_OK;
}

/* ---- order and pattern ---- */

int cli_fabric_ranks(struct cli_fabric *f, const struct cli_fabric_args *a)
{
	char why[512] = "";
	int err;

	f->order = calloc(f->set.count ? f->set.count : 1, sizeof(*f->order));
	if (!f->order)
		return cli_failed(-ENOMEM, "%s", strerror(ENOMEM));
	err = fabric_order_of(&f->tree, &f->set, a->order ? a->order : "routing", f->order,
			      &f->ranks, why, sizeof(why));
	if (err)
		return cli_failed(err, "%s", *why ? why : strerror(-err));
	if (!f->ranks)
		return cli_error("no host takes part");
	if (a->ranks > f->ranks)
		return cli_error("--ranks %u: there are %u hosts", a->ranks, f->ranks);
	f->ranks = a->ranks ? a->ranks : f->ranks;
	return CLI_OK;
}

int cli_fabric_pattern(struct cli_fabric *f, const struct cli_fabric_args *a)
{
	char why[512];
	int err;

	if (!a->cps) {
		cli_error("what is exchanged? Give --cps, such as --cps shift");
		return cli_try_help();
	}
	err = fabric_cps_parse(&f->cps, a->cps, f->ranks, &f->tree.pgft, why, sizeof(why));
	return err ? cli_failed(err, "%s", why) : CLI_OK;
}

int cli_fabric_ready(struct cli_fabric *f, const struct cli_fabric_args *a, bool pattern)
{
	int code = cli_fabric_open(f, a);

	if (!code)
		code = cli_fabric_routes(f, a);
	if (!code)
		code = cli_fabric_ranks(f, a);
	if (!code && pattern)
		code = cli_fabric_pattern(f, a);
	return code;
}

void cli_fabric_close(struct cli_fabric *f)
{
	fabric_cps_free(&f->cps);
	free(f->order);
	fabric_routes_free(&f->routes);
	free(f->index);
	fabric_set_free(&f->set);
	fabric_defects_free(&f->defects);
	fabric_tree_free(&f->tree);
}

void cli_fabric_progress_begin(struct cli_fabric_progress *p)
{
	*p = (struct cli_fabric_progress){.show = isatty(STDERR_FILENO), .shown = util_now_ns()};
}

void cli_fabric_progress(struct cli_fabric_progress *p, double done)
{
	uint64_t now = p->show ? util_now_ns() : 0;

	if (!p->show || now - p->shown < UTIL_NS_PER_S / 2)
		return;
	p->shown = now;
	fprintf(stderr, "\r%3.0f %% ", 100 * done);
}

void cli_fabric_progress_end(struct cli_fabric_progress *p)
{
	if (p->show)
		fputs("\r      \r", stderr);
	p->show = false;
}

long cli_fabric_rss_kb(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) ? 0 : u.ru_maxrss;
}

/* ---- names ---- */

void cli_fabric_link(const struct cli_fabric *f, uint32_t link, char name[CLI_FABRIC_LINK_MAX])
{
	struct fabric_cable c = fabric_cable(&f->tree.pgft, link / 2);
	char lower[FABRIC_TREE_NAME_MAX], upper[FABRIC_TREE_NAME_MAX];
	bool up = !(link % 2);
	uint32_t port = up ? fabric_tree_lower_port(&f->tree, link / 2)
			   : fabric_tree_upper_port(&f->tree, link / 2);

	fabric_tree_name(&f->tree, fabric_number(&f->tree.pgft, c.lower), lower);
	fabric_tree_name(&f->tree, fabric_number(&f->tree.pgft, c.upper), upper);
	snprintf(name, CLI_FABRIC_LINK_MAX, "%s[%u]>%s", up ? lower : upper, port,
		 up ? upper : lower);
}
