#!/bin/bash
# bench_reuse.sh: refuses what it does not understand; its short run measures all parts, on two hosts
# and on one, with tables, JSON and targets; and it leaves no lab behind. Which is fast is not asked
# here.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || exit 77
export WEFT_BUILD=$BUILD
WEFT=$BUILD/bin/weft
script=$SOURCE/src/bench/bench_reuse.sh
[ -x "$BUILD/bin/weft-mpi-perf.openmpi" ] && [ -e "$BUILD/lib/libweft-fi.so" ] || exit 77

"$script" -h >"$tmp/help" || fail "-h"
for word in layer pingpong onesided spectrum patterns none coll reg search "Exit status"; do
	grep -q -- "$word" "$tmp/help" || fail "-h does not mention $word"
done
refuses "there is no part 'frobnicate'" none frobnicate
refuses "there is no setting 'maybe'" -s "off maybe" none
refuses "there is no place 'moon'" -p moon none
refuses "not a number of rounds: '0'" -r 0 none

# The programs behind it.
MSG_PERF=$BUILD/bin/weft-msg-perf
"$MSG_PERF" search -r 2 -n 500 >"$tmp/search" || fail "search"
# However many there are, up to what the table may have: then it has stopped, or given up.
awk '!/^#/ { n++; bad += ($1 <= 10000 && ($2 != $1 || $3 != "grows")) || $4 > 4194304 || $5 <= 0 || $6 <= 0 }
	END { exit n != 6 || bad }' "$tmp/search" || fail "search: not what it should be"
for wrong in "" frobnicate "latency -s 1M" "latency -r 0" "latency -Z"; do
	# shellcheck disable=SC2086
	"$MSG_PERF" $wrong >"$tmp/out" 2>&1
	[ $? -eq 2 ] || fail "weft-msg-perf '$wrong' was not refused with 2"
done

# Found in PATH, it has no directory in its name: the device is beside the program all the same.
(cd / && PATH=$BUILD/bin:$PATH WEFT_ADDR=127.0.0.1 timeout 60 weft verbs weft-msg-perf latency -r 1 -n 20 -s 256) \
	>"$tmp/out" 2>&1 || fail "weft-msg-perf does not find a device when it was found in PATH"

# One host, through shared memory: needs no lab.
timeout 100 "$script" -q -p shm -r 3 -s "off on" -o "$tmp" layer pingpong reg search >"$tmp/table" 2>"$tmp/err" ||
	fail "on one host"
holds '[.results[] | select(.setting != "copy") | [.key, .setting]] | sort ==
	[["shm send 64", "off"], ["shm send 64", "on"], ["shm send 8192", "off"], ["shm send 8192", "on"]]' \
	"$tmp/reuse-pingpong.json"
holds 'all(.results[]; (.rounds | length) == 3 and .median > 0)' "$tmp/reuse-pingpong.json"
# What is gained is that of the rounds, and so is how far it is from what can be.
holds 'def of(s): [.results[] | select(.key == "shm send 8192" and .setting == s)][0];
	([of("on").rounds, of("off").rounds] | transpose | map(.[0] / .[1]) | sort | .[1]) as $ratio |
	(of("copy").median / of("off").median) as $best |
	(.targets[] | select(.what == "shm send 8192: on / off") | .value - $ratio | fabs < 0.0001) and
	(.targets[] | select(.what == "shm send 8192: on, points from theoretical")
		| .value - (100 * (1 - $ratio - $best) | fabs) | fabs < 0.01)' "$tmp/reuse-pingpong.json"
holds '[.gains[] | select(.key == "shm send 8192")] | length == 1 and .[0].setting == "on" and
	.[0].q1 <= .[0].pct and .[0].pct <= .[0].q3' "$tmp/reuse-pingpong.json"
holds '(.targets | length) == 4 and all(.targets[]; .pass == (.value <= .limit))' \
	"$tmp/reuse-pingpong.json"
grep -Eq '^ shm send 8192 +on .*slower <= 1 %: (PASS|MISS)  away <= 2: (PASS|MISS)$' "$tmp/table" ||
	fail "no target in the table"
"$PERF" report "$tmp/reuse-pingpong.json" >"$tmp/report" 2>&1 || fail "weft-perf does not understand it"
grep -q 'shm send 64: on / off' "$tmp/report" || fail "a target is missing in the report"
holds '[.results[] | select(.key == "shm msg 8192") | .setting] == ["off", "on", "on / off", "copy"] and
	all(.results[]; (.rounds | length) == 3 and .median > 0)' "$tmp/reuse-layer.json"
holds '[.results[].setting] | unique ==
	["dereg_again", "dereg_first", "memcpy", "reg_again", "reg_first"]' "$tmp/reuse-reg.json"
holds '[.results[] | select(.setting == "known") | .median][:4] == [10, 100, 1000, 10000]' \
	"$tmp/reuse-search.json"

"$WEFT" lab up "t$$try" --pgft "1;2;1;1" >/dev/null 2>"$tmp/err" || {
	echo "skipped: $(cat "$tmp/err")"
	exit 77
}
"$WEFT" lab down "t$$try" >/dev/null
# Its lab has its number in the name.
"$script" -q -o "$tmp" layer onesided spectrum patterns none coll >"$tmp/table" 2>"$tmp/err" &
server_pid=$!
wait $server_pid || fail "with a lab"
holds '[.results[] | select(.setting == "on") | .key] == ["rd msg 64", "rd msg 8192", "shm msg 64",
	"shm msg 8192"]' "$tmp/reuse-layer.json"
holds '[.results[] | select(.setting == "on") | .key] | sort == ["rd get rdma 64", "rd get rdma 8192",
	"rd put rdma 64", "rd put rdma 8192", "shm get rdma 64", "shm get rdma 8192", "shm put rdma 64",
	"shm put rdma 8192"]' "$tmp/reuse-onesided.json"
holds '[.results[] | select(.setting == "on") | .key] == ["rd send packed 4096", "shm send packed 4096"]' \
	"$tmp/reuse-spectrum.json"
holds '[.targets[].what] == ["rd 0% 1024: on / off", "shm 0% 1024: on / off"]' "$tmp/reuse-none.json"
holds '[.results[] | select(.setting == "on") | .key] == ["rd bcast 4096", "rd scatter 4096",
	"shm bcast 4096", "shm scatter 4096"]' "$tmp/reuse-coll.json"
grep -Eq '^ rd 65536 +[0-9.]+ +[0-9.]+$' "$tmp/table" || fail "patterns: no ratio"
! "$WEFT" lab list --json | grep -q "\"ru$server_pid\"" || fail "a lab is left"
server_pid=''
echo "ok, $checks checks"
