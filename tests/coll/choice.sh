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

# Between four hosts a barrier is one round of three messages or two of one: both are tried, by the first
# barrier only, and of two hosts there is nothing to try.
needs_labs
lab_new "${prefix}ways" --pgft "1;4;1;1"
barriers() {
	run timeout -k 5 60 env WEFT_COLL_STATS=1 WEFT_COLL=barrier=dissem "$WEFT" run --coll \
		--lab "${prefix}ways" -n "$1" "$program" -t 0.1 -p "$2"
	check_code 0
	check_has "$out" " checks, 0 failures"
	grep 'barrier [0-9]* ways in' <<<"$err" >"$tmp/ways"
}
barriers 7 barrier
check_true grep -q 'barrier [13] ways in [12] rounds (measured: .*1 way [0-9.]* us' "$tmp/ways"
check_true grep -q 'measured: .*3 ways [0-9.]* us' "$tmp/ways"
barriers 2 barrier
check_true grep -q 'barrier 1 ways in 1 rounds; ' "$tmp/ways"
lab_end "${prefix}ways"
finish
