/* Pictures of a tree: SVG, hosts at the bottom, one row per level, every cable a line that
 * is coloured by what the caller has measured or computed for it. */
#ifndef WEFT_FABRIC_DRAW_H
#define WEFT_FABRIC_DRAW_H

#include <stdio.h>

#include "fabric_pgft.h"

/* What to show of a cable. A value is 0 … 1 (more is drawn as 1); below 0: not known. */
struct fabric_draw_cable {
	double up, down;
	bool broken;
	char note[96]; /* shown when the mouse rests on it, after the cable's name */
};

struct fabric_draw {
	const struct fabric_pgft *tree;
	const char *title;
	const char *scale; /* what a value means, for the legend: "link load" */
	const struct fabric_draw_cable *cables; /* fabric_cables(tree) of them, or NULL */
};

/* Returns 0, or -errno of writing. */
int fabric_draw_svg(const struct fabric_draw *d, FILE *to);

#endif
