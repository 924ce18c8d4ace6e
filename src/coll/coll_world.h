/* What is made once, in MPI_Init, where all ranks are: a communicator of our own, for messages
 * between ranks of whatever communicator, and who shares a host with whom.
 *
 * So a communicator is set up without making any of the MPI's: threads of the program may be making
 * some at that moment, and an MPI that makes them one after another, in an order of its own, may
 * then wait for ever. Ranks that are not of MPI_COMM_WORLD, as of programs that were spawned, are
 * not known; communicators with such are left to the MPI, by all of their ranks.
 */
#ifndef WEFT_COLL_WORLD_H
#define WEFT_COLL_WORLD_H

#include <stdbool.h>

#include <mpi.h>

/* Errors are returned. MPI_COMM_NULL before coll_world_init. */
extern MPI_Comm coll_world;

/* Collective over MPI_COMM_WORLD. 0 or -errno, on all ranks alike as far as the MPI is. */
int coll_world_init(void);

/* The numbers in MPI_COMM_WORLD of `size` ranks of a communicator. Whether all have one. */
bool coll_world_ranks(MPI_Comm comm, int size, int *of);

int coll_world_size(void);

/* The first rank of MPI_COMM_WORLD on the host of one. */
int coll_world_leader(int rank);

/* The first of some tags, COLL_TAGS of them, that only this rank gives out, to a communicator whose
 * first one it is; -1: none is left. Given back when no message with them can be under way. */
enum coll_tag { COLL_TAG_AGREE, COLL_TAG_CLOCK, COLL_TAG_CARRIED, COLL_TAG_NONE, COLL_TAGS };
int coll_world_tag(void);
void coll_world_tag_free(int tag);

#endif
