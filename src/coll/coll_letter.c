#include "coll_letter.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>

struct letter {
	struct coll_tx tx;
	uint32_t id, tag;
	uint64_t serial;
	coll_answered answered;
};

static struct letter *letter_to(const struct coll_comm *c, uint32_t rank,
				void (*done)(struct coll_tx *tx, int err))
{
	struct letter *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->tx.done = done;
	l->tx.peer = rank;
	l->id = c->id;
	l->serial = c->serial;
	return l;
}

/* ---- asking ---- */

/* By whoever makes progress; communicators do not end meanwhile. */
static void asked(struct coll_tx *tx, int err)
{
	struct letter *l = (struct letter *)tx;
	uint32_t at = l->id;
	struct coll_comm *c = coll_comm_next(&at);

	if (c && c->serial == l->serial)
		l->answered(c, tx->peer, l->tag, err);
	free(l);
}

int coll_letter_ask(struct coll_comm *c, uint32_t rank, uint32_t tag, coll_answered answered)
{
	const struct coll_peer *p = &c->peer[rank];
	struct coll_to to = {p->addr, p->ping.addr, p->ping.key};
	struct letter *l = letter_to(c, rank, asked);
	int ret;

	if (!l)
		return -ENOMEM;
	l->tag = tag;
	l->answered = answered;
	ret = coll_net_ping(&l->tx, &to);
	if (ret)
		free(l);
	return ret;
}

/* ---- telling ---- */

static atomic_uint telling; /* on their way */

static void told(struct coll_tx *tx, int err)
{
	(void)err;
	free(tx);
	atomic_fetch_sub(&telling, 1);
}

/* Returns 0 or -errno. */
static int tell(struct coll_comm *c, uint32_t rank)
{
	const struct coll_peer *p = &c->peer[rank];
	struct coll_word w = {COLL_BROKEN, 0, p->comm, c->rank};
	struct coll_to to = {p->addr, p->mem.addr + coll_end_at(c), p->mem.key};
	struct letter *l = letter_to(c, rank, told);
	void *desc;
	const void *word = coll_net_word(&desc);
	int ret;

	if (!l)
		return -ENOMEM;
	atomic_fetch_add(&telling, 1);
	ret = coll_net_write(&l->tx, word, sizeof(uint64_t), desc, &to, coll_word_pack(&w));
	if (ret)
		told(&l->tx, ret);
	return ret;
}

/* Returns whether there is time for more. */
static bool make_progress(uint64_t until)
{
	if (util_now_ns() >= until)
		return false;
	if (!coll_net_progress())
		sched_yield();
	return true;
}

void coll_letter_broken(struct coll_comm *c, uint64_t ns)
{
	uint64_t until = util_now_ns() + ns;

	if (coll_shm_break(&c->shm) || !c->net)
		return;
	for (uint32_t i = 0; i < c->size; i++)
		if (c->peer[i].host != c->host && !atomic_load(&c->peer[i].dead))
			while (tell(c, i) == -EAGAIN && make_progress(until))
				;
	/* Some providers move it only while we are here. */
	while (atomic_load(&telling) && make_progress(until))
		;
}
