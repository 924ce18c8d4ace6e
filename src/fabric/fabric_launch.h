/* Orders as launchers and subnet managers read them.
 *
 *	names              a host per line, rank by rank, as our own readers take it
 *	openmpi-rankfile   rank 0=host slot=0
 *	openmpi            hostfile of Open MPI: host slots=1
 *	mpich              hostfile of MPICH: host:1
 *	slurm              for SLURM_HOSTFILE and srun --distribution=arbitrary: a host per line
 *	slurm-topology     topology.conf for the tree plugin: a line for each leaf with its hosts,
 *	                   and for each sub-tree of the levels above it. These have many switches,
 *	                   but the plugin knows one parent only: a sub-tree is one switch, t2.0
 *	opensm             the order of CAs as OpenSM's ftree dumps it: 0x0001<TAB>host. If the
 *	                   order is ascending, hosts that are left out are 0xFFFF<TAB>DUMMY, so that
 *	                   each leaf has the same number of lines
 *
 * Ranks run on machines (fabric_tree_machine_name): one with two adapters, which are two hosts
 *here, is named twice, with slots 0 and 1 in a rankfile, and once in topology.conf, at its first
 *leaf.
 */
#ifndef WEFT_FABRIC_LAUNCH_H
#define WEFT_FABRIC_LAUNCH_H

#include <stdio.h>

#include "fabric_tree.h"

enum fabric_launch {
	FABRIC_LAUNCH_NAMES,
	FABRIC_LAUNCH_RANKFILE,
	FABRIC_LAUNCH_OPENMPI,
	FABRIC_LAUNCH_MPICH,
	FABRIC_LAUNCH_SLURM,
	FABRIC_LAUNCH_TOPOLOGY,
	FABRIC_LAUNCH_OPENSM,
};

/* By the names above. Returns 0, or -EINVAL with one sentence in why. */
int fabric_launch_parse(enum fabric_launch *kind, const char *text, char *why, size_t why_size);

/* hosts[r] is the host of rank r. LIDs are those of the network if it has any, otherwise those that
 * our tables give with this LMC (fabric_lft.h).
 * Returns 0; -EINVAL or -ENOMEM with one sentence in why, of a name that a launcher could not read
 * (OpenSM reads any), of ranks of a machine that are not together in Open MPI's hostfile or of a
 * LID beyond the last, before anything is written; or the -errno of the file. */
int fabric_launch_write(FILE *to, enum fabric_launch kind, const struct fabric_tree *t,
			const uint32_t *hosts, uint32_t count, uint32_t lmc, char *why,
			size_t why_size);

/* As slurm-topology, all hosts of a tree that are called PREFIXh0, PREFIXh1, …. Returns 0; -ENOMEM
 * with one sentence in why; or the -errno of the file. */
int fabric_launch_topology(FILE *to, const struct fabric_pgft *pgft, const char *prefix, char *why,
			   size_t why_size);

#endif
