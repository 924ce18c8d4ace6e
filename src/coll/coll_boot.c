/* How a communicator's state comes about, together on all ranks, and ends.
 *
 * Whatever fails on one rank is told to all before anybody relies on it: then all of them leave
 * the communicator to the MPI. Memory that peers write to is zero before the last exchange.
 */
#include "coll_comm.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "coll_agree.h"
#include "coll_bcast.h"
#include "coll_boot.h"
#include "coll_env.h"
#include "coll_guard.h"
#include "coll_here.h"
#include "coll_plan.h"
#include "shm_copy.h"
#include "util_log.h"
#include "util_rand.h"

/* What every rank tells every other. */
struct record {
	uint8_t name[COLL_NAME_MAX];
	struct coll_key mem, shm, ping;
	uint64_t slot, copy_max, copy_far;
	uint32_t comm, same_sums;
	int32_t err; /* 0: it has all that it needs */
	uint32_t variant[COLL_OPS];
	char provider[32];
	int64_t pid;
	uint64_t secret_at, secret;
};

#define MEMORY_MAX (2u << 20) /* of a rank's banks */
#define SLOT       (16u << 10)
#define SHM_MAX    (8u << 20) /* of a host's */
#define SHM_SLOT   (32u << 10)
#define ALIGN      64u

static size_t clamp_slot(size_t bytes, size_t most)
{
	bytes = (bytes < most ? bytes : most) / ALIGN * ALIGN;
	return bytes < ALIGN ? ALIGN : bytes;
}

/* ---- who is where ---- */

/* Hosts are numbered by their first ranks. leader[i]: the first rank of the host of i. */
static int place(struct coll_comm *c, const int *leader)
{
	uint32_t n = 0;

	c->first = calloc(c->size + 1, sizeof(*c->first));
	c->by_host = calloc(c->size, sizeof(*c->by_host));
	c->peer = calloc(c->size, sizeof(*c->peer));
	if (!c->first || !c->by_host || !c->peer)
		return -ENOMEM;
	for (uint32_t l = 0; l < c->size; l++) {
		if (leader[l] != (int)l)
			continue;
		c->first[c->hosts] = n;
		for (uint32_t i = l; i < c->size; i++) {
			if (leader[i] != (int)l)
				continue;
			c->peer[i].host = c->hosts;
			c->peer[i].local = n - c->first[c->hosts];
			c->by_host[n++] = i;
		}
		c->first[++c->hosts] = n;
	}
	c->host = c->peer[c->rank].host;
	return n == c->size ? 0 : -EIO;
}

/* Ranks that do not share memory are as if each were on a host of its own. */
static int find_hosts(struct coll_comm *c, const int *world, bool share)
{
	int *leader = calloc(c->size, sizeof(*leader));
	/* And 1; 0: none yet. */
	uint32_t *first = calloc((size_t)coll_world_size(), sizeof(*first));
	int ret = -ENOMEM;

	for (uint32_t i = 0; i < c->size && leader && first; i++) {
		uint32_t *of = &first[share ? coll_world_leader(world[i]) : world[i]];

		*of = *of ? *of : i + 1;
		leader[i] = (int)*of - 1;
	}
	if (leader && first)
		ret = place(c, leader);
	free(first);
	for (uint32_t i = 0; i < c->size && !ret; i++)
		c->peer[i].world = world[i];
	free(leader);
	return ret;
}

/* ---- memory ---- */

