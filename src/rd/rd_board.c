/* A slot of the ring is NULL (never sent), a record, or one of two marks: acknowledged, or
 * taken back after it had been sent. The latter may still be acknowledged, because its first
 * transmission may arrive. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rd_board_impl.h"

static struct rd_sent mark_acked, mark_recalled;
#define ACKED    (&mark_acked)
#define RECALLED (&mark_recalled)

/* ---- ring ------------------------------------------------------------------------------------ */

static bool is_record(const struct rd_sent *s)
{
	return s && s != ACKED && s != RECALLED;
}

static struct rd_sent **slot_of(struct rd_board *b, uint32_t psn)
{
	return &(b->ring ? b->ring : b->few)[psn & (b->cap - 1)];
}

static int ring_grow(struct rd_board *b, uint32_t need)
{
	uint32_t cap = b->cap < 64 ? 64 : b->cap;
	struct rd_sent **ring;

	while (cap < need)
		cap *= 2;
	ring = calloc(cap, sizeof(struct rd_sent *));
	if (!ring)
		return -ENOMEM;
	for (uint32_t psn = b->una; psn != b->high; psn++)
		ring[psn & (cap - 1)] = *slot_of(b, psn);
	free(b->ring);
	memset(b->few, 0, sizeof(b->few));
	b->ring = ring;
	b->cap = cap;
	return 0;
}

static void ring_shrink(struct rd_board *b)
{
	free(b->ring);
	b->ring = NULL;
	b->cap = RD_BOARD_FEW;
}

void rd_board_init(struct rd_board *b, struct rd_pool *pool, uint32_t first)
{
	*b = (struct rd_board){.pool = pool, .una = first, .high = first, .cap = RD_BOARD_FEW};
}

bool rd_board_empty(const struct rd_board *b)
{
	return !b->n_out;
}

bool rd_board_fits(const struct rd_board *b, uint32_t psn)
{
	return psn - b->una < RD_WINDOW;
}

