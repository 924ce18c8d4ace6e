#!/bin/bash
# weft bench verbs on the software RNIC: every transport type is measured or explained, what is
# written is what was measured, and nothing outlives it. Speed is not judged here.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || exit 77
[ -x "$BUILD/bin/weft" ] || exit 77
bench() { timeout 100 "$BUILD/bin/weft" bench verbs "$@"; }
script=$BUILD/bin/weft

bench --help >"$tmp/help" || fail "--help"
for word in list pingpong conns overhead reg serve --peers --json --csv --quick "Exit status"; do
	grep -q -- "$word" "$tmp/help" || fail "--help does not mention $word"
done
bench list >"$tmp/list" || fail "list"
[ "$(wc -l <"$tmp/list")" -eq 20 ] || fail "list: not 20 combinations"
[ "$(grep -c 'none: ' "$tmp/list")" -eq 8 ] || fail "list: not 8 that do not exist"
refuses "which kind" bench verbs
refuses "not a kind" bench verbs frobnicate
refuses "there is no ud-read: UD has no remote" bench verbs pingpong -t ud-read
refuses "from 1 to 1024" bench verbs pingpong -n 1025
refuses "not hosts, loopback" bench verbs pingpong --net moon

# Each type that exists, with one process and with more of them than there are cores.
types=rc-send,uc-send,ud-send,rd-send,rc-write,uc-write,rd-write,rc-read,rd-read,ud-mcast,rc-atomic,rd-atomic
bench pingpong -q -n 1,3 -s 1,512 --passes 2 --rounds 10 --step-ms 50 -j "$tmp/all.json" \
	--csv "$tmp/all.csv" >"$tmp/all.out" 2>"$tmp/all.err" || fail "pingpong: exit status $?"
holds "[.series[].params.type] | unique == (\"$types\" | split(\",\") | sort)" "$tmp/all.json"
holds '.weft_bench == 1 and .env.device == "weft0" and (.env.cores_allowed | tonumber) >= 1' "$tmp/all.json"
# Every packet of every round is kept; a round is no shorter than its longest packet.
holds 'all(.series[] | select(.name == "round"); (.samples | length) > 0 and all(.samples[]; . > 0))' "$tmp/all.json"
holds '[.series[] | select(.name == "round")] as $r | [.series[] | select(.name == "packet")] |
	all(.[]; .params as $p | .samples as $s |
		($r[] | select(.params == $p) | .samples) as $round |
		($s | length) == ($round | length) * $p.n and ($s | max) <= ($round | max) + 0.001)' "$tmp/all.json"
holds '[.series[] | select(.params.stage == 2) | .params.type] | unique == ["rc-read", "rd-read"]' "$tmp/all.json"
[ "$(grep -c 'best n = ' "$tmp/all.out")" -ge 24 ] || fail "pingpong does not say which n is best"
[ "$(wc -l <"$tmp/all.csv")" -gt 100 ] || fail "no samples in the CSV file"
bench pingpong -q --net loopback --procs 4 -t rc-send,rc-write,ud-mcast,rd-read -n 4 -s 8 --passes 1 \
	--rounds 5 >"$tmp/procs.out" 2>&1 || fail "four processes: exit status $?"
grep -q "4 processes, which sleep to wait" "$tmp/procs.out" || fail "says not how many processes"

# A multicast reaches its group, which are the peers of the step and nobody else: one of them has
# answered long before 32 have.
bench pingpong -q --net loopback -t ud-mcast -n 1,32 -s 8 --passes 2 --rounds 50 -j "$tmp/mcast.json" \
	>"$tmp/mcast.out" 2>&1 || fail "multicast: exit status $?"
holds 'def median: sort | .[length / 2 | floor];
	[.series[] | select(.name == "round") | {key: "\(.params.n)", value: (.samples | median)}] | from_entries |
	.["1"] < .["32"] / 2' "$tmp/mcast.json"

bench overhead -q -t rc-send,ud-send -s 8 --passes 1 --rounds 16 -j "$tmp/over.json" >"$tmp/over.out" 2>&1 ||
	fail "overhead: exit status $?"
holds '[.series[] | select(.params.type == "rc-send") | .name] == ["clock", "post_send", "post_recv",
	"poll_empty", "poll_one", "poll_full"] and all(.series[]; .samples | length > 0)' "$tmp/over.json"
bench conns -q -t rc-send,rc-write -n 1,20 -s 8 --passes 1 --step-ms 20 -j "$tmp/conns.json" \
	>"$tmp/conns.out" 2>&1 || fail "conns: exit status $?"
holds '[.series[] | select(.name == "throughput" and .samples[0] > 0)] | length == 4' "$tmp/conns.json"
bench reg -q -s 4K,64K --passes 1 -j "$tmp/reg.json" >"$tmp/reg.out" 2>&1 || fail "reg"
holds '[.series[] | select(.name == "reg_again")] | length == 2' "$tmp/reg.json"

# Servers that the user has started, and one of them is killed: bounded, said, and what there was
# is kept. The same for ourselves: nobody is left.
port=$(free_port)
"$BUILD/bin/weft" bench verbs serve -p "$port" --bind 127.0.0.1 >"$tmp/serve" 2>&1 &
server_pid=$!
bench pingpong -q --peers 127.0.0.1 -p "$port" -t rc-send -n 64 -s 256K --passes 1000 \
	-j "$tmp/killed.json" >"$tmp/killed.out" 2>"$tmp/killed.err" &
client=$!
sleep 4
kill -KILL "$server_pid"
for _ in $(seq 50); do kill -0 "$client" 2>/dev/null || break && sleep 0.2; done
kill -0 "$client" 2>/dev/null && kill "$client" && fail "it waits for a peer that was killed"
wait "$client" && fail "a killed peer is no error"
wait "$server_pid" 2>/dev/null
server_pid=''
[ -s "$tmp/killed.err" ] || fail "it does not say that a peer is gone"
holds '.series[0].samples | length > 0' "$tmp/killed.json"

"$BUILD/bin/weft" bench verbs pingpong -q -t rc-send -n 64 -s 256K --passes 1000 \
	>"$tmp/own.out" 2>&1 &
client=$!
sleep 2
children=$(pgrep -P "$client")
children="$children $(pgrep -P "${children:-0}")"
[ -n "${children// /}" ] || fail "it has started no peers"
kill -KILL "$client"
wait "$client" 2>/dev/null
# Gone, or dead and not yet waited for by whoever adopts orphans here.
alive() { awk '/^State:/ && $2 != "Z" { n = 1 } END { exit !n }' "/proc/$1/status" 2>/dev/null; }
for c in $children; do
	for _ in $(seq 50); do alive "$c" || break && sleep 0.1; done
	alive "$c" && fail "process $c was left behind"
done
echo "ok: $checks checks"
