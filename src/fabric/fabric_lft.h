/* Routes as OpenSM has them: the text of its unicast tables, which it takes with `-R file -U F` and
 * dumps as opensm-lfts.dump, and the files that go with it.
 *
 *	Unicast lids [0-22] of switch Lid 17 guid 0x0002c90100000000 ('s1.0'):
 *	0x0001 001 # Channel Adapter portguid 0x0002c90000000001: 'h0'
 *	0x0011 000 # Switch portguid 0x0002c90100000000: 's1.0'
 *	17 lids dumped
 *
 * LIDs are hexadecimal, ports decimal, and of the first line only the GUID counts. OpenSM has to
 * give the LIDs that the tables speak of: with guid2lid in its OSM_CACHE_DIR, -x, and without -r.
 * Host j has the 2^lmc LIDs from (j + 1) · 2^lmc on, those of the missing stay free, and behind
 * them each switch has one (its port 0 has no LMC).
 *
 * Switches are destinations, too: for who manages them. They are reached by going up and then
 * down, as hosts are; so any host reaches all, and alike switches do not reach each other. Where
 * cables are missing, one leaf helps those that would have no way (fabric_lft_ways.h).
 *
 * So is what a network has beside the tree (fabric_beside.h), with LIDs behind all others: all of
 * that, all hosts and then also all switches reach each other (fabric_lft_ways.h).
 */
#ifndef WEFT_FABRIC_LFT_H
#define WEFT_FABRIC_LFT_H

#include <stdio.h>

#include "fabric_routes.h"

#define FABRIC_LID_MAX      0xbfffu /* those above are multicast */
#define FABRIC_LFT_PORT_MAX 254u

/* The first LID of a node. */
static inline uint32_t fabric_lid(const struct fabric_pgft *t, uint32_t lmc, uint32_t node)
{
	uint32_t hosts = fabric_hosts(t);

	return node < hosts ? (node + 1) << lmc : ((hosts + 1) << lmc) + (node - hosts);
}

/* Can InfiniBand have this fabric: enough LIDs, no switch with too many ports, one cable per host?
 * 0, or -EINVAL with one sentence in why. The writers below want this to be so. */
int fabric_lft_check(const struct fabric_tree *tree, uint32_t lmc, char *why, size_t why_size);

/* The tables of all switches. With guids, each line names its destination's port GUID, by which
 * OpenSM finds it whatever its LID is, and the file is six times as large. 0, -ENOMEM, or
 * the -errno of the file, here and below. */
int fabric_lft_write(const struct fabric_routes *r, bool guids, FILE *to);
/* How many pairs have no way, but for those of hosts of the tree (fabric_routes_unreachable).
 * 0 or -ENOMEM. */
struct fabric_lft_lost {
	uint64_t beside;   /* between what is beside the tree and leaves, or each other */
	uint64_t switches; /* from leaves to switches of the tree */
};
int fabric_lft_lost(const struct fabric_tree *tree, uint32_t lmc, struct fabric_lft_lost *lost);
/* OpenSM's guid2lid. */
int fabric_lft_write_lids(const struct fabric_tree *tree, uint32_t lmc, FILE *to);
/* The switches of the top level (-a), and the hosts (-u). */
int fabric_lft_write_roots(const struct fabric_tree *tree, FILE *to);
int fabric_lft_write_hosts(const struct fabric_tree *tree, FILE *to);

/* Reads such tables, also as `ibroute` and `dump_fts` print them. Which LID is whose they say by
 * themselves, if GUIDs are there; otherwise it is read from lids (a guid2lid; may be NULL). Names
 * are for sentences only. All switches of the fabric and all its hosts must be there; ports that
 * lead to what is missing are no ways. 0, or -errno with one sentence in why, and *r is empty. */
int fabric_lft_read(struct fabric_routes *r, const struct fabric_tree *tree, FILE *from,
		    const char *name, FILE *lids, const char *lids_name, char *why,
		    size_t why_size);

#endif
