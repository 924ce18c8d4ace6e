#!/bin/bash
# Two MPI stacks side by side in a lab, as the benchmark runs them: tables, JSON, and nothing left
# behind, also when it is told to end. Which is fast is not asked here.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
command -v jq >/dev/null || exit 77
WEFT=$BUILD/bin/weft
[ -x "$BUILD/bin/weft-mpi-perf.openmpi" ] && [ -e "$BUILD/lib/libweft-fi.so" ] || exit 77
"$WEFT" lab up "stk$$" --pgft "1;2;1;1" >/dev/null 2>&1 || exit 77
"$WEFT" lab down "stk$$" >/dev/null

stacks() { WEFT_BUILD=$BUILD timeout 100 "$SOURCE/src/bench/bench_mpi.sh" "$@" </dev/null; }

stacks -q -r 2 -s "tcp weft" -o "$tmp/out" exchange >"$tmp/stdout" 2>"$tmp/stderr" ||
	fail "bench_mpi.sh: exit status $?"
grep -Eq "^#size +model +ratio +tcp +weft " "$tmp/stdout" || fail "no table"
holds '.series == "exchange" and (.results | map(.stack) | unique) == ["tcp", "weft"]
	and all(.results[]; (.rounds | length) == 2)' "$tmp/out/mpi-exchange.json"
holds '[.results[] | .of + " " + .rtrs][:3] == ["exchange model-1 sent",
	"exchange model-1 used", "exchange model-1 used_pct"]' "$tmp/out/mpi-exchange-rtr.json"
stacks nonsense >"$tmp/stdout" 2>&1
[ $? -eq 2 ] || fail "a part that is not there was taken"

# In the middle of a run. Its lab is named after it.
WEFT_BUILD=$BUILD "$SOURCE/src/bench/bench_mpi.sh" -r 50 -s tcp progress >"$tmp/stdout" 2>&1 </dev/null &
server_pid=$!
for _ in {1..50}; do
	! "$WEFT" lab list | grep -q "mpi$server_pid" || break
	sleep 0.2
done
sleep 1
kill "$server_pid" || fail "it has ended by itself"
wait "$server_pid"
[ $? -eq 143 ] || fail "it did not say that it was ended"
! "$WEFT" lab list | grep "mpi$server_pid" || fail "a lab was left behind"
server_pid=''
echo "ok: $checks checks"
