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
for word in server lat bw peers idle report --json --kinds --sizes "Exit status"; do
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
echo ok
