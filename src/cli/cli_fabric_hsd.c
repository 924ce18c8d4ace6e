/* weft fabric hsd: hot-spot degree. */
#include "cli_fabric.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "fabric_hsd.h"
#include "fabric_text.h"

static const char help[] =
	"Usage: weft fabric hsd --pgft SPEC | --topology FILE --cps NAME [OPTIONS]\n"
	"\n"
	"Hot-spot degree: how many flows of a stage of a collective share a link. 1 is no hot "
	"spot;\n"
	"with k the stage takes k times as long as it could, if ranks go on together.\n"
	"\n"
	"Options:\n" CLI_FABRIC_TREE_HELP CLI_FABRIC_ROUTE_HELP CLI_FABRIC_JOB_HELP
	"  --per-stage        a line for each stage\n"
	"  --hottest N        the N hottest links, with the flows on them\n"
	"  --links            every link that has a flow, for each stage: stage, link, degree\n"
	"  -h, --help         this text\n"
	"\n"
	"avg_max is the mean over the stages of the worst link of the stage; up and down are over\n"
	"links between switches only, leaf up over those from the leaves to the switches above.\n"
	"\n"
	"Examples:\n"
	"  weft fabric hsd --pgft \"2;18,18;1,9;1,2\" --cps shift\n"
	"  weft fabric hsd --pgft \"2;18,18;1,9;1,2\" --cps shift --order random:1 --hottest 3\n";

struct wish {
	bool per_stage, links;
	uint32_t hottest;
};

#define FLOWS_SHOWN 16

static json_t *levels(const uint32_t *at, uint32_t h)
{
	json_t *list = json_array();

	for (uint32_t l = 1; l <= h; l++)
		json_array_append_new(list, json_integer(at[l]));
	return list;
}

static json_t *flows_json(const struct cli_fabric *f, const struct fabric_hsd_job *job,
			  const struct fabric_hsd_link *l)
{
	struct fabric_flow *flows = calloc(l->degree, sizeof(*flows));
	json_t *list = json_array();
	uint32_t n = flows ? fabric_hsd_flows(job, l->stage, l->link, flows, l->degree) : 0;

	for (uint32_t i = 0; i < n && i < l->degree; i++) {
		char from[FABRIC_TREE_NAME_MAX], to[FABRIC_TREE_NAME_MAX];

		fabric_tree_name(&f->tree, f->order[flows[i].from], from);
		fabric_tree_name(&f->tree, f->order[flows[i].to], to);
		json_array_append_new(list,
				      json_pack("{s:I, s:I, s:o, s:o}", "from_rank",
						(json_int_t)flows[i].from, "to_rank",
						(json_int_t)flows[i].to, "from",
						cli_json_text(from), "to", cli_json_text(to)));
	}
	free(flows);
	return list;
}

static json_t *hottest_json(const struct cli_fabric *f, const struct fabric_hsd_job *job,
			    const struct fabric_hsd *r)
{
	json_t *list = json_array();
	char name[CLI_FABRIC_LINK_MAX];

	for (uint32_t i = 0; i < r->n_hottest; i++) {
		const struct fabric_hsd_link *l = &r->hottest[i];

		cli_fabric_link(f, l->link, name);
		json_array_append_new(
			list, json_pack("{s:o, s:I, s:I, s:o}", "link", cli_json_text(name),
					"stage", (json_int_t)l->stage, "degree",
					(json_int_t)l->degree, "flows", flows_json(f, job, l)));
	}
	return list;
}

static json_t *stages_json(const struct fabric_hsd_job *job, uint32_t h)
{
	json_t *list = json_array();

	for (uint32_t s = 0; s < job->cps->stages; s++) {
		const struct fabric_hsd_worst *w = &job->per_stage[s];

		json_array_append_new(
			list, json_pack("{s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "stage",
					(json_int_t)s, "max", (json_int_t)w->all, "up",
					(json_int_t)w->up, "down", (json_int_t)w->down, "leaf_up",
					(json_int_t)w->leaf_up, "levels_up", levels(w->up_at, h),
					"levels_down", levels(w->down_at, h)));
	}
	return list;
}

