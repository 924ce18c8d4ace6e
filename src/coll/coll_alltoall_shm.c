/* Three phases (section 4.3 of the paper, docs/collectives.md): ranks put what they send into
 * shared memory; what goes to another host is written there in one piece; ranks take what is
 * theirs.
 *
 * What goes from host to host lies in one piece on both sides: [sender][receiver], and the network
 * writes from the sender's shared memory into the receiver's. Ranks of one host take from each
 * other. The first rank of each host, its master, hears of what has come from others.
 *
 * Unaware, as in the paper, the master also sends, when all ranks of its host have come, and nobody
 * takes anything before the master has everything. Aware, ranks take what is there, host by host.
 * Who sends short blocks, all of them together, is the last rank of a host to come: it is running,
 * and the master would have to be woken first. What is longer does not gain by being together, and
 * each rank sends its own when it comes, so less is left to do for the last one. Who sleeps is
 * woken when all that it waits for is there, or, where copying a block takes longer than being
 * woken, whenever something is.
 *
 * Blocks that are too long for the shared memory go in parts, each a call of its own.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "coll_alltoall.h"
#include "coll_here.h"

/* Copying so much takes about as long as to be woken for it. */
#define WAKE_BYTES (32u << 10)
/* Blocks as long as this are sent with those of the same sender only. */
#define EACH_BYTES 2048u

struct shm_call {
	struct coll_alltoall *a;
	struct coll_comm *c;
	bool aware, master;
	bool each;  /* rank sends its own */
	bool sends; /* unaware: the master's, until it has */
	uint32_t call, bank;
	size_t at, n;    /* which part of each block */
	uint32_t here;   /* how many ranks this host has */
	uint32_t *local; /* ranks of this host whose data is to be taken */
	uint32_t *host;  /* other hosts, likewise */
	uint32_t n_local, n_host;
	uint32_t *heard; /* the master's: how many messages of a host have come */
	uint32_t n_come; /* hosts of which all have */
	bool *went;      /* those to hosts */
	uint8_t *to;     /* where received blocks go, from rank 0 on */
	int64_t to_step;
};

/* ---- where things are ---- */

/* In a host's shared memory, behind what its ranks send: what comes, of two banks. Hosts with more
 * ranks have more of both. */
static uint64_t block_base(const struct coll_comm *c, uint32_t host, uint32_t bank)
{
	uint64_t ranks = coll_host_size(c, host);

	return coll_gather_base(c, host, 2) + bank * c->shm_slot * (c->size - ranks) * ranks;
}

/* What rank `local` of our host sends to the ranks of another, or of our own. */
static uint8_t *gather(const struct shm_call *s, uint32_t host, uint32_t local)
{
	const struct coll_comm *c = s->c;
	uint64_t index =
		(uint64_t)s->here * c->first[host] + (uint64_t)local * coll_host_size(c, host);

	return c->shm.data + coll_gather_base(c, c->host, s->bank) + index * s->n;
}

/* Where in `host` the block of the ranks of `from` is. */
static uint64_t block_at(const struct shm_call *s, uint32_t host, uint32_t from)
{
	const struct coll_comm *c = s->c;
	uint64_t before = c->first[from] - (from > host ? coll_host_size(c, host) : 0);

	return block_base(c, host, s->bank) + before * coll_host_size(c, host) * s->n;
}

/* ---- phase 1 ---- */

static void put_mine(struct shm_call *s)
{
	struct coll_comm *c = s->c;
	uint32_t me = c->shm.me;

	for (uint32_t h = 0; h < c->hosts; h++) {
		uint8_t *to = gather(s, h, me);

		for (uint32_t i = c->first[h]; i < c->first[h + 1]; i++, to += s->n)
			memcpy(to, coll_send_at(s->a, c->by_host[i]) + s->at, s->n);
	}
	coll_shm_store(coll_shm_word(&c->shm, me, s->bank), s->call);
	if (s->n >= WAKE_BYTES)
		coll_shm_event(&c->shm);
}

static bool all_put(const struct shm_call *s)
{
	for (uint32_t i = 0; i < s->here; i++)
		if (!coll_shm_is_by_now(coll_shm_word(&s->c->shm, i, s->bank), s->call))
			return false;
	return true;
}

/* ---- phase 2 ---- */

