/* weft fabric route, weft fabric order: what others are to use. */
#include "cli_fabric.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "fabric_launch.h"
#include "fabric_lft.h"

static const char route_help[] =
	"Usage: weft fabric route --pgft SPEC | --topology FILE [OPTIONS]\n"
	"\n"
	"Computes the tables of all switches. Where nodes or cables are missing they lead around\n"
	"them, up and then down only, so that they can not deadlock. Tables that are written lead\n"
	"also to what is beside the tree. Without --opensm or --lfts, or with --json, a summary "
	"is\n"
	"printed.\n"
	"\n"
	"Options:\n" CLI_FABRIC_TREE_HELP CLI_FABRIC_ROUTE_HELP
	"  --opensm DIR       write DIR/lfts (opensm -R file -U lfts), DIR/guid2lid (into its\n"
	"                     OSM_CACHE_DIR, with -x and without -r), DIR/roots (-a), DIR/cas "
	"(-u)\n"
	"                     and DIR/ca-order\n"
	"  --lfts FILE        write only the tables\n"
	"  --json             print the summary as JSON\n"
	"  -h, --help         this text\n"
	"\n"
	"Examples:\n"
	"  weft fabric route --topology net --opensm dir\n"
	"  weft fabric route --topology net --hosts job --routing compact --opensm dir\n"
	"  weft fabric route --pgft \"3;100,100,100;1,100,100;1,1,1\"    a million hosts\n";

static const char order_help[] =
	"Usage: weft fabric order --pgft SPEC | --topology FILE [OPTIONS]\n"
	"\n"
	"Writes which host each rank runs on, for a launcher:\n"
	"  names              a host per line (if --as is not given)\n"
	"  openmpi-rankfile   mpirun --rankfile F\n"
	"  openmpi            mpirun --hostfile F\n"
	"  mpich              mpiexec -f F\n"
	"  slurm              SLURM_HOSTFILE=F srun --distribution=arbitrary\n"
	"  slurm-topology     Slurm's topology.conf\n"
	"  opensm             the order of hosts that OpenSM's ftree counts in\n"
	"\n"
	"Options:\n" CLI_FABRIC_TREE_HELP
	"  --exclude K:SEED   all hosts take part but K random ones\n"
	"  --hosts FILE       ... or those that are named in FILE, a hostfile\n"
	"  --order O          routing (if not given), the order of the tree; random:SEED;\n"
	"                     adversarial; file:F\n"
	"  --as FORMAT        one of the above\n"
	"  -o, --output FILE  write to FILE\n"
	"  -h, --help         this text\n"
	"\n"
	"Example:\n"
	"  weft fabric order --topology net --hosts job --as openmpi-rankfile -o ranks\n";

/* ---- route ---- */

/* The files of the directory: either all of them are new, or none is. */
static const char *const opensm_names[] = {"lfts", "guid2lid", "roots", "cas", "ca-order"};

#define OPENSM_FILES 5

struct opensm {
	struct cli_file file;
	char path[PATH_MAX];
};

static int write_one(const struct cli_fabric *f, int which, FILE *to, char *why, size_t why_size)
{
	switch (which) {
	case 0:
		return fabric_lft_write(&f->routes, false, to);
	case 1:
		return fabric_lft_write_lids(&f->tree, f->routes.rule.lmc, to);
	case 2:
		return fabric_lft_write_roots(&f->tree, to);
	case 3:
		return fabric_lft_write_hosts(&f->tree, to);
	default:
		return fabric_launch_write(to, FABRIC_LAUNCH_OPENSM, &f->tree, f->order, f->ranks,
					   f->routes.rule.lmc, why, why_size);
	}
}

static int write_files(const struct cli_fabric *f, const char *dir)
{
	struct opensm *o = calloc(OPENSM_FILES, sizeof(*o));
	int code = o ? CLI_OK : cli_failed(-ENOMEM, "%s", strerror(ENOMEM)), err;
	char why[512] = "";

	for (int i = 0; !code && i < OPENSM_FILES; i++) {
		if (snprintf(o[i].path, sizeof(o[i].path), "%s/%s", dir, opensm_names[i]) >=
		    (int)sizeof(o[i].path))
			code = cli_error("the name of the directory is too long");
		else
			code = cli_create(&o[i].file, o[i].path);
		err = code ? 0 : write_one(f, i, o[i].file.to, why, sizeof(why));
		if (err)
			code = cli_written(&o[i].file, err, why);
	}
	for (int i = 0; o && i < OPENSM_FILES; i++)
		if (code)
			cli_drop(&o[i].file);
		else
			code = cli_written(&o[i].file, 0, NULL);
	free(o);
	return code;
}

/* What is beside the tree is in the tables, too, as far as it can be reached. Tables that were read
 * are as they are. */
static int warn_of_lost(const struct cli_fabric *f)
{
	struct fabric_lft_lost lost;
	uint64_t pairs = 0;
	int err = fabric_lft_lost(&f->tree, f->routes.rule.lmc, &lost);

	if (!err && !f->routes.table)
		err = fabric_routes_unreachable(&f->routes, &pairs);
	if (err)
		return cli_failed(err, "%s", strerror(-err));
	if (pairs)
		cli_error("warning: %" PRIu64 " pairs of hosts have no way; 'weft fabric check' "
			  "says what is missing",
			  pairs);
	if (lost.switches)
		cli_error("warning: %" PRIu64 " pairs of a leaf and a switch have no way: managers "
			  "there can not ask it",
			  lost.switches);
	if (lost.beside)
		cli_error("warning: between nodes beside the tree and others %" PRIu64
			  " pairs have no way; 'weft fabric check' says what is missing",
			  lost.beside);
	return CLI_OK;
}