static void print_json(const struct cli_fabric *f, const struct fabric_hsd_job *job,
		       const struct fabric_hsd *r, const struct wish *w)
{
	uint32_t h = f->tree.pgft.h;
	json_t *j = json_pack("{s:f, s:I, s:I, s:f, s:f, s:f, s:o, s:o, s:I, s:I}", "avg_max_hsd",
			      r->avg_max_hsd, "max_hsd", (json_int_t)r->worst.all, "stages",
			      (json_int_t)r->stages, "avg_max_up", r->avg_max_up, "avg_max_down",
			      r->avg_max_down, "avg_max_leaf_up", r->avg_max_leaf_up,
			      "max_levels_up", levels(r->worst.up_at, h), "max_levels_down",
			      levels(r->worst.down_at, h), "flows_without_a_way",
			      (json_int_t)r->worst.lost, "ranks", (json_int_t)f->ranks);

	if (w->per_stage)
		json_object_set_new(j, "per_stage", stages_json(job, h));
	if (w->hottest)
		json_object_set_new(j, "hottest", hottest_json(f, job, r));
	cli_print_json(j, JSON_REAL_PRECISION(15));
}

static void print_flows(const struct cli_fabric *f, const struct fabric_hsd_job *job,
			const struct fabric_hsd_link *l)
{
	struct fabric_flow flows[FLOWS_SHOWN];
	uint32_t n = fabric_hsd_flows(job, l->stage, l->link, flows, FLOWS_SHOWN);
	char from[FABRIC_TREE_NAME_MAX], to[FABRIC_TREE_NAME_MAX];

	for (uint32_t i = 0; i < n && i < FLOWS_SHOWN; i++) {
		fabric_tree_name(&f->tree, f->order[flows[i].from], from);
		fabric_tree_name(&f->tree, f->order[flows[i].to], to);
		cli_say("    rank %u (%s) > rank %u (%s)\n", flows[i].from, from, flows[i].to, to);
	}
	if (n > FLOWS_SHOWN)
		printf("    ... and %u more\n", n - FLOWS_SHOWN);
}

static void print_text(const struct cli_fabric *f, const struct fabric_hsd_job *job,
		       const struct fabric_hsd *r, const struct wish *w)
{
	char name[CLI_FABRIC_LINK_MAX];

	if (w->per_stage) {
		printf("#stage     max      up    down leaf_up\n");
		for (uint32_t s = 0; s < job->cps->stages; s++)
			printf("%6u %7u %7u %7u %7u\n", s, job->per_stage[s].all,
			       job->per_stage[s].up, job->per_stage[s].down,
			       job->per_stage[s].leaf_up);
	}
	printf("%u ranks, %u stages: worst link %u, avg_max %.3f (up %.3f, down %.3f, leaf up "
	       "%.3f)\n",
	       f->ranks, r->stages, r->worst.all, r->avg_max_hsd, r->avg_max_up, r->avg_max_down,
	       r->avg_max_leaf_up);
	for (uint32_t l = 1; l <= f->tree.pgft.h; l++)
		printf("  level %u to %u: up %u, down %u\n", l - 1, l, r->worst.up_at[l],
		       r->worst.down_at[l]);
	if (r->worst.lost)
		printf("  %" PRIu64 " flows have no way\n", r->worst.lost);
	for (uint32_t i = 0; i < r->n_hottest; i++) {
		cli_fabric_link(f, r->hottest[i].link, name);
		cli_say("%s: degree %u in stage %u\n", name, r->hottest[i].degree,
			r->hottest[i].stage);
		print_flows(f, job, &r->hottest[i]);
	}
}

