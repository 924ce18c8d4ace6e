#include "coll_agree.h"

#include <errno.h>
#include <sched.h>
#include <time.h>

#include "util_clock.h"

#define AWAKE_NS UTIL_NS_PER_MS
#define NAP_NS   100000

/* ---- messages ---- */

/* Before all know of each other there is nobody to look after, but cores to be left to others: some
 * MPIs never do. */
static int wait_alone(MPI_Request *req)
{
	struct timespec nap = {.tv_nsec = NAP_NS};
	uint64_t began = util_now_ns();
	int done = 0, ret = 0;

	while (!done && !ret) {
		ret = PMPI_Test(req, &done, MPI_STATUS_IGNORE) ? -EIO : 0;
		if (done || ret)
			continue;
		if (util_now_ns() - began < AWAKE_NS)
			sched_yield();
		else
			nanosleep(&nap, NULL);
	}
	return ret;
}

/* What can not come any more must not be received into memory that is used for something else. */
static int wait_for(struct coll_comm *c, MPI_Request *req, bool out)
{
	int ret = c->met ? coll_wait_mpi(c, req) : wait_alone(req), none = 0;

	if (!ret)
		return 0;
	if (*req != MPI_REQUEST_NULL) {
		if (!out)
			PMPI_Cancel(req);
		PMPI_Request_free(req);
	}
	atomic_compare_exchange_strong(&c->err, &none, ret);
	return ret;
}

int coll_send(struct coll_comm *c, const void *buf, size_t len, uint32_t to, enum coll_tag tag)
{
	MPI_Request req;

	return PMPI_Isend(buf, (int)len, MPI_BYTE, c->peer[to].world, c->tag + (int)tag, coll_world,
			  &req)
		       ? -EIO
		       : wait_for(c, &req, true);
}

int coll_take(struct coll_comm *c, void *buf, size_t len, uint32_t from, enum coll_tag tag)
{
	MPI_Request req;

	return PMPI_Irecv(buf, (int)len, MPI_BYTE, c->peer[from].world, c->tag + (int)tag,
			  coll_world, &req)
		       ? -EIO
		       : wait_for(c, &req, false);
}

/* ---- the tree: the children of a rank are those with one more bit, below its lowest ---- */

static bool is_child(const struct coll_comm *c, uint32_t bit)
{
	return bit < c->size && !(c->rank & bit) && (c->rank | bit) < c->size;
}

/* The lowest bit of ours; of rank 0, one that no rank has. */
static uint32_t lowest(const struct coll_comm *c)
{
	uint32_t bit = 1;

	while (bit < c->size && !(c->rank & bit))
		bit <<= 1;
	return bit;
}

int coll_agree_on(struct coll_comm *c, void *v, size_t len)
{
	uint32_t bit = lowest(c);
	int ret = 0;

	if (c->rank)
		ret = coll_take(c, v, len, c->rank - bit, COLL_TAG_AGREE);
	while ((bit >>= 1) && !ret)
		if (is_child(c, bit))
			ret = coll_send(c, v, len, c->rank | bit, COLL_TAG_AGREE);
	return ret;
}

int coll_agree_fold(struct coll_comm *c, void *v, void *tmp, size_t len,
		    void (*fold)(void *into, const void *from, size_t len))
{
	uint32_t end = lowest(c);
	int ret = 0;

	for (uint32_t bit = 1; bit < end && !ret; bit <<= 1) {
		if (!is_child(c, bit))
			continue;
		ret = coll_take(c, tmp, len, c->rank | bit, COLL_TAG_AGREE);
		if (!ret)
			fold(v, tmp, len);
	}
	if (c->rank && !ret)
		ret = coll_send(c, v, len, c->rank - end, COLL_TAG_AGREE);
	return ret ? ret : coll_agree_on(c, v, len);
}

/* Below a rank are those up to the next with its lowest bit or a higher one. */
static size_t below(const struct coll_comm *c, uint32_t rank, uint32_t bit)
{
	return rank + bit < c->size ? bit : c->size - rank;
}

int coll_agree_all(struct coll_comm *c, void *all, size_t each)
{
	uint32_t end = lowest(c);
	char *at = all;
	int ret = 0;

	for (uint32_t bit = 1; bit < end && !ret; bit <<= 1) {
		uint32_t child = c->rank | bit;

		if (is_child(c, bit))
			ret = coll_take(c, at + child * each, below(c, child, bit) * each, child,
					COLL_TAG_AGREE);
	}
	if (c->rank && !ret)
		ret = coll_send(c, at + c->rank * each, below(c, c->rank, end) * each,
				c->rank - end, COLL_TAG_AGREE);
	return ret ? ret : coll_agree_on(c, all, c->size * each);
}

static void and_all(void *into, const void *from, size_t len)
{
	(void)len;
	*(bool *)into = *(bool *)into && *(const bool *)from;
}

bool coll_agree(struct coll_comm *c, bool ok)
{
	c->vote[0] = ok;
	return !coll_agree_fold(c, &c->vote[0], &c->vote[1], sizeof(bool), and_all) && c->vote[0];
}

void coll_sum_doubles(void *into, const void *from, size_t len)
{
	double *a = into;
	const double *b = from;

	for (size_t i = 0; i < len / sizeof(*a); i++)
		a[i] += b[i];
}

void coll_max_doubles(void *into, const void *from, size_t len)
{
	double *a = into;
	const double *b = from;

	for (size_t i = 0; i < len / sizeof(*a); i++)
		a[i] = b[i] > a[i] ? b[i] : a[i];
}

void coll_sum_u64(void *into, const void *from, size_t len)
{
	uint64_t *a = into;
	const uint64_t *b = from;

	for (size_t i = 0; i < len / sizeof(*a); i++)
		a[i] += b[i];
}
