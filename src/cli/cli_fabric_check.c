/* weft fabric check, weft fabric convert: what a fabric is. */
#include "cli_fabric.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <string.h>

#include "fabric_beside.h"
#include "fabric_net.h"
#include "fabric_rlft.h"
#include "fabric_text.h"

static const char check_help[] =
	"Usage: weft fabric check --pgft SPEC | --topology FILE [OPTIONS]\n"
	"\n"
	"Says which fat tree a fabric is, whatever the order of its cabling; what is missing or\n"
	"plugged in wrongly, by name; whether it is a real-life fat tree, on which D-Mod-K has no\n"
	"hot spots, and if not, which rule is broken where; and whether every host reaches every\n"
	"other. Exit code 1: something of this is wrong. What is beside the tree, such as "
	"managers\n"
	"at spines and aggregation nodes, is named, and not wrong.\n"
	"\n"
	"Options:\n" CLI_FABRIC_TREE_HELP "  --json             print JSON\n"
	"  -h, --help         this text\n"
	"\n"
	"Examples:\n"
	"  ibnetdiscover | weft fabric check --topology -\n"
	"  weft fabric check --pgft \"2;12,12;1,12;1,2\"\n";

static const char convert_help[] =
	"Usage: weft fabric convert --pgft SPEC | --topology FILE --to FORMAT [OPTIONS]\n"
	"\n"
	"Writes a fabric as\n"
	"  ibnetdiscover   text that ibsim and other tools read\n"
	"  pgft            the tuple\n"
	"\n"
	"Options:\n" CLI_FABRIC_TREE_HELP "  --to FORMAT        one of the above\n"
	"  -o, --output FILE  write to FILE\n"
	"  -h, --help         this text\n"
	"\n"
	"Example:\n"
	"  weft fabric convert --pgft \"2;4,4;1,2;1,2\" --to ibnetdiscover >x.net; ibsim -s "
	"x.net\n";

static json_t *sentences(const struct fabric_defects *d)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < d->kept; i++)
		json_array_append_new(list, cli_json_text(d->text[i]));
	return list;
}

static json_t *rules(const struct fabric_rlft *r)
{
	json_t *list = json_array();

	for (uint32_t i = 0; i < r->count; i++)
		json_array_append_new(list, json_string(r->broken[i].text));
	return list;
}

/* ---- beside the tree ---- */

static void say(json_t *list, const char *what, const char *name, const struct fabric_net *net,
		const struct fabric_net_port *at)
{
	char text[512];

	snprintf(text, sizeof(text), "%s %s at port %u of switch %s", what, fabric_quote(name).text,
		 at->peer_port, fabric_quote(net->nodes[at->peer].name).text);
	json_array_append_new(list, cli_json_text(text));
}

/* Where a switch hangs: the first of its cables that leads nearer to the tree. */
static void say_switch(json_t *list, const struct fabric_beside *b, const struct fabric_tree *t,
		       uint32_t node)
{
	const struct fabric_net *net = t->net;
	const struct fabric_net_node *n = &net->nodes[node];

	for (uint32_t i = n->first; i < n->first + n->count; i++)
		if (b->number[net->ports[i].peer] < b->number[node] && fabric_tree_has_port(t, i)) {
			say(list, "switch", n->name, net, &net->ports[i]);
			return;
		}
}

static const struct fabric_net_node *owner(const struct fabric_net *net, uint32_t place)
{
	const struct fabric_net_port *p = &net->ports[place];

	return &net->nodes[net->ports[fabric_net_find_port(net, p->peer, p->peer_port)].peer];
}

static void say_port(json_t *list, const struct fabric_net *net, uint32_t place)
{
	const struct fabric_net_port *p = &net->ports[place];
	const struct fabric_net_node *n = owner(net, place);
	char what[40] = "host";

	if (n->kind == FABRIC_NET_ROUTER)
		snprintf(what, sizeof(what), "router");
	if (n->count > 1)
		snprintf(what, sizeof(what), "port %u of %s", p->number,
			 n->kind == FABRIC_NET_ROUTER ? "router" : "host");
	say(list, what, n->name, net, p);
}

