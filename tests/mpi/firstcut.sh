#!/bin/bash
# A path that is to be used for the first time while its cable is out: what was to take it goes over
# others after half a second, and the peer is not given up. hop tries new paths all the time.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
program=$BUILD/bin/weft-mpi-perf.openmpi
needs_mpi "$program"
needs_labs
lab_new "${prefix}fc" --pgft "2;1,2;1,8;1,1" --rate 100mbit --routing ecmp

# Contact is given up after ten seconds: they have to be out for longer. At the end they are back, or
# the MPI's own connections, which know one way only, would not end either.
cables=(s1.1-s2.2 s1.1-s2.4 s1.1-s2.6)
(
	sleep 2.5
	"$WEFT" lab fail "${prefix}fc" "${cables[@]}"
	sleep 11.5
	"$WEFT" lab heal "${prefix}fc" "${cables[@]}"
) >/dev/null &
cut=$!
run env FI_WEFT_STRIPING=hop:12 "$WEFT" run --lab "${prefix}fc" -n 2 "$program" trace -m 2M -T 15 --json
check_code 0
wait "$cut"
check_eq "$?" 0
# Others go on: 100 Mbit/s are 80 messages in 15 s.
check_true [ "$(grep -c '"message"' <<<"$out")" -gt 20 ]
lab_end "${prefix}fc"
finish
