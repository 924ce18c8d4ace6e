#!/bin/bash
# weft reproduce from outside: results, report, resuming, and nothing left by a kill -9.
. "$(dirname "$0")/../cli/lib.sh"

run "$WEFT" reproduce --quick fattree/table2 fattree/fig5 --out "$tmp/r" --json
check_code 0
check_eq "$(jq -r '.[0].verdict' <<<"$out")" reproduced
check_eq "$(jq -r '.[1].verdict' <<<"$out")" 'not here'
check_true test -s "$tmp/r/fattree-sequences.json"
check_true test -s "$tmp/r/report.html"
check_has "$(cat "$tmp/r/report.html")" 'id="fattree/table2"'
! command -v gnuplot >/dev/null || check_has "$(cat "$tmp/r/report.html")" '<svg'
run "$WEFT" reproduce --quick --resume fattree/table2 --out "$tmp/r"
check_code 0
check_has "$err" 'there already'

# A file that somebody has damaged is measured again, not believed.
echo '{"rounds": 3' >"$tmp/r/fattree-sequences.json"
run "$WEFT" reproduce --quick --resume fattree/table2 --out "$tmp/r" --json
check_eq "$(jq -r '.[0].verdict' <<<"$out")" reproduced

run "$WEFT" reproduce --quick fattree/tabel2
check_code 2
check_has "$err" "did you mean 'fattree/tab"
run "$WEFT" reproduce
check_code 2

# Killed in the middle: what was measured stays, no process does. There is more to do than can be
# over before the signal comes.
for signal in INT KILL; do
	rm -rf "$tmp/k"
	"$WEFT" reproduce --quick fattree/fig3 fattree thesis --out "$tmp/k" >/dev/null 2>&1 &
	pid=$!
	for _ in $(seq 600); do
		test -s "$tmp/k/fattree-growth.json" &&
			jq -e .complete "$tmp/k/fattree-growth.json" >/dev/null && break
		sleep 0.1
	done
	sleep 0.3
	first=$(pgrep -P $pid)
	check_true test -n "$first"
	kill -$signal $pid
	wait $pid 2>/dev/null
	for _ in $(seq 50); do
		kill -0 "$first" 2>/dev/null || break
		sleep 0.1
	done
	check_true test ! -e "/proc/$first"
	check_true jq -e '.complete and (.rounds | length == 6)' "$tmp/k/fattree-growth.json"
	check_eq "$(ls -A "$tmp/k/.work")" ''
done
finish
