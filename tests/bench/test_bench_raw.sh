#!/bin/bash
# Raw kinds over loopback: short runs whose results must be complete and sane.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || exit 77

pair lat lat -k tcp,udp,udp-conn -s 1,8,4K -r 4 -n 200
[ "$status" -eq 0 ] || fail "lat: exit status $status"
holds '.program == "weft-perf" and .command == "lat"' "$tmp/lat.json"
holds '.results | length == 9' "$tmp/lat.json"
holds 'all(.results[]; .usec.n > 0 and .usec.n <= 880 and (.rounds | length) == 4)' "$tmp/lat.json"
holds 'all(.results[]; .usec | 0 < .min and .min <= .p1 and .p1 <= .median
	and .median <= .p99 and .p99 <= .max and .median < 1e5)' "$tmp/lat.json"
holds 'all(.results[] | select(.kind == "udp-conn"); .ratios[0].base == "udp"
	and .ratios[0].ratio.n >= 3 and .ratios[0].ratio.median > 0)' "$tmp/lat.json"
grep -q '^udp-conn .* x udp$' "$tmp/lat.out" || fail "lat: no ratio in the table"

pair bw bw -k tcp,tcp-block,udp,udp-conn,udp-gso,memcpy -s 8,512,32K,1M -r 3 -t 10
[ "$status" -eq 0 ] || fail "bw: exit status $status"
# A datagram does not carry a megabyte: two kinds less at that size.
holds '.results | length == 22' "$tmp/bw.json"
holds 'all(.results[]; .MBps.n > 0 and .MBps.median > 0 and .received <= .sent)' "$tmp/bw.json"
holds 'all(.results[] | select(.kind == "tcp"); .lost == 0)' "$tmp/bw.json"

pair idle idle -k tcp,udp --seconds 1
[ "$status" -eq 0 ] || fail "idle: exit status $status"
# A second of sleep in a program without a device uses nothing at all.
holds 'all(.results[]; .cpu_ns == 0 and .slices == 0 and .seconds > 0.9)' "$tmp/idle.json"
holds '.targets[0].pass == true' "$tmp/idle.json"

# Standard output is for machines when asked.
port=$(free_port)
"$PERF" server -q --bind 127.0.0.1 -p "$port" 2>/dev/null &
server_pid=$!
"$PERF" lat -q -r 1 -n 50 -p "$port" -j - 127.0.0.1 >"$tmp/stdout.json" || fail "lat -j -"
holds '.results[0].kind == "tcp"' "$tmp/stdout.json"
wait "$server_pid"
server_pid=''

# A kind that cannot be opened is reported as such; the others are measured.
if ! env -u LD_PRELOAD ibv_devices 2>/dev/null | grep -q '[0-9a-f]\{16\}'; then
	pair none lat -k tcp,rc -r 2 -n 50
	[ "$status" -eq 1 ] || fail "a missing device went unnoticed: $status"
	holds '.results[] | select(.kind == "rc") | has("error")' "$tmp/none.json"
	holds '.results[] | select(.kind == "tcp") | .usec.n > 0' "$tmp/none.json"
fi

# Steps that take too long are cut off, on both sides; the rest goes on.
pair slow bw -k tcp,memcpy -s 1M -r 2 -t 4000 --step-ms 100
[ "$status" -eq 1 ] || fail "a step without an end went unnoticed: $status"
# A fast machine may get some of them done in time.
holds '.results | length == 2 and all(.kind != null) and
	any(has("error") or (.failures // 0) > 0)' "$tmp/slow.json"
grep -q "a step failed" "$tmp/slow.err" || fail "no word on the failed step"

# Nobody there.
timeout 30 "$PERF" lat -q --wait 200 -p "$(free_port)" 127.0.0.1 >"$tmp/nobody" 2>&1
[ $? -eq 1 ] || fail "a missing server went unnoticed"
grep -q refused "$tmp/nobody" || fail "no word on why"
grep -q "start .weft-perf server. there first" "$tmp/nobody" || fail "no word on what to do"

# A client that dies leaves no server behind.
port=$(free_port)
"$PERF" server -q --bind 127.0.0.1 -p "$port" >"$tmp/orphan" 2>&1 &
server_pid=$!
"$PERF" lat -q -n 100000 -r 1000 -p "$port" 127.0.0.1 >/dev/null 2>&1 &
client_pid=$!
sleep 1
kill -KILL "$client_pid"
wait "$client_pid" 2>/dev/null
for _ in $(seq 100); do
	kill -0 "$server_pid" 2>/dev/null || break
	sleep 0.2
done
kill -0 "$server_pid" 2>/dev/null && fail "the server outlived a killed client"
server_pid=''
echo "ok: $checks checks"
