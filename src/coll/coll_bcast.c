#include "coll_bcast.h"

#include <errno.h>
#include <string.h>

#include "coll_here.h"
#include "coll_plan.h"
#include "coll_sum.h"
#include "coll_type.h"
#include "coll_window.h"

#define PART  (32u << 10)
#define LEN   COLL_WINDOW_HALF
#define ALIGN 64u
/* Longer ones are left to the MPI, unless the environment says otherwise: who sends half a window
 * may have to wait for others to leave it. */
#define AUTO_MAX ((size_t)PART * LEN)

/* Before a part, in the same write. */
struct head {
	uint32_t number; /* of the part, and 1 */
	uint32_t len;
	uint64_t sum;
};

#define SLOT (ALIGN + PART)

/* A host's memory: flags that other hosts have set here, those that were set there, parts that are
 * here, the part that the master is in, slots. */
struct bcast {
	struct coll_comm *c;
	const struct coll_bcast_args *args;
	struct coll_type type;
	size_t bytes;
	uint8_t *whole; /* the bytes in a row */
	uint32_t root, root_host;
	uint32_t from; /* the rank that writes to this host; COLL_NONE: it is the root's */
	uint32_t to[COLL_MAX_HOSTS], n_to;     /* hosts that we write to */
	uint32_t todo[COLL_MAX_HOSTS], n_todo; /* ... and have not written this part to */
};

/* ---- where things are ---- */

uint64_t coll_bcast_at(const struct coll_comm *c, uint32_t host)
{
	return coll_vectors_at(c, host) + coll_vector_room(c->size, c->hosts);
}

static size_t slots_at(uint32_t hosts)
{
	size_t words = 4 * (size_t)hosts + COLL_WINDOW + 1;

	return (words * sizeof(uint32_t) + ALIGN - 1) / ALIGN * ALIGN;
}

size_t coll_bcast_room(uint32_t hosts)
{
	return slots_at(hosts) + (size_t)COLL_WINDOW * SLOT;
}

static _Atomic uint32_t *words(const struct coll_comm *c)
{
	return (_Atomic uint32_t *)(c->shm.data + coll_bcast_at(c, c->host));
}

static _Atomic uint32_t *flag_of(const struct coll_comm *c, uint32_t host, uint32_t half)
{
	return &words(c)[2 * host + coll_window_bank(half)];
}

static _Atomic uint32_t *told_to(const struct coll_comm *c, uint32_t host, uint32_t half)
{
	return &words(c)[2 * (c->hosts + host) + coll_window_bank(half)];
}

static _Atomic uint32_t *there(const struct coll_comm *c, uint32_t part)
{
	return &words(c)[4 * c->hosts + coll_window_slot(LEN, part)];
}

static _Atomic uint32_t *master_in(const struct coll_comm *c)
{
	return &words(c)[4 * c->hosts + COLL_WINDOW];
}

static uint64_t slot_offset(const struct coll_comm *c, uint32_t host, uint32_t part)
{
	return coll_bcast_at(c, host) + slots_at(c->hosts) +
	       (uint64_t)coll_window_slot(LEN, part) * SLOT;
}

/* The data of a slot is aligned, and what is sent is in one piece. */
static uint8_t *slot_head(const struct coll_comm *c, uint32_t part)
{
	return c->shm.data + slot_offset(c, c->host, part) + ALIGN - sizeof(struct head);
}

static uint8_t *slot_data(const struct coll_comm *c, uint32_t part)
{
	return slot_head(c, part) + sizeof(struct head);
}

/* ---- the window ---- */

static _Atomic uint32_t *parts_left(const struct coll_comm *c, uint32_t local)
{
	return coll_shm_word(&c->shm, local, COLL_WORD_PARTS);
}

static bool all_left(const struct coll_comm *c, uint32_t half)
{
	for (uint32_t i = 0; i < c->shm.ranks; i++)
		if (!coll_window_left(LEN, half,
				      atomic_load_explicit(parts_left(c, i), memory_order_acquire)))
			return false;
	return true;
}

/* That we are ready for this half, to the one that writes to us, once. */
static int tell(struct bcast *b, uint32_t half)
{
	struct coll_comm *c = b->c;
	uint32_t host = c->peer[b->from].host, value = coll_window_value(half);
	_Atomic uint32_t *told = told_to(c, host, half);
	uint32_t seen = atomic_load_explicit(told, memory_order_acquire);
	uint64_t at = coll_bcast_at(c, host) +
		      (2 * (uint64_t)c->host + coll_window_bank(half)) * sizeof(uint32_t);
	struct coll_put p = {
		.buf = told,
		.len = sizeof(uint32_t),
		.desc = c->shm_mem.desc,
		.peer = b->from,
		.silent = true,
		.to = {c->peer[b->from].shm.addr + at, c->peer[b->from].shm.key},
	};

	if (seen == value || !all_left(c, half) ||
	    !atomic_compare_exchange_strong(told, &seen, value))
		return 0;
	return coll_put(c, &p);
}

