#!/bin/bash
# bench_stripe.sh: refuses what it does not understand, measures what does not need a quiet machine,
# and leaves no lab behind when it is interrupted. Links that fail under messages lose none of them.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || exit 77
export WEFT_BUILD=$BUILD
WEFT=$BUILD/bin/weft
script=$SOURCE/src/bench/bench_stripe.sh
[ -x "$BUILD/bin/weft-mpi-perf.openmpi" ] || exit 77

"$script" -h >"$tmp/help" || fail "-h"
for word in drc coll hotspot jobs fail sim "Exit status"; do
	grep -q -- "$word" "$tmp/help" || fail "-h does not mention $word"
done
refuses "there is no part 'frobnicate'" sim frobnicate
refuses "not a number of rounds: 'x'" -r x sim
refuses Usage: -Z

# Medians and ratios of rounds, by the simulator, which gives the same every time.
timeout 100 "$script" -q -r 2 -p "single hsam:12" -u pull:12 -o "$tmp" sim >"$tmp/table" 2>"$tmp/err" ||
	fail "sim"
holds '[.results[].policy] | unique == ["hsam:12", "pull:12", "single"]' "$tmp/stripe-sim.json"
holds 'all(.results[]; (.rounds | length) == 2 and (.median - (.rounds | add) / 2 | fabs) < 0.1)' \
	"$tmp/stripe-sim.json"
holds '(.targets | length) == 3 and all(.targets[]; .pass == (.value <= .limit) and .q1 <= .q3)' \
	"$tmp/stripe-sim.json"
grep -Eq '64 drc hashed: pull:12 / hsam:12 .* <= 1 (PASS|MISS)$' "$tmp/table" || fail "no target in the table"
"$PERF" report "$tmp/stripe-sim.json" >"$tmp/report" 2>&1 || fail "weft-perf does not understand it"
grep -q 'pull:12 / hsam:12' "$tmp/report" || fail "a target is missing in the report"

"$WEFT" lab up "t$$try" --pgft "1;2;1;1" >/dev/null 2>"$tmp/err" || {
	echo "skipped: $(cat "$tmp/err")"
	exit 77
}
"$WEFT" lab down "t$$try" >/dev/null

# Labs of the script have its number in their names.
"$script" -q drc >"$tmp/out" 2>"$tmp/err" &
bench_pid=$!
for ((i = 0; i < 300; i++)); do
	! "$WEFT" lab list --json | grep -q "\"st$bench_pid-1\"" || break
	sleep 0.1
done
sleep 1
kill -TERM $bench_pid
wait $bench_pid
[ $? -eq 143 ] || fail "a signal did not end it"
! "$WEFT" lab list --json | grep -q "\"st$bench_pid-" || fail "a lab is left"

timeout 150 "$script" -q -o "$tmp" fail >"$tmp/table" 2>"$tmp/err" || fail "links that fail"
holds 'def of(k): .results[] | select(.key | startswith(k)) | .median;
	of("messages") >= 8 * 40 and of("links cut") > 0 and of("packets sent again") > 0' \
	"$tmp/stripe-fail.json"
echo "ok, $checks checks"
