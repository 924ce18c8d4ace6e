/* Who exchanges with whom in a reduction or a broadcast among hosts that have places in a tree.
 *
 * Reductions. Some of the members form a cube: 2^bits of them, so that a member and the one whose
 * coordinate differs in one bit exchange what they have, bit after bit, and then all of the cube
 * have everything. The others fold: each gives what it has to a member that stays, before, and
 * takes the result from it, after. That is complete for every number of members and every
 * arrangement of them.
 *
 * The cube follows the tree. From the leaves up, each sub-tree joins the cubes of its children: of
 * as many as are a power of two, a child's number being the next bits of the coordinate; the
 * members of other children fold onto those with the same coordinate. So a bit is an exchange
 * within sub-trees of one level, at the same distance for all. Where hosts are the first n of a
 * fat tree whose routes are D-Mod-K on their numbers, for any n, no two messages of a stage share
 * a link (fabric_hsd.h; the tests try it). Elsewhere a link between switches may be shared, but
 * neighbours still exchange with neighbours as long as they can.
 *
 *	stages: folds (folds of them), exchanges (bits, from 0 up: near ones first), unfolds (folds)
 *
 * Broadcasts. A binomial tree over the members in the order of their places, from the root's on
 * and around: far steps first, so that most steps stay near. Free of contention where a shift is.
 *
 * Pure, and computed by each member by itself: the same input gives the same on all of them.
 */
#ifndef WEFT_COLL_TREE_H
#define WEFT_COLL_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define COLL_LEVELS_MAX 8
#define COLL_NONE       UINT32_MAX

/* Where a member is: the number of its sub-tree at each level, 0 being the leaf switch, and its
 * own number, for the order of those in one leaf. All numbers mean nothing but equality and
 * order. */
struct coll_place {
	uint32_t group[COLL_LEVELS_MAX];
	uint32_t number;
};

/* A member gives all it has to another that stays. */
struct coll_fold {
	uint32_t from, to, stage;
};

struct coll_tree {
	uint32_t n, bits, folds;
	uint32_t *order;         /* members by place */
	uint32_t *position;      /* and back */
	uint32_t *cube;          /* by coordinate, the member */
	uint32_t *coordinate;    /* by member; COLL_NONE: it folds */
	struct coll_fold *given; /* by stage; n − 2^bits of them */
	uint32_t n_given;
};

/* places may be NULL: then nothing is known of them, and members are in the order of their numbers.
 * levels: how many of each place's groups count. Returns 0, -EINVAL for no members, more than 2^24
 * or too many levels, or -ENOMEM. */
int coll_tree_make(struct coll_tree *t, uint32_t n, const struct coll_place *places,
		   uint32_t levels);
void coll_tree_free(struct coll_tree *t);

/* ---- reductions ---- */

enum coll_step_kind {
	COLL_STEP_NONE, /* nothing to do in this stage */
	COLL_STEP_SEND, /* all that it has; in an unfold, the result */
	COLL_STEP_ADD,  /* receives, and adds it to what it has */
	COLL_STEP_SWAP, /* both */
	COLL_STEP_TAKE, /* receives the result */
};

struct coll_step {
	enum coll_step_kind kind;
	uint32_t peer;
};

static inline uint32_t coll_tree_stages(const struct coll_tree *t)
{
	return 2 * t->folds + t->bits;
}

struct coll_step coll_tree_step(const struct coll_tree *t, uint32_t member, uint32_t stage);

/* Reducing long vectors, members of the cube exchange halves: in the k-th exchange a member keeps
 * one half of the part that it has, and sends the other; afterwards, backwards, they complete each
 * other's parts. In the same order as whole vectors: so what is added to what is the same, too. */
struct coll_part {
	size_t first, count;
};

/* The part of `count` elements that a member of the cube has before the k-th exchange; k = bits:
 * after the last. Its peer in exchange k has the same part before, and what remains of it after. */
struct coll_part coll_tree_part(const struct coll_tree *t, uint32_t member, uint32_t k,
				size_t count);

/* ---- broadcasts ---- */

/* From whom a member gets it; COLL_NONE: it is the root. */
uint32_t coll_tree_parent(const struct coll_tree *t, uint32_t root, uint32_t member);
/* The k-th that it passes it on to, from 0 on, in this order; COLL_NONE: there are no more. */
uint32_t coll_tree_child(const struct coll_tree *t, uint32_t root, uint32_t member, uint32_t k);

#endif
