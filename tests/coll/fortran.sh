#!/bin/bash
# Fortran programs are caught, by whatever interface: the library counts their calls.
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"

# program USE...: MPI_Alltoall there and in place, MPI_Alltoallv.
program() {
	cat <<END
program coll
  $1
  implicit none
  $2
  integer :: size, rank, ierr, i
  integer, allocatable :: a(:), b(:), n(:), d(:)
  call MPI_Init(ierr)
  call MPI_Comm_size(MPI_COMM_WORLD, size, ierr)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierr)
  allocate(a(size), b(size), n(size), d(size))
  a = [(rank * 100 + i - 1, i = 1, size)]
  n = 1
  d = [(i - 1, i = 1, size)]
  call MPI_Alltoall(a, 1, MPI_INTEGER, b, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  if (any(b /= [((i - 1) * 100 + rank, i = 1, size)])) error stop 1
  call MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, a, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  if (any(a /= b)) error stop 2
  call MPI_Alltoallv(b, n, d, MPI_INTEGER, a, n, d, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  if (any(a /= [(rank * 100 + i - 1, i = 1, size)])) error stop 3
  call MPI_Allgather(rank, 1, MPI_INTEGER, b, 1, MPI_INTEGER, MPI_COMM_WORLD, ierr)
  if (any(b /= d)) error stop 4
  i = rank
  call MPI_Bcast(i, 1, MPI_INTEGER, size - 1, MPI_COMM_WORLD, ierr)
  if (i /= size - 1) error stop 5
  call MPI_Allreduce(d, b, size, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (any(b /= size * d)) error stop 6
  call MPI_Reduce_scatter(d, i, n, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (i /= size * rank) error stop 7
  call MPI_Reduce_scatter_block(d, i, 1, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierr)
  if (i /= size * rank) error stop 8
  call MPI_Barrier(MPI_COMM_WORLD, ierr)
  call MPI_Finalize(ierr)
end program
END
}

ways=alltoall=pap_shm_direct,alltoallv=pap_direct,allgather=tree,bcast=tree,allreduce=tree,reduce_scatter=tree,barrier=dissem
tried=0
cd "$tmp" || exit 1
program "" "include 'mpif.h'" >mpif.f90
program "use mpi" "" >mpi.f90
program "use mpi_f08" "" >f08.f90
for mpi in openmpi mpich; do
	[ -e "$BUILD/lib/libweft-coll.$mpi.so" ] || continue
	for how in mpif mpi f08; do
		"mpif90.$mpi" -fallow-argument-mismatch -o $how-$mpi $how.f90 >log 2>&1 || continue
		tried=1
		run env WEFT_COLL_STATS=yes WEFT_COLL=$ways timeout -k 5 60 "$WEFT" run --coll -n 3 ./$how-$mpi
		check_code 0
		check_has "$err" "alltoall by pap_shm_direct: 2 calls"
		check_has "$err" "alltoallv by pap_direct: 1 calls"
		check_has "$err" "allgather by tree: 1 calls"
		check_has "$err" "bcast by tree: 1 calls"
		check_has "$err" "allreduce by tree: 1 calls"
		check_has "$err" "reduce_scatter by tree: 2 calls"
		check_has "$err" "barrier by dissem: 1 calls"
	done
done
if [ $tried -eq 0 ]; then
	echo "skipped: no Fortran compiler of an MPI"
	exit 77
fi
finish
