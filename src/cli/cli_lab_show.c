/* weft lab show: everything about a lab. */
#include "cli.h"

#include <getopt.h>
#include <string.h>

#include "cli_lab.h"
#include "cli_lab_show.h"
#include "util_clock.h"

static const char help[] =
	"Usage: weft lab show NAME [OPTIONS]\n"
	"\n"
	"Shows hosts with their addresses, cables with their counters and load, and routes.\n"
	"\"up\" is the direction away from the hosts. Counters run since the lab came up; load\n"
	"is measured now, over the interval.\n"
	"\n"
	"Options:\n"
	"  -r, --routes         with the routes of every node\n"
	"  -i, --interval TIME  measure for so long: seconds, or 500ms (0.5 if not given)\n"
	"  -j, --json           print all of it, with routes, as one JSON object\n"
	"  -h, --help           this text\n"
	"\n"
	"Examples:\n"
	"  weft lab show fat\n"
	"  weft lab show fat --routes | grep '^  s1.0'\n"
	"  weft lab show fat --json | jq -r '.hosts[] | .name + \" \" + .addresses[0]'\n"
	"  weft lab show fat --json | jq '[.links[].up.utilisation] | max'\n";

static void print_head(const struct lab *lab)
{
	struct cli_lab_texts t;

	cli_lab_texts(lab, &t);
	printf("Lab %s, up since %s\n\n", lab->spec.name, t.since);
	printf("  tree       %s: %u hosts, %u switches, %u cables\n", t.tree,
	       fabric_hosts(&lab->spec.tree), cli_lab_switches(lab),
	       fabric_cables(&lab->spec.tree));
	printf("  cables     %s, MTU %u\n", t.rate, lab->spec.mtu);
	printf("  routing    %s\n", t.routing);
	printf("  addresses  %s\n", t.net);
	printf("  owner      %s, process %d\n", cli_lab_owner(lab), (int)lab->holder);
}

/* A host, its first and last address, the leaf switches above it. */
static void print_host(const struct lab_spec *s, uint32_t j)
{
	struct fabric_node n = {.level = 0, .index = j};
	char name[FABRIC_NAME_MAX], addr[16];

	fabric_name(n, name);
	cli_lab_address(s, n, 0, addr);
	printf("  %-6s %-15s", name, addr);
	if (s->routing.lmc) {
		cli_lab_address(s, n, (1u << s->routing.lmc) - 1, addr);
		printf(" to %-15s", addr);
	}
	for (uint32_t q = 0; q < s->tree.w[1]; q++) {
		fabric_name(fabric_cable_up(&s->tree, n, q).upper, name);
		printf(" %s", name);
	}
	putchar('\n');
}

static void print_flow(const struct lab_flow *f)
{
	char bytes[16], packets[16], drops[16];

	cli_lab_amount((double)f->bytes, bytes);
	cli_lab_amount((double)f->packets, packets);
	cli_lab_amount((double)f->drops, drops);
	printf("  %7s %7s %7s %4.0f%%", bytes, packets, drops, 100 * f->utilisation);
}

static void print_cables(const struct cli_lab_measure *m)
{
	const struct fabric_pgft *tree = &m->lab->spec.tree;
	char name[FABRIC_CABLE_NAME_MAX];

	printf("\nCables (over %.3g s)\n", m->seconds);
	printf("  %-18s%30s  %30s\n", "", "up: bytes packets   drops load",
	       "down: bytes packets   drops load");
	for (uint32_t i = 0; i < m->cables; i++) {
		struct fabric_cable c = fabric_cable(tree, i);

		fabric_cable_name(tree, &c, name);
		printf("  %-16s", name);
		print_flow(&m->now[i].up);
		print_flow(&m->now[i].down);
		puts(m->now[i].alive ? "" : "  failed");
	}
}

static int show_text(const struct lab *lab, struct cli_lab_measure *m, bool routes)
{
	struct lab_error e;

	print_head(lab);
	printf("\nHosts\n");
	for (uint32_t j = 0; j < fabric_hosts(&lab->spec.tree); j++)
		print_host(&lab->spec, j);
	print_cables(m);
	if (routes && cli_lab_print_routes(lab, &e)) {
		cli_error("%s", e.text);
		return CLI_FAILED;
	}
	return cli_finish(CLI_OK);
}

static int show_json(struct cli_lab_measure *m)
{
	struct lab_error e;
	json_t *all = cli_lab_all(m, &e);

	if (!all) {
		cli_error("%s", e.text);
		return CLI_FAILED;
	}
	cli_lab_print_json(all, false);
	return cli_finish(CLI_OK);
}

int cli_lab_show(int argc, char **argv)
{
	static const struct option options[] = {
		{"routes", no_argument, NULL, 'r'},
		{"interval", required_argument, NULL, 'i'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	uint64_t interval = UTIL_NS_PER_S / 2;
	bool routes = false, json = false;
	struct cli_lab_measure m;
	struct lab lab;
	int opt, code;

	while ((opt = getopt_long(argc, argv, "ri:jh", options, NULL)) != -1) {
		switch (opt) {
		case 'r':
			routes = true;
			break;
		case 'i':
			code = cli_lab_time("--interval", optarg, &interval);
			if (code)
				return code;
			break;
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
	code = cli_lab_open_only(&lab, argc, argv);
	if (!code)
		code = cli_lab_measure_once(&m, &lab, interval);
	if (code)
		return code;
	code = json ? show_json(&m) : show_text(&lab, &m, routes);
	cli_lab_measure_close(&m);
	return code;
}
