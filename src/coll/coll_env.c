#include "coll_env.h"

#include <errno.h>
#include <pthread.h>

#include "coll_bank.h"

enum {
	TUNE_CHOICE,
	TUNE_PROVIDER,
	TUNE_COPY_MAX,
	TUNE_COPY_FAR,
	TUNE_SHM,
	TUNE_FETCH,
	TUNE_SAME_SUMS,
	TUNE_STATS,
	TUNE_TOPOLOGY,
	TUNE_PATIENCE,
	TUNE_COMMS,
	TUNE_AFTER,
};

static int check_choice(const char *text, uint64_t num, char *why, size_t why_len)
{
	struct coll_choice c;

	(void)num;
	return coll_choice_parse(text, &c, why, why_len);
}

const struct util_tunable coll_tunables[] = {
	[TUNE_CHOICE] =
		{.name = "WEFT_COLL",
		 .type = UTIL_TUNE_STR,
		 .def = "auto",
		 .check = check_choice,
		 .help = "How collective operations are done: auto, off (by the MPI itself), "
			 "or OPERATION=VARIANT,..., for example alltoall=pap_direct. That of a "
			 "communicator's first rank counts; off on one rank holds for all."},
	[TUNE_PROVIDER] =
		{.name = "WEFT_COLL_PROVIDER",
		 .type = UTIL_TUNE_STR,
		 .def = "weft",
		 .help = "The libfabric provider by which collective operations write to "
			 "other hosts. The same on all ranks; otherwise communicators are "
			 "left to the MPI."},
	[TUNE_COPY_MAX] = {.name = "WEFT_COLL_COPY_MAX",
			   .type = UTIL_TUNE_UINT,
			   .def = "4k",
			   .max = 1 << 20,
			   .help = "The longest message, of a pair of ranks on one host, that is "
				   "copied through shared memory; 0: none. Longer ones are copied "
				   "once (WEFT_COLL_FETCH)."},
	[TUNE_COPY_FAR] =
		{.name = "WEFT_COLL_COPY_FAR",
		 .type = UTIL_TUNE_UINT,
		 .def = "64k",
		 .max = 1 << 20,
		 .help = "The longest message, of a pair of ranks on different hosts, that "
			 "is sent at once, received into memory of the library's, and "
			 "copied; 0: none. Longer ones are written to where the program "
			 "wants them, when the receiver has said where that is. Less if "
			 "ranks are many: each has 2 MB for what comes from all others "
			 "together, and as much for what goes there. The same on all ranks; "
			 "otherwise communicators are left to the MPI."},
	[TUNE_SHM] = {.name = "WEFT_COLL_SHM",
		      .type = UTIL_TUNE_BOOL,
		      .def = "yes",
		      .help = "Whether ranks of one host share memory; no, if any rank says so: "
			      "they write to each other by the provider, as to other hosts."},
	[TUNE_FETCH] = {.name = "WEFT_COLL_FETCH",
			.type = UTIL_TUNE_BOOL,
			.def = "yes",
			.help = "Whether ranks of one host copy longer messages straight from each "
				"other's memory, where the system lets them; otherwise these go "
				"through shared memory in parts. Of all ranks of a communicator, "
				"or of none."},
	[TUNE_SAME_SUMS] =
		{.name = "WEFT_COLL_SAME_SUMS",
		 .type = UTIL_TUNE_BOOL,
		 .def = "no",
		 .help = "Whether sums and products of floating-point numbers are to have the same "
			 "bits in every call and every run with the same ranks in the same places. "
			 "auto does not try the MPI's own for them then, also where it is faster, "
			 "and "
			 "communicators are set up at once. What one rank has holds for all."},
	[TUNE_STATS] = {.name = "WEFT_COLL_STATS",
			.type = UTIL_TUNE_BOOL,
			.def = "no",
			.help = "Whether rank 0 of each communicator says, when it ends, which "
				"variants were used."},
	[TUNE_TOPOLOGY] = {.name = "WEFT_COLL_TOPOLOGY",
			   .type = UTIL_TUNE_STR,
			   .help = "A file as Slurm's topology.conf, which weft fabric order --as "
				   "slurm-topology writes: reductions and broadcasts then follow "
				   "the tree, whatever the order of ranks. Set on the hosts of a "
				   "lab."},
	[TUNE_PATIENCE] =
		{.name = "WEFT_COLL_PATIENCE",
		 .type = UTIL_TUNE_DURATION,
		 .def = "5s",
		 .max = UINT64_C(3600000000000),
		 .help = "How long a rank that is in the MPI's own operation stays there after "
			 "another rank of the communicator was found to be dead: the MPI may "
			 "return an error by itself. Then the process ends, with a message and "
			 "exit code 1. 0: it stays for ever if the MPI does not notice."},
	[TUNE_COMMS] = {.name = "WEFT_COLL_COMMS",
			.type = UTIL_TUNE_UINT,
			.def = "128",
			.max = COLL_MAX_COMMS,
			.help = "How many communicators of a process are this library's at a time; "
				"those that come later are left to the MPI. Each takes up to 17 MB "
				"of shared memory on a host."},
	[TUNE_AFTER] = {.name = "WEFT_COLL_AFTER",
			.type = UTIL_TUNE_UINT,
			.def = "3",
			.max = COLL_AFTER_MAX,
			.help = "How many collective calls of a communicator, other than "
				"MPI_COMM_WORLD, are left to the MPI before it is set up. That "
				"takes as long as to make several, and many are freed before. The "
				"most that a rank has holds for all. 0 with WEFT_COLL_SAME_SUMS."},
	{0},
};

static struct coll_env env;

static void read_all(void)
{
	char why[COLL_WHY_MAX];

	coll_choice_parse(util_tune_str(&coll_tunables[TUNE_CHOICE]), &env.choice, why,
			  sizeof(why));
	env.provider = util_tune_str(&coll_tunables[TUNE_PROVIDER]);
	env.copy_max = util_tune_uint(&coll_tunables[TUNE_COPY_MAX]);
	env.copy_far = util_tune_uint(&coll_tunables[TUNE_COPY_FAR]);
	env.shm = util_tune_bool(&coll_tunables[TUNE_SHM]);
	env.fetch = util_tune_bool(&coll_tunables[TUNE_FETCH]);
	env.same_sums = util_tune_bool(&coll_tunables[TUNE_SAME_SUMS]);
	env.topology = util_tune_str(&coll_tunables[TUNE_TOPOLOGY]);
	env.patience = util_tune_ns(&coll_tunables[TUNE_PATIENCE]);
	env.comms = (unsigned int)util_tune_uint(&coll_tunables[TUNE_COMMS]);
	/* The MPI would add in another order in the first calls. */
	env.after = env.same_sums ? 0 : (unsigned int)util_tune_uint(&coll_tunables[TUNE_AFTER]);
	env.stats = util_tune_bool(&coll_tunables[TUNE_STATS]);
}

void coll_env_settle(bool off, bool same_sums, unsigned int after)
{
	env.choice.off = off;
	env.same_sums = same_sums;
	env.after = same_sums ? 0 : after;
}

const struct coll_env *coll_env(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, read_all);
	return &env;
}
