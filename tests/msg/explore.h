/* A world of one receiver and up to two senders, in steps so small that nothing smaller can
 * interleave. It calls the functions that ship (msg_match.h, msg_spec.h) and compares them with an
 * oracle: the queues of MPI, in plain arrays, without any speculation.
 *
 * Steps: a sender sends its next message, in one of the lengths that its program allows; an
 * announcement arrives at the receiver; the data of a PUT begins to be written and is, any time
 * after it was sent; its notice comes; the receiver handles the oldest of what has arrived; posts
 * its next receive, or cancels one, which takes another step if an RTR has to be waited for; a
 * posted receive asks (sends an RTR), whenever it may, or never; an RTR or its withdrawal arrives
 * at the sender. RTRs that are asked back are moved to ghosts, or not, see msg_spec.h: both are
 * explored, and so is a receiver that can move only some of them.
 *
 * Where nothing is cancelled, a stricter order is enough: data behind its announcement, and the
 * notice with it.
 *
 * Whether a receive asks is left open, so a receive too short to predict rendezvous behaves as a
 * long one that happens not to ask: programs need not vary the lengths of receives for that.
 *
 * A *mutant* has one rule wrong. The search must find out.
 */
#ifndef WEFT_TESTS_MSG_EXPLORE_H
#define WEFT_TESTS_MSG_EXPLORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "msg_match.h"
#include "msg_spec.h"

#define SENDERS   2
#define MAX_SENDS 4
#define MAX_RECVS 5
#define MAX_OPS   8
#define MAX_ASKS  2 /* per receive: one that was asked back may ask again */
#define MAX_STEPS 96

/* Lengths. Up to EAGER_MAX is sent eagerly. Programs allow sets of them. */
#define EAGER_MAX 1
#define SHORT     1
#define LONG      2
#define VAST      3
#define SET(len)  (1u << (len))
#define ANY_LEN   (SET(SHORT) | SET(LONG) | SET(VAST))
#define EITHER    (SET(SHORT) | SET(LONG))

#define ALL_TAGS UINT64_MAX

struct prog_send {
	uint64_t tag;
	uint32_t lens;
};

struct prog_op {
	enum { OP_POST, OP_CANCEL } what;
	uint32_t src; /* of a receive; of a cancel: which receive, in order of posting */
	uint64_t tag, ignore;
	uint32_t len;
};

struct prog {
	const char *name;
	unsigned int n_sends[SENDERS], n_ops;
	struct prog_send send[SENDERS][MAX_SENDS];
	struct prog_op op[MAX_OPS];
};

enum mutant {
	RIGHT,          /* nothing is cancelled: data and notices come in order */
	IGNORE_AHEAD,   /* the sender takes every RTR to be for the next message */
	IGNORE_CROSSED, /* the sender does not count what it sent since `seen` */
	ASK_UNCLEAR,    /* a receive asks although a wildcard is ahead */
	RIGHT_MOVE,     /* RTRs are asked back and moved; data and notices come in any order */
	RIGHT_SOME,     /* as that, but every other receive can not be moved */
	MOVE_WRITTEN,   /* an RTR is moved although its data comes already */
	MOVE_FREED,     /* a ghost does not wait for the answer */
	MOVE_OWN,       /* what a ghost has is taken for that of the receive whose RTR it was */
	MOVE_ALONE,     /* a cancel leaves the RTRs of those behind alone */
	NO_WITHDRAW,    /* a moved RTR stays in the ledger */
	RIGHT_BACK,     /* RTRs are asked back, and none is moved; the same order */
	BACK_EARLY,     /* as that, but the answers are not waited for */
	BACK_ASKS,      /* as that, but RTRs go out behind a receive that is being cancelled */
	THESIS,         /* the printed rules: see explore_thesis.c */
	THESIS_ACK,     /* these, but every RTS is acknowledged that met no RTR */
};

enum msg_kind { EAGER, RTS, PUT };
enum write_state { NO_WRITE, TO_WRITE, BEGUN, WRITTEN, NOTIFIED };

struct message {
	struct msg_unexp unexp;
	uint8_t src, index;
	uint8_t len, kind;
	uint32_t id; /* of the RTR, if PUT */
	bool arrived, handled;
	uint8_t write;
	bool done;     /* the sender has its buffer back */
	int8_t want;   /* the receive that the oracle gave it to; -1: none */
	bool received; /* by that one */
	/* THESIS */
	bool owed;    /* an RTS whose RTR or acknowledgement has not come */
	uint8_t flag; /* piggy-backed: 's'top or 'r'esume RTRs */
};

enum recv_state { ABSENT, POSTED, WAITING, COMPLETE, CANCELLED };

struct receive {
	struct msg_recv recv;
	struct msg_ask ask;
	uint8_t state, len, asks;
	bool key;              /* valid, and it is that of ask.id */
	struct message *put;   /* while WAITING */
	struct message *in_it; /* whose data was written into the buffer */
};

/* Of each RTR that was moved. */
struct ghost {
	struct msg_ask ask; /* all zero: it was not moved */
	bool key;
	bool here;             /* the data */
	struct message *in_it; /* whose data was written into it */
	struct receive *to;    /* which has got its message; NULL: none yet */
};

/* To the sender. */
struct note {
	enum { NOTE_RTR, NOTE_WITHDRAW, NOTE_ACK, NOTE_DONE } what;
	struct msg_rtr rtr;
	uint8_t index; /* of the message, for NOTE_DONE */
};

#define MAX_NOTES (2 * MAX_ASKS * MAX_RECVS)