/* What is seen while it runs. */
struct watch {
	const struct cli_fabric *f;
	struct cli_fabric_progress shown;
};

static void going(void *arg, double done)
{
	struct watch *w = arg;

	cli_fabric_progress(&w->shown, done);
}

static int print_links(void *arg, uint32_t stage, const uint32_t *degree)
{
	const struct cli_fabric *f = ((struct watch *)arg)->f;
	char name[CLI_FABRIC_LINK_MAX];

	for (uint32_t i = 0; i < 2 * fabric_cables(&f->tree.pgft); i++)
		if (degree[i]) {
			cli_fabric_link(f, i, name);
			cli_say("%u %s %u\n", stage, name, degree[i]);
		}
	return ferror(stdout) ? -(errno ? errno : EIO) : 0;
}

static int measure(struct cli_fabric *f, const struct cli_fabric_args *a, const struct wish *w)
{
	struct watch watch = {.f = f};
	struct fabric_hsd_job job = {.routes = &f->routes,
				     .cps = &f->cps,
				     .hosts = f->order,
				     .n_hottest = w->hottest,
				     .links = w->links ? print_links : NULL,
				     .going = w->links ? NULL : going,
				     .arg = &watch};
	struct fabric_hsd r;
	int err;

	if (w->per_stage) {
		job.per_stage = calloc(f->cps.stages ? f->cps.stages : 1, sizeof(*job.per_stage));
		if (!job.per_stage)
			return cli_failed(-ENOMEM, "%s", strerror(ENOMEM));
	}
	cli_fabric_progress_begin(&watch.shown);
	err = fabric_hsd(&job, &r);
	cli_fabric_progress_end(&watch.shown);
	if (!err && !w->links && a->json)
		print_json(f, &job, &r, w);
	else if (!err && !w->links)
		print_text(f, &job, &r, w);
	if (!err)
		fabric_hsd_free(&r);
	free(job.per_stage);
	/* What can not be written is said there. */
	if (err && !ferror(stdout))
		return cli_failed(err, "cannot compute it: %s", strerror(-err));
	return cli_finish(CLI_OK);
}

static int hsd(const struct cli_fabric_args *a, const struct wish *w)
{
	struct cli_fabric f = {0};
	int code = cli_fabric_ready(&f, a, true);

	if (!code)
		code = measure(&f, a, w);
	cli_fabric_close(&f);
	return code;
}

int cli_fabric_hsd(int argc, char **argv)
{
	enum { PER_STAGE = CLI_FABRIC_OWN, HOTTEST, LINKS };
	static const struct option options[] = {CLI_FABRIC_TREE_OPTIONS,
						CLI_FABRIC_ROUTE_OPTIONS,
						CLI_FABRIC_JOB_OPTIONS,
						{"per-stage", no_argument, NULL, PER_STAGE},
						{"hottest", required_argument, NULL, HOTTEST},
						{"links", no_argument, NULL, LINKS},
						{0}};
	struct cli_fabric_args a = {0};
	struct wish w = {0};
	uint64_t n;
	int opt, code;

	while ((opt = cli_fabric_option(argc, argv, "h", options, 0)) != -1) {
		switch (opt) {
		case 'h':
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		case PER_STAGE:
			w.per_stage = true;
			break;
		case LINKS:
			w.links = true;
			break;
		case HOTTEST:
			if (fabric_decimal(optarg, &n) || n < 1 || n > 1000000)
				return cli_error("--hottest is a number from 1 to 1000000, not %s",
						 fabric_quote(optarg).text);
			w.hottest = (uint32_t)n;
			break;
		default:
			if (!cli_fabric_take(&a, opt))
				return cli_try_help();
		}
	}
	code = cli_fabric_end(argc, argv);
	if (!code && w.links && (a.json || w.hottest || w.per_stage))
		code = cli_error("--links prints lines of links and nothing else; not with --json, "
				 "--hottest or --per-stage");
	return code ? code : hsd(&a, &w);
}
