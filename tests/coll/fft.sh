#!/bin/bash
# examples/fft.c: the same sums by any number of ranks, and a wrong MPI_Alltoall is noticed.
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
dir=$BUILD/tests/coll/openmpi
needs_mpi "$dir/fft"

# fft RANKS OPTIONS
fft() {
	run timeout -k 5 60 "$WEFT" run -n "$1" "$dir/fft" "${@:2}"
}

# sum: of the second line, to as many digits as do not depend on the order of additions.
sum() { sed -n 2p <<<"$out" | awk -F, '{ printf "%.9g %.9g\n", $4, $5 }'; }

fft 1 -s 16,32,8 --csv
check_code 0
first=$(sum)
for ranks in 2 4; do
	fft $ranks -s 16,32,8 --csv --own -r 2
	check_code 0
	check_eq "$(wc -l <<<"$out")" 3
	check_eq "$(sum)" "$first"
done
fft 2 -c S -i 1
check_code 0
check_has "$out" ": right"
fft 3 -c S
check_code 2
check_has "$err" "3 ranks do not divide 64 and 64 planes"
fft 1 -s 12,16,16
check_code 2
check_has "$err" Usage:

export COLL_WRONG=alltoall LD_PRELOAD=$dir/coll_wrong.so
fft 2 -s 16,16,16
unset COLL_WRONG LD_PRELOAD
check_code 1
check_has "$err" WRONG
finish
