/* Which protocol a message is sent by. Pure. */
#ifndef WEFT_MSG_CHOOSE_H
#define WEFT_MSG_CHOOSE_H

#include <stdbool.h>
#include <stdint.h>

enum msg_protocol {
	MSG_BY_EAGER, /* into a buffer of the other endpoint, copied from there */
	MSG_BY_READ,  /* announced; the receiver reads it */
	MSG_BY_WRITE, /* announced; written when the receiver says where */
	MSG_BY_PUT,   /* written at once: the receiver has said where before */
};

/* may_read: the sender's memory can be read by peers, and that is preferred to writing. ready: an
 * RTR stands for this very message, and has room for it (msg_ledger_next). */
static inline enum msg_protocol msg_choose(uint64_t len, uint64_t eager_max, bool may_read,
					   bool ready)
{
	if (len <= eager_max)
		return MSG_BY_EAGER;
	if (ready)
		return MSG_BY_PUT;
	return may_read ? MSG_BY_READ : MSG_BY_WRITE;
}

#endif
