/* weft lab fail, weft lab heal. */
#include "cli.h"

#include <getopt.h>

#include "cli_lab.h"

static const char fail_help[] =
	"Usage: weft lab fail NAME CABLE...\n"
	"\n"
	"Takes cables away, as if somebody had pulled them out. A cable is named by its two\n"
	"ends: h0-s1.0, s1.0-s2.3, or s1.0-s2.3:1 for the second of several between them.\n"
	"The routes of the lab stay as they were built: what went that way is lost, except\n"
	"that under ecmp a switch goes on with the ports that it has left.\n"
	"\n"
	"Options:\n"
	"  -h, --help  this text\n"
	"\n"
	"Examples:\n"
	"  weft lab fail fat s1.0-s2.3\n"
	"  weft lab heal fat s1.0-s2.3\n";

static const char heal_help[] = "Usage: weft lab heal NAME CABLE...\n"
				"       weft lab heal NAME --all\n"
				"\n"
				"Puts cables back that 'weft lab fail' took away.\n"
				"\n"
				"Options:\n"
				"  -a, --all   all that have failed\n"
				"  -h, --help  this text\n"
				"\n"
				"Examples:\n"
				"  weft lab heal fat s1.0-s2.3\n"
				"  weft lab heal fat --all\n";

static int no_such_cable(const struct lab *lab, const char *text)
{
	const struct fabric_pgft *t = &lab->spec.tree;
	struct fabric_cable first = fabric_cable(t, 0),
			    last = fabric_cable(t, fabric_cables(t) - 1);
	char a[FABRIC_CABLE_NAME_MAX], b[FABRIC_CABLE_NAME_MAX];

	fabric_cable_name(t, &first, a);
	fabric_cable_name(t, &last, b);
	return cli_error(
		"lab %s has no cable '%s'; its cables are %s to %s, see 'weft lab show %s'",
		lab->spec.name, text, a, b, lab->spec.name);
}

/* All names are looked up before anything is done. */
static int each_cable(const struct lab *lab, char **names, bool heal)
{
	struct fabric_cable c;
	struct lab_error e;

	for (char **n = names; *n; n++)
		if (fabric_find_cable(&lab->spec.tree, *n, &c))
			return no_such_cable(lab, *n);
	for (char **n = names; *n; n++) {
		fabric_find_cable(&lab->spec.tree, *n, &c);
		if (heal ? lab_cable_heal(lab, &c, &e) : lab_cable_fail(lab, &c, &e))
			return cli_error("%s", e.text);
		printf("%s %s.\n", *n, heal ? "is back" : "is gone");
	}
	return cli_finish(CLI_OK);
}

static int heal_all(const struct lab *lab)
{
	struct cli_lab_measure m;
	struct lab_error e;
	uint32_t healed = 0;
	int code = CLI_OK;

	if (cli_lab_measure_open(&m, lab, &e))
		return cli_error("%s", e.text);
	for (uint32_t i = 0; !code && i < m.cables; i++) {
		struct fabric_cable c = fabric_cable(&lab->spec.tree, i);

		if (m.now[i].alive)
			continue;
		if (lab_cable_heal(lab, &c, &e))
			code = cli_error("%s", e.text);
		healed++;
	}
	cli_lab_measure_close(&m);
	if (!code)
		printf("%u cable%s back.\n", healed, healed == 1 ? " is" : "s are");
	return cli_finish(code);
}

static int check_arguments(int argc, char **argv, bool all)
{
	if (optind == argc)
		cli_error("which lab? 'weft lab list' lists them");
	else if (!all && optind + 1 == argc)
		cli_error("which cable? 'weft lab show %s' lists them", argv[optind]);
	else if (all && optind + 1 < argc)
		cli_error("either cables or --all, not both");
	else
		return CLI_OK;
	return cli_try_help();
}

static int run(int argc, char **argv, bool heal)
{
	static const struct option options[] = {
		{"help", no_argument, NULL, 'h'}, {"all", no_argument, NULL, 'a'}, {0}};
	static const struct option fail_options[] = {{"help", no_argument, NULL, 'h'}, {0}};
	bool all = false;
	struct lab lab;
	int opt, code;

	while ((opt = getopt_long(argc, argv, heal ? "ha" : "h", heal ? options : fail_options,
				  NULL)) != -1) {
		switch (opt) {
		case 'a':
			all = true;
			break;
		case 'h':
			fputs(heal ? heal_help : fail_help, stdout);
			return cli_finish(CLI_OK);
		default:
			return cli_try_help();
		}
	}
	code = check_arguments(argc, argv, all);
	if (!code)
		code = cli_lab_open(&lab, argv[optind]);
	if (code)
		return code;
	return all ? heal_all(&lab) : each_cable(&lab, argv + optind + 1, heal);
}

int cli_lab_fail(int argc, char **argv)
{
	return run(argc, argv, false);
}

int cli_lab_heal(int argc, char **argv)
{
	return run(argc, argv, true);
}
