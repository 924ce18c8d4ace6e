/* weft lab: virtual clusters on one machine. */
#include "cli_lab.h"

#include <getopt.h>

#include "cli_family.h"

static const char help_head[] =
	"Usage: weft lab COMMAND [OPTIONS] [ARGUMENTS]\n"
	"\n"
	"A lab is a cluster on this machine: hosts and switches are network namespaces,\n"
	"joined to a fat tree by cables that have a rate. Packets are real, so are the hot\n"
	"spots. Nothing connects a lab to the machine's own network.\n"
	"\n"
	"Commands:\n";

static const char help_tail[] =
	"\n"
	"Options:\n"
	"  -h, --help  this text; 'weft lab COMMAND --help' explains a command\n"
	"\n"
	"The tree is a tuple \"h; m_1,...,m_h; w_1,...,w_h; p_1,...,p_h\": h levels of switches,\n"
	"each level l with m_l children below, w_l parents for each child, p_l cables between\n"
	"the two. \"2;12,2;1,12;1,1\" is 24 hosts, 12 on each of 2 leaf switches (s1.0, s1.1),\n"
	"and 12 spine switches (s2.0 ... s2.11) above them.\n"
	"\n"
	"Hosts are h0, h1, ...; switches s1.0, ... (level, number); a cable is named by its\n"
	"two ends: h0-s1.0, s1.0-s2.3, and s1.0-s2.3:1 where there are several.\n"
	"\n"
	"Examples:\n"
	"  weft lab up fat --pgft \"2;12,2;1,12;1,1\" --rate 100mbit\n"
	"  weft lab exec fat h0 -- ping -c 3 fat-h12     any program, on any host\n"
	"  weft run --lab fat -n 24 ./mpi-program        one rank per host\n"
	"  weft lab cross fat --from h1 --to h13 --rate 80mbit --for 20s &\n"
	"  weft lab top fat                              where is the hot spot?\n"
	"  weft lab draw fat -o fat.svg\n"
	"  weft lab fail fat s1.0-s2.3; weft lab heal fat s1.0-s2.3\n"
	"  weft lab down fat\n"
	"\n"
	"Root is not needed where ordinary users may make user namespaces. Exit codes: 0 done;\n"
	"1 what was run failed; 2 wrong usage, or it can not be done here. Manual page:\n"
	"weft-lab(1).\n";

static const struct cli_command commands[] = {
	{"up", "build a lab", cli_lab_up},
	{"down", "end a lab, or all, and remove what is left of it", cli_lab_down},
	{"list", "list the labs that are up", cli_lab_list},
	{"exec", "run a command on a host", cli_lab_exec},
	{"show", "show hosts, cables with their load, routes", cli_lab_show},
	{"top", "watch the load of the cables, hottest first", cli_lab_top},
	{"draw", "draw the tree as SVG, cables coloured by load", cli_lab_draw},
	{"cross", "send background traffic from one host to another", cli_lab_cross},
	{"fail", "take a cable away", cli_lab_fail},
	{"heal", "put a cable back", cli_lab_heal},
	{0},
};

int cli_lab(int argc, char **argv)
{
	static const struct cli_family family = {"lab", help_head, help_tail, commands};

	return cli_family(&family, argc, argv);
}

int cli_lab_open(struct lab *lab, const char *name)
{
	struct lab_error e;

	return lab_open(lab, name, &e) ? cli_error("%s", e.text) : CLI_OK;
}

int cli_lab_open_only(struct lab *lab, int argc, char **argv)
{
	if (optind == argc) {
		cli_error("which lab? 'weft lab list' lists them");
		return cli_try_help();
	}
	if (optind + 1 < argc) {
		cli_error("unexpected argument '%s'", argv[optind + 1]);
		return cli_try_help();
	}
	return cli_lab_open(lab, argv[optind]);
}

int cli_lab_time(const char *option, const char *text, uint64_t *ns)
{
	struct lab_error e;

	return lab_time_parse(text, ns, &e) ? cli_error("%s %s", option, e.text) : CLI_OK;
}

int cli_lab_rate(const char *option, const char *text, uint64_t *rate)
{
	struct lab_error e;

	return lab_rate_parse(text, rate, &e) ? cli_error("%s %s", option, e.text) : CLI_OK;
}
