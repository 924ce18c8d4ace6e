#include "coll_here.h"

#define SLOT_MAX (16u << 10)
#define ROOM_MAX (4u << 20)
#define ALIGN    64u

size_t coll_vector_slot(uint32_t ranks, uint32_t hosts)
{
	size_t slot = ROOM_MAX / 2 / ((size_t)ranks + hosts) / ALIGN * ALIGN;

	if (slot > SLOT_MAX)
		return SLOT_MAX;
	return slot < ALIGN ? ALIGN : slot;
}

size_t coll_vector_room(uint32_t ranks, uint32_t hosts)
{
	return 2 * ((size_t)ranks + hosts) * coll_vector_slot(ranks, hosts);
}

uint64_t coll_vector_offset(const struct coll_comm *c, uint32_t host, uint32_t call, uint32_t index)
{
	uint64_t at = (uint64_t)coll_bank(call) * (c->size + c->hosts) + index;

	return coll_vectors_at(c, host) + at * c->vector;
}

static _Atomic uint32_t *word_of(const struct coll_comm *c, uint32_t call, uint32_t rank,
				 uint32_t word)
{
	return coll_shm_word(&c->shm, rank, word + coll_bank(call));
}

bool coll_here_arrive(struct coll_comm *c, uint32_t call, coll_join *join, void *arg)
{
	uint32_t left = c->shm.me, right;

	for (uint32_t step = 1; step < c->shm.ranks; step *= 2) {
		_Atomic uint32_t *met;

		right = left | step;
		left &= ~step;
		if (right >= c->shm.ranks)
			continue;
		/* Each rank but the first is the right one of one pair only. */
		met = word_of(c, call, right, COLL_WORD_MET);
		if (!atomic_fetch_add_explicit(met, 1, memory_order_acq_rel))
			return false;
		atomic_store_explicit(met, 0, memory_order_relaxed);
		if (join)
			join(arg, left, right);
	}
	return true;
}

/* In units of 16 ns: the numbers go round every minute, so only differences count. */
void coll_here_came(struct coll_comm *c, uint32_t number, uint64_t now)
{
	atomic_store_explicit(word_of(c, number, c->shm.me, COLL_WORD_CAME), (uint32_t)(now >> 4),
			      memory_order_release);
}

struct coll_arrivals coll_here_arrivals(const struct coll_comm *c, uint32_t number, uint64_t now)
{
	uint32_t last = UINT32_MAX;
	double sum = 0;

	for (uint32_t i = 0; i < c->shm.ranks; i++) {
		uint32_t came = atomic_load_explicit(word_of(c, number, i, COLL_WORD_CAME),
						     memory_order_acquire);
		uint32_t ago = (uint32_t)(now >> 4) - came;

		sum += ago;
		last = ago < last ? ago : last;
	}
	return (struct coll_arrivals){.since = 16.0 * last,
				      .spread = 16.0 * (sum / c->shm.ranks - last)};
}

void coll_here_set(struct coll_comm *c, uint32_t call, uint32_t word)
{
	coll_shm_set(&c->shm, word_of(c, call, 0, word), call);
}

int coll_here_wait(struct coll_comm *c, uint32_t call, uint32_t word)
{
	_Atomic uint32_t *flag = word_of(c, call, 0, word);
	struct coll_wait w;
	int ret = 0;

	coll_wait_begin(c, &w, COLL_FOR_SHM);
	while (!coll_shm_is(flag, call) && !ret)
		ret = coll_wait(c, &w);
	return ret;
}

void coll_host_set(struct coll_comm *c, uint32_t call, uint32_t host)
{
	coll_shm_store(coll_shm_done(&c->shm, coll_bank(call), host), call);
	for (uint32_t h = 0; h < c->hosts; h++)
		if (!coll_shm_is_by_now(coll_shm_done(&c->shm, coll_bank(call), h), call))
			return;
	coll_shm_event(&c->shm);
}

bool coll_there_came(struct coll_comm *c, uint32_t call, uint32_t kind, uint32_t host)
{
	for (uint32_t i = c->first[host]; i < c->first[host + 1]; i++) {
		if (!coll_arrived(c, call, kind, c->by_host[i]))
			continue;
		coll_consume(c, call, kind, c->by_host[i]);
		return true;
	}
	return false;
}

static bool is_it(const void *arg, uint32_t rank)
{
	return rank == *(const uint32_t *)arg;
}

int coll_there_wait(struct coll_comm *c, uint32_t call, uint32_t kind, uint32_t host)
{
	uint32_t src = coll_master(c, host);
	struct coll_wait w;
	int ret = 0;

	coll_wait_begin(c, &w, COLL_FOR_NET);
	w.missing = is_it;
	w.arg = &src;
	while (!coll_arrived(c, call, kind, src) && !ret)
		ret = coll_wait(c, &w);
	if (!ret)
		coll_consume(c, call, kind, src);
	return ret;
}
