#!/bin/bash
# The command line: help, and refusals that say what is wrong.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"

refuses() {
	local text=$1
	shift
	"$PERF" "$@" >"$tmp/out" 2>&1
	[ $? -eq 2 ] || fail "'$*' was not refused with 2"
	grep -q -- "$text" "$tmp/out" || fail "'$*' does not say '$text'"
}

"$PERF" --help >"$tmp/help" || fail "--help"
for word in server lat bw peers idle reg report --json --kinds --sizes "Exit status"; do
	grep -q -- "$word" "$tmp/help" || fail "--help does not mention $word"
done
"$PERF" kinds >"$tmp/kinds" || fail "kinds"
for kind in tcp udp udp-conn udp-gso rc rc-write rc-read uc ud rd rd-write rd-read memcpy; do
	grep -q "^$kind " "$tmp/kinds" || fail "kinds does not list $kind"
done

refuses "which command"
refuses "not a command" frobnicate
refuses "which host" lat
refuses "report: which file" report
refuses "plot: which file" plot
refuses "reg: takes no arguments, and not .127.0.0.1." reg 127.0.0.1
refuses "plot: which of these files" plot a.json b.json
refuses "from 1 to 65535" server -p 0
refuses "from 1 to 65535" server -p 65536
refuses "not a number" lat -n x 127.0.0.1
refuses "not a number" lat -n -5 127.0.0.1
refuses "not a number" lat -s 8Q 127.0.0.1
refuses "carrier-pigeon" lat -k tcp,carrier-pigeon 127.0.0.1
refuses "must not exceed" lat --depth 8 --signal 9 127.0.0.1
refuses "weft-perf --help" lat --no-such-option 127.0.0.1

echo '{"targets": [' >"$tmp/broken.json"
"$PERF" report "$tmp/broken.json" >"$tmp/out" 2>&1
[ $? -eq 1 ] || fail "a broken file was reported on"
cat >"$tmp/good.json" <<'END'
{"targets": [{"what": "a", "value": 1.5, "relation": "<=", "limit": 1.3, "pass": false},
 {"what": "b", "value": 0.9, "q1": 0.8, "q3": 1.0, "relation": ">=", "limit": 0.85, "pass": true}]}
END
"$PERF" report "$tmp/good.json" >"$tmp/out" || fail "report"
grep -q "^good  *a .*MISS" "$tmp/out" || fail "report: a missed target"
grep -q "^good  *b .*PASS" "$tmp/out" || fail "report: a met target"
# The same question to two parts: each answer says whose it is.
mkdir "$tmp/a.b" && cp "$tmp/good.json" "$tmp/a.b/other"
"$PERF" report "$tmp/good.json" "$tmp/a.b/other" >"$tmp/out" || fail "report of two files"
grep -q "^good  *a " "$tmp/out" && grep -q "^other  *a " "$tmp/out" || fail "report: no part"
"$PERF" report --strict "$tmp/good.json" >"$tmp/out"
[ $? -eq 3 ] || fail "--strict did not notice a missed target"

# Stacks of MPI: two rounds, of which the second has no result of weft.
overlap() {
	echo '{"rows": [{"size": 65536, "scenario": "sender-early", "side": "receiver",' \
		"\"overlap_pct\": $1}], \"cut_short\": ${2:-false}}"
}
latency() { echo "{\"rows\": [{\"size\": 8, \"p50_us\": $1}, {\"size\": 64, \"p50_us\": $1}]}"; }
overlap 3.5 >"$tmp/overlap.tcp.1.json"
overlap 97 >"$tmp/overlap.weft.1.json"
overlap null true >"$tmp/overlap.weft.2.json"
"$PERF" mpi -j "$tmp/mpi.json" "$tmp"/overlap.*.json >"$tmp/out" || fail "mpi"
grep -Eq "^65536 +sender-early +receiver +3.50 +97.00 +>= 95.00 PASS" "$tmp/out" || fail "mpi: overlap"
grep -q "time of 1 runs was over" "$tmp/out" || fail "mpi: a run that was cut short"
"$PERF" plot "$tmp/mpi.json" >"$tmp/dat" || fail "plot of mpi"
grep -A1 "^weft/sender-early/receiver" "$tmp/dat" | grep -q "^65536 97" || fail "plot: a line"
# Twice as long as net, which is the best of the others; a raw socket is none of them.
latency 8 >"$tmp/wire-latency.tcp.1.json"
latency 4 >"$tmp/wire-latency.net.1.json"
latency 8 >"$tmp/wire-latency.weft.1.json"
echo '{"results": [{"kind": "udp", "size": 8, "usec": {"median": 2}}]}' >"$tmp/wire-latency.raw.1.json"
"$PERF" mpi --busy -j "$tmp/mpi.json" "$tmp"/wire-latency.*.json >"$tmp/out" || fail "mpi: latency"
grep -q "2.00 .2.00..2.00. x net, the best <= 0.90 MISS" "$tmp/out" || fail "mpi: the best"
grep -q "raw-udp" "$tmp/out" || fail "mpi: raw sockets"
"$PERF" report "$tmp/mpi.json" >"$tmp/out" || fail "report of mpi"
grep -q "8 bytes: weft / net .*MISS" "$tmp/out" || fail "report: a target of mpi"
grep -q "other work was running" "$tmp/out" || fail "report: a busy machine"
# A target whose other side was not measured is not forgotten.
echo '{"rows": [{"size": 65536, "p50_MBps": 2}]}' >"$tmp/wire-bandwidth.weft.1.json"
echo '{"rows": [{"size": 65536, "p50_MBps": null}]}' >"$tmp/wire-bandwidth.tcp.1.json"
"$PERF" mpi "$tmp"/wire-bandwidth.*.json >"$tmp/out" || fail "mpi: bandwidth"
grep -q -- "- x tcp >= 1.00 MISS" "$tmp/out" || fail "mpi: nothing to compare with"
refuses "mpi: which files" mpi
"$PERF" mpi "$tmp/wire-latency.tcp.1.json" "$tmp/overlap.tcp.1.json" >"$tmp/out" 2>&1
[ $? -eq 1 ] || fail "two series at once"
echo '{"rows": [' >"$tmp/overlap.tcp.3.json"
"$PERF" mpi "$tmp/overlap.tcp.3.json" >"$tmp/out" 2>&1
[ $? -eq 1 ] || fail "a broken document was taken"
echo ok
