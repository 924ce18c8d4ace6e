/* A ring of records in memory that two processes share: one writes, one reads.
 *
 * A record is a header word and up to a quarter of the ring of payload, in one piece:
 * one that would run over the end starts anew at the beginning, and a header that says
 * *skip* stands where it would have been. Records begin at cache lines, so the payload
 * is 8 bytes behind one.
 *
 * There is no index that says how far the writer has come. The reader looks at the
 * header where the next record will be: 0 means "not yet", anything else is a record
 * that is complete. A record of up to 56 bytes therefore crosses between two cores as
 * one cache line, header and all; with an index it would be two, one after the other.
 * The price is that the word behind a record must be 0 before the record is shown: the
 * writer clears it, one record ahead of time where it can guess the place, because a
 * store to one more line just before the header would delay the header (half a round
 * trip takes 98 ns then, instead of 74).
 *
 * The one shared index is `head`, how far the reader has come. The writer remembers
 * what it last read there and looks again only when that is not enough, about once
 * per lap. Everything else that either side knows is in its private memory.
 *
 * **The other side is not trusted.** It can write anything anywhere in the shared
 * memory at any time. Positions come from private memory only; a length is read once,
 * checked, and kept; what was found broken stays broken (-EPROTO). Payload that was
 * peeked at can still change under the reader's eyes: who takes decisions by it
 * copies it first, then checks, then acts.
 *
 * Memory orders, in full:
 *   - commit stores the header with *release*, peek loads it with *acquire*: payload and
 *     the cleared word behind it are there when the header is.
 *   - release stores head with *release*, reserve loads it with *acquire*: all loads of
 *     the reader are done before the writer overwrites what they read.
 *   - Nothing here orders a commit before a *later load* of anything, nor a failed peek
 *     or reserve after an *earlier store*. A doorbell needs both ("I have committed; does
 *     he sleep?" against "I say that I sleep; is there anything?") and must bring the
 *     order itself: shm_link.h does, with one read-modify-write of the flag on each side.
 *
 * One thread at a time on each side; the two sides need no lock between them.
 */
#ifndef WEFT_SHM_RING_H
#define WEFT_SHM_RING_H

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* Records begin at multiples of this. Measured against 8 (tests/shm/bench_shm.c, two
 * cores of a Zen 4, half a round trip): 71 against 81 ns for 8 bytes, 70 against 72 for 40,
 * 127 against 114 for 100. One way, 8 packs four records of 8 bytes into a line: 16
 * against 9 ns each; 27 against 22 for 40 bytes. Who waits for a message waits for the
 * former, and what makes one takes longer than the latter. */
#ifndef SHM_RING_ALIGN
#define SHM_RING_ALIGN 64
#endif

/* Sizes of a ring: a power of two within these. Small messages do not care. Long ones do;
 * records of 64 KB, where a core has 1 MB of L2: 5 GB/s through a ring of 256 KB, 10 through
 * 1 MB, mostly 32 but at times 11 through 4 MB, 10 through 16 MB. Presumably a line that
 * has gone from the writer's L2 to the L3 is cheaper to fetch than one that has not, or that
 * has gone farther. A ring uses all of its memory, sooner or later, however little is in
 * it. */
#define SHM_RING_MIN (UINT32_C(1) << 12)
#define SHM_RING_MAX (UINT32_C(1) << 28)

#define SHM_RING_HEADER 8

typedef _Atomic(uint64_t) shm_word;

/* The writing side. Private memory. */
struct shm_ring_tx {
	uint8_t *data;
	shm_word *head; /* shared, written by the reader */
	uint32_t size;
	uint32_t reserved; /* payload bytes of the open reservation */
	uint64_t pos;      /* where the next record starts; counts on for ever */
	uint64_t seen;     /* head, as last read */
	uint64_t cleared;  /* a header ahead that is known to be 0; none if below pos */
	bool full;         /* the last reserve found no room */
	int err;
};

/* The reading side. Private memory. */
struct shm_ring_rx {
	uint8_t *data;
	shm_word *head; /* shared, written by us */
	uint32_t size;
	uint32_t len;  /* payload of the record at pos, when held */
	uint32_t held; /* bytes of the record that was peeked at; 0: none */
	uint64_t pos;
	int err;
};

/* Whether a ring can have that size. */
static inline bool shm_ring_size_ok(uint64_t size)
{
	return size >= SHM_RING_MIN && size <= SHM_RING_MAX && !(size & (size - 1));
}

/* Both need `size` bytes of data, aligned to SHM_RING_ALIGN, and a word for head, on a
 * cache line that nobody else writes; all of it zero before the first use. */
void shm_ring_tx_init(struct shm_ring_tx *tx, void *data, uint32_t size, shm_word *head);
void shm_ring_rx_init(struct shm_ring_rx *rx, void *data, uint32_t size, shm_word *head);

/* The longest payload. */
static inline uint32_t shm_ring_max(uint32_t size)
{
	return size / 4;
}

/* Room for a record of up to len bytes, or NULL: the ring is full (tx->full) or broken
 * (tx->err), or len is above shm_ring_max. A second reserve replaces the first, so a
 * reservation can be abandoned. */
void *shm_ring_reserve(struct shm_ring_tx *tx, uint32_t len);

/* The position of a byte of the open reservation, for the two below. */
static inline uint64_t shm_ring_place(const struct shm_ring_tx *tx, const void *p)
{
	return tx->pos + (uint64_t)((const uint8_t *)p - tx->data) - (tx->pos & (tx->size - 1));
}

/* What was committed is still in the memory, until it is written over (the reader can change it,
 * too): whether what is at that position outlasts a record of up to len bytes. */
bool shm_ring_lasts(const struct shm_ring_tx *tx, uint64_t at, uint32_t len);

static inline const void *shm_ring_old(const struct shm_ring_tx *tx, uint64_t at)
{
	return tx->data + (at & (tx->size - 1));
}

/* Shows the record to the reader. len is at most what was reserved. */
void shm_ring_commit(struct shm_ring_tx *tx, uint32_t len);

/* Out of line; use shm_ring_peek. */
int shm_ring_take(struct shm_ring_rx *rx, uint64_t header, const void **rec, uint32_t *len);

/* Where the header of the record at pos is. */
static inline shm_word *shm_ring_word(uint8_t *data, uint32_t size, uint64_t pos)
{
	return (shm_word *)(void *)(data + (pos & (size - 1)));
}

/* The oldest record: 1 with rec and len, 0 when there is none, -EPROTO when the ring is
 * broken. Peeking again gives the same record until it is released. */
static inline int shm_ring_peek(struct shm_ring_rx *rx, const void **rec, uint32_t *len)
{
	/* Acquire: the payload is read after the header that promises it. */
	uint64_t header = atomic_load_explicit(shm_ring_word(rx->data, rx->size, rx->pos),
					       memory_order_acquire);

	if (!header && !rx->held && !rx->err)
		return 0;
	return shm_ring_take(rx, header, rec, len);
}

/* Gives the record that was peeked at back to the writer. No effect without one. */
void shm_ring_release(struct shm_ring_rx *rx);

#endif
