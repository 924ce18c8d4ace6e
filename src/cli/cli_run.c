/* weft run: starts an MPI program with the launcher of the MPI that it is linked to. */
#include "cli_run.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "cli_lab.h"
#include "coll_env.h"
#include "fabric_order.h"

static const char help[] =
	"Usage: weft run [--lab NAME] -n N [OPTIONS] [--] PROGRAM [ARGUMENTS]\n"
	"\n"
	"Starts N ranks of an MPI program, on the hosts of a lab or as local processes, with\n"
	"the launcher of the MPI that it is linked to. They talk through Weft: Open MPI by way\n"
	"of libfabric and Weft's provider for it, MPICH on a lab by way of UCX and the software\n"
	"RNIC. A rank is bound to no core, and there may be more ranks than cores or hosts.\n"
	"\n"
	"Options (before PROGRAM):\n"
	"  -n, --ranks N         how many ranks\n"
	"  -l, --lab NAME        on the hosts of this lab, one after the other\n"
	"  -o, --order ORDER     in this order of hosts: routing (h0, h1, h2, ...; the default),\n"
	"                        random:SEED, or file:F, a file with a host name per line\n"
	"      --net NET         weft (the default), or stock: what the MPI itself would take\n"
	"      --coll            with Weft's collective operations; which way of each is best is\n"
	"                        found out. WEFT_COLL=OPERATION=VARIANT names one, for example\n"
	"                        alltoall=pap_direct; WEFT_COLL_STATS=yes says at the end what\n"
	"                        was chosen; see weft-coll(7)\n"
	"      --mpi MPI         openmpi or mpich, for what is not itself linked to an MPI\n"
	"      --mpi-args ARGS   further options for the launcher, in one word\n"
	"  -p, --print           print the launcher's command line instead of running it\n"
	"  -h, --help            this text\n"
	"\n"
	"Examples:\n"
	"  weft run -n 4 ./program\n"
	"  weft run -n 4 --net stock ./program\n"
	"  WEFT_COLL_STATS=yes weft run -n 4 --coll ./program\n"
	"\n"
	"  weft lab up fat --pgft \"2;12,2;1,12;1,1\" --rate 100mbit\n"
	"  weft run --lab fat -n 24 ./program\n"
	"  weft run --lab fat -n 24 --order random:1 ./program\n"
	"  weft run --lab fat -n 2 --mpi-args \"--mca btl_base_verbose 30\" ./program\n"
	"  weft run --lab fat -n 24 hostname\n"
	"\n"
	"Exit codes: that of the launcher, which is that of the program if it fails; 127 when\n"
	"PROGRAM is not found, 126 when it can not be executed, 2 for wrong usage, no such lab,\n"
	"or no launcher.\n";

struct options {
	uint32_t ranks;
	const char *lab, *order;
	enum run_mpi mpi; /* RUN_MPIS: not said */
	struct cli_words extra;
	bool print, agent, stock, coll;
};

/* ---- options ---- */

static int parse_ranks(const char *text, uint32_t *ranks)
{
	char *end;
	unsigned long n;

	errno = 0;
	n = strtoul(text, &end, 10);
	if (text[0] >= '0' && text[0] <= '9' && !*end && !errno && n >= 1 && n <= 1000000) {
		*ranks = (uint32_t)n;
		return 0;
	}
	return cli_error("-n %s is not understood; expected a number of ranks from 1 on", text);
}

static int parse_mpi(const char *text, enum run_mpi *mpi)
{
	for (*mpi = 0; *mpi < RUN_MPIS; (*mpi)++)
		if (!strcmp(text, run_mpi_kinds[*mpi].option))
			return 0;
	return cli_error("--mpi %s is not known; expected openmpi or mpich", text);
}

static int parse_net(const char *text, bool *stock)
{
	*stock = !strcmp(text, "stock");
	if (*stock || !strcmp(text, "weft"))
		return 0;
	return cli_error("--net %s is not known; expected weft or stock", text);
}

