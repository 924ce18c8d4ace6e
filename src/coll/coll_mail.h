/* Blocks for the other ranks of a host, in shared memory: what one leaves there, and how each of
 * the others takes what is for it. Nothing of MPI, and no flags: that a box is filled is told by
 * its owner otherwise (coll_shm.h), and so is that it may be filled again.
 *
 *	the box of a rank:	a label for each rank | what does not fit into labels
 *
 * A block of up to copy_max bytes is in the box. A longer one stays where it is, and whoever it is
 * for copies it from there, once, if the system allows ranks of the host to read each other's
 * memory (shm_copy.h); the owner must leave it alone until all have said that they are done.
 * Otherwise it goes through the box in parts, two of which are there at a time.
 *
 * Both ends know the length of a block, and so which way it goes. That they do not agree is found.
 */
#ifndef WEFT_COLL_MAIL_H
#define WEFT_COLL_MAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The same on all ranks of the host. */
struct coll_mail {
	uint32_t ranks;  /* on the host */
	size_t slot;     /* bytes that a box has for each of them, at least COLL_MAIL_SLOT */
	size_t copy_max; /* longer blocks are not copied twice, if that can be avoided */
	bool fetch;      /* the system lets them read each other's memory */
};

#define COLL_MAIL_SLOT 64

enum coll_mail_way {
	COLL_MAIL_COPIED,
	COLL_MAIL_FETCHED,
	COLL_MAIL_PARTS,
};

enum coll_mail_way coll_mail_way(const struct coll_mail *m, size_t len);

/* ---- of the owner ---- */

/* A block that is sent. What goes in parts needs further turns. */
struct coll_mail_out {
	uint8_t *box;
	uint32_t to; /* the number of a rank on the host */
	const uint8_t *bytes;
	size_t len;
	size_t sent; /* so much need not stay as it is any more */
};

/* Puts blocks into a box, one for each rank at most. *used: how much of the box is; 0 before the
 * first. Nobody may be looking at the box yet. */
void coll_mail_put(const struct coll_mail *m, struct coll_mail_out *out, size_t *used);
/* Of a block in parts: puts what there is room for. Returns whether there was any. */
bool coll_mail_more(const struct coll_mail *m, struct coll_mail_out *out);

/* ---- of the others ---- */

struct coll_mail_in {
	uint8_t *box; /* the sender's */
	pid_t pid;    /* its process */
	uint32_t me;
	uint8_t *to;
	size_t len;
	size_t taken;
};

/* Takes what is there: all of the block, or, of one in parts, a part or two, or none. Returns
 * whether it has all of it now, or -errno: -EMSGSIZE if the sender has another length in mind; what
 * shm_copy_from says. */
int coll_mail_take(const struct coll_mail *m, struct coll_mail_in *in);

#endif
