/* weft lab up, weft lab down. */
#include "cli.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli_lab.h"
#include "util_clock.h"

static const char up_help[] =
	"Usage: weft lab up NAME --pgft TUPLE [OPTIONS]\n"
	"\n"
	"Builds a lab: a fat tree of hosts and switches, each a network namespace, joined by\n"
	"cables that have a rate. It stays until 'weft lab down NAME' or the next reboot.\n"
	"\n"
	"Options:\n"
	"  -p, --pgft TUPLE    the tree, \"h;m_1,...;w_1,...;p_1,...\"; see 'weft lab --help'\n"
	"  -r, --rate RATE     of each cable in each direction: 100mbit (the default), 2.5gbit,\n"
	"                      ..., or unlimited\n"
	"  -m, --mtu BYTES     largest packet, 1280 to 65535; 9000 if not given\n"
	"  -R, --routing HOW   which way packets go up:\n"
	"                        dmodk        by destination, no contention in shifts (default)\n"
	"                        ecmp         the kernel hashes each flow to one of the ways\n"
	"                        random:SEED  by destination, a random table\n"
	"                        lmc:K        2^K addresses per host, each with its own way\n"
	"  -j, --json          print the result as JSON\n"
	"  -h, --help          this text\n"
	"\n"
	"Examples:\n"
	"  weft lab up fat --pgft \"2;12,2;1,12;1,1\"                 24 hosts, 2 leaves\n"
	"  weft lab up big --pgft \"2;12,12;1,6;1,2\" --rate 50mbit   144 hosts\n"
	"  weft lab up par --pgft \"2;4,4;1,2;1,2\" --routing lmc:1   parallel cables\n";

static const char down_help[] =
	"Usage: weft lab down NAME...\n"
	"       weft lab down --all\n"
	"\n"
	"Ends labs: the programs that run on their hosts are killed, namespaces, cables and\n"
	"files removed. It also removes what a crash or an interrupted 'up' has left.\n"
	"\n"
	"Options:\n"
	"  -a, --all   all labs of yours\n"
	"  -h, --help  this text\n"
	"\n"
	"Examples:\n"
	"  weft lab down fat\n"
	"  weft lab down --all\n";

#define MTU_MIN 1280
#define MTU_MAX 65535

static int parse_mtu(const char *text, uint32_t *mtu)
{
	char *end;
	unsigned long v;

	errno = 0;
	v = strtoul(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end || errno || v < MTU_MIN || v > MTU_MAX)
		return cli_error(
			"--mtu %s is not understood; expected a number from %d to %d: IPv6 "
			"needs the first, IP packets can not exceed the second",
			text, MTU_MIN, MTU_MAX);
	*mtu = (uint32_t)v;
	return CLI_OK;
}

struct up_options {
	const char *tree, *routing;
	bool json;
};

static int up_option(int opt, struct up_options *o, struct lab_spec *spec)
{
	switch (opt) {
	case 'p':
		o->tree = optarg;
		return CLI_OK;
	case 'r':
		return cli_lab_rate("--rate", optarg, &spec->rate);
	case 'm':
		return parse_mtu(optarg, &spec->mtu);
	case 'R':
		o->routing = optarg;
		return CLI_OK;
	case 'j':
		o->json = true;
		return CLI_OK;
	default:
		return cli_try_help();
	}
}

static int complete_spec(struct lab_spec *spec, const char *name, const struct up_options *o)
{
	struct lab_error e;
	char why[256];

	if (lab_name_check(name, &e))
		return cli_error("%s", e.text);
	strcpy(spec->name, name); /* its length is part of the check */
	if (!o->tree) {
		cli_error("which tree? For example --pgft \"2;12,2;1,12;1,1\"");
		return cli_try_help();
	}
	if (fabric_pgft_parse(&spec->tree, o->tree, why, sizeof(why)))
		/* A shell takes what follows a bare ';' for the next command. */
		return cli_error("--pgft \"%.100s\": %s%s", o->tree, why,
				 strchr(o->tree, ';') ? "" : "; in a shell it needs quotes");
	if (fabric_routing_parse(&spec->routing, o->routing, why, sizeof(why)))
		return cli_error("--routing %.100s: %s", o->routing, why);
	return CLI_OK;
}

