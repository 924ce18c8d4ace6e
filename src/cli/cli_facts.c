#include "cli_facts.h"

#include <netinet/in.h>
#include <netinet/udp.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli_paths.h"
#include "verbs_tune.h"
#include "wire_crc32c.h"

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

static json_t *take_string(char *s)
{
	json_t *value = s ? json_string(s) : json_null();

	free(s);
	return value;
}

/* As the replacement library looks for it: where the user says, or else in the
 * directories that the loader knows by itself, most specific first. */
char *cli_real_verbs(void)
{
	static const char *const dirs[] = {
#ifdef WEFT_MULTIARCH
		"/usr/lib/" WEFT_MULTIARCH,
		"/lib/" WEFT_MULTIARCH,
#endif
		"/usr/lib64",
		"/usr/lib",
		"/lib64",
		"/lib",
	};
	const char *told = util_tune_str(&verbs_tunables[VERBS_TUNE_REAL]);
	char path[PATH_MAX];

	if (told)
		return access(told, R_OK) ? NULL : realpath(told, NULL);
	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		snprintf(path, sizeof(path), "%s/" CLI_LIB_VERBS, dirs[i]);
		if (!access(path, R_OK))
			return realpath(path, NULL);
	}
	return NULL;
}

#define BUILD "make build, or make install"

/* One of ours; dir: NULL if there are none. */
static void add_library(json_t *list, const char *dir, const char *name, const char *role,
			const char *get)
{
	char path[2 * PATH_MAX] = "";

	if (dir)
		snprintf(path, sizeof(path), "%s/%s", dir, name);
	json_array_append_new(
		list, json_pack("{s:s, s:s, s:o, s:s}", "name", name, "role", role, "path",
				access(path, R_OK) ? json_null() : json_string(path), "get", get));
}

json_t *cli_facts_libraries(void)
{
	/* The build leaves out those whose MPI has no headers here. */
	static const char *const colls[][3] = {
		{"openmpi", "collectives, above Open MPI",
		 "apt-get install libopenmpi-dev, then make build (or install)"},
		{"mpich", "collectives, above MPICH",
		 "apt-get install libmpich-dev, then make build (or install)"}};
	static struct cli_paths paths;
	const char *dir = cli_paths_find(&paths) ? NULL : paths.dir;
	json_t *list = json_array();
	char name[64];

	add_library(list, dir, CLI_LIB_VERBS, "software RNIC", BUILD);
	add_library(list, dir, CLI_LIB_PROBE, "answers probes for device files", BUILD);
	add_library(list, dir, CLI_LIB_OFI, "libfabric provider", BUILD);
	for (size_t i = 0; i < sizeof(colls) / sizeof(colls[0]); i++) {
		snprintf(name, sizeof(name), CLI_LIB_COLL, colls[i][0]);
		add_library(list, dir, name, colls[i][1], colls[i][2]);
	}
	json_array_append_new(list, json_pack("{s:s, s:s, s:o, s:s}", "name", CLI_LIB_VERBS, "role",
					      "rdma-core, for hardware", "path",
					      take_string(cli_real_verbs()), "get",
					      "apt-get install libibverbs1"));
	return list;
}

static bool udp_option(int option, int value)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool ok = fd >= 0 && !setsockopt(fd, IPPROTO_UDP, option, &value, sizeof(value));

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Asked of the kernel rather than of its settings: several of them can forbid it. */
static bool can_unshare(void)
{
	pid_t child = fork();
	int status = 1;

	if (child == 0)
		_exit(unshare((geteuid() ? CLONE_NEWUSER : 0) | CLONE_NEWNET) != 0);
	return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

json_t *cli_facts_kernel(void)
{
	return json_pack("[{s:s, s:b, s:s}, {s:s, s:b, s:s}, {s:s, s:b, s:s}]", "name",
			 "UDP_SEGMENT", "present", udp_option(UDP_SEGMENT, 1400), "why",
			 "sends many datagrams in one call (Linux 4.18)", "name", "UDP_GRO",
			 "present", udp_option(UDP_GRO, 1), "why",
			 "receives many datagrams in one call (Linux 5.0)", "name",
			 "network namespaces", "present", can_unshare(), "why",
			 "the demo, the tests and the bench join two of them");
}

json_t *cli_facts_machine(void)
{
	struct rlimit files = {0};

	getrlimit(RLIMIT_NOFILE, &files);
	return json_pack("{s:s, s:I, s:I}", "crc32c", wire_crc32c_name(), "cores",
			 (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "open_files",
			 (json_int_t)files.rlim_cur);
}

struct program {
	const char *name, *package, *use;
};

static const struct program programs[] = {
	{"ibv_devinfo", "ibverbs-utils", "shows devices, small examples"},
	{"ib_send_lat", "perftest", "measures verbs; the demo and the bench run it"},
	{"ucx_perftest", "ucx-utils", "measures UCX; part of the tests"},
	{"mpirun.openmpi", "openmpi-bin", "Open MPI over UCX; part of the tests"},
	{"mpiexec.mpich", "mpich", "MPICH over UCX; part of the tests"},
	{"tshark", "tshark", "decodes the wire; part of the tests"},
};

static char *find_program(const char *name)
{
	const char *path = getenv("PATH");
	char candidate[PATH_MAX];

	while (path && *path) {
		size_t len = strcspn(path, ":");

		snprintf(candidate, sizeof(candidate), "%.*s/%s", (int)len, path, name);
		if (!access(candidate, X_OK))
			return strdup(candidate);
		path += len + (path[len] != '\0');
	}
	return NULL;
}

json_t *cli_facts_programs(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++)
		json_array_append_new(
			list, json_pack("{s:s, s:o, s:s, s:s}", "name", programs[i].name, "path",
					take_string(find_program(programs[i].name)), "package",
					programs[i].package, "use", programs[i].use));
	return list;
}

static void miss(json_t *list, const char *what, const char *why, const char *get)
{
	json_array_append_new(list,
			      json_pack("{s:s, s:s, s:s}", "what", what, "why", why, "get", get));
}

static const char *text(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

static void miss_devices(json_t *list, const json_t *devices)
{
	size_t i;
	json_t *dev;

	json_array_foreach (devices, i, dev) {
		const char *kind = text(dev, "kind");

		if (kind && !strcmp(kind, "software"))
			return;
	}
	miss(list, "the software RNIC", "it is switched off, or no local IPv4 address fits",
	     "look at WEFT_DEVICE, WEFT_ADDR and WEFT_NETDEV below and at 'ip -br addr'");
}

json_t *cli_facts_missing(const json_t *info)
{
	json_t *list = json_array();
	json_t *item;
	char get[128];
	size_t i;

	miss_devices(list, json_object_get(info, "devices"));
	json_array_foreach (json_object_get(info, "libraries"), i, item) {
		if (json_is_null(json_object_get(item, "path")))
			miss(list, text(item, "name"), text(item, "role"), text(item, "get"));
	}
	json_array_foreach (json_object_get(info, "kernel"), i, item)
		if (!json_is_true(json_object_get(item, "present")))
			miss(list, text(item, "name"), text(item, "why"),
			     "a newer kernel, or fewer restrictions on this container");
	json_array_foreach (json_object_get(info, "programs"), i, item) {
		if (!json_is_null(json_object_get(item, "path")))
			continue;
		snprintf(get, sizeof(get), "apt-get install %s", text(item, "package"));
		miss(list, text(item, "name"), text(item, "use"), get);
	}
	return list;
}
