#!/bin/bash
# A rank is killed in a collective: the others get errors, in each variant.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
mpi=${1:?openmpi or mpich}
program=$BUILD/tests/coll/$mpi/coll_killed
needs_mpi "$program"
case $mpi in
openmpi) survive=--enable-recovery ;;
mpich) survive=-disable-auto-cleanup ;;
esac

# killed [OPERATION=]VARIANT BYTES [WEFT-RUN-OPTION]...: the three that are left say so.
killed() {
	local bytes=$2 op=alltoall
	[[ $1 != *=* ]] || op=${1%%=*}
	export WEFT_COLL=$op=${1#*=}
	shift 2
	run timeout -k 5 60 "$WEFT" run --coll "$@" -n 4 --mpi-args $survive "$program" "$bytes" "$op"
	printf '%s: %s\n' "$WEFT_COLL" "$out"
	check_eq "$(grep -c "^rank [012], $bytes bytes: an error after .*, another after" <<<"$out")" 3
}

# Hydra's proxy often does not survive a rank that it has started; on a lab each host has its own.
if [ "$mpi" = openmpi ]; then
	killed pap_shm_direct 4
	killed pap_direct 4
	killed direct 100000
	killed allreduce=tree 4
	killed barrier=dissem 4
	killed bcast=tree 4
fi
needs_labs
lab_new "${prefix}kill" --pgft "1;4;1;1"
killed pap_shm_direct 4 --lab "${prefix}kill"
killed pap_direct 100000 --lab "${prefix}kill"
killed allreduce=tree 4 --lab "${prefix}kill"
killed reduce_scatter=halving 40 --lab "${prefix}kill"
killed allgather=tree 4 --lab "${prefix}kill"
killed barrier=dissem 4 --lab "${prefix}kill"
killed bcast=direct 4 --lab "${prefix}kill"
lab_end "${prefix}kill"
finish
