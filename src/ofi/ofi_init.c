/* The entry point of the plugin. */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "ofi_tune.h"
#include "ofi.h"

struct ofi_conf ofi_conf;

/* Reads further apart than that are not somebody waiting. */
#define WAIT_GAP_NS 20000

static void cleanup(void)
{
	ofi_ep_fini();
	ofi_idle_fini();
}

struct fi_provider ofi_provider = {
	.version = FI_VERSION(0, 1),
	.name = OFI_NAME,
	.getinfo = ofi_getinfo,
	.fabric = ofi_fabric_open,
	.cleanup = cleanup,
};

static enum fi_param_type param_type(enum util_tune_type t)
{
	switch (t) {
	case UTIL_TUNE_UINT:
		return FI_PARAM_SIZE_T;
	case UTIL_TUNE_BOOL:
		return FI_PARAM_BOOL;
	default:
		return FI_PARAM_STRING;
	}
}

/* libfabric adds the prefix, and wants lower case. */
static void define(const struct util_tunable *t)
{
	char name[64], type[160];
	size_t i;

	for (i = 0; t->name[strlen(OFI_TUNE_PREFIX) + i] && i < sizeof(name) - 1; i++) {
		char c = t->name[strlen(OFI_TUNE_PREFIX) + i];

		name[i] = (char)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
	}
	name[i] = '\0';
	util_tune_type_str(t, type, sizeof(type));
	fi_param_define(&ofi_provider, name, param_type(t->type), "%s (%s; default: %s)", t->help,
			type, t->def ? t->def : "not set");
}

/* Processes of the same job on this machine, as launchers tell; 0: they do not. Hosts of a lab
 * share one machine, which only `weft run` knows. */
static uint32_t local_ranks(void)
{
	static const char *const names[] = {"WEFT_NEIGHBOURS", "OMPI_COMM_WORLD_LOCAL_SIZE",
					    "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE",
					    "SLURM_NTASKS_PER_NODE"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *text = getenv(names[i]);
		long n = text ? strtol(text, NULL, 10) : 0;

		if (n > 0 && n < INT32_MAX)
			return (uint32_t)n;
	}
	return 0;
}

/* A name alone gets its numbers from the other tunables. */
static void read_striping(void)
{
	const char *text = util_tune_str(&ofi_tunables[OFI_TUNE_STRIPING]);
	uint32_t paths = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_PATHS]);
	uint32_t batch = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_BATCH]);
	char whole[STRIPE_NAME_MAX], why[256];

	if (!text || !strcmp(text, "single") || !strcmp(text, "original"))
		return;
	ofi_conf.stripe_auto = !strcmp(text, "auto");
	if (ofi_conf.stripe_auto) {
		text = "pull";
		batch = batch ? batch : (paths + 1) / 2;
	}
	ofi_striping_whole(text, paths, batch, whole, sizeof(whole));
	if (stripe_parse(&ofi_conf.stripe, whole, why, sizeof(why))) {
		ofi_conf.stripe = (struct stripe_conf){0};
		OFI_WARN(CORE, "FI_WEFT_STRIPING: %s; messages are not divided\n", why);
		return;
	}
	ofi_conf.stripe.least = ofi_conf.stripe.last = stripe_least(0);
}

static void read_tunables(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	ofi_conf = (struct ofi_conf){
		.dev = {.name = util_tune_str(&ofi_tunables[OFI_TUNE_DEVICE]),
			.transport = util_tune_enum(&ofi_tunables[OFI_TUNE_TRANSPORT]),
			.cache = util_tune_enum(&ofi_tunables[OFI_TUNE_CACHE]),
			.piecewise = util_tune_enum(&ofi_tunables[OFI_TUNE_LOCAL]) == 1},
		.reuse = util_tune_enum(&ofi_tunables[OFI_TUNE_REUSE]),
		.reuse_part = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_REUSE_PART]),
		.eager_max = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_EAGER]),
		.eager_far = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_EAGER_REMOTE]),
		.rx_buffers = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_RX_BUFFERS]),
		.depth = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_DEPTH]),
		.write = util_tune_enum(&ofi_tunables[OFI_TUNE_RENDEZVOUS]) == 1,
		.speculate = util_tune_bool(&ofi_tunables[OFI_TUNE_SPECULATE]),
		.usage = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_USAGE]),
		.alive = util_tune_ns(&ofi_tunables[OFI_TUNE_ALIVE]),
		.linger = util_tune_ns(&ofi_tunables[OFI_TUNE_LINGER]),
		.stats = util_tune_enum(&ofi_tunables[OFI_TUNE_STATS]),
		.wait = {.mode = util_tune_enum(&ofi_tunables[OFI_TUNE_WAIT]),
			 .spin = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_SPIN]),
			 .yield = (uint32_t)util_tune_uint(&ofi_tunables[OFI_TUNE_YIELD]),
			 .sleep_ns = util_tune_ns(&ofi_tunables[OFI_TUNE_SLEEP]),
			 .gap_ns = WAIT_GAP_NS},
	};
	ofi_conf.stripe_min = util_tune_uint(&ofi_tunables[OFI_TUNE_STRIPE_MIN]);
	ofi_conf.live = util_tune_bool(&ofi_tunables[OFI_TUNE_LIVE]);
	read_striping();
	ofi_wait_defaults(&ofi_conf.wait, local_ranks(), cores > 0 ? (uint32_t)cores : 1);
}

FI_EXT_INI; /* libfabric looks for it by name, and declares it nowhere */

FI_EXT_INI
{
	const struct util_tunable *t;

	/* The library that loads us decides: structures that libfabric allocates are as long as it
	 * says, and the tables of functions tell their length. */
	ofi_provider.fi_version = fi_version();
	util_tune_for_each (t, ofi_tunables)
		define(t);
	read_tunables();
	ofi_stats_init();
	return &ofi_provider;
}
