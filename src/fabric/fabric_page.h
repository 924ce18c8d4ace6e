/* The tree as a page for a browser: zoom, pick a stage, pick a link and see its flows. One file
 * that needs nothing else. */
#ifndef WEFT_FABRIC_PAGE_H
#define WEFT_FABRIC_PAGE_H

#include "fabric_cps.h"
#include "fabric_routes.h"

/* The page has every flow of every stage with the links that it takes: so many at most. Of more,
 * some stages are left out, and the page says so. */
#define FABRIC_PAGE_FLOWS_MAX 200000

struct fabric_page {
	const struct fabric_routes *routes;
	const char *title;
	const struct fabric_cps *cps; /* NULL: only the tree */
	const uint32_t *hosts;        /* of each rank */
};

/* 0, -ENOMEM, or the -errno of the file. */
int fabric_page(const struct fabric_page *p, FILE *to);

#endif
