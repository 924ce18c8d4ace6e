#!/bin/bash
# weft paths: a program whose messages are divided is watched from outside of its lab and from a
# host of it, by what it carries, and no more when it is killed; where nothing can be shown, it runs.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
program=$BUILD/bin/weft-mpi-perf.openmpi
needs_mpi "$program"
needs_labs
name=${prefix}wa
lab_new "$name" --pgft "1;2;1;1" --rate 200mbit
export WEFT_LIVE_DIR=$tmp/live

# start POLICY SECONDS [NAME=VALUE]...: the program runs, and shows its paths.
start() {
	env FI_WEFT_STATS=yes FI_WEFT_STRIPING="$1" "${@:3}" "$WEFT" run --lab "$name" -n 2 \
		"$program" alltoall -m 1M -i 100000 -w 1 -T "$2" >"$tmp/job" 2>&1 &
	job=$!
}

shown() { "$WEFT" paths --interval "${1:-50ms}" --json "${@:2}"; }

# Whether this is so of what was seen.
holds() { jq -e "$1" <<<"$look" >/dev/null; }

# until_shown N: so many processes are.
until_shown() {
	for ((i = 0; i < 200; i++)); do
		[ "$(shown 50ms | jq '.processes | length')" = "$1" ] && return 0
	done
	return 1
}

# ---- watched while it runs ----
start even:4 90 # until it is killed: on a busy machine, looks take seconds
check_true until_shown 2
look=$(shown 1s)
check_eq "$(jq -c '[.processes[].host]' <<<"$look")" "[\"$name-h0\",\"$name-h1\"]"
check_eq "$(jq -c '[.processes[].peers | length]' <<<"$look")" "[1,1]"
check_eq "$(jq -c '[.processes[].peers[].policy] | unique' <<<"$look")" '["even:4"]'
check_eq "$(jq -c '[.processes[].program] | unique' <<<"$look")" '["weft-mpi-perf.openmpi"]'
# Both ways of a cable of 25 MB/s, no path faster than the cable. What differs between paths is of
# messages that are on the way.
echo "MB/s: $(jq -c '[.processes[].peers[] | .mb_per_s, .paths[].mb_per_s_busy]' <<<"$look")"
check_true holds '[.processes[].peers[].mb_per_s] | add | . > 0.5 and . < 60'
check_true holds '[.processes[].peers[].paths[].mb_per_s_busy] | all(. > 0 and . < 30)'
check_true holds '[.processes[].peers[].paths | map(.bytes) | min > 0 and max - min <= 1048576] | all'
check_true holds '[.processes[].peers[].paths | map(.pieces) | min > 0 and max - min <= 4] | all'
# The number of the process is the one that it has here.
pid=$(jq '.processes[0].pid' <<<"$look")
check_has "$(cat "/proc/$pid/cmdline" 2>/dev/null | tr '\0' ' ')" weft-mpi-perf
# From inside of the lab, and one host of it.
run lab exec "$name" h1 -- "$WEFT" paths --interval 300ms --host h0
check_code 0
check_has "$out" "$name-h0 "
check_lacks "$out" "$name-h1 "
kill "$job"
wait "$job"
check_true until_shown 0
check_eq "$(ls "$WEFT_LIVE_DIR")" ""

# ---- until it ends ----
start even:4 1
wait "$job"
check_eq "$?" 0
check_eq "$(ls "$WEFT_LIVE_DIR")" ""
check_eq "$(grep -c ' by path: .* MB at [0-9.]* MB/s ([0-9.]*), ' "$tmp/job")" 2

# ---- a cable that fails: paths that are hashed to it are down, until it is back ----
lab_new "${prefix}wb" --pgft "2;1,2;1,4;1,1" --rate 200mbit --routing ecmp
down() { shown 100ms | jq '[.processes[].peers[].paths[] | select(.down)] | length'; }
until_down() {
	for ((i = 0; i < 100; i++)); do
		[ "$(down)" "$@" ] && return 0
	done
	return 1
}
name=${prefix}wb start even:8 90
check_true until_shown 2
# Where ports are hashed to is nobody's choice: one cable may have none of the eight.
for cable in s1.0-s2.1 s1.0-s2.2 s1.1-s2.0; do
	run lab fail "${prefix}wb" $cable
	until_down -gt 0 && break
	echo "no path was down without $cable: $(shown | jq -c '[.processes[].peers[].paths[].bytes]')"
	run lab heal "${prefix}wb" --all
	cable=none
done
check_true [ $cable != none ]
run lab heal "${prefix}wb" --all
check_true until_down -eq 0
check_eq "$(shown | jq '.processes | length')" 2
kill "$job"
wait "$job"
lab_end "${prefix}wb"

# ---- killed ----
start hop 20
check_true until_shown 2
for pid in $(shown 50ms | jq '.processes[].pid'); do
	kill -KILL "$pid"
done
wait "$job"
check_true until_shown 0
check_eq "$(ls "$WEFT_LIVE_DIR")" ""

# ---- not wanted, and not possible ----
start even:4 2 FI_WEFT_LIVE=no
sleep 1.5
check_true until_shown 0
wait "$job"
check_eq "$?" 0
check_eq "$(ls "$WEFT_LIVE_DIR")" ""
start even:4 1 WEFT_LIVE_DIR=/proc/nowhere
wait "$job"
check_eq "$?" 0
check_eq "$(grep -c "warn: paths are not shown to 'weft paths': /proc/nowhere: " "$tmp/job")" 2
lab_end "$name"
finish