static int send_block(struct shm_call *s, uint32_t host)
{
	struct coll_comm *c = s->c;
	uint32_t to = coll_master(c, host), first = s->each ? c->shm.me : 0;
	uint64_t rank = s->n * coll_host_size(c, host), at = block_at(s, host, c->host);
	struct coll_put p = {
		.buf = gather(s, host, first),
		.len = s->each ? rank : rank * s->here,
		.desc = c->shm_mem.desc,
		.peer = to,
		.kind = COLL_BLOCK,
		.call = s->call,
		.to = {c->peer[to].shm.addr + at + first * rank, c->peer[to].shm.key},
	};

	return coll_put(c, &p);
}

/* To the hosts after ours; aware, first to those that are known to be there, of which there may be
 * more any moment. */
static int send_blocks(struct shm_call *s)
{
	const struct coll_comm *c = s->c;
	int ret = 0;

	for (int all = !s->aware; all < 2; all++) {
		for (uint32_t i = 1; i < c->hosts && !ret; i++) {
			uint32_t host = (c->host + i) % c->hosts;

			if (s->went[host] || (!all && !coll_host_is_set(c, s->call, host)))
				continue;
			s->went[host] = true;
			ret = send_block(s, host);
		}
	}
	s->sends = false;
	return ret;
}

static bool heard_all(const struct shm_call *s, uint32_t host)
{
	return s->heard[host] == (s->each ? coll_host_size(s->c, host) : 1);
}

/* Of one message for all, any rank of the host may have been the last to come. Returns whether
 * anything has. */
static bool hear_of(struct shm_call *s, uint32_t host)
{
	uint32_t before = s->heard[host];

	while (!heard_all(s, host) && coll_there_came(s->c, s->call, COLL_BLOCK, host))
		s->heard[host]++;
	if (s->heard[host] == before)
		return false;
	s->n_come += heard_all(s, host);
	if (s->aware && heard_all(s, host)) {
		coll_host_set(s->c, s->call, host);
		if (s->n >= WAKE_BYTES)
			coll_shm_event(&s->c->shm);
	}
	return true;
}

static bool hear(struct shm_call *s)
{
	bool any = false;

	for (uint32_t h = 0; h < s->c->hosts; h++)
		any |= h != s->c->host && hear_of(s, h);
	return any;
}

/* Returns whether anything has happened, or -errno. */
static int turn(struct shm_call *s)
{
	bool moved = s->master && hear(s);
	int ret = 0;

	if (s->sends && all_put(s)) {
		ret = send_blocks(s);
		moved = true;
	}
	/* The one flag of those who are not aware. */
	if (moved && !s->aware && !s->sends && s->n_come == s->c->hosts - 1)
		coll_shm_set(&s->c->shm, coll_shm_done(&s->c->shm, s->bank, s->c->host), s->call);
	return ret ? ret : moved;
}

/* ---- phase 3 ---- */

static void take_bytes(struct shm_call *s, uint32_t src, const uint8_t *bytes)
{
	memcpy(s->to + (s->to_step * (int64_t)src) + (int64_t)s->at, bytes, s->n);
}

static void take_local(struct shm_call *s, uint32_t local)
{
	const struct coll_comm *c = s->c;
	uint32_t me = c->peer[c->rank].local;

	take_bytes(s, c->by_host[c->first[c->host] + local], gather(s, c->host, local) + me * s->n);
}

static void take_host(struct shm_call *s, uint32_t host)
{
	const struct coll_comm *c = s->c;
	const uint8_t *at =
		c->shm.data + block_at(s, c->host, host) + c->peer[c->rank].local * s->n;

	for (uint32_t i = c->first[host]; i < c->first[host + 1]; i++, at += s->here * s->n)
		take_bytes(s, c->by_host[i], at);
}

static bool may_take(const struct shm_call *s, uint32_t host, uint32_t local)
{
	const struct coll_shm *m = &s->c->shm;

	if (!s->aware)
		return coll_host_is_set(s->c, s->call, s->c->host);
	return host == s->c->host ? coll_shm_is(coll_shm_word(m, local, s->bank), s->call)
				  : coll_host_is_set(s->c, s->call, host);
}

/* Returns whether anything was there. */
static bool take_some(struct shm_call *s)
{
	uint32_t locals = 0, hosts = 0, before = s->n_local + s->n_host;

	for (uint32_t i = 0; i < s->n_local; i++) {
		if (may_take(s, s->c->host, s->local[i]))
			take_local(s, s->local[i]);
		else
			s->local[locals++] = s->local[i];
	}
	for (uint32_t i = 0; i < s->n_host; i++) {
		if (may_take(s, s->host[i], 0))
			take_host(s, s->host[i]);
		else
			s->host[hosts++] = s->host[i];
	}
	s->n_local = locals;
	s->n_host = hosts;
	return locals + hosts != before;
}

/* ---- all of it ---- */

