/* Which buffers an application sends from often (5.3.3 and 5.3.4 of the thesis).
 *
 * A table has a count for each buffer, known by the address at which it begins. From so many uses
 * on as its size is worth (msg_costs.h) it is *frequent*, to be registered and used directly; all
 * others are copied. Addresses are hashed by multiplication with the golden ratio, as those of
 * Linux's buffer cache, into as many chains as there are buffers: a look takes the same time
 * whatever their number.
 *
 * **Registrations get lost**: memory is unmapped, or the cache is too small for all of them. What a
 * registration costs was to be earned by further uses. So a buffer that has lost its own counts
 * from 0 again, and each time needs twice as many uses as before: one that is mapped anew for each
 * few messages is soon left alone. A longer use of a buffer may need another registration, and is
 * asked about as if there were none.
 *
 * **Adaptation.** A table that has as many buffers as chains, of which fewer than a fifth are
 * frequent, *stops*: no buffer is added. (A larger fraction, and it grows: chains stay short.)
 * The thesis leaves it at that. But then a program that never uses a buffer twice has to look for
 * each message, in vain, for ever. So when only one look in sixteen finds something, the table is
 * given up and *rests*: nobody looks, for many messages, each of which costs a decrement. Then it
 * begins anew. Each time that this was in vain the rest is twice as long, up to 16 million
 * messages.
 *
 * Memory: none at first, 40 KB for up to a thousand buffers, 2 MB at most, none while it rests.
 * Pure. Not thread-safe: an endpoint has one.
 */
#ifndef WEFT_MSG_REUSE_H
#define WEFT_MSG_REUSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "msg_costs.h"

#define MSG_REUSE_FIRST  4096  /* chains to begin with */
#define MSG_REUSE_MOST   65536 /* chains, and buffers */
#define MSG_REUSE_SHARE  20    /* percent that are to be frequent */
#define MSG_REUSE_WINDOW 256   /* looks after which a table that has stopped is judged, ... */
#define MSG_REUSE_HITS   16    /* ... of which so many have to find something */
#define MSG_REUSE_REST   (UINT32_C(1) << 16) /* messages; the first time */
#define MSG_REUSE_LONG   (UINT32_C(1) << 24) /* and at last */

enum msg_reuse_state {
	MSG_REUSE_OFF, /* there is no such table */
	MSG_REUSE_GROWS,
	MSG_REUSE_STOPPED,
	MSG_REUSE_RESTS,
};

enum msg_reuse_say {
	MSG_REUSE_COPY,
	MSG_REUSE_REGISTER, /* use it directly; there may be no registration yet */
	MSG_REUSE_DIRECT,   /* there was one, the last time */
};

struct msg_reuse_buf {
	uintptr_t addr;
	uint32_t len;  /* of the longest use */
	uint32_t uses; /* since it is known, or since its registration was lost */
	uint32_t next; /* in its chain */
	uint8_t lost;  /* registrations */
	bool frequent, kept;
};

/* Fields are for reading only. */
struct msg_reuse {
	uint32_t least[MSG_COSTS_CLASSES]; /* from which use on; MSG_COSTS_NEVER */
	bool adapts;
	enum msg_reuse_state state;
	struct msg_reuse_buf *buf;
	uint32_t n, cap;
	uint32_t *chain; /* the first of each; NULL: there is no table yet */
	unsigned int bits;
	uint32_t frequent;
	uint32_t last;         /* the buffer that was asked about last; UINT32_MAX: none */
	uint32_t looks, hits;  /* of this window */
	uint32_t rest, rested; /* messages to go; of the last time */
	uint64_t stops, rests; /* how often */
};

/* adapts: else it begins anew when it is full, never stops, and registrations that get lost need
 * not be earned twice. */
void msg_reuse_init(struct msg_reuse *r, const uint32_t least[MSG_COSTS_CLASSES], bool adapts);
void msg_reuse_free(struct msg_reuse *r);

/* A use of so many bytes. Counts it. */
enum msg_reuse_say msg_reuse_use(struct msg_reuse *r, const void *addr, uint32_t len);
/* About that buffer, until the next use: it is registered, ... */
void msg_reuse_kept(struct msg_reuse *r);
/* ... it is not any more, or can not be, ... */
void msg_reuse_lost(struct msg_reuse *r);
/* ... it was not used after all. */
void msg_reuse_undo(struct msg_reuse *r);

/* What it takes. */
size_t msg_reuse_bytes(const struct msg_reuse *r);

#endif
