/* weft lab list. */
#include "cli.h"

#include <getopt.h>

#include "cli_lab.h"

static const char help[] = "Usage: weft lab list [OPTIONS]\n"
			   "\n"
			   "Lists the labs of yours that are up.\n"
			   "\n"
			   "Options:\n"
			   "  -j, --json  print a JSON array, one object per lab\n"
			   "  -h, --help  this text\n"
			   "\n"
			   "Examples:\n"
			   "  weft lab list\n"
			   "  weft lab list --json | jq -r '.[].name'\n";

static int print_row(const struct lab *lab, void *arg)
{
	uint32_t *count = arg;
	struct cli_lab_texts t;

	cli_lab_texts(lab, &t);
	if ((*count)++ == 0)
		printf("%-15s %6s %8s %-22s %-9s %5s %-12s %-5s %s\n", "NAME", "HOSTS", "SWITCHES",
		       "PGFT", "RATE", "MTU", "ROUTING", "OWNER", "SINCE");
	printf("%-15s %6u %8u %-22s %-9s %5u %-12s %-5s %s\n", lab->spec.name,
	       fabric_hosts(&lab->spec.tree), cli_lab_switches(lab), t.tree, t.rate, lab->spec.mtu,
	       t.routing, cli_lab_owner(lab), t.since);
	return 0;
}

static int append(const struct lab *lab, void *arg)
{
	json_array_append_new(arg, cli_lab_head(lab));
	return 0;
}

static int list_json(void)
{
	json_t *labs = json_array();
	struct lab_error e;

	if (lab_each(append, labs, &e)) {
		json_decref(labs);
		return cli_error("%s", e.text);
	}
	cli_lab_print_json(labs, false);
	return cli_finish(CLI_OK);
}

static int list_text(void)
{
	struct lab_error e;
	uint32_t count = 0;

	if (lab_each(print_row, &count, &e))
		return cli_error("%s", e.text);
	/* Not on standard output: whoever counts lines there wants labs. */
	if (count == 0)
		fputs("No lab is up. 'weft lab up --help' tells how to build one.\n", stderr);
	return cli_finish(CLI_OK);
}

int cli_lab_list(int argc, char **argv)
{
	static const struct option options[] = {
		{"json", no_argument, NULL, 'j'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool json = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "jh", options, NULL)) != -1) {
		switch (opt) {
		case 'j':
			json = true;
			break;
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		default:
			return cli_try_help();
		}
	}
	if (optind < argc) {
		cli_error("unexpected argument '%s'", argv[optind]);
		return cli_try_help();
	}
	return json ? list_json() : list_text();
}
