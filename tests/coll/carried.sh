#!/bin/bash
# Memory of one rank can not be registered: the MPI carries what goes there, and it says so.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
tried=0
export WEFT_COLL_STATS=yes
for mpi in openmpi mpich; do
	[ ! -x "$BUILD/tests/coll/$mpi/coll_carried" ] || tried=1
done
if [ $tried -eq 0 ]; then
	echo "skipped: there are no MPI programs"
	exit 77
fi
# Between hosts only: on one, nothing needs to be registered.
needs_labs
lab_new "${prefix}carry" --pgft "1;4;1;1"
for mpi in openmpi mpich; do
	program=$BUILD/tests/coll/$mpi/coll_carried
	[ -x "$program" ] || continue
	for way in direct pap_direct; do
		[ "$mpi" = openmpi ] || [ $way = pap_direct ] || continue
		# A hole needs two blocks of other hosts. MPICH's ranks do not yield, so no more than that.
		run env WEFT_COLL=alltoallv=$way timeout -k 5 60 "$WEFT" run --coll \
			--lab "${prefix}carry" -n "$([ "$mpi" = openmpi ] && echo 5 || echo 3)" "$program" -n 40 -t 20
		check_code 0
		check_has "$out" " checks, 0 failures"
		check_has "$err" "alltoallv by $way: "
		carried=$(sed -n 's/.* \([0-9]*\) messages carried by the MPI.*/\1/p' <<<"$err")
		echo "$mpi, $way: rank 0 had $carried messages carried"
		[ "${carried:-0}" -gt 0 ] || fail "$mpi, $way: nothing was carried" "$err"
	done
done
lab_end "${prefix}carry"
finish
