/* weft fabric: what its commands share: which fabric, which routes, who takes part in which order,
 * and what they exchange. */
#ifndef WEFT_CLI_FABRIC_H
#define WEFT_CLI_FABRIC_H

#include "cli_output.h"
#include "fabric_cps.h"
#include "fabric_order.h"
#include "fabric_routes.h"
#include "fabric_shape.h"

int cli_fabric_check(int argc, char **argv);
int cli_fabric_route(int argc, char **argv);
int cli_fabric_order(int argc, char **argv);
int cli_fabric_hsd(int argc, char **argv);
int cli_fabric_sim(int argc, char **argv);
int cli_fabric_draw(int argc, char **argv);
int cli_fabric_convert(int argc, char **argv);

#define CLI_FABRIC_CUTS_MAX 1024

/* As given by options; NULL: not given. */
struct cli_fabric_args {
	const char *pgft, *topology, *routing, *lids, *order, *exclude, *hosts, *cps;
	const char *without[CLI_FABRIC_CUTS_MAX];
	unsigned int n_without;
	bool json;
	uint32_t ranks; /* of the first hosts of the order; 0: of all */
	bool check;     /* defects are what it is about */
};

/* ... and what they mean. Parts that were not asked for are empty. */
struct cli_fabric {
	struct fabric_tree tree;
	struct fabric_defects defects;
	struct fabric_set set;
	uint32_t *index; /* the compact index, if routes are by it */
	struct fabric_routes routes;
	uint32_t *order; /* the host of each rank */
	uint32_t ranks;
	struct fabric_cps cps;
};

/* Options of all commands, for the table of getopt_long; their values are beyond characters. */
enum {
	CLI_FABRIC_PGFT = 256,
	CLI_FABRIC_TOPOLOGY,
	CLI_FABRIC_WITHOUT,
	CLI_FABRIC_ROUTING,
	CLI_FABRIC_LIDS,
	CLI_FABRIC_ORDER,
	CLI_FABRIC_EXCLUDE,
	CLI_FABRIC_HOSTS,
	CLI_FABRIC_CPS,
	CLI_FABRIC_JSON,
	CLI_FABRIC_OWN, /* the first of a command's own */
};

#define CLI_FABRIC_TREE_OPTIONS                                                                    \
	{"pgft", required_argument, NULL, CLI_FABRIC_PGFT},                                        \
		{"topology", required_argument, NULL, CLI_FABRIC_TOPOLOGY},                        \
		{"without", required_argument, NULL, CLI_FABRIC_WITHOUT},                          \
	{                                                                                          \
		"help", no_argument, NULL, 'h'                                                     \
	}
#define CLI_FABRIC_ROUTE_OPTIONS                                                                   \
	{"routing", required_argument, NULL, CLI_FABRIC_ROUTING},                                  \
		{"lids", required_argument, NULL, CLI_FABRIC_LIDS},                                \
		{"exclude", required_argument, NULL, CLI_FABRIC_EXCLUDE},                          \
	{                                                                                          \
		"hosts", required_argument, NULL, CLI_FABRIC_HOSTS                                 \
	}
#define CLI_FABRIC_JOB_OPTIONS                                                                     \
	{"order", required_argument, NULL, CLI_FABRIC_ORDER},                                      \
		{"cps", required_argument, NULL, CLI_FABRIC_CPS},                                  \
	{                                                                                          \
		"json", no_argument, NULL, CLI_FABRIC_JSON                                         \
	}

/* Their explanations. */
#define CLI_FABRIC_TREE_HELP                                                                       \
	"  --pgft SPEC        the fabric is the fat tree of this tuple (see weft fabric --help)\n" \
	"  --topology FILE    ... or what ibnetdiscover prints; '-' is standard input\n"           \
	"  --without NAME     without this node or cable: h3, s2.5, s1.0-s2.3:1, or by name, "     \
	"GUID\n"                                                                                   \
	"                     or id in the file, for a cable with a port, NAME[3] or NAME:3;\n"    \
	"                     may be given again\n"
#define CLI_FABRIC_ROUTE_HELP                                                                      \
	"  --routing R        dmodk (if not given); lmc:K, dmodk with 2^K addresses per host;\n"   \
	"                     compact, dmodk by the position among those that take part;\n"        \
	"                     random:SEED; or file:LFTS, tables as OpenSM dumps them\n"            \
	"  --lids FILE        which LID is whose in LFTS, as OpenSM's guid2lid, if they do not\n"  \
	"                     say it themselves\n"                                                 \
	"  --exclude K:SEED   all hosts take part but K random ones\n"                             \
	"  --hosts FILE       ... or those that are named in FILE, a hostfile\n"
#define CLI_FABRIC_JOB_HELP                                                                        \
	"  --order O          rank r runs on the r-th of: routing (if not given), the order of\n"  \
	"                     the tree; random:SEED; adversarial; file:F, a hostfile or\n"         \
	"                     rankfile\n"                                                          \
	"  --cps NAME         what the ranks exchange: shift, ring, dissemination, tournament,\n"  \
	"                     binomial, recdbl, rechalv, topo-recdbl, topo-rechalv, drc, "         \
	"shift:S\n"                                                                                \
	"                     or drc:S for one stage, file:F for a pattern of your own\n"          \
	"  --json             print JSON\n"

/* getopt_long(), but what can be said once only is not said twice: then it complains and returns
 * '?'. Options without a value may be given again, and the one of this command that is `again`. */
struct option;
int cli_fabric_option(int argc, char **argv, const char *letters, const struct option *options,
		      int again);
/* Takes one of the options above; false: it is none of them. */
bool cli_fabric_take(struct cli_fabric_args *a, int opt);
/* After the options: nothing may follow. */
int cli_fabric_end(int argc, char **argv);

/* What they mean: the fabric; then who takes part, and routes; then the order and the pattern.
 * Each needs the one before. CLI_OK, or an exit code after a complaint. */
int cli_fabric_open(struct cli_fabric *f, const struct cli_fabric_args *a);
/* Only who takes part. */
int cli_fabric_take_part(struct cli_fabric *f, const struct cli_fabric_args *a);
int cli_fabric_routes(struct cli_fabric *f, const struct cli_fabric_args *a);
/* Says why there are none. Returns the exit code. */
int cli_fabric_no_routes(int err);
/* Computes every table once and prints how many there are, and how evenly they use the cables
 * (cli_fabric_survey.c). */
int cli_fabric_survey(const struct cli_fabric *f, bool json);
int cli_fabric_ranks(struct cli_fabric *f, const struct cli_fabric_args *a);
int cli_fabric_pattern(struct cli_fabric *f, const struct cli_fabric_args *a);
/* All of these but the pattern; with it. */
int cli_fabric_ready(struct cli_fabric *f, const struct cli_fabric_args *a, bool pattern);
void cli_fabric_close(struct cli_fabric *f);

/* How far something is, on standard error, if that is a terminal. */
struct cli_fabric_progress {
	bool show;
	uint64_t shown;
};

void cli_fabric_progress_begin(struct cli_fabric_progress *p);
/* done: 0 … 1. May be called often. */
void cli_fabric_progress(struct cli_fabric_progress *p, double done);
/* Before anything else is printed. */
void cli_fabric_progress_end(struct cli_fabric_progress *p);

/* The most memory that this process has had. */
long cli_fabric_rss_kb(void);

/* Links and flows by name. */
#define CLI_FABRIC_LINK_MAX (2 * FABRIC_TREE_NAME_MAX + 16)
void cli_fabric_link(const struct cli_fabric *f, uint32_t link, char name[CLI_FABRIC_LINK_MAX]);

#endif
