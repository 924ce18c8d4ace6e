/* The large names that programs call, with counts as wide as memory, where the MPI has them (MPI
 * 4). */
#include <mpi.h>

#if MPI_VERSION >= 4

#define NAME(op) MPI_##op##_c
#define OWN(op)  PMPI_##op##_c
#define COUNT    MPI_Count
#define DISPL    MPI_Aint
#define COUNTS   large
#define DISPLS   far
#include "coll_mpi_names.h"

#endif
