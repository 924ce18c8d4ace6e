/* Speculative rendezvous: which message goes straight into which receive's buffer.
 *
 * A receive that is posted before its message comes may say so: an RTR, *ready to receive*, names
 * its buffer, and the sender writes into it without asking (a PUT). The difficulty is that either
 * side may start; docs/rendezvous.md tells what goes wrong, and why this does not. In short:
 *
 * Messages from A to B are numbered in their order, which both sides count and nobody sends. An
 * *envelope* is a source, a tag and a mask of ignored bits. An RTR says: of A I have processed
 * `seen` messages, and `ahead` receives of the same envelope are ahead of this one, none else that
 * could get its messages. So it stands for one message of A, the one of its envelope that `ahead`
 * others precede since number `seen`, and A can tell which, whatever has crossed.
 *
 * The sender keeps a *ledger* per peer: the tags of the last messages, and the RTRs whose message
 * is not sent yet. When it is sent, the RTR is used or dropped. Dropping one, or never sending it,
 * is always safe: the message is then announced by an RTS, and read.
 *
 * The receiver keeps a *msg_ask* in each receive. A PUT is announced in order with all messages,
 * so that matching goes on as if there were no speculation, and a *notice* tells that its data is
 * there.
 *
 * To cancel a receive, its RTR is *asked back*: the sender is told, and answers in order with its
 * messages. Until then the key must be valid. All that the transport must do is to deliver in
 * order, the one way messages, answers and notices, the other way RTRs and what asks them back.
 * It takes a round trip, and a sender that listens, for which a program that cancels must not
 * wait. So the key is *moved*, if nothing was written by it yet: it leads to other memory, and the
 * RTR belongs to a *ghost*, until the answer, or the PUT and its notice come. The receive is free
 * of it at once. A PUT that names a ghost is a message like any other, whose data is found there.
 *
 * If something was written, the message was sent, and those for all receives ahead of it: it is
 * the receive's, and only has to be waited for.
 *
 * Pure: no clock, no input, no output. Not thread-safe: one lock above.
 */
#ifndef WEFT_MSG_SPEC_H
#define WEFT_MSG_SPEC_H

#include <stdbool.h>
#include <stdint.h>
#include "msg_match.h"

/* An RTR can cross as many messages; further ones make it useless. */
#define MSG_LEDGER_LOG 32
/* RTRs that a sender keeps for one peer. The receiver sends no more than that, see
 * msg_spec_may_ask, so the limit is only met by peers that do not keep to it. */
#define MSG_LEDGER_HELD 64

struct msg_rtr {
	uint32_t id; /* the receiver's; the PUT that uses the RTR brings it back */
	uint64_t tag, ignore;
	uint32_t seen, ahead;
	uint64_t length, addr;
	uint32_t key;
};

/* ---- the sender ------------------------------------------------------------------------------ */

/* Of all ledgers of an endpoint. Every RTR that came was used, dropped or stale, or is held. */
struct msg_spec_stats {
	uint64_t came;
	uint64_t used;
	uint64_t dropped; /* its message was eager or too long; no room; withdrawn */
	uint64_t stale;   /* came when its message was sent already, or too late to tell */
};

struct msg_held {
	struct msg_rtr rtr;
	uint32_t left; /* messages of its envelope that go before */
};

struct msg_ledger {
	uint32_t sent;         /* messages; the number of the next one */
	uint32_t logged;       /* the last so many of them are in the log */
	uint64_t *log;         /* tags, by number; NULL: no RTR came yet */
	struct msg_held *held; /* in the order of arrival */
	uint32_t n_held, cap;
	struct msg_spec_stats *stats;
};

/* `first` is the number of the first message, the same on both sides; 0 is as good as any. Owns no
 * memory before the first RTR comes. */
void msg_ledger_init(struct msg_ledger *l, uint32_t first, struct msg_spec_stats *stats);
void msg_ledger_free(struct msg_ledger *l);

/* An RTR came: 0, it is held. Else it is forgotten, which does no harm: -ESTALE, it came too late;
 * -ENOBUFS, the peer sends too many; -ENOMEM. -EPROTO: the peer claims to have seen messages that
 * were not sent, and should not be talked to. */
