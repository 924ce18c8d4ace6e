/* Which MPIs are here, and how each reaches Weft. */
#include "cli_facts.h"

#include <stdio.h>
#include <string.h>

#include "cli.h"
#include "cli_paths.h"

struct mpi {
	char version[32], device[32];
	bool ofi;
};

/* ompi_info --parsable: "ompi:version:full:4.1.4", "mca:mtl:ofi:version:..." */
static void read_openmpi(char *line, void *arg)
{
	struct mpi *m = arg;

	sscanf(line, "ompi:version:full:%31s", m->version);
	m->ofi |= !strncmp(line, "mca:mtl:ofi:", 12);
}

/* mpichversion: "MPICH Version: 4.0.2", "MPICH Device: ch4:ucx" */
static void read_mpich(char *line, void *arg)
{
	struct mpi *m = arg;

	sscanf(line, "MPICH Version: %31s", m->version);
	sscanf(line, "MPICH Device: %31s", m->device);
}

static bool have_provider(void)
{
	static struct cli_paths paths;

	return !cli_paths_find(&paths) && paths.ofi[0];
}

static void add(json_t *list, const char *name, const char *version, bool reaches, const char *how)
{
	json_array_append_new(list, json_pack("{s:s, s:s, s:b, s:s}", "name", name, "version",
					      version, "reaches", reaches, "how", how));
}

static void add_openmpi(json_t *list)
{
	struct mpi m = {0};

	cli_each_line((char *[]){"ompi_info", "--parsable", NULL}, read_openmpi, &m);
	if (!m.version[0])
		return;
	if (!m.ofi)
		add(list, "Open MPI", m.version, false, "it was built without libfabric (mtl ofi)");
	else if (!have_provider())
		add(list, "Open MPI", m.version, false, "Weft was built without libfabric");
	else
		add(list, "Open MPI", m.version, true,
		    "weft run; or weft env and --mca pml cm --mca mtl ofi --mca osc ^ucx,rdma "
		    "--mca opal_common_ofi_provider_include weft");
}

static void add_mpich(json_t *list)
{
	struct mpi m = {0};

	cli_each_line((char *[]){"mpichversion", NULL}, read_mpich, &m);
	if (!m.version[0])
		return;
	if (strstr(m.device, "ucx"))
		add(list, "MPICH", m.version, true,
		    "UCX on the software RNIC: weft run --lab; or weft env and UCX_TLS=ud_v,self "
		    "UCX_NET_DEVICES=weft0:1");
	else if (strstr(m.device, "ofi"))
		add(list, "MPICH", m.version, have_provider(), "weft env and FI_PROVIDER=weft");
	else
		add(list, "MPICH", m.version, false, "it has neither UCX nor libfabric below it");
}

json_t *cli_facts_mpis(void)
{
	json_t *list = json_array();

	add_openmpi(list);
	add_mpich(list);
	return list;
}