static int take_option(struct options *o, int opt, const char *arg)
{
	switch (opt) {
	case 'n':
		return parse_ranks(arg, &o->ranks);
	case 'l':
		o->lab = arg;
		return 0;
	case 'o':
		o->order = arg;
		return 0;
	case 'm':
		return parse_mpi(arg, &o->mpi);
	case 'N':
		return parse_net(arg, &o->stock);
	case 'x':
		return cli_words_split(&o->extra, arg)
			       ? cli_error("--mpi-args has a quote that is not closed: %s", arg)
			       : 0;
	case 'c':
		o->coll = true;
		return 0;
	case 'p':
		o->print = true;
		return 0;
	case 'A':
		o->agent = true;
		return 0;
	}
	return cli_try_help();
}

static int check_options(const struct options *o, const char *program)
{
	if (!o->ranks || !program) {
		cli_error(o->ranks ? "which program? For example: weft run -n %u ./program"
				   : "how many ranks? For example: weft run -n 4 ./program",
			  o->ranks);
		return cli_try_help();
	}
	if (o->order && !o->lab)
		return cli_error("--order is an order of a lab's hosts; say --lab NAME, too");
	return 0;
}

/* ---- which MPI ---- */

static int complain_launcher(enum run_mpi mpi, const char *why)
{
	const struct run_mpi_kind *k = &run_mpi_kinds[mpi];

	return cli_error("%s, but %s's launcher was not found; it is in Debian's package %s", why,
			 k->name, k->package);
}

/* Several: what --mpi says. */
static int choose_linked(const struct options *o, const struct run_linkage *l, const char *program,
			 enum run_mpi *mpi)
{
	enum run_mpi linked = l->to[RUN_OPENMPI] ? RUN_OPENMPI : RUN_MPICH;

	*mpi = o->mpi == RUN_MPIS ? linked : o->mpi;
	if (l->to[*mpi])
		return 0;
	return cli_error("'%s' is linked to %s; started by %s, its ranks would not find each other",
			 program, run_mpi_kinds[linked].name, run_mpi_kinds[*mpi].name);
}

static int find_launcher(const struct options *o, const struct run_linkage *l, const char *program,
			 enum run_mpi *mpi, char launcher[PATH_MAX])
{
	char why[PATH_MAX + 64];
	int ret;

	if (l->to[RUN_OPENMPI] || l->to[RUN_MPICH]) {
		ret = choose_linked(o, l, program, mpi);
		if (ret || !run_find_launcher(*mpi, l->library[*mpi], launcher))
			return ret;
		snprintf(why, sizeof(why), "'%s' is linked to %s", program,
			 run_mpi_kinds[*mpi].name);
		return complain_launcher(*mpi, why);
	}
	if (o->mpi != RUN_MPIS) {
		*mpi = o->mpi;
		snprintf(why, sizeof(why), "--mpi says %s", run_mpi_kinds[*mpi].option);
		return run_find_launcher(*mpi, NULL, launcher) ? complain_launcher(*mpi, why) : 0;
	}
	for (*mpi = 0; *mpi < RUN_MPIS; (*mpi)++)
		if (!run_find_launcher(*mpi, NULL, launcher))
			return 0;
	return cli_error("no MPI launcher was found in PATH; Open MPI's is in Debian's package "
			 "%s, MPICH's in %s",
			 run_mpi_kinds[RUN_OPENMPI].package, run_mpi_kinds[RUN_MPICH].package);
}

/* ---- where, and go ---- */

static int find_places(const struct options *o, struct lab *lab, struct run_places *p)
{
	const char *order = o->order ? o->order : "routing";
	char why[320];
	int ret = cli_lab_open(lab, o->lab);

	if (ret)
		return ret;
	p->lab = lab;
	p->hosts = calloc(fabric_hosts(&lab->spec.tree), sizeof(*p->hosts));
	if (!p->hosts)
		abort();
	if (fabric_order(&lab->spec.tree, order, p->hosts, &p->count, why, sizeof(why)))
		return cli_error("--order %s: %s", order, why);
	return 0;
}

