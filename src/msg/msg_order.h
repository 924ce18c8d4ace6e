/* Packets of a peer that may come over several connections, back in their order.
 *
 * Each has a number, one more than that of the packet before it (the packet sequence number of
 * section 4.3.2 of the paper on hot-spot avoidance). The receiver knows which one comes next (the
 * expected sequence number); what comes before its turn is kept (the out-of-order queue), no more
 * than MSG_ORDER_WINDOW numbers ahead. A number whose turn is over is a packet that was sent again,
 * since nobody knew that it had arrived. Numbers wrap around. Pure, but for memory. */
#ifndef WEFT_MSG_ORDER_H
#define WEFT_MSG_ORDER_H

#include <stddef.h>
#include <stdint.h>

#define MSG_ORDER_WINDOW 512 /* a power of two */

struct msg_kept {
	size_t len;
	uint8_t buf[];
};

struct msg_order {
	uint32_t expected;
	struct msg_kept **kept; /* by number, MSG_ORDER_WINDOW; NULL: none ever was */
};

enum msg_turn {
	MSG_TURN_NOW, /* to be handled by the caller; msg_order_next() then */
	MSG_TURN_LATER,
	MSG_TURN_OVER, /* has been handled, or is kept already */
	MSG_TURN_FAR,  /* makes no sense */
	MSG_TURN_LOST, /* it is to be kept, and there is no memory */
};

/* A packet has come. What is to be handled later is kept, as a copy. */
enum msg_turn msg_order_came(struct msg_order *o, uint32_t seq, const void *buf, size_t len);
/* Now it is the turn of this one, which is the caller's to free; NULL: it has not come. */
struct msg_kept *msg_order_next(struct msg_order *o);
void msg_order_free(struct msg_order *o);

#endif