/* A sentence for each; aggregation nodes, of which every switch may have one, are counted. */
static json_t *beside_of(const struct fabric_tree *t)
{
	struct fabric_beside b;
	uint32_t inside = 0, last = 0;
	json_t *list;

	if (fabric_beside_find(&b, t))
		return NULL;
	list = json_array();
	for (uint32_t i = 0; i < b.n_switches; i++)
		say_switch(list, &b, t, b.switches[i]);
	for (uint32_t i = 0; i < b.n_ports; i++) {
		if (!fabric_beside_is_inside(owner(t->net, b.ports[i]))) {
			say_port(list, t->net, b.ports[i]);
			continue;
		}
		inside++;
		last = b.ports[i];
	}
	if (inside == 1)
		say(list, "aggregation node", owner(t->net, last)->name, t->net,
		    &t->net->ports[last]);
	else if (inside)
		json_array_append_new(
			list, json_sprintf("%u aggregation nodes, inside of switches", inside));
	fabric_beside_free(&b);
	return list;
}

/* Beyond so many nobody reads them; JSON has all. */
#define BESIDE_SHOWN 20

static void print_beside(const json_t *beside)
{
	size_t n = json_array_size(beside);

	/* The last one may be the sum. */
	for (size_t i = 0; i < n; i++) {
		if (n > BESIDE_SHOWN && i == BESIDE_SHOWN - 1 && i + 1 < n) {
			printf("beside the tree: ... and %zu more\n", n - 1 - i);
			i = n - 1;
		}
		cli_say("beside the tree: %s\n", json_string_value(json_array_get(beside, i)));
	}
}

/* ---- all of it ---- */

static void print_json(const struct cli_fabric *f, const struct fabric_rlft *r, uint64_t lost,
		       json_t *beside)
{
	const struct fabric_tree *t = &f->tree;
	char tuple[FABRIC_TUPLE_MAX];
	json_t *j;

	fabric_pgft_print(&t->pgft, tuple);
	j = json_pack("{s:s, s:I, s:I, s:I, s:b, s:I, s:I, s:I, s:I, s:o, s:O, s:b, s:o}", "pgft",
		      tuple, "hosts", (json_int_t)fabric_hosts(&t->pgft), "switches",
		      (json_int_t)(fabric_nodes(&t->pgft) - fabric_hosts(&t->pgft)), "cables",
		      (json_int_t)fabric_cables(&t->pgft), "whole", fabric_tree_whole(t),
		      "nodes_missing", (json_int_t)t->n_nodes_gone, "cables_missing",
		      (json_int_t)t->n_cables_gone, "pairs_without_a_way", (json_int_t)lost,
		      "n_defects", (json_int_t)f->defects.count, "defects", sentences(&f->defects),
		      "beside", beside, "rlft", r->count == 0, "rules_broken", rules(r));
	cli_print_json(j, 0);
}

static void print_text(const struct cli_fabric *f, const struct fabric_rlft *r, uint64_t lost,
		       const json_t *beside)
{
	const struct fabric_tree *t = &f->tree;
	char tuple[FABRIC_TUPLE_MAX];

	fabric_pgft_print(&t->pgft, tuple);
	printf("%s: %u hosts, %u switches, %u cables\n", tuple, fabric_hosts(&t->pgft),
	       fabric_nodes(&t->pgft) - fabric_hosts(&t->pgft), fabric_cables(&t->pgft));
	for (uint32_t i = 0; i < f->defects.kept; i++)
		cli_say("defect: %s\n", f->defects.text[i]);
	if (f->defects.kept < f->defects.count)
		printf("... and %u more\n", f->defects.count - f->defects.kept);
	print_beside(beside);
	if (!fabric_tree_whole(t))
		printf("missing: %u nodes, %u cables\n", t->n_nodes_gone, t->n_cables_gone);
	if (lost)
		printf("no way: between %" PRIu64 " pairs of hosts\n", lost);
	for (uint32_t i = 0; i < r->count; i++)
		cli_say("no RLFT: %s\n", r->broken[i].text);
	if (!r->count && fabric_tree_whole(t) && !f->defects.count)
		printf("a whole real-life fat tree: with D-Mod-K and in routing order no shift has "
		       "a hot spot\n");
}

