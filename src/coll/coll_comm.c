/* Arrivals, writes, and the table of communicators that arrivals name. */
#include "coll_comm.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "coll_env.h"
#include "util_clock.h"
#include "util_log.h"

/* ---- the table ---- */

/* Whoever makes progress looks communicators up while others are made and ended. A communicator is
 * removed only when nothing more can arrive for it. */
static _Atomic(struct coll_comm *) table[COLL_MAX_COMMS];
static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_uint places; /* that are taken, or will be */

bool coll_comm_room(void)
{
	if (atomic_fetch_add(&places, 1) < coll_env()->comms)
		return true;
	coll_comm_no_room();
	return false;
}

void coll_comm_no_room(void)
{
	atomic_fetch_sub(&places, 1);
}

int coll_comm_add(struct coll_comm *c)
{
	uint32_t i = 0;

	pthread_mutex_lock(&table_lock);
	while (i < COLL_MAX_COMMS && atomic_load_explicit(&table[i], memory_order_relaxed))
		i++;
	if (i < COLL_MAX_COMMS) {
		c->id = i;
		atomic_store_explicit(&table[i], c, memory_order_release);
	}
	pthread_mutex_unlock(&table_lock);
	return i < COLL_MAX_COMMS ? 0 : -EDQUOT;
}

void coll_comm_remove(struct coll_comm *c)
{
	pthread_mutex_lock(&table_lock);
	if (atomic_load_explicit(&table[c->id], memory_order_relaxed) == c)
		atomic_store_explicit(&table[c->id], NULL, memory_order_release);
	pthread_mutex_unlock(&table_lock);
}

struct coll_comm *coll_comm_next(uint32_t *at)
{
	while (*at < COLL_MAX_COMMS) {
		struct coll_comm *c = atomic_load_explicit(&table[(*at)++], memory_order_acquire);

		if (c)
			return c;
	}
	return NULL;
}

bool coll_comm_is(const struct coll_comm *c, uint32_t id, uint64_t serial)
{
	return atomic_load_explicit(&table[id], memory_order_acquire) == c && c->serial == serial;
}

/* From the network: nothing about it is certain. */
void coll_comm_arrived(uint32_t word)
{
	static atomic_bool said;
	struct coll_word w = coll_word_unpack(word);
	struct coll_comm *c = atomic_load_explicit(&table[w.comm], memory_order_acquire);

	if (c && w.src < c->size && w.kind == COLL_BROKEN) {
		util_log(UTIL_LOG_INFO, "coll: rank %u has given up a communicator of %u", w.src,
			 c->size);
		atomic_store(&c->err, -ECONNABORTED);
		return;
	}
	if (c && w.src < c->size) {
		atomic_fetch_add_explicit(coll_got(c, w.call, w.kind, w.src), 1,
					  memory_order_release);
		return;
	}
	util_log_once(&said, UTIL_LOG_WARN, "coll: word 0x%08x is of no communicator here", word);
}

/* ---- writes ---- */

void coll_comm_lost(struct coll_comm *c, uint32_t peer, int err)
{
	if (!atomic_exchange(&c->peer[peer].dead, true))
		util_log(UTIL_LOG_INFO, "coll: rank %u of a communicator of %u is lost: %s", peer,
			 c->size, strerror(-err));
	atomic_store(&c->err, err);
}

static void count(struct coll_comm *c, atomic_uint *group, int n)
{
	if (group)
		atomic_fetch_add_explicit(group, (unsigned int)n, memory_order_release);
	atomic_fetch_add_explicit(&c->pending, (unsigned int)n, memory_order_release);
}

static void put_done(struct coll_tx *tx, int err)
{
	struct coll_comm *c = tx->owner;
	atomic_uint *group = tx->group;

	if (err)
		coll_comm_lost(c, tx->peer, err);
	atomic_store_explicit(&tx->busy, false, memory_order_release);
	count(c, group, -1);
}

static struct coll_tx *free_tx(struct coll_comm *c)
{
	for (uint32_t i = 0; i < c->n_tx; i++) {
		struct coll_tx *tx = &c->tx[c->next_tx++ % c->n_tx];

		if (!atomic_load_explicit(&tx->busy, memory_order_acquire))
			return tx;
	}
	return NULL;
}

