/* The bitmap is a ring: the number n has bit n mod cap. It spans the cap numbers after
 * `next`; the last of them shares its bit with `next`, which by definition is not there. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "rd_rx.h"

#define FEW 64

static uint64_t *rx_words(struct rd_rx *rx)
{
	return rx->many ? rx->many : &rx->few;
}

static const uint64_t *rx_words_const(const struct rd_rx *rx)
{
	return rx->many ? rx->many : &rx->few;
}

static uint64_t *rx_word(uint64_t *words, uint32_t cap, uint32_t psn)
{
	return &words[(psn & (cap - 1)) / 64];
}

static uint64_t rx_bit(uint32_t psn)
{
	return UINT64_C(1) << (psn % 64);
}

/* The bits of 64 numbers from psn on. */
static uint64_t rx_get(const uint64_t *words, uint32_t cap, uint32_t psn)
{
	uint32_t shift = psn % 64;
	uint64_t low = words[(psn & (cap - 1)) / 64] >> shift;

	if (!shift)
		return low;
	return low | words[((psn + 64) & (cap - 1)) / 64] << (64 - shift);
}

void rd_rx_init(struct rd_rx *rx, uint32_t first)
{
	*rx = (struct rd_rx){.next = first, .high = first, .cap = FEW};
}

void rd_rx_free(struct rd_rx *rx)
{
	free(rx->many);
	rd_rx_init(rx, rx->next);
}

enum rd_seen rd_rx_look(const struct rd_rx *rx, uint32_t psn)
{
	int32_t ahead = rd_seq_diff(psn, rx->next);

	if (ahead < 0)
		return RD_OLD;
	if (ahead == 0)
		return RD_NEW;
	if (ahead > RD_WINDOW)
		return RD_FAR;
	if (!rd_seq_before(psn, rx->high))
		return RD_NEW;
	return rx_words_const(rx)[(psn & (rx->cap - 1)) / 64] & rx_bit(psn) ? RD_OLD : RD_NEW;
}

/* Makes the bitmap span at least `ahead` numbers. */
static int rx_grow(struct rd_rx *rx, uint32_t ahead)
{
	const uint64_t *old = rx_words_const(rx);
	uint32_t cap = rx->cap;
	uint64_t *many;

	while (cap < ahead)
		cap *= 2;
	many = calloc(cap / 64, sizeof(*many));
	if (!many)
		return -ENOMEM;
	for (uint32_t done = 0; done < rx->cap; done += 64) {
		uint32_t from = rx->next + 1 + done;
		uint64_t bits = rx_get(old, rx->cap, from);

		for (; bits; bits &= bits - 1) {
			uint32_t psn = from + (uint32_t)__builtin_ctzll(bits);

			*rx_word(many, cap, psn) |= rx_bit(psn);
		}
	}
	free(rx->many);
	rx->many = many;
	rx->few = 0;
	rx->cap = cap;
	return 0;
}

/* `next` has arrived: goes on to the first that has not. */
static void rx_advance(struct rd_rx *rx)
{
	uint64_t *words = rx_words(rx);

	rx->next++;
	while (rx->beyond) {
		uint64_t *word = rx_word(words, rx->cap, rx->next);
		uint32_t shift = rx->next % 64;
		uint64_t bits = *word >> shift;
		uint32_t ones = ~bits ? (uint32_t)__builtin_ctzll(~bits) : 64;

		if (!ones)
			return;
		*word &= ~((ones == 64 ? ~UINT64_C(0) : (UINT64_C(1) << ones) - 1) << shift);
		rx->next += ones;
		rx->beyond -= ones;
	}
	free(rx->many);
	rx->many = NULL;
	rx->cap = FEW;
	rx->high = rx->next;
}

int rd_rx_mark(struct rd_rx *rx, uint32_t psn)
{
	uint32_t ahead = psn - rx->next;

	if (!ahead) {
		rx_advance(rx);
		return 0;
	}
	if (rd_rx_look(rx, psn) != RD_NEW)
		return -EINVAL;
	if (ahead > rx->cap && rx_grow(rx, ahead))
		return -ENOMEM;
	*rx_word(rx_words(rx), rx->cap, psn) |= rx_bit(psn);
	rx->beyond++;
	if (!rd_seq_before(psn, rx->high))
		rx->high = psn + 1;
	return 0;
}

unsigned int rd_rx_sack(const struct rd_rx *rx, uint64_t *words, unsigned int max)
{
	const uint64_t *map = rx_words_const(rx);
	unsigned int n;

	if (!rx->beyond)
		return 0;
	n = (rx->high - rx->next - 1 + 63) / 64;
	if (n > max)
		n = max;
	for (unsigned int i = 0; i < n; i++)
		words[i] = rx_get(map, rx->cap, rx->next + 1 + 64 * i);
	return n;
}
