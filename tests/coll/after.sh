#!/bin/bash
# When a communicator is set up: at once, after some calls, and that of all ranks always at once.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
export WEFT_COLL_STATS=yes WEFT_COLL=allreduce=tree,bcast=tree,barrier=dissem
tried=0
for mpi in openmpi mpich; do
	program=$BUILD/tests/coll/$mpi/coll_after
	[ -x "$program" ] || continue
	tried=1
	for after in 0 3 5 100; do
		run env WEFT_COLL_AFTER=$after timeout -k 5 60 "$WEFT" run --coll -n 2 "$program"
		check_code 0
		check_has "$out" " checks, 0 failures"
		# Of 0, 1, ... 7 calls; those of all ranks are of the test's own.
		expect=0
		for ((n = 0; n < 8; n++)); do
			[ $n -le $after ] || expect=$((expect + n - after))
		done
		check_eq "$after: $(sed -n 's/.* by \(tree\|dissem\): \([0-9]*\) calls.*/\2/p' <<<"$err" |
			awk '{ n += $1 } END { print n + 0 }')" "$after: $expect"
	done
	# Ranks whose launcher has given them unlike settings: the most that one of them has holds for all.
	# shellcheck disable=SC2016 # it is the rank's shell that knows
	unlike='case ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} in 1) export $1;; esac; exec "$2"'
	for setting in WEFT_COLL_AFTER=100 WEFT_COLL=off; do
		run env WEFT_COLL_AFTER=0 timeout -k 5 60 "$WEFT" run --coll --mpi $mpi -n 2 sh -c "$unlike" - \
			$setting "$program"
		check_code 0
		check_has "$out" " checks, 0 failures"
		check_has "$err" "coll: ${setting%=100} is not the same on all ranks"
		check_lacks "$err" " by dissem: "
	done
	run env WEFT_COLL_AFTER=100 timeout -k 5 60 "$WEFT" run --coll --mpi $mpi -n 2 sh -c "$unlike" - \
		WEFT_COLL_SAME_SUMS=yes "$program"
	check_code 0
	check_has "$err" "coll: WEFT_COLL_SAME_SUMS is not the same on all ranks"
	check_has "$err" "allreduce by tree: "
	# Not where it would matter to sums.
	run env WEFT_COLL_AFTER=100 WEFT_COLL_SAME_SUMS=yes timeout -k 5 60 "$WEFT" run --coll -n 2 "$program"
	check_code 0
	check_has "$err" "allreduce by tree: "
done
if [ $tried -eq 0 ]; then
	echo "skipped: there are no MPI programs"
	exit 77
fi
finish
