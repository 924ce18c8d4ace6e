#!/bin/bash
# Without room for shared memory, the MPI does it all, and says why.
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
dir=$BUILD/tests/coll/openmpi
needs_mpi "$dir/coll_ends"
run env WEFT_COLL_STATS=yes LD_PRELOAD="$dir/coll_noshm.so" timeout -k 5 60 "$WEFT" run --coll -n 3 "$dir/coll_ends"
check_code 0
check_has "$out" " checks, 0 failures"
check_has "$err" "No space left on device"
check_lacks "$err" "alltoall by"
finish
