/* The command line and the environment of an MPI's launcher.
 *
 * Whatever can be said by a variable is, and only where the user has not said otherwise:
 * a variable gives way to the launcher's options, which --mpi-args can hold.
 */
#include "cli_run.h"

#include <arpa/inet.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli.h"
#include "cli_paths.h"
#include "cli_vars.h"

static void set(struct run_line *line, const char *name, const char *value)
{
	if (!getenv(name))
		cli_words_addf(&line->env, "%s=%s", name, value);
}

static int cores(void)
{
	cpu_set_t set;

	return sched_getaffinity(0, sizeof(set), &set) ? 1 : CPU_COUNT(&set);
}

/* Our own path, for the launchers to call us by. Both of them split at blanks. */
static int own_path(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	if (n < 0)
		return cli_error("cannot find its own place in the file system");
	path[n] = '\0';
	if (!strpbrk(path, " \t:;'\"\\$&|<>()*?`"))
		return 0;
	return cli_error("it is '%s', and MPI launchers can not call a program whose path has a "
			 "blank, a colon or a quote in it; move Weft elsewhere",
			 path);
}

static struct fabric_node place(const struct run_places *p, uint32_t rank)
{
	return (struct fabric_node){.level = 0, .index = p->hosts[rank % p->count]};
}

/* Hosts by address: nothing has to be resolved, so it works without /etc/hosts, too, and
 * nobody waits for a name server that can not be reached. */
static char *addresses(const struct run_places *p, uint32_t n)
{
	char *list = malloc((size_t)n * (INET_ADDRSTRLEN + 1) + 1), *end = list;

	if (!list)
		abort();
	*end = '\0';
	for (uint32_t i = 0; i < n; i++) {
		struct in_addr addr = lab_address(&p->lab->spec, place(p, i), 0);

		if (i)
			*end++ = ',';
		inet_ntop(AF_INET, &addr, end, INET_ADDRSTRLEN);
		end += strlen(end);
	}
	return list;
}

/* ---- collectives ---- */

/* libweft-coll in front of what is preloaded anyway; allocated, or NULL after a complaint. Only
 * ranks get it: launchers and their daemons are no MPI programs. */
static char *coll_preload(const struct run_job *job, const char *others)
{
	const char *mpi = run_mpi_kinds[job->mpi].option;
	static struct cli_paths paths;
	char library[PATH_MAX + 64];
	char *list = NULL;
	int ret = cli_paths_find(&paths);

	if (ret) {
		cli_paths_complain(ret);
		return NULL;
	}
	snprintf(library, sizeof(library), "%s/" CLI_LIB_COLL, paths.dir, mpi);
	if (access(library, R_OK)) {
		cli_error("--coll: %s is not there: Weft was built without %s; install Debian's "
			  "package %s, then make build (or make install, as before)",
			  library, run_mpi_kinds[job->mpi].name, run_mpi_kinds[job->mpi].headers);
		return NULL;
	}
	if (strpbrk(library, " :;")) {
		cli_error("--coll: the loader can not preload '%s', a path with a blank, a colon "
			  "or a semicolon; move Weft elsewhere",
			  library);
		return NULL;
	}
	if (asprintf(&list, "%s%s%s", library, others && *others ? ":" : "", others ? others : "") <
	    0)
		abort();
	return list;
}

static int add_coll(struct run_line *line, const struct run_job *job)
{
	char *list = coll_preload(job, getenv("LD_PRELOAD"));

	if (!list)
		return CLI_USAGE;
	if (job->mpi == RUN_OPENMPI) {
		cli_words_add(&line->argv, "-x");
		cli_words_addf(&line->argv, "LD_PRELOAD=%s", list);
	} else {
		cli_words_add_all(&line->argv, (char *[]){"-genv", "LD_PRELOAD", list, NULL});
	}
	free(list);
	return 0;
}

/* ---- Open MPI ---- */

/* On Weft's provider, by way of libfabric. Launchers pass these variables on by themselves, or
 * their daemons inherit them: a lab's hosts are on this machine. */
