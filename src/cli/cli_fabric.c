/* weft fabric: fat trees, their routes, orders and hot spots. */
#include "cli_fabric.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "cli_family.h"
#include "fabric_lft.h"

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
	"Exit codes: 0 done; 1 it is no whole fat tree, or could not be written; 2 wrong usage or\n"
	"input. Manual page: weft-fabric(1).\n";

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

static FILE *open_input(const char *path)
{
	FILE *from = !strcmp(path, "-") ? stdin : fopen(path, "re");

	if (!from)
		cli_error("cannot read %s: %s", path, strerror(errno));
	return from;
}

static int open_topology(struct cli_fabric *f, const char *path)
{
	struct fabric_net *net = calloc(1, sizeof(*net));
	FILE *from = open_input(path);
	char why[512];
	int ret = CLI_USAGE, err;

	if (!from || !net)
		goto out;
	if (fabric_net_read(net, from, !strcmp(path, "-") ? "standard input" : path, why,
			    sizeof(why))) {
		cli_error("%s", why);
		goto out;
	}
	err = fabric_shape(&f->tree, net, &f->defects, why, sizeof(why));
	if (err) {
		cli_error("%s", why);
		fabric_net_free(net);
		ret = err == -EINVAL ? CLI_USAGE : CLI_FAILED;
		goto out;
	}
	net = NULL; /* the tree's */
	ret = CLI_OK;
out:
	free(net);
	if (from && from != stdin)
		fclose(from);
	return ret;
}

/* A node or a cable. Cables are joined names; a name may have a '-' itself. */
static int leave_out(struct cli_fabric *f, const char *name)
{
	const uint32_t *hosts;
	uint32_t node, count = fabric_tree_machine(&f->tree, name, &hosts);
	struct fabric_cable c;
	int err = 0;

	if (count > 1)
		for (uint32_t i = 0; !err && i < count; i++)
			err = fabric_tree_remove(&f->tree, hosts[i]);
	else if (!fabric_tree_find(&f->tree, name, &node))
		err = fabric_tree_remove(&f->tree, node);
	else if (!fabric_find_cable(&f->tree.pgft, name, &c))
		err = fabric_tree_cut(&f->tree, fabric_cable_number(&f->tree.pgft, &c));
	else
		return cli_error("there is no node or cable '%s'", name);
	return err ? cli_error("%s", strerror(-err)) : CLI_OK;
}

int cli_fabric_open(struct cli_fabric *f, const struct cli_fabric_args *a)
{
	int code;

	if (!a->pgft == !a->topology) {
		cli_error("which fabric? Give either --pgft or --topology");
		return cli_try_help();
	}
	code = a->pgft ? open_tuple(f, a->pgft) : open_topology(f, a->topology);
	if (a->n_without == CLI_FABRIC_CUTS_MAX)
		return cli_error("--without was given too often");
	for (unsigned int i = 0; !code && i < a->n_without; i++)
		code = leave_out(f, a->without[i]);
	if (!code && f->defects.count && !a->check)
		cli_error("warning: the fabric has %u defects, '%s' is the first; 'weft fabric "
			  "check' lists them",
			  f->defects.count, f->defects.text[0]);
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
	return err ? cli_error("%s", *why ? why : strerror(-err)) : CLI_OK;
}

static int read_tables(struct cli_fabric *f, const char *path, const char *lids_path)
{
	FILE *from = open_input(path), *lids = NULL;
	int code = CLI_USAGE;
	char why[512];

	if (!from)
		return CLI_USAGE;
	if (lids_path) {
		lids = open_input(lids_path);
		if (!lids)
			goto out;
	}
	if (fabric_lft_read(&f->routes, &f->tree, from, path, lids, lids_path, why, sizeof(why)))
		cli_error("%s", why);
	else
		code = CLI_OK;
out:
	if (from != stdin)
		fclose(from);
	if (lids && lids != stdin)
		fclose(lids);
	return code;
}

int cli_fabric_routes(struct cli_fabric *f, const struct cli_fabric_args *a)
{
	struct fabric_routing rule = {.kind = FABRIC_DMODK};
	bool compact = a->routing && !strcmp(a->routing, "compact");
	int code = cli_fabric_take_part(f, a), err;
	char why[512];

	if (code)
		return code;
	if (a->routing && !strncmp(a->routing, "file:", 5))
		return read_tables(f, a->routing + 5, a->lids);
	if (compact) {
		f->index = fabric_set_index(&f->set, &f->tree);
		if (!f->index)
			return cli_error("%s", strerror(ENOMEM));
	} else if (a->routing && fabric_routing_parse(&rule, a->routing, why, sizeof(why))) {
		return cli_error("%s; also compact and file:LFTS", why);
	}
	err = fabric_routes_make(&f->routes, &f->tree, &rule, f->index);
	if (err == -EINVAL)
		return cli_error("ecmp has no tables: switches choose by themselves");
	return err ? cli_error("cannot compute routes: %s", strerror(-err)) : CLI_OK;
}

/* ---- order and pattern ---- */

int cli_fabric_ranks(struct cli_fabric *f, const struct cli_fabric_args *a)
{
	char why[512] = "";
	int err;

	f->order = calloc(f->set.count ? f->set.count : 1, sizeof(*f->order));
	if (!f->order)
		return cli_error("%s", strerror(ENOMEM));
	err = fabric_order_of(&f->tree, &f->set, a->order ? a->order : "routing", f->order,
			      &f->ranks, why, sizeof(why));
	if (err)
		return cli_error("%s", *why ? why : strerror(-err));
	return f->ranks ? CLI_OK : cli_error("no host takes part");
}

int cli_fabric_pattern(struct cli_fabric *f, const struct cli_fabric_args *a)
{
	char why[512];

	if (!a->cps) {
		cli_error("what is exchanged? Give --cps, such as --cps shift");
		return cli_try_help();
	}
	if (fabric_cps_parse(&f->cps, a->cps, f->ranks, &f->tree.pgft, why, sizeof(why)))
		return cli_error("%s", why);
	return CLI_OK;
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

void cli_fabric_print_json(json_t *value, size_t flags)
{
	json_dumpf(value, stdout, JSON_INDENT(2) | flags);
	putchar('\n');
	json_decref(value);
}

long cli_fabric_rss_kb(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) ? 0 : u.ru_maxrss;
}

/* ---- names and files ---- */

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

FILE *cli_fabric_create(const char *path)
{
	FILE *to = !path || !strcmp(path, "-") ? stdout : fopen(path, "we");

	if (!to)
		cli_error("cannot write %s: %s", path, strerror(errno));
	return to;
}

int cli_fabric_written(FILE *to, const char *path, int err)
{
	if (to == stdout && !err)
		return cli_finish(CLI_OK);
	if (to != stdout && fclose(to) && !err)
		err = -errno;
	if (!err)
		return CLI_OK;
	cli_error("cannot write %s: %s", to == stdout ? "the output" : path, strerror(-err));
	return CLI_FAILED;
}
