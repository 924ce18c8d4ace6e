/* Which receive gets which message: the two queues of tag matching.
 *
 * A receive names a source, or MSG_ANY_SRC, and a tag of which it ignores some bits. It matches a
 * message if the source fits and the tags agree in all other bits. A message goes to the oldest
 * receive that matches it; a receive gets the oldest *unexpected* message that it matches, one
 * that came before any receive for it. Oldest means: posted or stored first.
 *
 * Programs post thousands of receives, and few kinds of them: MPI knows named or any source and
 * named or any tag. Each kind, a mask and "any source or not", is a *class*, with a hash table by
 * source and by the bits of the tag that the mask leaves. An arriving message looks once into each
 * class and takes the oldest of what it finds. A table by the whole tag would find nothing for
 * Open MPI, whose receives always ignore a bit or two. What is equal in source, tag and
 * mask forms a ring, of which only the eldest is in the table, so that neither receives of other
 * tags nor many of the same one cost anything. When all MSG_MATCH_CLASSES are in use, receives of
 * further kinds go into one plain list, which is searched from the front.
 *
 * Unexpected messages are in a list per source and in one of all; a search goes through one of
 * these, because it may come with any mask. There should be few.
 *
 * Receives and messages are the caller's: they are linked in, never copied or freed. Only the
 * tables are allocated; they grow with the number of different tags that are posted at a time,
 * and do not shrink. Not thread-safe: one lock above. No clock, no input, no output.
 */
#ifndef WEFT_MSG_MATCH_H
#define WEFT_MSG_MATCH_H

#include <stdbool.h>
#include <stdint.h>
#include "util_list.h"

#define MSG_ANY_SRC UINT32_MAX /* no peer has this number */

#define MSG_MATCH_CLASSES 8

/* A place in a table. All of one key are in a ring, in order; the eldest of them is in a bucket. */
struct msg_node {
	struct list_head ring;
	struct msg_node *next, **at; /* in the bucket; at is NULL if this is not the eldest */
	uint64_t tag;                /* without the bits that the class ignores */
	uint64_t seq;                /* order of posting, or of arrival */
	uint32_t src;
};

struct msg_table {
	struct msg_node **bucket; /* NULL as long as nothing was ever in it */
	uint32_t bits;            /* 2^bits buckets */
	uint32_t keys;            /* rings in it */
};

struct msg_class {
	struct list_head order; /* its receives, oldest first */
	uint64_t ignore;
	bool any;    /* source */
	bool hashed; /* false: the plain list, of any masks and sources */
	struct msg_table table;
};

/* A receive. The caller sets the first three, clears the rest once (all zero: not posted), and
 * changes none of it while the receive is posted. */
struct msg_recv {
	uint64_t tag, ignore;
	uint32_t src;
	/* private */
	uint32_t index; /* in its ring: the difference counts those between */
	struct list_head order;
	struct msg_node node;
	struct msg_class *class; /* NULL: not posted */
};

/* An unexpected message; the caller sets the first two. */
struct msg_unexp {
	uint64_t tag;
	uint32_t src;
	/* private */
	struct list_head all;
	struct msg_node node; /* with those of its source */
};

struct msg_match {
	struct msg_class class[MSG_MATCH_CLASSES + 1]; /* the last is the plain list */
	struct msg_table sources;                      /* unexpected messages by source */
	struct list_head all;                          /* unexpected messages, oldest first */
	uint64_t seq;
	uint32_t n_class; /* that were ever used */
};

/* Returns 0; nothing is allocated yet. A struct msg_match can not be moved in memory. */
int msg_match_init(struct msg_match *m);
/* Frees the tables. What is still posted or stored is forgotten and not touched: see
 * msg_match_drop_src for a way to get it all back. */
void msg_match_free(struct msg_match *m);

static inline bool msg_recv_matches(const struct msg_recv *r, uint32_t src, uint64_t tag)
{
	return (r->src == MSG_ANY_SRC || r->src == src) && !((r->tag ^ tag) & ~r->ignore);
}

/* ---- receives -------------------------------------------------------------------------------- */

/* Puts r at the end of the queue. Does not look for unexpected messages: that is msg_match_find,
 * before. 0, or -ENOMEM: not posted; only if it is the first of a kind. */
int msg_match_post(struct msg_match *m, struct msg_recv *r);
/* The oldest receive for such a message, taken off the queue; NULL: there is none. */
struct msg_recv *msg_match_take(struct msg_match *m, uint32_t src, uint64_t tag);
/* The same one, which stays. */
struct msg_recv *msg_match_peek(const struct msg_match *m, uint32_t src, uint64_t tag);
/* Takes a posted receive off the queue. Costs as much as there are receives of the same source,
 * tag and mask behind it, unless it is the first of them. */
void msg_match_cancel(struct msg_match *m, struct msg_recv *r);

static inline bool msg_recv_posted(const struct msg_recv *r)
{
	return r->class;
}

/* Of a posted receive with a named source: what is ahead of it in the queue. Receives are of the
 * same envelope if source and mask are equal, and the tags but for the ignored bits. */
struct msg_ahead {
	uint32_t same; /* of the same envelope; of no meaning unless clear */
	bool clear;    /* no other one ahead can match a message that this one matches. False also
			* if that would take long to find out, and for a receive of any source */
};
struct msg_ahead msg_match_ahead(const struct msg_match *m, const struct msg_recv *r);
/* The next posted receive behind r that is of the same envelope; NULL: r is the last. */
struct msg_recv *msg_match_behind(const struct msg_match *m, const struct msg_recv *r);

/* All that are posted. The function must leave the queue alone. */
void msg_match_each(const struct msg_match *m, void (*fn)(void *arg, const struct msg_recv *r),
		    void *arg);

/* ---- unexpected messages --------------------------------------------------------------------- */

/* The oldest message that a receive of this source (or MSG_ANY_SRC), tag and mask would get; it
 * stays. NULL: there is none. */
struct msg_unexp *msg_match_find(const struct msg_match *m, uint32_t src, uint64_t tag,
				 uint64_t ignore);
/* A message comes in, as the latest of its source and of all: 0, or -ENOMEM: not stored. Its
 * source is not MSG_ANY_SRC. */
int msg_match_store(struct msg_match *m, struct msg_unexp *u);
/* It goes: received or discarded. */
void msg_match_drop(struct msg_match *m, struct msg_unexp *u);

/* ---- a peer has died ------------------------------------------------------------------------- */

/* Takes off all receives that name src, and all unexpected messages from it, and then gives them
 * to the functions, oldest first, receives before messages. A function that is NULL: that kind
 * stays where it is. src is MSG_ANY_SRC: everything, whatever its source. The functions may free
 * what they get, and may post and store, but not cancel or drop what they are still to get. */
void msg_match_drop_src(struct msg_match *m, uint32_t src,
			void (*recv)(void *arg, struct msg_recv *r),
			void (*unexp)(void *arg, struct msg_unexp *u), void *arg);

#endif
