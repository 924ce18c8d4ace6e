#!/bin/bash
# What does not fit into an int, and that large names go the same ways as small ones.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
tried=0
export WEFT_COLL_STATS=yes
export WEFT_COLL=alltoall=pap_direct,alltoallv=pap_direct,allgather=tree,bcast=tree,allreduce=tree,reduce_scatter=tree
for mpi in openmpi mpich; do
	program=$BUILD/tests/coll/$mpi/coll_large
	[ -x "$program" ] || continue
	tried=1
	run timeout -k 5 60 "$WEFT" run --coll -n 3 "$program"
	check_code 0
	check_has "$out" " checks, 0 failures"
	check_has "$err" "3 ranks on 1 hosts: alltoallv by pap_direct: "
	[ "$mpi" = mpich ] || continue
	# Of each, so many calls of the program have something to move.
	for ways in "alltoall by pap_direct: 8" "alltoallv by pap_direct: 8" "allgather by tree: 8" \
		"bcast by tree: 4" "allreduce by tree: 4" "reduce_scatter by tree: 4"; do
		check_has "$err" "3 ranks on 1 hosts: $ways calls"
	done
done
if [ $tried -eq 0 ]; then
	echo "skipped: there are no MPI programs"
	exit 77
fi
finish