static int write_opensm(const struct cli_fabric *f, const char *dir)
{
	char why[512];
	int code;

	if (fabric_lft_check(&f->tree, f->routes.rule.lmc, why, sizeof(why)))
		return cli_error("%s", why);
	code = warn_of_lost(f);
	if (code)
		return code;
	if (mkdir(dir, 0777) && errno != EEXIST)
		return cli_failed(-EIO, "cannot make the directory %s: %s", dir, strerror(errno));
	return write_files(f, dir);
}

static int write_lfts(const struct cli_fabric *f, const char *path)
{
	struct cli_file file;
	char why[512];
	int code;

	if (fabric_lft_check(&f->tree, f->routes.rule.lmc, why, sizeof(why)))
		return cli_error("%s", why);
	code = warn_of_lost(f);
	if (!code)
		code = cli_create(&file, path);
	return code ? code : cli_written(&file, fabric_lft_write(&f->routes, true, file.to), NULL);
}

static int route(const struct cli_fabric_args *a, const char *dir, const char *lfts)
{
	struct cli_fabric f = {0};
	int code = cli_fabric_ready(&f, a, false);

	if (!code && dir)
		code = write_opensm(&f, dir);
	if (!code && lfts)
		code = write_lfts(&f, lfts);
	if (!code && ((!dir && !lfts) || a->json))
		code = cli_fabric_survey(&f, a->json);
	cli_fabric_close(&f);
	return code ? code : cli_finish(CLI_OK);
}

int cli_fabric_route(int argc, char **argv)
{
	static const struct option options[] = {
		CLI_FABRIC_TREE_OPTIONS,
		CLI_FABRIC_ROUTE_OPTIONS,
		{"json", no_argument, NULL, CLI_FABRIC_JSON},
		{"opensm", required_argument, NULL, CLI_FABRIC_OWN},
		{"lfts", required_argument, NULL, CLI_FABRIC_OWN + 1},
		{0}};
	const char *dir = NULL, *lfts = NULL;
	struct cli_fabric_args a = {0};
	int opt, code;

	while ((opt = cli_fabric_option(argc, argv, "h", options, 0)) != -1) {
		if (opt == 'h') {
			fputs(route_help, stdout);
			return cli_finish(CLI_OK);
		}
		if (opt == CLI_FABRIC_OWN)
			dir = optarg;
		else if (opt == CLI_FABRIC_OWN + 1)
			lfts = optarg;
		else if (!cli_fabric_take(&a, opt))
			return cli_try_help();
	}
	code = cli_fabric_end(argc, argv);
	if (!code && a.json && lfts && !strcmp(lfts, "-"))
		code = cli_error("the tables and JSON can not both go to standard output");
	return code ? code : route(&a, dir, lfts);
}

/* ---- order ---- */

static int order(const struct cli_fabric_args *a, enum fabric_launch kind, const char *path)
{
	struct cli_fabric f = {0};
	int code = cli_fabric_open(&f, a), err;
	struct cli_file file;
	char why[512] = "";

	if (!code)
		code = cli_fabric_take_part(&f, a);
	if (!code)
		code = cli_fabric_ranks(&f, a);
	if (!code)
		code = cli_create(&file, path);
	if (!code) {
		err = fabric_launch_write(file.to, kind, &f.tree, f.order, f.ranks, 0, why,
					  sizeof(why));
		code = cli_written(&file, err, why);
	}
	cli_fabric_close(&f);
	return code;
}

int cli_fabric_order(int argc, char **argv)
{
	static const struct option options[] = {
		CLI_FABRIC_TREE_OPTIONS,
		{"exclude", required_argument, NULL, CLI_FABRIC_EXCLUDE},
		{"hosts", required_argument, NULL, CLI_FABRIC_HOSTS},
		{"order", required_argument, NULL, CLI_FABRIC_ORDER},
		{"as", required_argument, NULL, CLI_FABRIC_OWN},
		{"output", required_argument, NULL, 'o'},
		{0}};
	enum fabric_launch kind = FABRIC_LAUNCH_NAMES;
	struct cli_fabric_args a = {0};
	const char *path = NULL;
	char why[512];
	int opt, code;

	while ((opt = cli_fabric_option(argc, argv, "ho:", options, 0)) != -1) {
		if (opt == 'h') {
			fputs(order_help, stdout);
			return cli_finish(CLI_OK);
		}
		if (opt == 'o') {
			path = optarg;
		} else if (opt == CLI_FABRIC_OWN) {
			if (fabric_launch_parse(&kind, optarg, why, sizeof(why)))
				return cli_error("--as: %s", why);
		} else if (!cli_fabric_take(&a, opt)) {
			return cli_try_help();
		}
	}
	code = cli_fabric_end(argc, argv);
	return code ? code : order(&a, kind, path);
}