/* At the beginning of a half: what we have sent from its slots must be through. */
static int begin_half(struct bcast *b, uint32_t part)
{
	struct coll_comm *c = b->c;
	uint32_t half = coll_window_half(LEN, part);
	atomic_uint *sending = &c->sending[coll_window_bank(half)];
	struct coll_wait w;
	int ret = 0;

	if (part % LEN)
		return 0;
	coll_wait_for_writes(c, &w);
	while (!ret && atomic_load_explicit(sending, memory_order_acquire))
		ret = coll_wait(c, &w);
	if (!ret && !coll_window_left(LEN, half, atomic_load(parts_left(c, c->shm.me))))
		coll_shm_set(&c->shm, parts_left(c, c->shm.me), part - LEN);
	return ret;
}

/* ---- sending ---- */

static int send_part(struct bcast *b, uint32_t part, uint32_t host, size_t len)
{
	struct coll_comm *c = b->c;
	uint32_t to = coll_master(c, host);
	uint64_t at = slot_offset(c, host, part) + ALIGN - sizeof(struct head);
	struct coll_put p = {
		.buf = slot_head(c, part),
		.len = sizeof(struct head) + len,
		.desc = c->shm_mem.desc,
		.peer = to,
		.kind = COLL_PART,
		.call = part,
		.to = {c->peer[to].shm.addr + at, c->peer[to].shm.key},
		.group = &c->sending[coll_window_bank(coll_window_half(LEN, part))],
	};

	return coll_put(c, &p);
}

/* All ranks of a host have to leave a slot before it is written to. */
static bool has_no_room(const void *arg, uint32_t rank)
{
	const struct bcast *b = arg;

	for (uint32_t i = 0; i < b->n_todo; i++)
		if (b->todo[i] == b->c->peer[rank].host)
			return true;
	return false;
}

/* To those who have room first. */
static int pass_on(struct bcast *b, uint32_t part, size_t len)
{
	uint32_t half = coll_window_half(LEN, part), before;
	struct coll_comm *c = b->c;
	struct coll_wait w;
	int ret = 0;

	b->n_todo = b->n_to;
	memcpy(b->todo, b->to, b->n_to * sizeof(*b->to));
	coll_wait_begin(c, &w, COLL_FOR_NET | COLL_FOR_SHM);
	w.missing = has_no_room;
	w.arg = b;
	while (b->n_todo && !ret) {
		before = b->n_todo;
		b->n_todo = 0;
		for (uint32_t i = 0; i < before && !ret; i++) {
			uint32_t host = b->todo[i];

			if (coll_shm_is(flag_of(c, host, half), coll_window_value(half)))
				ret = send_part(b, part, host, len);
			else
				b->todo[b->n_todo++] = host;
		}
		if (b->n_todo == before && !ret)
			ret = coll_wait(c, &w);
	}
	return ret;
}

static int root_part(struct bcast *b, uint32_t part, size_t at, size_t len)
{
	struct coll_comm *c = b->c;
	struct head h = {.number = part + 1, .len = (uint32_t)len};
	struct coll_wait w;
	int ret = 0;

	coll_wait_begin(c, &w, COLL_FOR_SHM);
	while (!ret && !all_left(c, coll_window_half(LEN, part)))
		ret = coll_wait(c, &w);
	if (ret)
		return ret;
	memcpy(slot_data(c, part), b->whole + at, len);
	if (b->n_to)
		h.sum = coll_sum(h.number, slot_data(c, part), len);
	memcpy(slot_head(c, part), &h, sizeof(h));
	coll_shm_set(&c->shm, there(c, part), h.number);
	return pass_on(b, part, len);
}

/* ---- receiving ---- */

/* Whether all of a part is in its slot, whoever has been told. */
static bool complete(const struct coll_comm *c, uint32_t part, size_t len)
{
	struct head h;

	memcpy(&h, slot_head(c, part), sizeof(h));
	return h.number == part + 1 && h.len == len &&
	       h.sum == coll_sum(h.number, slot_data(c, part), len);
}

/* The master's: the word of the write, so that none is left when it has gone. Words of two parts
 * may change places, so it says nothing of which has come. */
static bool take_word(struct bcast *b, uint32_t part)
{
	struct coll_comm *c = b->c;

	if (!coll_arrived(c, part, COLL_PART, b->from))
		return false;
	coll_consume(c, part, COLL_PART, b->from);
	return true;
}

static bool writes_to_us(const void *arg, uint32_t rank)
{
	const struct bcast *b = arg;

	return rank == b->from;
}

static int wait_part(struct bcast *b, uint32_t part, size_t len)
{
	struct coll_comm *c = b->c;
	bool away = b->from != COLL_NONE, master = away && coll_is_master(c), word = !master;
	struct coll_wait w;
	int ret = 0;

	if (master)
		atomic_store(master_in(c), part + 1);
	coll_wait_begin(c, &w, COLL_FOR_SHM | (away ? COLL_FOR_NET : 0));
	w.missing = writes_to_us;
	w.arg = b;
	for (;;) {
		bool here = coll_shm_is(there(c, part), part + 1);

		if (away)
			ret = tell(b, coll_window_half(LEN, part));
		if (ret)
			return ret;
		word = word || take_word(b, part);
		if (!here && away && (master ? word : true) && complete(c, part, len)) {
			coll_shm_set(&c->shm, there(c, part), part + 1);
			here = true;
		}
		if (here && word)
			return 0;
		if (away && !master)
			w.what = coll_shm_is(master_in(c), part + 1) ? COLL_FOR_SHM
								     : COLL_FOR_SHM | COLL_FOR_FAR;
		/* A write of ours that says that we are ready has to get through. */
		if (atomic_load_explicit(&c->pending, memory_order_acquire))
			w.what |= COLL_FOR_NET;
		ret = coll_wait(c, &w);
		if (ret)
			return ret;
	}
}

