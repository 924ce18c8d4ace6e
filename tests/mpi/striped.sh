#!/bin/bash
# FI_WEFT_STRIPING: long messages go over as many paths as it says, short ones do not, and a name
# that there is not is told, and does no harm. Eager messages to another host are copied when they
# are under way.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
program=$BUILD/bin/weft-mpi-perf.openmpi
needs_mpi "$program"
needs_labs
lab_new "${prefix}st" --pgft "1;2;1;1"

# striped POLICY [NAME=VALUE]...: how many paths have carried something, of each peer.
striped() {
	run env FI_WEFT_STATS=yes FI_WEFT_STRIPING="$1" "${@:2}" "$WEFT" run --lab "${prefix}st" -n 2 \
		"$program" latency -m 256K:1M -i 10 -w 2 -T 10
	check_code 0
	used=$(sed -n 's/.* by path: //p' <<<"$err" | sed 's/[^,]* 0\.0 MB [^,]*,*//g' |
		awk -F, '{ printf "%s%d", (NR > 1 ? " " : ""), NF }')
}

striped even:4
check_eq "$used" "4 4"
striped hsam FI_WEFT_PATHS=3
check_eq "$used" "3 3"
striped roundrobin:5
check_eq "$used" "5 5"
striped single
check_eq "$used" ""
striped even:4 FI_WEFT_STRIPE_MIN=16384k
check_eq "$used" ""
# Each path a connection: the first message does not wait for them.
striped even:4 FI_WEFT_TRANSPORT=rc
check_eq "$used" "4 4"
striped hsam:3 FI_WEFT_TRANSPORT=rc FI_WEFT_RENDEZVOUS=write
check_eq "$used" "3 3"
for wrong in AUTO hsam:99; do
	striped $wrong
	check_eq "$used" "" # as with auto
	check_has "$err" "FI_WEFT_STRIPING"
	check_has "$err" "$wrong"
done
for reuse in auto no; do
	run env FI_WEFT_STATS=yes FI_WEFT_REUSE=$reuse "$WEFT" run --lab "${prefix}st" -n 2 \
		"$program" latency -m 16K -i 10 -w 2 -T 10
	check_code 0
	check_eq "$reuse $(grep -c '^weft\[[0-9]*\]: [1-9][0-9]* messages went from the application.s memory, .*$' <<<"$err")" \
		"$reuse $([ $reuse = no ] && echo 0 || echo 2)"
done
lab_end "${prefix}st"

# auto: where four hosts share one cable to the other leaf, packets are lost and other paths are
# tried, although they do not help; where each has a spine for itself there is nothing to try.
crowd() { # TUPLE
	lab_new "${prefix}au" --pgft "$1" --rate 100mbit
	run env FI_WEFT_STATS=yes "$WEFT" run --lab "${prefix}au" -n 8 "$program" drc --steps 4 -m 1M \
		-i 12 -w 1 -T 20
	check_code 0
	used=$(grep -c ' by path: ' <<<"$err")
	lab_end "${prefix}au"
}

crowd "2;4,2;1,1;1,1"
check_true [ "$used" -gt 0 ]
crowd "2;4,2;1,4;1,1"
check_eq "$used" 0
finish