static int open_memory(struct coll_comm *c)
{
	size_t want = coll_env()->copy_far > SLOT ? coll_env()->copy_far : SLOT;

	c->slot = clamp_slot(want, MEMORY_MAX / 2 / c->size);
	c->memory_len = coll_end_at(c) + sizeof(uint64_t);
	c->got = calloc((size_t)2 * COLL_KINDS * c->size, sizeof(*c->got));
	c->n_tx = 2 * c->size + 16;
	c->tx = calloc(c->n_tx, sizeof(*c->tx));
	c->memory = mmap(NULL, c->memory_len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
	if (c->memory == MAP_FAILED)
		c->memory = NULL;
	if (!c->memory || !c->got || !c->tx)
		return -ENOMEM;
	return c->net ? coll_net_reg(c->memory, c->memory_len, &c->mem) : 0;
}

/* The first of a host tells the others, even if there is no name. */
static int share_name(struct coll_comm *c, char name[COLL_SHM_NAME])
{
	uint32_t first = c->first[c->host], n = coll_host_size(c, c->host);
	int ret = 0;

	if (c->peer[c->rank].local)
		return coll_take(c, name, COLL_SHM_NAME, c->by_host[first], COLL_TAG_AGREE);
	for (uint32_t i = 1; i < n && !ret; i++)
		ret = coll_send(c, name, COLL_SHM_NAME, c->by_host[first + i], COLL_TAG_AGREE);
	return ret;
}

/* Collective on the host. */
static int open_shm(struct coll_comm *c, char name[COLL_SHM_NAME])
{
	struct coll_shm_conf conf = {.ranks = coll_host_size(c, c->host), .hosts = c->hosts};
	uint32_t me = c->peer[c->rank].local, most = 0;
	int ret = 0, told;

	for (uint32_t h = 0; h < c->hosts; h++)
		most = coll_host_size(c, h) > most ? coll_host_size(c, h) : most;
	c->shm_slot = clamp_slot(SHM_MAX / 4 / c->size / most, SHM_SLOT);
	c->vector = coll_vector_slot(c->size, c->hosts);
	conf.data = coll_bcast_at(c, c->host) + coll_bcast_room(c->hosts);
	memset(name, 0, COLL_SHM_NAME);
	if (!me)
		ret = coll_shm_create(&c->shm, &conf, me, name);
	told = share_name(c, name);
	name[COLL_SHM_NAME - 1] = '\0';
	if (told)
		ret = told;
	else if (me)
		ret = coll_shm_attach(&c->shm, &conf, me, name);
	/* By all: whoever is a root writes from it, and is told in it that others are ready. */
	if (!ret && c->net && c->hosts > 1)
		ret = coll_net_reg(c->shm.data, conf.data, &c->shm_mem);
	return ret;
}

/* ---- peers ---- */

static void fill(const struct coll_comm *c, struct record *r, int err)
{
	r->err = err;
	r->comm = c->id;
	r->slot = c->slot;
	r->copy_max = coll_env()->copy_max;
	r->copy_far = coll_env()->copy_far;
	r->mem = c->mem.key;
	r->shm = c->shm_mem.key;
	r->same_sums = coll_env()->same_sums;
	r->pid = getpid();
	r->secret_at = (uintptr_t)&c->secret;
	r->secret = c->secret;
	for (int i = 0; i < COLL_OPS; i++)
		r->variant[i] = coll_env()->choice.variant[i];
	snprintf(r->provider, sizeof(r->provider), "%s", coll_env()->provider);
	if (!c->net)
		return;
	r->ping = coll_net_ping_key();
	if (!r->err && !coll_net_name(r->name))
		r->err = -EIO;
}

/* Whether we can copy from the memory of the others of this host. */
static bool can_fetch(struct coll_comm *c, const struct record *all)
{
	bool yes = coll_env()->fetch && c->secret;

	for (uint32_t i = 0; i < c->size && yes; i++) {
		c->peer[i].pid = (pid_t)all[i].pid;
		if (i != c->rank && c->peer[i].host == c->host)
			yes = !shm_copy_probe(c->peer[i].pid, all[i].secret_at, all[i].secret);
	}
	return yes;
}

static bool unlike_providers(const struct coll_comm *c, const struct record *all)
{
	for (uint32_t i = 1; i < c->size; i++)
		if (strncmp(all[i].provider, all[0].provider, sizeof(all[0].provider)) != 0)
			return true;
	return false;
}

/* -EPROTO: ranks have unlike settings. */
static int meet(struct coll_comm *c, const struct record *all)
{
	int ret = 0;

	for (uint32_t i = 0; i < c->size && !ret; i++) {
		struct coll_peer *p = &c->peer[i];

		p->mem = all[i].mem;
		p->shm = all[i].shm;
		p->ping = all[i].ping;
		p->comm = all[i].comm;
		/* The first of a host comes first, and knows why there is no shared memory. */
		if (all[i].err)
			ret = all[i].err;
		else if (all[i].slot != c->slot)
			ret = -EPROTO;
		else if (c->net)
			ret = coll_net_peer(all[i].name, &p->addr);
	}
	c->same_sums = all[0].same_sums;
	c->copy_max = all[0].copy_max;
	c->copy_far = all[0].copy_far < c->slot ? all[0].copy_far : c->slot;
	for (int i = 0; i < COLL_OPS; i++)
		c->variant[i] = all[0].variant[i] < COLL_VARIANTS ? all[0].variant[i] : COLL_MPI;
	c->fetch = can_fetch(c, all);
	if (c->net && unlike_providers(c, all))
		return -EPROTO;
	return ret;
}

static int exchange(struct coll_comm *c, int err)
{
	struct record *all = calloc(c->size, sizeof(*all));
	int ret = -ENOMEM;

	if (coll_agree(c, all)) {
		fill(c, &all[c->rank], err);
		ret = coll_agree_all(c, all, sizeof(*all));
		if (!ret)
			ret = meet(c, all);
	}
	free(all);
	return ret;
}

/* ---- all of it ---- */

static void say_net(const struct coll_comm *c, int err)
{
	static atomic_bool said;

	if (!c->net && !c->rank)
		util_log_once(&said, UTIL_LOG_WARN,
			      "coll: provider %s (WEFT_COLL_PROVIDER) can not be used by %s%s; "
			      "communicators of several hosts are left to the MPI",
			      coll_env()->provider, err ? "this rank: " : "all ranks",
			      err ? strerror(-err) : "");
}

/* Of a host the first one says it: what fails there fails for all. A lack of room is no fault, and
 * there may be many communicators that come to it. */
static void say_shm(const struct coll_comm *c, int err)
{
	static atomic_bool said;
	uint32_t ranks = coll_host_size(c, c->host);

	if (!err || c->peer[c->rank].local)
		return;
	if (err == -ENOSPC)
		util_log_once(&said, UTIL_LOG_WARN,
			      "coll: no shared memory for %u ranks of this host: %s; a quarter of "
			      "/dev/shm is left to others. A larger one would help, or fewer "
			      "communicators (WEFT_COLL_COMMS, now %u)",
			      ranks, strerror(-err), coll_env()->comms);
	else
		util_log(UTIL_LOG_WARN, "coll: no shared memory for %u ranks of this host: %s",
			 ranks, strerror(-err));
}

static int open_parts(struct coll_comm *c)
{
	char name[COLL_SHM_NAME] = "";
	int ret, err, all;

	ret = coll_net_open(coll_env()->provider, coll_comm_arrived);
	c->net = coll_agree(c, !ret);
	say_net(c, ret);
	ret = open_memory(c);
	/* From then on words of the network may name it. */
	if (!ret)
		ret = coll_comm_add(c);
	err = open_shm(c, name);
	say_shm(c, err);
	if (!ret)
		ret = err;
	if (!ret && !c->net && c->hosts > 1)
		ret = -ENETUNREACH;
	ret = exchange(c, ret);
	c->fetch = coll_agree(c, c->fetch);
	all = coll_agree(c, !ret);
	/* There still, if one of them could not attach it. */
	if (!c->peer[c->rank].local)
		coll_shm_unlink(name);
	return all ? 0 : ret ? ret : -ECANCELED;
}

/* Whether all ranks have room, and whether all of them are willing to share memory. By the
 * program's own communicator: there is nothing else yet. Its first rank gives out the tags. */
enum { NO_ROOM, ROOM, ROOM_SHARED, NO_TAG };

static int room(struct coll_comm *c, MPI_Comm comm)
{
	int mine[2], all[2]; /* less of it; the tag */

	c->place = coll_comm_room();
	mine[0] = !c->place ? NO_ROOM : coll_env()->shm ? -ROOM_SHARED : -ROOM;
	mine[1] = -1;
	if (!c->rank)
		mine[1] = c->tag = coll_world_tag();
	if (PMPI_Allreduce(mine, all, 2, MPI_INT, MPI_MAX, comm))
		return NO_ROOM;
	c->tag = all[1];
	return all[0] != -NO_ROOM && c->tag < 0 ? NO_TAG : -all[0];
}

int coll_boot(struct coll_comm *c, MPI_Comm comm, const int *world)
{
	static _Atomic uint64_t serial;
	int ret, size, rank, may;

	c->shm.fd = -1;
	c->tag = -1;
	if (util_random_key(&c->secret, sizeof(c->secret)))
		c->secret = 0;
	c->serial = atomic_fetch_add(&serial, 1);
	PMPI_Comm_rank(comm, &rank);
	PMPI_Comm_size(comm, &size);
	c->size = (uint32_t)size;
	c->rank = (uint32_t)rank;
	may = room(c, comm);
	if (may == NO_ROOM)
		return -EDQUOT;
	if (may == NO_TAG)
		return -EADDRNOTAVAIL;
	if (find_hosts(c, world, may == ROOM_SHARED))
		abort(); /* the others are on their way into the exchange */
	ret = open_parts(c);
	c->met = !ret;
	return ret;
}

void coll_unboot(struct coll_comm *c)
{
	/* What is still being sent is sent from memory that ends here. */
	if (c->net && !atomic_load(&c->err))
		coll_flush(c);
	coll_comm_remove(c);
	if (c->place)
		coll_comm_no_room();
	coll_guard_fence();
	coll_plan_end(c);
	coll_net_fence();
	coll_net_dereg(&c->mem);
	coll_net_dereg(&c->shm_mem);
	for (size_t i = 0; i < sizeof(c->scratch) / sizeof(c->scratch[0]); i++)
		coll_scratch_end(&c->scratch[i]);
	if (c->shm.fd >= 0)
		coll_shm_detach(&c->shm);
	if (c->memory)
		munmap(c->memory, c->memory_len);
	/* Writes to those who died may still be on their way: what they report to stays. */
	if (!atomic_load(&c->pending)) {
		free(c->tx);
		free(c->peer);
	}
	free((void *)c->got);
	free(c->first);
	free(c->by_host);
	/* Of a broken one messages may be under way. */
	if (!c->rank && c->tag >= 0 && !atomic_load(&c->err))
		coll_world_tag_free(c->tag);
	if (!atomic_load(&c->pending) && !atomic_load(&c->err))
		free(c);
}