static int check(struct cli_fabric_args *a)
{
	struct cli_fabric f = {0};
	struct fabric_rlft r;
	uint64_t lost = 0;
	int code = cli_fabric_open(&f, a);
	json_t *beside = NULL;

	if (!code)
		code = cli_fabric_routes(&f, a);
	if (!code && fabric_routes_unreachable(&f.routes, &lost))
		code = cli_failed(-ENOMEM, "%s", strerror(ENOMEM));
	if (!code) {
		beside = beside_of(&f.tree);
		code = beside ? CLI_OK : cli_failed(-ENOMEM, "%s", strerror(ENOMEM));
	}
	if (!code) {
		fabric_rlft_check(&f.tree.pgft, &r);
		if (a->json)
			print_json(&f, &r, lost, beside);
		else
			print_text(&f, &r, lost, beside);
		code = cli_finish(r.count || lost || f.defects.count || !fabric_tree_whole(&f.tree)
					  ? CLI_FAILED
					  : CLI_OK);
	}
	json_decref(beside);
	cli_fabric_close(&f);
	return code;
}

int cli_fabric_check(int argc, char **argv)
{
	static const struct option options[] = {
		CLI_FABRIC_TREE_OPTIONS, {"json", no_argument, NULL, CLI_FABRIC_JSON}, {0}};
	struct cli_fabric_args a = {.check = true};
	int opt, code;

	while ((opt = cli_fabric_option(argc, argv, "h", options, 0)) != -1) {
		if (opt == 'h') {
			fputs(check_help, stdout);
			return cli_finish(CLI_OK);
		}
		if (!cli_fabric_take(&a, opt))
			return cli_try_help();
	}
	code = cli_fabric_end(argc, argv);
	return code ? code : check(&a);
}

/* A tuple says nothing of what is beside the tree. */
static int warn_of_beside(const struct fabric_tree *t)
{
	struct fabric_beside b;
	int err = fabric_beside_find(&b, t);

	if (err)
		return cli_failed(err, "%s", strerror(-err));
	if (b.n_switches || b.n_ports)
		cli_error("warning: beside the tree are %u switches and %u ports of hosts, which a "
			  "tuple can not say; '--to ibnetdiscover' can",
			  b.n_switches, b.n_ports);
	fabric_beside_free(&b);
	return CLI_OK;
}

static int convert(const struct cli_fabric_args *a, const char *format, const char *path)
{
	struct cli_fabric f = {0};
	char tuple[FABRIC_TUPLE_MAX];
	int code = cli_fabric_open(&f, a), err = 0;
	bool pgft = !strcmp(format, "pgft");
	const char *why = NULL;
	struct cli_file file;

	if (!code && pgft && !fabric_tree_whole(&f.tree))
		code = cli_error("%u nodes and %u cables are missing, which a tuple can not say; "
				 "'--to ibnetdiscover' can",
				 f.tree.n_nodes_gone, f.tree.n_cables_gone);
	if (!code && pgft)
		code = warn_of_beside(&f.tree);
	if (!code)
		code = cli_create(&file, path);
	if (!code) {
		fabric_pgft_print(&f.tree.pgft, tuple);
		if (pgft)
			fprintf(file.to, "%s\n", tuple);
		else
			err = fabric_net_write(&f.tree, file.to);
		if (err == -ERANGE)
			why = "a node has more ports than such a text can have: 65535 of a "
			      "switch, 15 of a host";
		code = cli_written(&file, err, why);
	}
	cli_fabric_close(&f);
	return code;
}

int cli_fabric_convert(int argc, char **argv)
{
	static const struct option options[] = {CLI_FABRIC_TREE_OPTIONS,
						{"to", required_argument, NULL, CLI_FABRIC_OWN},
						{"output", required_argument, NULL, 'o'},
						{0}};
	const char *format = NULL, *path = NULL;
	struct cli_fabric_args a = {0};
	int opt, code;

	while ((opt = cli_fabric_option(argc, argv, "ho:", options, 0)) != -1) {
		if (opt == 'h') {
			fputs(convert_help, stdout);
			return cli_finish(CLI_OK);
		}
		if (opt == 'o')
			path = optarg;
		else if (opt == CLI_FABRIC_OWN)
			format = optarg;
		else if (!cli_fabric_take(&a, opt))
			return cli_try_help();
	}
	code = cli_fabric_end(argc, argv);
	if (!code &&
	    (!format || (strcmp(format, "pgft") != 0 && strcmp(format, "ibnetdiscover") != 0)))
		code = cli_error("--to is ibnetdiscover or pgft");
	return code ? code : convert(&a, format, path);
}