/* What the printed protocol keeps, for one envelope. */
struct thesis {
	struct msg_rtr held[MAX_NOTES];
	uint8_t n_held;
	bool eager_flag, stopping, resuming;
	uint8_t stop_index;
	bool stopped; /* at the receiver */
};

/* To the receiver: a message, a notice that its data is there, or an answer about an RTR. */
struct arrival {
	struct message *m; /* NULL: an answer */
	bool notice;
	uint8_t src;
	uint32_t id;
};

struct sender {
	struct msg_ledger ledger;
	struct message msg[MAX_SENDS];
	unsigned int sent;
	struct arrival out[MAX_SENDS + MAX_NOTES]; /* on the way */
	unsigned int n_out;
	struct note note[MAX_NOTES];
	unsigned int n_notes;
	struct thesis thesis;
};

struct world {
	const struct prog *prog;
	enum mutant mutant;
	bool reduce; /* leave out what is the same in another order */
	struct sender sender[SENDERS];
	struct msg_match match;
	struct receive recv[MAX_RECVS];
	struct ghost ghost[MAX_RECVS * MAX_ASKS]; /* by id */
	unsigned int n_recvs, next_op;
	int cancelling; /* the receive; -1: none */
	int busy;       /* the sender that has just taken a note in; -1: none */
	struct arrival inbox[SENDERS * (2 * MAX_SENDS + MAX_NOTES)];
	unsigned int n_inbox;
	uint32_t seen[SENDERS];
	/* The oracle. */
	uint8_t posted[MAX_RECVS];
	unsigned int n_posted;
	struct message *unexp[SENDERS * MAX_SENDS];
	unsigned int n_unexp;
	struct msg_spec_stats stats;
	const char *bad; /* what is wrong; NULL: nothing yet */
};

enum step_kind { SEND, ARRIVE, BEGIN, WRITE, NOTICE, HANDLE, OP, SETTLE, ASK, NOTE, DONE };

struct step {
	uint8_t kind, who, what; /* what: length of a SEND, message of a WRITE, receive of an ASK */
};

#define MAX_CHOICES 32

void world_init(struct world *w, const struct prog *p, enum mutant mutant, bool reduce);
void world_free(struct world *w);
unsigned int world_choices(struct world *w, struct step *out);
void world_step(struct world *w, struct step s);
/* Nothing can happen any more: is all as it must be? Sets w->bad. */
void world_end(struct world *w);

/* ---- explore_cancel.c ---- */

/* Ends at once, if there is nothing to wait for. */
void cancel_begin(struct world *w, unsigned int recv);
/* Whether all is known that must be before the receive is taken off. */
bool cancel_settled(const struct world *w);
void cancel_end(struct world *w, bool settled_late);

/* ---- explore_state.c ---- */

/* All that decides what can happen and what is right, and nothing else. Returns the length. */
#define WORLD_BYTES 640
size_t world_bytes(const struct world *w, uint8_t *out);
void step_print(const struct world *w, struct step s);

/* ---- explore_oracle.c ---- */

void oracle_post(struct world *w, unsigned int recv);
void oracle_message(struct world *w, struct message *m);
/* Returns whether the receive could be cancelled. */
bool oracle_cancel(struct world *w, unsigned int recv);

/* ---- explore_thesis.c ---- */

void thesis_note(struct sender *s, const struct note *n);
bool thesis_sent(struct sender *s, struct message *m, struct msg_rtr *use);
void thesis_came(struct world *w, const struct message *m);
bool thesis_may_ask(const struct world *w, const struct receive *r);
void thesis_took(struct world *w, const struct receive *r, const struct message *m,
		 bool was_posted);

/* ---- explore_search.c ---- */

/* 64-bit hashes of the states that were met; that two of some millions are equal by chance is less
 * likely than that the machine errs. */
struct met {
	uint64_t *slot;
	size_t cap, n;
};

/* Queues are linked through the objects, so a world can not be copied: to go back, it is made anew
 * and the path is walked again. */
struct search {
	struct world w;
	struct met met;
	struct step path[MAX_STEPS];
	unsigned int depth;
	uint64_t ends;
	uint64_t ends_hash; /* of all of them, in any order */
	uint64_t puts;      /* at all ends */
	const char *bad;    /* what was found, at the end of path */
};

/* Until all states were met, or something is wrong. */
void search_run(struct search *s, const struct prog *p, enum mutant mutant, bool reduce);
void search_print(struct search *s); /* the path to what was found */
void search_free(struct search *s);

/* ---- */

/* The receive that an RTR is, or was, of. */
static inline struct receive *of_id(struct world *w, uint32_t id)
{
	return &w->recv[(id - 1) / MAX_ASKS];
}

static inline struct ghost *ghost_of(struct world *w, uint32_t id)
{
	return &w->ghost[id - 1];
}

static inline bool moves(const struct world *w)
{
	return w->mutant >= RIGHT_MOVE && w->mutant < RIGHT_BACK;
}

/* With the transport that is meant for that: data and notices in any order. */
static inline bool asks_back(const struct world *w)
{
	return w->mutant >= RIGHT_MOVE && w->mutant < THESIS;
}

static inline bool is_thesis(const struct world *w)
{
	return w->mutant >= THESIS;
}

static inline void world_bad(struct world *w, const char *why)
{
	if (!w->bad)
		w->bad = why;
}

static inline void world_note(struct world *w, uint32_t src, struct note n)
{
	struct sender *s = &w->sender[src];

	if (s->n_notes == MAX_NOTES)
		world_bad(w, "more notes than the model has room for");
	else
		s->note[s->n_notes++] = n;
}

#endif
