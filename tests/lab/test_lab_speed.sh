#!/bin/bash
# The largest lab that we promise a time for: 144 hosts within five seconds on two cores.
. "$SOURCE/tests/lab/lib.sh"
needs_labs
for tree in "2;12,12;1,6;1,2" "2;12,12;1,12;1,1"; do
	for routing in dmodk lmc:2; do
		started=${EPOCHREALTIME/./}
		lab_new "${prefix}s" --pgft "$tree" --routing "$routing"
		up=$(((${EPOCHREALTIME/./} - started) / 1000))
		started=${EPOCHREALTIME/./}
		lab_end "${prefix}s"
		down=$(((${EPOCHREALTIME/./} - started) / 1000))
		echo "$tree $routing: up $up ms, down $down ms"
		check_true [ "$up" -le 5000 ]
		check_true [ "$down" -le 5000 ]
	done
done
finish
