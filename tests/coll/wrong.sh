#!/bin/bash
# coll_check finds what is wrong, names the case, and the case can be repeated by itself.
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
dir=$BUILD/tests/coll/openmpi
needs_mpi "$dir/coll_check"

# wrong OP ARGUMENTS: with an interposer whose OP is wrong.
wrong() {
	run env COLL_WRONG="$1" LD_PRELOAD="$dir/coll_wrong.so" timeout -k 5 60 "$WEFT" run -n 3 \
		"$dir/coll_check" -n 24 -t 5 -s 3 -p "${@:2}"
}

for op in alltoallv allreduce; do
	wrong $op $op
	[ "$code" -ne 0 ] || fail "$op: a wrong result was not found"
	check_has "$out" "FAIL $op: rank"
	check_has "$err" "to repeat: COLL_CASE="
	number=$(sed -n 's/.*COLL_CASE=\([0-9]*\),.*/\1/p' <<<"$err" | head -n 1)
	export COLL_CASE=$number
	wrong $op $op
	unset COLL_CASE
	check_has "$out$err" "$op:$number:"
	[ "$code" -ne 0 ] || fail "$op: case $number was right when it was repeated"
done
wrong barrier barrier
check_has "$out" "FAIL barrier: rank"
check_has "$out" "before the last one came"

# The same without anything wrong.
wrong none alltoallv
check_code 0
check_has "$out" " checks, 0 failures"
finish
