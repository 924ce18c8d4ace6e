#include "coll_bank.h"

#define CALL_SHIFT COLL_KIND_BITS
#define COMM_SHIFT (CALL_SHIFT + COLL_CALL_BITS)
#define RANK_SHIFT (COMM_SHIFT + COLL_COMM_BITS)
#define MASK(bits) ((1u << (bits)) - 1)

_Static_assert(RANK_SHIFT + COLL_RANK_BITS == 32, "a word has 32 bits");

uint32_t coll_word_pack(const struct coll_word *w)
{
	return (w->kind & MASK(COLL_KIND_BITS)) | (w->call & MASK(COLL_CALL_BITS)) << CALL_SHIFT |
	       (w->comm & MASK(COLL_COMM_BITS)) << COMM_SHIFT | w->src << RANK_SHIFT;
}

struct coll_word coll_word_unpack(uint32_t word)
{
	return (struct coll_word){
		.kind = word & MASK(COLL_KIND_BITS),
		.call = word >> CALL_SHIFT & MASK(COLL_CALL_BITS),
		.comm = word >> COMM_SHIFT & MASK(COLL_COMM_BITS),
		.src = word >> RANK_SHIFT,
	};
}