bool rd_board_acked(const struct rd_board *b, uint32_t psn)
{
	if (rd_seq_before(psn, b->una))
		return true;
	if (!rd_seq_before(psn, b->high))
		return false;
	return *slot_of((struct rd_board *)b, psn) == ACKED;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void send_again(struct rd_sent *s, struct rd_path *p, uint32_t bytes, uint64_t now)
{
	rd_path_detach(s);
	if (s->times < UINT16_MAX)
		s->times++;
	if (s->path != p)
		s->blamed = false; /* by others, of whom this path knows nothing */
	rd_path_transmit(p, s, bytes, now);
}

int rd_board_send(struct rd_board *b, struct rd_path *p, uint32_t psn, uint32_t bytes, uint64_t now)
{
	uint32_t ahead = psn - b->una;
	bool beyond = !rd_seq_before(psn, b->high);
	struct rd_sent **slot, *s;

	if (rd_board_acked(b, psn))
		return -EALREADY;
	if (ahead >= RD_WINDOW)
		return -ENOSPC;
	if (ahead >= b->cap && ring_grow(b, ahead + 1))
		return -ENOMEM;
	slot = slot_of(b, psn);
	if (is_record(*slot)) {
		send_again(*slot, p, bytes, now);
		return 0;
	}
	s = rd_pool_get(b->pool);
	if (!s)
		return -ENOMEM;
	s->board = b;
	s->psn = psn;
	/* What was taken back may be acknowledged for an earlier transmission. */
	s->times = *slot == RECALLED ? 2 : 1;
	s->blamed = false;
	if (beyond) {
		b->holes += psn - b->high;
		b->high = psn + 1;
	} else if (!*slot) {
		b->holes--;
	}
	*slot = s;
	b->n_out++;
	rd_path_transmit(p, s, bytes, now);
	return 0;
}

/* ---- acknowledgements ------------------------------------------------------------------------ */

/* Returns whether the slot was not acknowledged before. `left` is what is written into it. */
static bool take(struct rd_board *b, struct rd_sent **slot, struct rd_sent *left, uint64_t now)
{
	struct rd_sent *s = *slot;

	*slot = left;
	if (s == ACKED)
		return false;
	if (s == RECALLED)
		return true;
	rd_path_got(s->path, s, now);
	list_del(&s->link);
	if (s->lost)
		b->n_lost--;
	b->n_out--;
	rd_pool_put(b->pool, s);
	return true;
}

/* Whether any of [from, to), which are between una and high, was never sent. */
static bool has_hole(struct rd_board *b, uint32_t from, uint32_t to)
{
	if (!b->holes)
		return false;
	for (; from != to; from++) {
		if (!*slot_of(b, from))
			return true;
	}
	return false;
}

/* Whether every number of one word of the bitmap was sent. */
static bool word_ok(struct rd_board *b, uint32_t first, uint64_t bits)
{
	for (; bits; bits &= bits - 1) {
		uint32_t psn = first + (uint32_t)__builtin_ctzll(bits);

		if (rd_seq_before(psn, b->una))
			continue;
		if (!rd_seq_before(psn, b->high) || (b->holes && !*slot_of(b, psn)))
			return false;
	}
	return true;
}

static bool ack_ok(struct rd_board *b, uint32_t next, const uint64_t *sack, unsigned int n)
{
	int32_t ahead = rd_seq_diff(next, b->una);

	if (ahead > rd_seq_diff(b->high, b->una))
		return false;
	if (ahead > 0 && has_hole(b, b->una, next))
		return false;
	for (unsigned int i = 0; i < n; i++) {
		uint32_t first = next + 1 + 64 * i;

		/* Most words lie well below what was sent. */
		if (!b->holes && rd_seq_before(first + 63, b->high))
			continue;
		if (!word_ok(b, first, sack[i]))
			return false;
	}
	return true;
}

struct teller {
	void (*fn)(void *arg, uint32_t psn);
	void *arg;
	uint64_t now;
	int n;
};

static void tell(struct teller *t, uint32_t psn)
{
	t->n++;
	if (t->fn)
		t->fn(t->arg, psn);
}

static void ack_before(struct rd_board *b, uint32_t next, struct teller *t)
{
	for (int32_t n = rd_seq_diff(next, b->una); n > 0; n--) {
		uint32_t psn = b->una++;

		if (take(b, slot_of(b, psn), NULL, t->now))
			tell(t, psn);
	}
}

static void ack_word(struct rd_board *b, uint32_t first, uint64_t bits, struct teller *t)
{
	for (; bits; bits &= bits - 1) {
		uint32_t psn = first + (uint32_t)__builtin_ctzll(bits);

		if (!rd_seq_before(psn, b->una) && take(b, slot_of(b, psn), ACKED, t->now))
			tell(t, psn);
	}
}

int rd_board_ack(struct rd_board *b, uint32_t next, const uint64_t *sack, unsigned int n,
		 uint64_t now, void (*fn)(void *arg, uint32_t psn), void *arg)
{
	struct teller t = {.fn = fn, .arg = arg, .now = now};

	if (!ack_ok(b, next, sack, n))
		return -EPROTO;
	ack_before(b, next, &t);
	for (unsigned int i = 0; i < n; i++)
		ack_word(b, next + 1 + 64 * i, sack[i], &t);
	while (b->una != b->high && *slot_of(b, b->una) == ACKED)
		*slot_of(b, b->una++) = NULL;
	if (b->una == b->high && b->ring)
		ring_shrink(b);
	return t.n;
}

/* ---- taking back ----------------------------------------------------------------------------- */

static void drop(struct rd_board *b, struct rd_sent **slot, struct rd_sent *left)
{
	struct rd_sent *s = *slot;

	rd_path_detach(s);
	rd_pool_put(b->pool, s);
	b->n_out--;
	*slot = left;
}

void rd_board_recall(struct rd_board *b, uint32_t first, uint32_t n)
{
	int64_t from = rd_seq_diff(first, b->una), to = from + n;

	if (from < 0)
		from = 0;
	if (to > b->high - b->una)
		to = b->high - b->una;
	for (; from < to; from++) {
		struct rd_sent **slot = slot_of(b, b->una + (uint32_t)from);

		if (is_record(*slot))
			drop(b, slot, RECALLED);
	}
}

void rd_board_free(struct rd_board *b)
{
	for (uint32_t psn = b->una; psn != b->high; psn++) {
		struct rd_sent **slot = slot_of(b, psn);

		if (is_record(*slot))
			drop(b, slot, NULL);
		*slot = NULL;
	}
	ring_shrink(b);
	rd_board_init(b, b->pool, b->high);
}
