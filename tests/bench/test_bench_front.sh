#!/bin/bash
# weft bench mpi: stacks in turn, results in files, and nothing left when it is killed.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || exit 77
[ -x "$BUILD/bin/weft-mpi-perf.openmpi" ] || exit 77
script=$BUILD/bin/weft

# Ranks of ours: those whose command line has our mark.
mark=12$((RANDOM + 10000))
left() { pgrep -f -- "-i $mark" | grep -vx $$; }

# Time limits are far away: a run ends by its iterations, on a busy machine later.
timeout 300 "$script" bench mpi latency --a 'one: FI_X=1 --net stock' --b 'two: --net stock' -r 8 -T 100 \
	--json "$tmp/r.json" --csv "$tmp/r.csv" -- -m 8,1K -i 50 >"$tmp/out" 2>"$tmp/err" || fail "exit status $?"
holds '.weft_bench == 1 and (.env.mpi | startswith("Open MPI")) and .env.cores > 0 and
	([.series[].params | [.stack, .size]] | sort) == [["one", 8], ["one", 1024], ["two", 8], ["two", 1024]] and
	all(.series[]; .unit == "us" and .better == "lower" and (.samples | length) == 8 and all(.samples[]; . > 0))' \
	"$tmp/r.json"
[ "$(wc -l <"$tmp/r.csv")" -eq 33 ] || fail "not a row for each sample"
[ "$(grep -Ec '^(8|1024) +one +8 .* x two: (no difference|better|worse)$' "$tmp/out")" -eq 2 ] || fail "no verdicts"
grep -q 'round 8 of 8' "$tmp/err" || fail "no progress"

# Told to end, and killed: what was measured stays, and nobody else does.
for signal in TERM KILL; do
	rm -f "$tmp/k.json"
	"$script" bench mpi latency --compare stock -r 50 -T 20 --json "$tmp/k.json" -- -m 8 -i $mark \
		>"$tmp/out" 2>"$tmp/err" &
	pid=$!
	for ((i = 0; i < 600; i++)); do
		[ -e "$tmp/k.json" ] && [ -n "$(left)" ] && break
		sleep 0.1
	done
	kill -$signal $pid || fail "it had ended"
	wait $pid
	status=$?
	[ $signal = KILL ] || [ $status -eq 143 ] || fail "exit status $status after $signal"
	for ((i = 0; i < 150; i++)); do
		[ -n "$(left)" ] || break
		sleep 0.1
	done
	[ -z "$(left)" ] || fail "left after $signal: $(left)"
	holds '.series[0].samples | length >= 1' "$tmp/k.json"
	[ ! -e "$tmp/k.json.part" ] || [ $signal = KILL ] || fail "half a file is left"
done

# Without a delay nothing is asked of progress: there is no value, and no number is made of it.
timeout 120 "$script" bench mpi progress --compare stock -T 100 -- -m 64K -i 2 >"$tmp/out" 2>"$tmp/err" ||
	fail "progress: exit status $?"
[ "$(grep -Ec '^65536 .* 0 +stock +0 +-$' "$tmp/out")" -eq 4 ] || fail "progress: not four rows without a value"

# On Weft itself: a cache of registrations that is on notices that memory was replaced (a message
# that is wrong is a failure), and a receive that comes first is used.
timeout 120 "$script" bench mpi regcache --a 'cached: FI_WEFT_LOCAL=pieces FI_WEFT_CACHE=on' \
	--b 'not: FI_WEFT_LOCAL=pieces FI_WEFT_CACHE=off' -r 2 -T 60 --json "$tmp/c.json" -- -m 256K --buffers 8 -i 32 \
	>"$tmp/out" 2>"$tmp/err" || fail "regcache: exit status $?"
holds '([.series[].params | [.stack, .use]] | sort) == [["cached", "again"], ["cached", "first"],
	["cached", "remapped"], ["not", "again"], ["not", "first"], ["not", "remapped"]] and
	all(.series[]; (.samples | length) == 2 and all(.samples[]; . > 0))' "$tmp/c.json"
# hits PERCENT: of 60 messages, how often the receiver's word came first.
hits() {
	FI_WEFT_USAGE=0 FI_WEFT_STATS=yes timeout 60 "$script" run -n 2 "$BUILD/bin/weft-mpi-perf.openmpi" usage -m 1M \
		-i 50 -w 10 -T 30 -d 500 --percent "$1" 2>&1 >/dev/null | sed -n 's/.*RTRs sent [0-9]*, hit \([0-9]*\),.*/\1/p' |
		sort -n | tail -1
}
late=$(hits 0) early=$(hits 100)
[ "${early:-0}" -gt 20 ] && [ "${late:-99}" -lt "$early" ] || fail "RTRs hit: $early where receives are early, $late where not"
timeout 120 "$script" bench mpi multi-lat multi-bw bidir usage -q -- -i 5 -m 64K >"$tmp/out" 2>"$tmp/err" ||
	fail "new kinds: exit status $?"
[ "$(grep -c '^# .*median of up to 1 rounds' "$tmp/out")" -eq 4 ] || fail "not four tables"

timeout 20 "$script" bench mpi latency -p --compare weft-off,tcp >"$tmp/out" || fail "--print"
grep -q '^FI_WEFT_SPECULATE=no WEFT_PROGRESS=off .*latency' "$tmp/out" || fail "--print: no variables"
grep -q -- '--mca btl tcp,self' "$tmp/out" || fail "--print: no launcher's options"
timeout 20 "$script" bench --list >"$tmp/out" || fail "--list"
grep -q '^  overlap ' "$tmp/out" && grep -q '^  weft-rc ' "$tmp/out" &&
	grep -q 'weft bench verbs list' "$tmp/out" || fail "--list is not complete"
refuses "which kind" bench mpi
refuses "there is no kind 'frobnicate'" bench mpi frobnicate
refuses "there is no stack 'pigeon'" bench mpi latency --compare weft,pigeon
refuses "two stacks are called 'weft'" bench mpi latency --compare weft,weft
refuses "is not understood" bench mpi latency --a 'no colon'
refuses "expected 1 to 1000" bench mpi latency --rounds 0
echo "ok, $checks checks"