static int openmpi_on_weft(struct run_line *line)
{
	static struct cli_paths paths;
	int ret = cli_paths_find(&paths);

	if (ret)
		return cli_paths_complain(ret);
	if (!paths.ofi[0])
		return cli_error(
			"%s is not in %s: Weft was built without libfabric; install "
			"Debian's package libfabric-dev and build again, or say --net stock",
			CLI_LIB_OFI, paths.dir);
	set(line, "FI_PROVIDER_PATH", paths.dir);
	if (!getenv("OMPI_MCA_mtl"))
		set(line, "OMPI_MCA_pml", "cm");
	set(line, "OMPI_MCA_mtl", "ofi");
	set(line, "OMPI_MCA_opal_common_ofi_provider_include", "weft");
	/* One-sided operations: by messages (osc pt2pt, which Debian's configuration leaves out),
	 * unless the user prefers osc rdma. Of Open MPI 4.1 that one puts data into wrong places
	 * where hosts have unlike numbers of ranks, crashes in compare-and-swap, hangs in
	 * dynamic windows, and asks btl ofi for operators that it does not have; but only it
	 * knows MPI_THREAD_MULTIPLE. */
	set(line, "OMPI_MCA_osc", "^ucx");
	set(line, "OMPI_MCA_osc_rdma_priority", "5");
	set(line, "OMPI_MCA_osc_rdma_acc_use_amo", "0");
	return 0;
}

static int openmpi_on_lab(struct run_line *line, const struct run_job *job)
{
	const struct lab_spec *spec = &job->places->lab->spec;
	struct in_addr net = {.s_addr = htonl(spec->net)};
	char self[PATH_MAX], agent[PATH_MAX + 16], subnet[32];
	char *list;

	if (own_path(self))
		return CLI_USAGE;
	snprintf(agent, sizeof(agent), "%s run --agent", self);
	snprintf(subnet, sizeof(subnet), "%s/%u", inet_ntoa(net), spec->prefix);
	set(line, "OMPI_MCA_plm_rsh_agent", agent);
	/* A batch system's hosts are not the lab's. */
	set(line, "OMPI_MCA_plm", "rsh");
	set(line, "OMPI_MCA_ras", "^slurm,tm,lsf,gridengine,loadleveler,alps");
	set(line, "OMPI_MCA_oob_tcp_if_include", subnet);
	set(line, "OMPI_MCA_btl_tcp_if_include", subnet);
	/* Stock means TCP, whatever else is installed; and a fifth of the start-up time is saved.
	 */
	if (job->stock && !getenv("OMPI_MCA_mtl"))
		set(line, "OMPI_MCA_pml", "ob1");
	/* Files of a job that was killed are gone with the lab, whose /dev/shm is its own. */
	set(line, "OMPI_MCA_orte_tmpdir_base", "/dev/shm");
	/* One entry per rank, taken in turn. */
	set(line, "OMPI_MCA_rmaps_base_mapping_policy", "seq");
	list = addresses(job->places, job->ranks);
	cli_words_add(&line->argv, "-H");
	cli_words_add(&line->argv, list);
	free(list);
	return 0;
}

