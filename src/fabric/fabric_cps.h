/* Collective permutation sequences: who sends to whom in each stage of a collective.
 *
 * A collective of n ranks is a sequence of stages, and in each stage a rank sends to one other
 * rank, or to none (a file's may send to several). With L = ⌊log2 n⌋, P = 2^L, and
 * M_l = m_1·…·m_l of the tree:
 *
 *	shift          s = 1 … n−1: i → (i+s) mod n
 *	shift:S        of these the stage s = S only
 *	ring           i → (i+1) mod n
 *	dissemination  s = 0 … ⌈log2 n⌉−1: i → (i+2^s) mod n
 *	tournament     s = 0 … ⌈log2 n⌉−1: i+2^s → i for i ≡ 0 mod 2^(s+1)
 *	binomial       s = 0 … ⌈log2 n⌉−1: i → i+2^s for i < 2^s
 *	recdbl         if n ≠ P, before: i+P → i; s = 0 … L−1: i → i⊕2^s for i < P; after, the
 *	               reverse of before
 *	rechalv        the same with s from L−1 to 0
 *	topo-recdbl    recursive doubling along the tree: level by level, l = 1 … h, with
 *	               E_l = M_l−1·2^⌊log2 m_l⌋. Before: i+E_l → i where (i+E_l) mod M_l ≥ E_l;
 *	               s = 0 … ⌊log2 m_l⌋−1: bit s of digit l of i is flipped, for
 *	               i mod M_l < E_l; after, the reverse of before
 *	topo-rechalv   the same, levels and bits from far to near
 *	drc, drc:S     displaced ring communication: step s = 1 … n−1 is a ring whose neighbours
 *	               are s apart, i → (i+s) mod n. So drc is shift by another name; its worst
 *	               case is step 12 of 24 ranks on two leaves of 12 hosts (drc:12)
 *	file:F         any pattern, from a file
 *
 * A flow takes place where both ranks exist, and stages that would be empty are not counted.
 *
 * A file has one stage per line: flows FROM>TO, numbers of ranks from 0 on, separated by blanks
 * or commas. A line that begins with '+' continues the stage of the line before. Blank lines and
 * what follows '#' do not count.
 *
 *	# two stages of four ranks
 *	0>1 2>3
 *	0>2
 *	+ 1>3
 *
 * In a stage of a file a rank may send several times, also to the same, and several may send to the
 * same; in all others it sends at most once.
 */
#ifndef WEFT_FABRIC_CPS_H
#define WEFT_FABRIC_CPS_H

#include <stdio.h>

#include "fabric_pgft.h"
#include "fabric_tree.h"

struct fabric_flow {
	uint32_t from, to; /* ranks */
};

/* How a stage's destinations follow from the sources. d is the distance. */
enum fabric_step_kind {
	FABRIC_STEP_TURN,   /* i → (i+d) mod n */
	FABRIC_STEP_MEET,   /* i → i−d for i ≡ d mod 2d */
	FABRIC_STEP_SPREAD, /* i → i+d for i < d */
	FABRIC_STEP_FOLD,   /* i → i−d for i mod span ≥ d */
	FABRIC_STEP_UNFOLD, /* the reverse */
	FABRIC_STEP_FLIP,   /* i → i±d for i mod span < edge: a bit of a digit is flipped */
};

struct fabric_step {
	enum fabric_step_kind kind;
	uint32_t d, edge, span;
};

/* The most stages that are not those of shift or of a file: n < 2^25, and two more per level. */
#define FABRIC_STEPS_MAX (25 + 2 * FABRIC_LEVELS_MAX)

struct fabric_cps {
	uint32_t n, stages;
	bool shift; /* stage s is a turn by s + 1 */
	struct fabric_step steps[FABRIC_STEPS_MAX];
	uint32_t widest; /* the most flows that a stage has */
	/* Of a file: the flows of stage s are flows[first[s] … first[s+1]−1], by source and
	 * destination. */
	struct fabric_flow *flows;
	uint64_t *first;
	bool several; /* in some stage a rank sends more than once */
};

/* For n ranks, 1 … FABRIC_HOSTS_MAX. t is needed by topo-recdbl and topo-rechalv only, otherwise
 * it may be NULL. Returns 0, or -EINVAL, -ENOMEM or the errno of the file with one sentence in
 * why. */
int fabric_cps_parse(struct fabric_cps *c, const char *text, uint32_t n,
		     const struct fabric_pgft *t, char *why, size_t why_size);
/* The same for a file that is open, with the name that sentences give it. */
int fabric_cps_read(struct fabric_cps *c, FILE *from, const char *name, uint32_t n, char *why,
		    size_t why_size);
void fabric_cps_free(struct fabric_cps *c);

/* To whom a rank sends in a stage; FABRIC_NONE: to nobody. Without a loop, except that a stage of
 * a file in which not all ranks send is searched by halves. */
uint32_t fabric_cps_to(const struct fabric_cps *c, uint32_t stage, uint32_t rank);
/* The same for its k-th flow in the stage, from 0 on. */
uint32_t fabric_cps_nth(const struct fabric_cps *c, uint32_t stage, uint32_t rank, uint32_t k);

/* All flows of a stage by source, at most c->widest. Returns how many. */
uint32_t fabric_cps_flows(const struct fabric_cps *c, uint32_t stage, struct fabric_flow *flows);

#endif
