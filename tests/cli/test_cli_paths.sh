#!/bin/bash
# weft paths: what it shows of processes that show their paths, as text, on a screen and as JSON.
set -u
. "$(dirname "$0")/lib.sh"
: "${BUILD:?build directory}"
export LC_ALL=C
export WEFT_LIVE_DIR=$tmp/live

# owner POLICY PEERS: sets $pid; ends with owner_end.
owner() {
	mkfifo "$tmp/in" "$tmp/ready"
	"$BUILD/bin/live_owner" "$@" <"$tmp/in" >"$tmp/ready" &
	pid=$!
	exec 8>"$tmp/in"
	read -r ready <"$tmp/ready"
	check_eq "$ready" ready
	rm "$tmp/in" "$tmp/ready"
}

owner_end() {
	exec 8>&-
	wait "$pid"
	check_eq "$?" 0
}

# ---- nobody ----
run "$WEFT" paths --interval 10ms
check_code 0
check_has "$out" "Nobody that is watched divides messages now"
check_true test ! -e "$WEFT_LIVE_DIR" # who only looks makes nothing
run "$WEFT" paths --interval 10ms --json
check_code 0
check_eq "$(jq -c '.processes' <<<"$out")" "[]"

# ---- one process ----
owner hop:4 2
check_eq "$(stat -c %a "$WEFT_LIVE_DIR")" 700
check_eq "$(stat -c %a "$WEFT_LIVE_DIR"/*)" 400
run "$WEFT" paths --interval 400ms
check_code 0
check_eq "$err" ""
check_has "$out" "2 peers over several paths"
check_has "$out" "$(hostname) $pid live_owner with 10.0.0.1, hop:4: "
check_has "$out" "with 10.0.0.2"
check_has "$(sed -n 5p <<<"$out")" " 0.0% "
check_has "$(sed -n 5p <<<"$out")" " down"
check_lacks "$(sed -n 4p <<<"$out")" " down"
check_has "$(sed -n 7p <<<"$out")" "###########"
check_eq "$(wc -l <<<"$out")" 12

# holds FILTER TEXT; about A B: within a fifth.
holds() { jq -es "$1" <<<"$2" >/dev/null; }
about() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a > 0.8 * b && a < 1.2 * b) }'; }
run "$WEFT" paths --interval 400ms --count 2 --json
check_code 0
check_eq "$(jq -s length <<<"$out")" 2
check_eq "$(wc -l <<<"$out")" 2
last=$(tail -n 1 <<<"$out")
check_eq "$(jq -c '.processes | map([.pid, .program, (.peers | map([.peer, .policy, (.paths | length)]))])' \
	<<<"$last")" "[[$pid,\"live_owner\",[[\"10.0.0.1\",\"hop:4\",4],[\"10.0.0.2\",\"hop:4\",4]]]]"
check_true holds '.[0].seconds > 0.39' "$last"
check_true about "$(jq '.time' <<<"$last")" "$(date +%s)"
check_true holds '.[1].time - .[0].time > 0.3' "$out"
check_true about "$(jq '.processes[0].peers[0].paths[3].share' <<<"$last")" 0.5
check_true about "$(jq '.processes[0].peers[0].paths[3] | .mb_per_s_busy / .mb_per_s' <<<"$last")" 2
check_true holds '.[0].processes[0].peers[0].paths | map([.weight, .down]) ==
	[[1, false], [2, true], [3, false], [4, false]]' "$last"
check_true holds '.[0].processes[0].peers[0].paths[0] | .bytes > 100000 and .pieces > 100' "$last"
# The line for plots that --help has.
check_eq "$(jq -r '.time as $t | .processes[].peers[] | [$t, .peer, .paths[].weight] | @tsv' \
	<<<"$last" | cut -f 2- | head -n 1 | tr '\t' ' ' | sed 's,[.]0 , ,g; s,[.]0$,,')" \
	"10.0.0.1 1 2 3 4"

run "$WEFT" paths --interval 300ms --brief
check_code 0
check_eq "$(wc -l <<<"$out")" 4
check_eq "$(sed -n 3p <<<"$out" | awk '{ print $2, $3, $4, $6 }')" "$pid 10.0.0.1 hop:4 2x68"
run env LC_ALL=C.UTF-8 "$WEFT" paths --interval 300ms --brief
check_has "$out" "▂x▆█"

# ---- those that are meant ----
run "$WEFT" paths --interval 10ms --pid "$pid" --json
check_eq "$(jq '.processes | length' <<<"$out")" 1
run "$WEFT" paths --interval 10ms --pid $((pid + 1)) --json
check_eq "$(jq '.processes | length' <<<"$out")" 0
run "$WEFT" paths --interval 10ms --host "$(hostname)" --json
check_eq "$(jq '.processes | length' <<<"$out")" 1
run "$WEFT" paths --interval 10ms --host no-such --json
check_eq "$(jq '.processes | length' <<<"$out")" 0

# ---- in a terminal ----
(sleep 1.5 && printf q) | timeout 20 script -qec "stty cols 80 rows 10; $WEFT paths --interval 200ms" \
	/dev/null >"$tmp/screen"
check_eq "$?" 0
check_has "$(cat "$tmp/screen")" $'\e[?1049h'
check_has "$(cat "$tmp/screen")" "PATH"
check_has "$(cat "$tmp/screen")" "1 peers with less do not fit; --brief shows more of them. q: quit"
check_has "$(tail -c 40 "$tmp/screen")" $'\e[?7h\e[?25h\e[?1049l'

# ---- who ends, and who is killed ----
owner_end
check_eq "$(ls "$WEFT_LIVE_DIR")" ""
owner even:2 1
kill -KILL "$pid"
wait "$pid" 2>/dev/null
exec 8>&-
check_eq "$(find "$WEFT_LIVE_DIR" -type f | wc -l)" 1
run "$WEFT" paths --interval 10ms --json
check_code 0
check_eq "$(jq -c '.processes' <<<"$out")" "[]"
check_eq "$(ls "$WEFT_LIVE_DIR")" ""

# ---- what is wrong ----
chmod 755 "$WEFT_LIVE_DIR"
run "$WEFT" paths --interval 10ms
check_code 1
check_has "$err" "weft paths: the directory $WEFT_LIVE_DIR, or that above it, can be used by somebody else"
rmdir "$WEFT_LIVE_DIR"
run "$WEFT" paths more
check_code 2
check_has "$err" "unexpected argument 'more'"
for pid in 0 x -1 ""; do
	run "$WEFT" paths --pid "$pid"
	check_code 2
	check_has "$err" "--pid $pid is not understood; expected the number of a process"
done
run "$WEFT" paths --count x
check_code 2
run "$WEFT" paths --interval 0
check_code 2

finish