static void print_up(const struct lab *lab, double seconds)
{
	const struct lab_spec *s = &lab->spec;
	uint32_t hosts = fabric_hosts(&s->tree);
	struct fabric_node first = {0, 0};
	struct cli_lab_texts t;
	char addr[16];

	cli_lab_texts(lab, &t);
	cli_lab_address(s, first, 0, addr);
	printf("Lab %s is up after %.2f s.\n\n", s->name, seconds);
	printf("  hosts      %u (h0 to h%u)\n", hosts, hosts - 1);
	printf("  switches   %u\n", cli_lab_switches(lab));
	printf("  cables     %u, %s%s, MTU %u\n", fabric_cables(&s->tree), t.rate,
	       s->rate ? " each way" : "", s->mtu);
	printf("  routing    %s\n", t.routing);
	printf("  addresses  %s, h0 has %s\n\n", t.net, addr);
	printf("Next:\n");
	printf("  weft lab exec %s h0 -- ping -c 3 %s-h%u\n", s->name, s->name, hosts - 1);
	printf("  weft lab top %s\n", s->name);
	printf("  weft lab down %s\n", s->name);
}

static int bring_up(struct lab_spec *spec, bool json)
{
	uint64_t start = util_now_ns();
	struct lab_error e;
	struct lab lab;
	double seconds;
	json_t *head;

	if (lab_up(spec, &lab, &e))
		return cli_error("%s", e.text);
	seconds = (double)(util_now_ns() - start) / UTIL_NS_PER_S;
	if (!json) {
		print_up(&lab, seconds);
		return cli_finish(CLI_OK);
	}
	head = cli_lab_head(&lab);
	json_object_set_new(head, "seconds", json_real(seconds));
	cli_lab_print_json(head, false);
	return cli_finish(CLI_OK);
}

int cli_lab_up(int argc, char **argv)
{
	static const struct option options[] = {
		{"pgft", required_argument, NULL, 'p'},
		{"rate", required_argument, NULL, 'r'},
		{"mtu", required_argument, NULL, 'm'},
		{"routing", required_argument, NULL, 'R'},
		{"json", no_argument, NULL, 'j'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct lab_spec spec = {.rate = 100000000, .mtu = 9000};
	struct up_options o = {.routing = "dmodk"};
	int opt, code;

	while ((opt = getopt_long(argc, argv, "p:r:m:R:jh", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(up_help, stdout);
			return cli_finish(CLI_OK);
		}
		code = up_option(opt, &o, &spec);
		if (code)
			return code;
	}
	if (optind == argc) {
		cli_error("which name? For example: weft lab up fat --pgft \"2;12,2;1,12;1,1\"");
		return cli_try_help();
	}
	if (optind + 1 < argc) {
		cli_error("unexpected argument '%s'; a tuple with blanks needs quotes",
			  argv[optind + 1]);
		return cli_try_help();
	}
	code = complete_spec(&spec, argv[optind], &o);
	return code ? code : bring_up(&spec, o.json);
}

static int down_all(void)
{
	struct lab_error e;
	uint32_t count = 0;

	if (lab_down_all(&count, &e))
		return cli_error("%s", e.text);
	printf("%u lab%s down.\n", count, count == 1 ? " is" : "s are");
	return cli_finish(CLI_OK);
}

/* All of them, also when one can not be found. */
static int down_each(char **names)
{
	int code = CLI_OK;

	for (; *names; names++) {
		struct lab_error e;

		if (lab_down(*names, &e))
			code = cli_error("%s", e.text);
		else
			printf("Lab %s is down.\n", *names);
	}
	return cli_finish(code);
}

int cli_lab_down(int argc, char **argv)
{
	static const struct option options[] = {
		{"all", no_argument, NULL, 'a'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool all = false;
	int opt;

	while ((opt = getopt_long(argc, argv, "ah", options, NULL)) != -1) {
		switch (opt) {
		case 'a':
			all = true;
			break;
		case 'h':
			fputs(down_help, stdout);
			return cli_finish(CLI_OK);
		default:
			return cli_try_help();
		}
	}
	if (all != (optind == argc)) {
		if (all)
			cli_error("either names or --all, not both");
		else
			cli_error("which lab? 'weft lab list' lists them; --all means all");
		return cli_try_help();
	}
	return all ? down_all() : down_each(argv + optind);
}