static bool finished(const struct shm_call *s)
{
	return !s->n_local && !s->n_host && !s->sends &&
	       (!s->master || s->n_come == s->c->hosts - 1);
}

/* One after the other: there is no end before both. */
static int waits_for(const struct shm_call *s)
{
	return s->master && !s->sends && s->n_come < s->c->hosts - 1 ? COLL_FOR_NET : COLL_FOR_SHM;
}

/* Whoever sends, it is the master that must be there. */
static bool missing(const void *arg, uint32_t rank)
{
	const struct shm_call *s = arg;
	uint32_t host = s->c->peer[rank].host;

	return !heard_all(s, host) && (s->each || coll_master(s->c, host) == rank);
}

/* Other hosts first: they wait for longer, and ranks of this one might take our core when they are
 * woken. */
static int come(struct shm_call *s)
{
	bool last = coll_here_arrive(s->c, s->call, NULL, NULL);
	int ret = s->each || last ? send_blocks(s) : 0;

	if (last)
		coll_host_set(s->c, s->call, s->c->host);
	return ret;
}

/* The master waits for all. */
static int come_unaware(struct shm_call *s)
{
	s->sends = s->master;
	if (all_put(s))
		coll_shm_event(&s->c->shm);
	return 0;
}

static int begin(struct shm_call *s)
{
	struct coll_comm *c = s->c;

	s->call = coll_begin(c);
	s->bank = coll_bank(s->call);
	s->n_local = s->n_host = s->n_come = 0;
	memset(s->heard, 0, c->hosts * sizeof(*s->heard));
	memset(s->went, 0, c->hosts * sizeof(*s->went));
	for (uint32_t i = 0; i < s->here; i++)
		s->local[s->n_local++] = (c->shm.me + i) % s->here;
	for (uint32_t i = 1; i < c->hosts; i++)
		s->host[s->n_host++] = (c->host + i) % c->hosts;
	put_mine(s);
	s->each = s->aware && s->n >= EACH_BYTES;
	return s->aware ? come(s) : come_unaware(s);
}

static int part(struct shm_call *s)
{
	struct coll_comm *c = s->c;
	struct coll_wait w;
	int ret = begin(s);

	coll_wait_begin(c, &w, waits_for(s));
	w.missing = missing;
	w.arg = s;
	while (ret >= 0 && !finished(s)) {
		int moved = turn(s);

		ret = moved < 0 ? moved : moved | take_some(s);
		w.what = waits_for(s);
		if (!ret && !finished(s))
			ret = coll_wait(c, &w);
	}
	return ret < 0 ? ret : 0;
}

/* Where received bytes go: to the program, or, to be unpacked, to memory of our own. */
static int open_target(struct shm_call *s, size_t len)
{
	struct coll_alltoall *a = s->a;
	struct coll_scratch *whole;

	if (a->recv.type.plain) {
		s->to = (uint8_t *)a->recv.buf;
		s->to_step = (int64_t)len;
		return 0;
	}
	whole = coll_scratch(s->c, 1, len * s->c->size);
	if (!whole)
		return -ENOMEM;
	s->to = whole->at;
	s->to_step = (int64_t)len;
	return 0;
}

static int unpack(struct shm_call *s)
{
	int ret = 0;

	if (s->a->recv.type.plain)
		return 0;
	for (uint32_t i = 0; i < s->c->size && !ret; i++)
		ret = coll_deliver(s->a, i, s->to + s->to_step * (int64_t)i);
	return ret;
}

int coll_alltoall_shm(struct coll_alltoall *a, bool aware)
{
	struct coll_comm *c = a->c;
	size_t len = coll_block_len(&a->recv, 0);
	struct shm_call s = {.a = a,
			     .c = c,
			     .aware = aware,
			     .master = coll_is_master(c),
			     .here = coll_host_size(c, c->host)};
	int ret = len == coll_block_len(&a->send, 0) ? open_target(&s, len) : -EMSGSIZE;

	s.local = calloc(s.here, sizeof(*s.local));
	s.host = calloc(c->hosts, sizeof(*s.host));
	s.heard = calloc(c->hosts, sizeof(*s.heard));
	s.went = calloc(c->hosts, sizeof(*s.went));
	if (!ret && (!s.local || !s.host || !s.heard || !s.went))
		ret = -ENOMEM;
	for (; s.at < len && !ret; s.at += s.n) {
		s.n = len - s.at < c->shm_slot ? len - s.at : c->shm_slot;
		ret = part(&s);
	}
	if (!ret)
		ret = unpack(&s);
	free(s.local);
	free(s.host);
	free(s.heard);
	free(s.went);
	return ret;
}