static int openmpi(struct run_line *line, const struct run_job *job)
{
	if (!geteuid() || job->places) { /* on a lab everybody is root */
		set(line, "OMPI_ALLOW_RUN_AS_ROOT", "1");
		set(line, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
	}
	set(line, "OMPI_MCA_hwloc_base_binding_policy", "none");
	set(line, "OMPI_MCA_rmaps_base_oversubscribe", "1");
	/* The hosts of a lab share this machine's cores, which Open MPI can not know. */
	if (job->ranks > (uint32_t)cores())
		set(line, "OMPI_MCA_mpi_yield_when_idle", "1");
	if (!job->stock && openmpi_on_weft(line))
		return CLI_USAGE;
	if (job->coll && add_coll(line, job))
		return CLI_USAGE;
	return job->places ? openmpi_on_lab(line, job) : 0;
}

/* ---- MPICH ---- */

/* Over UCX's TCP, MPICH before 4.2 often does not come back from MPI_Finalize: a rank waits
 * for its peers to confirm that all has arrived, and they wait in a barrier of the process
 * manager, where they do not listen (pmodels/mpich pull request 6596). And it never yields
 * a core. On the software RNIC both are solved; its datagrams carry 144 ranks on two cores,
 * where connections time out. Only ranks get the variables of the loader. */
static int mpich_on_device(struct run_line *line, const struct run_job *job)
{
	struct cli_vars vars = {0};

	if (cli_vars_loader(&vars))
		return CLI_USAGE;
	for (int i = 0; i < vars.n; i++) {
		bool both = job->coll && !strcmp(vars.var[i].name, "LD_PRELOAD");
		char *value = both ? coll_preload(job, vars.var[i].value) : NULL;

		if (both && !value) {
			cli_vars_free(&vars);
			return CLI_USAGE;
		}
		cli_words_add_all(&line->argv, (char *[]){"-genv", (char *)vars.var[i].name,
							  value ? value : vars.var[i].value, NULL});
		free(value);
	}
	cli_vars_free(&vars);
	set(line, "UCX_TLS", "ud_v,self");
	set(line, "UCX_NET_DEVICES", "weft0:1");
	return 0;
}

static bool mpich_takes_device(const struct run_job *job)
{
	return job->places && !job->stock && !getenv("UCX_TLS") && !getenv("UCX_NET_DEVICES");
}

static int mpich_on_lab(struct run_line *line, const struct run_job *job)
{
	const struct run_places *p = job->places;
	char self[PATH_MAX];
	char *list;

	if (own_path(self))
		return CLI_USAGE;
	/* "rsh" adds no options of ssh's to what it calls, only these words. */
	set(line, "HYDRA_LAUNCHER_EXTRA_ARGS", "run --agent");
	list = addresses(p, job->ranks < p->count ? job->ranks : p->count);
	cli_words_add_all(&line->argv, (char *[]){"-launcher", "rsh", "-launcher-exec", self,
						  "-hosts", list, NULL});
	list[strcspn(list, ",")] = '\0';
	cli_words_add_all(&line->argv, (char *[]){"-localhost", list, NULL});
	free(list);
	return mpich_takes_device(job) ? mpich_on_device(line, job) : 0;
}

static bool has_word(const struct cli_words *words, const char *word)
{
	for (size_t i = 0; i < words->n; i++)
		if (!strcmp(words->word[i], word))
			return true;
	return false;
}

static int mpich(struct run_line *line, const struct run_job *job)
{
	/* Hydra does not take an option twice. */
	if (!has_word(job->extra, "-bind-to") && !has_word(job->extra, "--bind-to"))
		cli_words_add_all(&line->argv, (char *[]){"-bind-to", "none", NULL});
	if (job->coll && !mpich_takes_device(job) && add_coll(line, job))
		return CLI_USAGE;
	return job->places ? mpich_on_lab(line, job) : 0;
}

/* ---- both ---- */

int run_line_make(struct run_line *line, const struct run_job *job)
{
	static int (*const make[RUN_MPIS])(struct run_line *, const struct run_job *) = {
		[RUN_OPENMPI] = openmpi,
		[RUN_MPICH] = mpich,
	};
	int ret;

	cli_words_add(&line->argv, job->launcher);
	cli_words_add(&line->argv, "-n");
	cli_words_addf(&line->argv, "%u", job->ranks);
	ret = make[job->mpi](line, job);
	if (job->places) {
		char n[16];

		snprintf(n, sizeof(n), "%u", job->ranks);
		set(line, "WEFT_NEIGHBOURS", n);
	}
	if (job->extra->n)
		cli_words_add_all(&line->argv, job->extra->word);
	cli_words_add_all(&line->argv, job->program);
	return ret;
}

void run_line_print(const struct run_line *line, const struct run_places *places)
{
	char host[FABRIC_NAME_MAX];

	if (places) {
		fabric_name(place(places, 0), host);
		printf("weft lab exec %s %s -- ", places->lab->spec.name, host);
	}
	if (line->env.n) {
		fputs("env ", stdout);
		cli_words_print(&line->env, stdout);
		putchar(' ');
	}
	cli_words_print(&line->argv, stdout);
	putchar('\n');
}

int run_line_become(const struct run_line *line)
{
	for (size_t i = 0; i < line->env.n; i++)
		if (putenv(line->env.word[i]))
			abort();
	return cli_become(line->argv.word);
}

void run_line_free(struct run_line *line)
{
	cli_words_free(&line->env);
	cli_words_free(&line->argv);
}
