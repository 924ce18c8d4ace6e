#include "shm_ring.h"

#include <assert.h>
#include <stddef.h>

/* A header: 0 for nothing, length + 1 for a record, SKIP for "go on at the start". */
#define SKIP UINT64_MAX

static uint64_t record_bytes(uint32_t len)
{
	uint64_t bytes = SHM_RING_HEADER + (uint64_t)len;

	return (bytes + SHM_RING_ALIGN - 1) & ~(uint64_t)(SHM_RING_ALIGN - 1);
}

void shm_ring_tx_init(struct shm_ring_tx *tx, void *data, uint32_t size, shm_word *head)
{
	*tx = (struct shm_ring_tx){.data = data, .head = head, .size = size};
}

void shm_ring_rx_init(struct shm_ring_rx *rx, void *data, uint32_t size, shm_word *head)
{
	*rx = (struct shm_ring_rx){.data = data, .head = head, .size = size};
}

/* Whether everything below `end` can be written without touching what is unread. */
static bool room_to(struct shm_ring_tx *tx, uint64_t end)
{
	uint64_t head;

	if (end - tx->seen <= tx->size)
		return true;
	/* Acquire: what the reader did with the old records is over. */
	head = atomic_load_explicit(tx->head, memory_order_acquire);
	/* It only ever advances, and never past what was written. The differences wrap,
	 * so that one comparison refuses both directions. */
	if (head - tx->seen > tx->pos - tx->seen) {
		tx->err = -EPROTO;
		return false;
	}
	tx->seen = head;
	return end - head <= tx->size;
}

static void put(struct shm_ring_tx *tx, uint64_t pos, uint64_t header, memory_order order)
{
	atomic_store_explicit(shm_ring_word(tx->data, tx->size, pos), header, order);
}

/* Clears the header at pos, which the reader will look at next. Relaxed: the release
 * of the header in front of it is what shows it. */
static void clear(struct shm_ring_tx *tx, uint64_t pos)
{
	if (tx->cleared != pos)
		put(tx, pos, 0, memory_order_relaxed);
}

/* Leaves the rest of this lap unused. */
static void skip(struct shm_ring_tx *tx, uint64_t start)
{
	clear(tx, start);
	/* Release: the reader that goes to `start` finds it cleared. */
	put(tx, tx->pos, SKIP, memory_order_release);
	tx->pos = start;
}

/* Where a record of so many bytes would begin. */
static uint64_t start_of(const struct shm_ring_tx *tx, uint64_t bytes)
{
	uint64_t rest = tx->size - (tx->pos & (tx->size - 1));

	return bytes > rest ? tx->pos + rest : tx->pos;
}

bool shm_ring_lasts(const struct shm_ring_tx *tx, uint64_t at, uint32_t len)
{
	uint64_t need = record_bytes(len);

	/* A header is cleared as far ahead as another record of this length. */
	return at == UINT64_MAX || start_of(tx, need) + 2 * need + SHM_RING_HEADER - at <= tx->size;
}

void *shm_ring_reserve(struct shm_ring_tx *tx, uint32_t len)
{
	uint64_t need = record_bytes(len), start = start_of(tx, need);

	if (tx->err || len > shm_ring_max(tx->size))
		return NULL;
	/* The header behind the record is written, too. */
	tx->full = !room_to(tx, start + need + SHM_RING_HEADER);
	if (tx->full)
		return NULL;
	if (start != tx->pos)
		skip(tx, start);
	/* Payload may now be written over it, whatever is committed then. */
	if (tx->cleared < start + need)
		tx->cleared = 0;
	tx->reserved = len;
	return tx->data + (start & (tx->size - 1)) + SHM_RING_HEADER;
}

void shm_ring_commit(struct shm_ring_tx *tx, uint32_t len)
{
	uint64_t bytes = record_bytes(len), next = tx->pos + bytes, guess = next + bytes;

	assert(len <= tx->reserved);
	clear(tx, next);
	/* Release: payload and the cleared word come before the header. */
	put(tx, tx->pos, (uint64_t)len + 1, memory_order_release);
	tx->pos = next;
	tx->reserved = 0;
	/* The next record is often as long as this one. Clearing what is behind it now, when
	 * nobody waits, leaves only the record's own lines to be written then. */
	if (guess + SHM_RING_HEADER - tx->seen <= tx->size) {
		put(tx, guess, 0, memory_order_relaxed);
		tx->cleared = guess;
	}
}

static int broken(struct shm_ring_rx *rx)
{
	rx->held = 0;
	rx->err = -EPROTO;
	return rx->err;
}

/* Goes to the start of the next lap. At the start of a lap nothing is to be skipped: a
 * writer that says so would have us run in circles. */
static int skipped(struct shm_ring_rx *rx, uint64_t *header)
{
	uint64_t off = rx->pos & (rx->size - 1);

	if (off == 0)
		return broken(rx);
	rx->pos += rx->size - off;
	/* Acquire: as in shm_ring_peek. */
	*header = atomic_load_explicit(shm_ring_word(rx->data, rx->size, rx->pos),
				       memory_order_acquire);
	return 0;
}

int shm_ring_take(struct shm_ring_rx *rx, uint64_t header, const void **rec, uint32_t *len)
{
	if (rx->err)
		return rx->err;
	if (!rx->held) {
		if (header == SKIP && skipped(rx, &header))
			return rx->err;
		if (header == 0)
			return 0;
		if (header - 1 > shm_ring_max(rx->size))
			return broken(rx);
		rx->len = (uint32_t)(header - 1);
		rx->held = (uint32_t)record_bytes(rx->len);
		if (rx->held > rx->size - (rx->pos & (rx->size - 1)))
			return broken(rx);
	}
	*rec = rx->data + (rx->pos & (rx->size - 1)) + SHM_RING_HEADER;
	*len = rx->len;
	return 1;
}

void shm_ring_release(struct shm_ring_rx *rx)
{
	if (!rx->held)
		return;
	rx->pos += rx->held;
	rx->held = 0;
	/* Release: our loads of the payload are done before it is overwritten. */
	atomic_store_explicit(rx->head, rx->pos, memory_order_release);
}
