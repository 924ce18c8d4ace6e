/* weft fabric: the fabric that a command is about, its routes, who takes part in which order, and
 * what they exchange. */
#include "cli_fabric.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_beside.h"
#include "fabric_lft.h"
#include "fabric_text.h"

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
