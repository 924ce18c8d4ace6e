/* Real-life fat trees, the PGFTs of which the paper's theorems speak: built of one kind of switch
 * with 2K ports, and as many cables up as down. The rules, with the corrections to section IV (a
 * switch of level l has m_l·p_l ports down and w_l+1·p_l+1 ports up):
 *
 *	hosts      w_1 = p_1 = 1: a host has one cable
 *	bisection  m_l·p_l = w_l+1·p_l+1 below the top: no level has less bandwidth than another
 *	ports      m_l·p_l + w_l+1·p_l+1 = 2K, and m_h·p_h = 2K at the top: all switches are alike
 */
#ifndef WEFT_FABRIC_RLFT_H
#define WEFT_FABRIC_RLFT_H

#include "fabric_pgft.h"

enum fabric_rlft_rule { FABRIC_RLFT_HOSTS, FABRIC_RLFT_BISECTION, FABRIC_RLFT_PORTS };

#define FABRIC_RLFT_MAX (2 * FABRIC_LEVELS_MAX + 1)

/* The rules that a tuple breaks, from the bottom to the top. */
struct fabric_rlft {
	uint32_t count; /* 0: it is one */
	struct {
		enum fabric_rlft_rule rule;
		uint32_t level;
		char text[160]; /* one sentence */
	} broken[FABRIC_RLFT_MAX];
};

/* True: it is one. */
bool fabric_rlft_check(const struct fabric_pgft *t, struct fabric_rlft *result);

#endif