static int try_put(struct coll_comm *c, const struct coll_put *p)
{
	const struct coll_peer *peer = &c->peer[p->peer];
	struct coll_word w = {p->kind, p->call, peer->comm, c->rank};
	struct coll_to to = {peer->addr, p->to.addr, p->to.key};
	struct coll_tx *tx = free_tx(c);
	int ret;

	if (!tx)
		return -EAGAIN;
	tx->done = put_done;
	tx->owner = c;
	tx->peer = p->peer;
	tx->group = p->group;
	atomic_store_explicit(&tx->busy, true, memory_order_relaxed);
	count(c, p->group, 1);
	ret = p->silent ? coll_net_store(tx, p->buf, p->len, p->desc, &to)
			: coll_net_write(tx, p->buf, p->len, p->desc, &to, coll_word_pack(&w));
	if (ret) {
		atomic_store_explicit(&tx->busy, false, memory_order_relaxed);
		count(c, p->group, -1);
	}
	return ret;
}

/* Writes to it are on their way. */
static bool unwritten(const void *arg, uint32_t rank)
{
	const struct coll_comm *c = arg;

	for (uint32_t i = 0; i < c->n_tx; i++)
		if (c->tx[i].peer == rank &&
		    atomic_load_explicit(&c->tx[i].busy, memory_order_relaxed))
			return true;
	return false;
}

void coll_wait_for_writes(struct coll_comm *c, struct coll_wait *w)
{
	coll_wait_begin(c, w, COLL_FOR_NET);
	w->missing = unwritten;
	w->arg = c;
}

int coll_put(struct coll_comm *c, const struct coll_put *p)
{
	struct coll_wait w;
	int ret = try_put(c, p);

	if (ret == -EAGAIN)
		coll_wait_for_writes(c, &w);
	while (ret == -EAGAIN) {
		ret = coll_wait(c, &w);
		if (!ret)
			ret = try_put(c, p);
	}
	if (ret)
		atomic_store(&c->err, ret);
	return ret;
}

int coll_put_slot(struct coll_comm *c, uint32_t call, uint32_t peer, uint32_t kind, const void *buf,
		  size_t len, void *desc)
{
	uint64_t offset = ((uint64_t)coll_bank(call) * c->size + c->rank) * c->slot;
	struct coll_put p = {
		.buf = buf,
		.len = len,
		.desc = desc,
		.peer = peer,
		.kind = kind,
		.call = call,
		.to = {c->peer[peer].mem.addr + offset, c->peer[peer].mem.key},
	};

	return len <= c->slot ? coll_put(c, &p) : -EMSGSIZE;
}

int coll_flush(struct coll_comm *c)
{
	struct coll_wait w;
	int ret = 0;

	if (!atomic_load_explicit(&c->pending, memory_order_acquire))
		return atomic_load(&c->err); /* perhaps there is no shared memory to wait in */
	coll_wait_for_writes(c, &w);
	while (!ret && atomic_load_explicit(&c->pending, memory_order_acquire))
		ret = coll_wait(c, &w);
	return ret ? ret : atomic_load(&c->err);
}

int coll_leave(struct coll_comm *c)
{
	return c->net && !coll_net_moves() ? coll_flush(c) : 0;
}

/* ---- the end ---- */

bool coll_comm_broken(struct coll_comm *c)
{
	if (atomic_load_explicit(&c->shm.head->broken, memory_order_relaxed) &&
	    !atomic_load(&c->err))
		atomic_store(&c->err, -ECONNABORTED);
	return atomic_load_explicit(&c->err, memory_order_relaxed);
}

/* ---- memory ---- */

void coll_scratch_end(struct coll_scratch *s)
{
	if (s->registered)
		coll_net_dereg(&s->mem);
	if (s->at)
		munmap(s->at, s->len);
	memset(s, 0, sizeof(*s));
}

struct coll_scratch *coll_scratch(struct coll_comm *c, int which, size_t len)
{
	struct coll_scratch *s = &c->scratch[which];
	void *at;

	if (s->at && s->len >= len)
		return s;
	coll_scratch_end(s);
	if (!len)
		return s;
	at = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return NULL;
	s->at = at;
	s->len = len;
	s->registered = c->net && !coll_net_reg(s->at, len, &s->mem);
	return s;
}
