#!/bin/bash
# A rank is killed: the others get errors, whatever they were waiting for.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
program=$BUILD/tests/mpi/openmpi/mpi_killed
needs_mpi "$program"

# killed HOW [WEFT-RUN-OPTION]...: both that are left say so.
killed() {
	local how=$1
	shift
	run timeout -k 5 60 "$WEFT" run "$@" -n 3 --mpi-args --enable-recovery "$program" "$how"
	printf '%s\n' "$out"
	check_eq "$(grep -c "^rank [01], $how: an error after" <<<"$out")" 2
}

killed recv
killed send-long
needs_labs
lab_new "${prefix}kill" --pgft "1;3;1;1"
killed recv-long --lab "${prefix}kill"
killed send --lab "${prefix}kill"
export FI_WEFT_TRANSPORT=rc
killed send-long --lab "${prefix}kill"
lab_end "${prefix}kill"
finish