int msg_ledger_rtr(struct msg_ledger *l, const struct msg_rtr *rtr);
/* The peer will not have this RTR used any more. One that is not held is no error. */
void msg_ledger_withdraw(struct msg_ledger *l, uint32_t id);
/* The RTR that the next message would use, if it is this one; NULL: none. */
const struct msg_rtr *msg_ledger_next(const struct msg_ledger *l, uint64_t tag, uint64_t length,
				      bool rendezvous);
/* The next message takes its place in the order; to be called for each. True: send it as a PUT
 * with *use. False: eager or RTS, as `rendezvous` says; *use is unchanged. */
bool msg_ledger_sent(struct msg_ledger *l, uint64_t tag, uint64_t length, bool rendezvous,
		     struct msg_rtr *use);

/* ---- the receiver ---------------------------------------------------------------------------- */

enum msg_ask_state {
	MSG_ASK_NONE,  /* no RTR is out */
	MSG_ASK_OUT,   /* sent; its key is valid */
	MSG_ASK_BACK,  /* sent, and asked back; its key is valid until the answer comes */
	MSG_ASK_MOVED, /* of a ghost: asked back; the key is valid, and leads to its memory */
	MSG_ASK_USED,  /* its PUT was announced, the notice will come */
};

/* What a receive, or a ghost, knows of its RTR; all zero: none. */
struct msg_ask {
	uint32_t id;
	enum msg_ask_state state;
};

/* Whether a posted receive may send an RTR, as far as safety and prediction go; whether it pays is
 * for msg_adapt.h to say. `eager_max`: longer messages are sent by rendezvous, which is what the
 * length of the receive predicts of its message. `out`: RTRs to this peer that are out. */
bool msg_spec_may_ask(const struct msg_ask *a, struct msg_ahead ahead, uint64_t length,
		      uint64_t eager_max, uint32_t out);
/* Fills the RTR, except for addr and key. `seen`: messages of that peer processed so far. */
void msg_ask_out(struct msg_ask *a, uint32_t id, const struct msg_recv *r, struct msg_ahead ahead,
		 uint32_t seen, uint64_t length, struct msg_rtr *rtr);

/* The receive is matched by a message that is eager or an RTS. True: an RTR was out, its key must
 * be made invalid. The sender has dropped the RTR, or will when it comes. */
bool msg_ask_matched(struct msg_ask *a);

enum msg_put {
	MSG_PUT_WAIT,  /* the data is being written where it belongs: complete at the notice */
	MSG_PUT_GHOST, /* it is being written into the ghost, and is there at the notice */
};
/* Whether a PUT may still come for it. */
static inline bool msg_ask_live(const struct msg_ask *a)
{
	return a->state == MSG_ASK_OUT || a->state == MSG_ASK_BACK || a->state == MSG_ASK_MOVED;
}
/* A PUT came; `a` is of the receive that normal matching gave, NULL: none. `named` is of the
 * receive or ghost that has the PUT's id and is live; NULL: the id is not, or no more, known.
 * Returns an enum msg_put; for MSG_PUT_GHOST with a receive, msg_ask_matched is still to be called.
 * -EPROTO: the sender used the RTR for a message that it was not for. */
int msg_ask_put(struct msg_ask *a, struct msg_ask *named);
/* The notice came: the data is there. -EPROTO: no PUT was announced. */
int msg_ask_notice(struct msg_ask *a);

/* To cancel a receive: ask its own RTR back, and those of all receives of its envelope behind it
 * (msg_match_behind), whose `ahead` has counted it, and move them. Where one can not be moved, send
 * no RTR for that envelope, and handle what comes, until it is not out any more. Then, if it is
 * still posted, take the receive off the queue. The others may ask again, with new ids. */

/* Asked back. True: it was out. The sender is to be told, and answers, behind all messages sent
 * before. */
bool msg_ask_back(struct msg_ask *a);
/* The key, by which nothing was written, leads to other memory: the RTR, which was asked back, is
 * the ghost's, and `a` has none. */
void msg_ask_move(struct msg_ask *a, struct msg_ask *ghost);
/* The answer came, with the id of this one. True: it is not used and will not be; its key must be
 * made invalid. */
bool msg_ask_answered(struct msg_ask *a);

#endif
