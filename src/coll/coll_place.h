/* Where a host is in the tree, from a file as Slurm's topology.conf:
 *
 *	SwitchName=s1.0 Nodes=h0,h1,h[4-7]
 *	SwitchName=t2.0 Switches=s1.0,s1.1
 *
 * which `weft fabric order --as slurm-topology` writes and many sites have. The groups of a host
 * (coll_tree.h) are the switch that has it, the one that has that, and so on; they count by lines,
 * and its number is that of its place in the line. What else is in a line does not count.
 */
#ifndef WEFT_COLL_PLACE_H
#define WEFT_COLL_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "coll_tree.h"

#define COLL_WRONG_ELSE UINT32_MAX

struct coll_found {
	struct coll_place place;
	uint32_t levels; /* 0: not found */
	uint32_t wrong;  /* 0; or a file was named and is of no use: the line that can not be
			  * understood, from 1 on, or COLL_WRONG_ELSE */
	uint64_t tree;   /* a number of the whole text: the same for the same tree */
};

/* Pure. text is changed while it is read. name: of the host; what follows a '.' need not be in the
 * file. Returns 0, -EBADMSG for a line that can not be understood, -ENOENT if it is not there,
 * -EINVAL for a text that goes round in circles or has more levels than COLL_LEVELS_MAX. */
int coll_place_parse(char *text, const char *name, struct coll_found *found);

/* This host's, by the file that WEFT_COLL_TOPOLOGY names; not found without one. The file is read
 * once; if it is of no use, that is said then, if loud. */
void coll_place_find(struct coll_found *found, bool loud);

#endif
