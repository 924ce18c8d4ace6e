#!/bin/bash
# The demo, second part: an MPI program on a fat tree of 24 hosts, under three routings. Real
# packets; what differs is which links they meet on. Takes half a minute. Everything that it
# starts it also ends.
#
#   scripts/demo_lab.sh [--quick]      --quick: fewer messages, rough numbers
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
BUILD=${WEFT_BUILD:-$PWD/build}
WEFT=$BUILD/bin/weft
iterations=8
[ "${1:-}" != --quick ] || iterations=2
tmp=$(mktemp -d)
# A place of its own: a lab of the user that is called the same is another one.
export WEFT_LAB_DIR=$tmp/labs
mkdir -m 700 "$WEFT_LAB_DIR"
picture=$BUILD/demo-lab.svg
job= # the process that is running
failed=0

cleanup() {
	trap '' INT TERM
	trap - EXIT
	[ -z "$job" ] || kill "$job" 2>/dev/null
	"$WEFT" lab down --all >/dev/null 2>&1
	wait
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'cleanup; exit 130' INT
trap 'cleanup; exit 143' TERM

# In the background, so that a signal is not kept waiting.
runs() {
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
	job=$!
	wait "$job"
	local code=$?
	job=
	return $code
}

give_up() {
	echo "demo: $*" >&2
	cat "$tmp/err" "$tmp/out" >&2
	failed=1
}

# The program: in each step every rank sends to another one, and all at once.
program() {
	command -v mpicc.openmpi >/dev/null && runs mpicc.openmpi -O2 -o "$tmp/drc" examples/drc.c
}

# routing NAME: one row of the table. The picture is taken while messages are under way.
routing() {
	local hottest
	runs "$WEFT" lab up demo --pgft "2;12,2;1,12;1,1" --rate 100mbit --routing "$1" ||
		{ give_up "the lab does not come up"; return; }
	# Open MPI's put protocol halves what a pair exchanges over one connection, whatever
	# the network; without it (btl_tcp_flags) the network is what is seen.
	"$WEFT" run --lab demo -n 24 --mpi-args "--mca pml ob1 --mca btl tcp,self --mca btl_tcp_flags 1" \
		"$tmp/drc" -s 1m -i $iterations -w 1 --steps 11-13 --csv >"$tmp/out" 2>"$tmp/err" </dev/null &
	job=$!
	while kill -0 "$job" 2>/dev/null && ! grep -q '^11,' "$tmp/out"; do
		sleep 0.1
	done
	[ "$1" != ecmp ] || "$WEFT" lab draw demo --interval 0.5 -o "$picture" 2>/dev/null >&2
	if ! wait "$job"; then
		job=
		give_up "the MPI program failed"
	else
		job=
		hottest=$(awk -F, '$1 == 12 { print 12.5 / $3 }' "$tmp/out")
		awk -F, -v name="$1" -v h="$hottest" '$1 == 12 {
			printf "  %-10s %7.1f MB/s %9.1f MB/s %10.1f MB/s %9.1fx\n", name, $2, $5, $3, h }' "$tmp/out"
	fi
	runs "$WEFT" lab down demo
}

main() {
	local name
	echo "An MPI program on a fat tree: 24 hosts, 2 leaf and 12 spine switches, 100 Mbit/s links"
	if ! runs "$WEFT" lab up demo --pgft "1;2;1;1"; then
		echo "skipped: $(cat "$tmp/err")"
		return 0
	fi
	runs "$WEFT" lab down demo
	program || { give_up "examples/drc.c can not be compiled"; return 1; }
	echo "examples/drc.c with stock Open MPI over TCP: every rank sends to the one 12 further on,"
	echo "which is behind the other leaf. 12 paths for 12 flows each way; 12.5 MB/s is the link."
	echo
	printf '  %-10s %12s %14s %15s %10s\n' routing "rank 0" mean "worst rank" "slower by"
	for name in dmodk random:1 ecmp; do
		routing "$name"
	done
	echo
	echo "D-Mod-K gives each flow a path of its own; where flows are hashed (ecmp) or the table"
	echo "knows nothing of the pattern (random), several share a link and wait for each other."
	[ ! -s "$picture" ] || echo "The links under ecmp, coloured by load: ${picture#"$PWD"/}"
	[ $failed -eq 0 ]
}
main