static int start(const struct options *o, const struct run_job *job)
{
	struct run_line line = {0};
	int code = run_line_make(&line, job);

	if (!code && o->print) {
		run_line_print(&line, job->places);
		code = cli_finish(CLI_OK);
	} else if (!code) {
		code = job->places ? run_on_lab(&line, job->places) : run_line_become(&line);
	}
	run_line_free(&line);
	return code;
}

/* Settings of collectives that nobody will look at. (A lab names its tree by itself.) */
static void say_unused(void)
{
	const char *preload = getenv("LD_PRELOAD"), *choice = getenv("WEFT_COLL");

	if ((preload && strstr(preload, "libweft-coll.")) || (choice && !strcmp(choice, "off")))
		return;
	for (const struct util_tunable *t = coll_tunables; t->name; t++) {
		if (!getenv(t->name) || !strcmp(t->name, "WEFT_COLL_TOPOLOGY"))
			continue;
		cli_error("%s is set, but without --coll all collective operations are the MPI's",
			  t->name);
		return;
	}
}

/* Ranks would only warn, and do something else than was meant. */
static int check_choice(void)
{
	char why[COLL_WHY_MAX];
	struct coll_choice choice;

	if (!coll_choice_parse(getenv("WEFT_COLL"), &choice, why, sizeof(why)))
		return 0;
	cli_error("WEFT_COLL: %s", why);
	return CLI_USAGE;
}

static int run(const struct options *o, char **program)
{
	char path[PATH_MAX], launcher[PATH_MAX];
	static struct run_linkage linkage;
	struct run_places places = {0};
	struct lab lab;
	struct run_job job = {
		.launcher = launcher,
		.ranks = o->ranks,
		.stock = o->stock,
		.coll = o->coll,
		.places = o->lab ? &places : NULL,
		.extra = &o->extra,
		.program = program,
	};
	int code = o->lab ? find_places(o, &lab, &places) : 0;

	if (!o->coll)
		say_unused();
	else if (!code)
		code = check_choice();
	if (!code)
		code = run_find_program(program[0], path);
	if (!code) {
		run_linkage(path, &linkage);
		code = find_launcher(o, &linkage, program[0], &job.mpi, launcher);
	}
	if (!code)
		code = start(o, &job);
	free(places.hosts);
	return code;
}

int cli_run(int argc, char **argv)
{
	static const struct option options[] = {
		{"ranks", required_argument, NULL, 'n'},
		{"lab", required_argument, NULL, 'l'},
		{"order", required_argument, NULL, 'o'},
		{"mpi", required_argument, NULL, 'm'},
		{"net", required_argument, NULL, 'N'},
		{"mpi-args", required_argument, NULL, 'x'},
		{"coll", no_argument, NULL, 'c'},
		{"print", no_argument, NULL, 'p'},
		{"agent", no_argument, NULL, 'A'},
		{"help", no_argument, NULL, 'h'},
		{0},
	};
	struct options o = {.mpi = RUN_MPIS};
	int opt, code = 0;

	/* '+': what follows PROGRAM belongs to it. */
	while (!code && (opt = getopt_long(argc, argv, "+n:l:o:ph", options, NULL)) != -1) {
		if (opt == 'h') {
			fputs(help, stdout);
			return cli_finish(CLI_OK);
		}
		code = take_option(&o, opt, optarg);
	}
	if (!code && o.agent)
		return run_agent(argv + optind);
	if (!code)
		code = check_options(&o, argv[optind]);
	if (!code)
		code = run(&o, argv + optind);
	cli_words_free(&o.extra);
	return code;
}
