#include "coll_world.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "coll_tags.h"

MPI_Comm coll_world = MPI_COMM_NULL;

static int size, me;
static int *leader; /* [size] */

/* ---- hosts ---- */

static int find_hosts(void)
{
	MPI_Comm node;
	int first, ret;

	if (PMPI_Comm_split_type(coll_world, MPI_COMM_TYPE_SHARED, me, MPI_INFO_NULL, &node))
		return -EIO;
	first = me;
	ret = PMPI_Bcast(&first, 1, MPI_INT, 0, node) ||
	      PMPI_Allgather(&first, 1, MPI_INT, leader, 1, MPI_INT, coll_world);
	PMPI_Comm_free(&node);
	return ret ? -EIO : 0;
}

int coll_world_size(void)
{
	return size;
}

int coll_world_leader(int rank)
{
	return leader[rank];
}

bool coll_world_ranks(MPI_Comm comm, int n, int *of)
{
	int *some = calloc((size_t)n, sizeof(*some));
	MPI_Group all, group;
	bool ok = some && !PMPI_Comm_group(coll_world, &all);

	for (int i = 0; i < n && ok; i++)
		some[i] = i;
	if (ok && !PMPI_Comm_group(comm, &group)) {
		ok = !PMPI_Group_translate_ranks(group, n, some, all, of);
		PMPI_Group_free(&group);
		PMPI_Group_free(&all);
	} else if (ok) {
		PMPI_Group_free(&all);
		ok = false;
	}
	for (int i = 0; i < n && ok; i++)
		ok = of[i] >= 0 && of[i] < size;
	free(some);
	return ok;
}

/* ---- tags ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct coll_tags tags;

int coll_world_tag(void)
{
	int tag;

	pthread_mutex_lock(&lock);
	tag = coll_tags_give(&tags);
	pthread_mutex_unlock(&lock);
	return tag;
}

void coll_world_tag_free(int tag)
{
	pthread_mutex_lock(&lock);
	coll_tags_back(&tags, tag);
	pthread_mutex_unlock(&lock);
}

/* ---- all of it ---- */

int coll_world_init(void)
{
	int *most, found;

	if (PMPI_Comm_dup(MPI_COMM_WORLD, &coll_world))
		return -EIO;
	PMPI_Comm_set_errhandler(coll_world, MPI_ERRORS_RETURN);
	PMPI_Comm_rank(coll_world, &me);
	PMPI_Comm_size(coll_world, &size);
	if (PMPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, &most, &found) || !found)
		return -EIO;
	coll_tags_share(&tags, *most, COLL_TAGS, (uint32_t)me, (uint32_t)size);
	leader = calloc((size_t)size, sizeof(*leader));
	if (!leader)
		abort(); /* the others are on their way into the exchange */
	return find_hosts();
}