static int other_part(struct bcast *b, uint32_t part, size_t at, size_t len)
{
	int ret = wait_part(b, part, len);

	if (!ret && b->n_to)
		ret = pass_on(b, part, len);
	if (!ret)
		memcpy(b->whole + at, slot_data(b->c, part), len);
	return ret;
}

/* ---- all of it ---- */

/* Who writes to this host, and to whom we do. */
static void roles(struct bcast *b, bool tree)
{
	struct coll_comm *c = b->c;
	const struct coll_tree *t = &c->plan->tree;
	bool writes = c->rank == b->root;
	uint32_t up;

	b->n_to = 0;
	b->from = COLL_NONE;
	if (c->host != b->root_host) {
		up = tree ? coll_tree_parent(t, b->root_host, c->host) : b->root_host;
		b->from = up == b->root_host ? b->root : coll_master(c, up);
		writes = tree && coll_is_master(c);
	}
	for (uint32_t i = 1; writes && i < c->hosts; i++) {
		uint32_t h = tree ? coll_tree_child(t, b->root_host, c->host, i - 1)
				  : (c->host + i) % c->hosts;

		if (h == COLL_NONE)
			break;
		b->to[b->n_to++] = h;
	}
}

static int parts(struct bcast *b)
{
	struct coll_comm *c = b->c;
	int ret = 0;

	for (size_t at = 0, n; at < b->bytes && !ret; at += n) {
		uint32_t part = c->parts++;

		n = b->bytes - at < PART ? b->bytes - at : PART;
		ret = begin_half(b, part);
		if (!ret)
			ret = c->rank == b->root ? root_part(b, part, at, n)
						 : other_part(b, part, at, n);
		/* Who sends from a slot has left it only when that is through. */
		if (!ret && c->rank != b->root && !b->n_to)
			coll_shm_set(&c->shm, parts_left(c, c->shm.me), c->parts);
	}
	if (!ret)
		ret = coll_flush(c);
	if (!ret)
		coll_shm_set(&c->shm, parts_left(c, c->shm.me), c->parts);
	return ret;
}

static int bcast(void *arg, enum coll_variant v)
{
	struct bcast *b = arg;
	const struct coll_bcast_args *a = b->args;
	bool root = b->c->rank == b->root;
	int ret = 0;

	b->whole = a->buf;
	if (!b->type.plain) {
		struct coll_scratch *s = coll_scratch(b->c, !root, b->bytes);

		if (!s)
			return -ENOMEM;
		b->whole = s->at;
		if (root)
			ret = coll_type_pack(&b->type, a->buf, a->count, b->whole);
	}
	roles(b, v == COLL_TREE);
	if (!ret)
		ret = parts(b);
	if (!ret && !root && !b->type.plain)
		ret = coll_type_unpack(&b->type, b->whole, a->buf, a->count);
	return ret;
}

static int by_mpi(const void *arg)
{
	const struct coll_bcast_args *a = arg;

	return a->mpi(a);
}

static bool wrong(const void *arg, int size)
{
	const struct coll_bcast_args *a = arg;

	return a->count < 0 || a->root < 0 || a->root >= size;
}

bool coll_bcast(const struct coll_bcast_args *args, int *ret)
{
	struct coll_comm *c = coll_comm_of(args->comm, wrong, args);
	struct bcast b = {.c = c, .args = args};
	struct coll_job job = {
		.op = COLL_BCAST,
		.loose = true,
		.ours = bcast,
		.ours_arg = &b,
		.mpi = by_mpi,
		.mpi_arg = args,
	};

	if (!c)
		return coll_comm_early(args->comm, by_mpi, args, ret);
	if (c->hosts > COLL_MAX_HOSTS || wrong(args, (int)c->size) ||
	    coll_type_of(args->type, &b.type))
		return false;
	/* As much on every rank, whatever the types look like. */
	b.bytes = (size_t)args->count * b.type.size;
	if (!b.bytes || b.bytes > COLL_BLOCK_MAX)
		return coll_plan_leave(c, args->comm, &job, ret);
	/* Wrong on this rank only, and the MPI says so without the others. */
	if (coll_type_nowhere(&b.type, args->buf, b.bytes))
		return false;
	b.root = (uint32_t)args->root;
	b.root_host = c->peer[b.root].host;
	job.bytes = job.own = b.bytes;
	if (b.bytes <= AUTO_MAX)
		job.can = 1u << COLL_DIRECT | 1u << COLL_TREE;
	return coll_plan_run(c, args->comm, &job, ret);
}
