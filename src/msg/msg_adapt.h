/* Whether an RTR pays: the adaptation of the speculative rendezvous.
 *
 * An RTR costs a message, and a registration of memory before it is known to be needed. It is
 * worth that only if the sender uses it. It does not when it sent its message too early (the RTR
 * and the RTS cross), or sends eagerly because the receive was much longer than the message.
 * Following Rashti's thesis (4.2.6 and 4.4.2): of each envelope, a source with a tag and a mask,
 * the *usage factor* is the share of RTRs that were used. When it falls below a threshold, no more
 * are sent. From then on receives are *silently watched*: the share of those that would have had
 * their RTR used. When that reaches the threshold, RTRs are sent again.
 *
 * Unlike the thesis, this is a matter of the receiver alone (msg_spec.h: to send no RTR is always
 * safe), so there is nothing to tell the sender. Shares are of the last 30 receives, not of all
 * since the beginning, so that a program may change its ways. When what was watched promised more
 * than what then happened, it is watched twice as long the next time.
 *
 * The memory is fixed: a small table, in which the envelope that was not heard of for longest gives
 * way. One that is not in the table is given the benefit of the doubt. Pure; not thread-safe.
 */
#ifndef WEFT_MSG_ADAPT_H
#define WEFT_MSG_ADAPT_H

#include <stdbool.h>
#include <stdint.h>

#define MSG_ADAPT_PERCENT 80 /* the thesis' threshold */
#define MSG_ADAPT_SETS    64 /* a power of two */
#define MSG_ADAPT_WAYS    4

struct msg_adapt_entry {
	uint64_t tag, ignore;
	uint32_t src;
	uint32_t
		history; /* the latest in the lowest bit: 1, the RTR was used, or would have been */
	uint32_t used;   /* when it was last heard of; 0: the entry is empty */
	uint16_t n;      /* receives since RTRs were last begun or stopped, saturating */
	uint16_t watch;  /* receives to be watched before RTRs are sent again */
	bool off;
};

struct msg_adapt {
	struct msg_adapt_entry entry[MSG_ADAPT_SETS][MSG_ADAPT_WAYS];
	uint32_t clock; /* counts what is heard */
	uint32_t percent;
	uint64_t stops, resumptions; /* for reports */
};

/* percent: the threshold; 0: RTRs are always sent. */
void msg_adapt_init(struct msg_adapt *a, uint32_t percent);

/* Whether an RTR should be sent for a receive that may (msg_spec_may_ask). */
bool msg_adapt_agrees(const struct msg_adapt *a, uint32_t src, uint64_t tag, uint64_t ignore);

/* A receive that might have sent an RTR is matched by its message, not cancelled. asked: it did
 * send one, and `hit` says whether that was used; else hit says whether one would have been. */
void msg_adapt_result(struct msg_adapt *a, uint32_t src, uint64_t tag, uint64_t ignore, bool asked,
		      bool hit);

/* Whether a message would have used an RTR sent at `posted`: it came by rendezvous (length is more
 * than eager_max), fits, and was sent when the RTR would have been there. It arrives half a round
 * trip after that; the RTR takes the other half. Times are in any one unit. */
static inline bool msg_adapt_would(uint64_t posted, uint64_t arrived, uint64_t round_trip,
				   uint64_t length, uint64_t eager_max, uint64_t room)
{
	return length > eager_max && length <= room && arrived - posted >= round_trip;
}

#endif
