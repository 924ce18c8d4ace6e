#!/bin/bash
# Shared memory of a host is not all for communicators of ours: the MPI still has what it needs, and it is said
# once what would help. And nothing is left in it.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
small=(unshare -m sh -c 'mount -t tmpfs -o size=64m tmpfs /dev/shm && "$@" && ls /dev/shm >&2' sh)
if ! "${small[@]}" true 2>/dev/null; then
	echo "skipped: no permission to mount a small /dev/shm"
	exit 77
fi
tried=0
export WEFT_COLL_STATS=yes
for mpi in openmpi mpich; do
	program=$BUILD/tests/coll/$mpi/coll_room
	[ -x "$program" ] || continue
	tried=1
	# MPICH's ranks do not yield, and it takes half of that memory by itself: fewer are enough.
	run "${small[@]}" timeout -k 5 90 "$WEFT" run --coll -n 8 "$program" -n "$([ $mpi = openmpi ] && echo 40 || echo 12)"
	check_code 0
	check_has "$out" " checks, 0 failures"
	check_eq "$(grep -c "no shared memory for 8 ranks of this host: .*A larger one would help" <<<"$err")" 1
	check_eq "$(grep -c "left to the MPI" <<<"$err")" 1
	check_lacks "$err" "weft-coll-"
	ours=$(grep -c "8 ranks on 1 hosts: allreduce by" <<<"$err")
	echo "$mpi: $ours communicators were ours"
	[ "$ours" -ge 1 ] || fail "$mpi: no communicator had room" "$err"
done
if [ $tried -eq 0 ]; then
	echo "skipped: there are no MPI programs"
	exit 77
fi
finish
