/* Call numbers, banks, and the word that says what has arrived. Pure.
 *
 * Every call of a communicator has a number, the same on every rank, and what is received in it
 * goes to bank number & 1. Two banks are enough without acknowledgements as long as whoever has
 * finished a call has heard, by way of others if need be, from everybody in it: then everybody has
 * entered that call, has left the one before, and has read what the other bank held.
 *
 * Data may be placed out of order, so a byte of it proves nothing. What does is the 32-bit word
 * that comes with a write when all of it is there: what kind of thing it is, in which call (mod 4),
 * of which communicator, from which rank. The communicator's number is the receiver's own, so no
 * two can ever be mixed up, and ranks need not agree on one. The word comes from the network: what
 * it names has to be looked up, never trusted.
 */
#ifndef WEFT_COLL_BANK_H
#define WEFT_COLL_BANK_H

#include <stdbool.h>
#include <stdint.h>

#define COLL_KIND_BITS 4
#define COLL_CALL_BITS 2
#define COLL_COMM_BITS 10
#define COLL_RANK_BITS 16

#define COLL_MAX_COMMS (1u << COLL_COMM_BITS)
#define COLL_MAX_RANKS (1u << COLL_RANK_BITS)

enum coll_kind {
	COLL_DATA,   /* the data itself, in the sender's slot of the bank or where it was told */
	COLL_ADVERT, /* where the sender's data shall go, in the sender's slot */
	COLL_BLOCK,  /* a host's data, in the shared memory of another */
	COLL_ROUND,  /* COLL_ROUND + r: round r of an operation that has rounds */
	COLL_KINDS = 1 << COLL_KIND_BITS,
	COLL_PART = COLL_KINDS - 2, /* of a broadcast; its number is that of the call */
	/* The sender has given the communicator up, in whatever call. */
	COLL_BROKEN = COLL_KINDS - 1,
};

struct coll_word {
	uint32_t kind, call, comm, src;
};

static inline unsigned int coll_bank(uint32_t call)
{
	return call & 1;
}

uint32_t coll_word_pack(const struct coll_word *w);
struct coll_word coll_word_unpack(uint32_t word);

#endif
