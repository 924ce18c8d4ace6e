/* weft fabric: fat trees, their routes, orders and hot spots. */
#include "cli_fabric.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "cli_family.h"
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
