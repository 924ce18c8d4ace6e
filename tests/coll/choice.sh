#!/bin/bash
# What is chosen automatically, as WEFT_COLL_STATS says it.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
program=$BUILD/tests/coll/openmpi/coll_check
needs_mpi "$program"

# said RANKS PART [VAR=VALUE]...: what a run says of itself, with what the program says of its results.
said() {
	run timeout -k 5 60 env WEFT_COLL_STATS=1 "${@:3}" "$WEFT" run --coll -n "$1" "$program" -t 1 -p "$2"
	check_code 0
	check_has "$out" " checks, 0 failures"
}

# Both ways of MPI_Alltoallv are tried, and then one is chosen for all sizes.
said 4 alltoallv
check_has "$err" "alltoallv by mpi: "
check_has "$err" "alltoallv by pap_direct: "
check_has "$err" "alltoallv of any size: "
check_lacks "$err" "alltoallv by pap_shm_direct: "

# On one host pairs need no network.
said 3 alltoall WEFT_COLL=alltoall=pap_direct WEFT_COLL_PROVIDER=none
check_has "$err" "alltoall by pap_direct: "
finish
