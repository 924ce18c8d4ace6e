#!/bin/bash
# scripts/demo.sh: runs through, fills every row, and leaves nothing behind, neither at
# its end nor when it is interrupted.
set -u
. "$(dirname "$0")/lib.sh"
: "${SOURCE:?source directory}" "${BUILD:?build directory}"

# What we start carries this in its environment.
export DEMO_MARK=$$.$RANDOM
leftovers() {
	local p
	for p in /proc/[0-9]*; do
		[ "${p#/proc/}" = $$ ] || [ "${p#/proc/}" = "$BASHPID" ] && continue
		if tr '\0' '\n' <"$p/environ" 2>/dev/null | grep -qx "DEMO_MARK=$DEMO_MARK"; then
			tr '\0' ' ' <"$p/cmdline"
		fi
	done 2>/dev/null
}

export WEFT_BUILD=$BUILD
run "$SOURCE/scripts/demo.sh" --quick
check_code 0
check_lacks "$out" failed
check_eq "$(grep -cE '^(RC|UD) ' <<<"$out")" 8
check_eq "$(leftovers)" ""

# It ends with the report; make bench is all of it.
run "$SOURCE/scripts/demo_report.sh" --quick
check_code 0
check_has "$out" "fattree/table2   reproduced"
check_has "$out" "file://$BUILD/demo-report/report.html"
check_has "$(cat "$BUILD/demo-report/report.html")" 'id="fattree/table2"'
check_has "$(make -n --no-print-directory -C "$SOURCE" demo | tail -1)" scripts/demo_report.sh
check_has "$(make -n -C "$SOURCE" bench)" 'weft reproduce --all --quick'
check_has "$(make -n -C "$SOURCE" bench BENCH=--stripe)" 'scripts/bench.sh --stripe'
check_eq "$(leftovers)" ""

# In the middle of it: as an ordinary user where that can be tried.
as_user=()
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	stage_for_user
	SOURCE=$stage
	export WEFT_BUILD=$stage
	as_user=(setpriv --reuid 65534 --regid 65534 --clear-groups)
fi
for signal in INT TERM; do
	# Background commands ignore SIGINT unless job control is on.
	set -m
	(cd "$tmp" && exec "${as_user[@]}" "$SOURCE/scripts/demo.sh" --quick) >"$tmp/demo" 2>&1 </dev/null &
	demo=$!
	set +m
	# Until it is well under way: a server and a client are running then.
	for ((i = 0; i < 300; i++)); do
		grep -q "RC send latency" "$tmp/demo" && break
		sleep 0.1
	done
	check_has "$(cat "$tmp/demo")" "RC send latency"
	kill -$signal $demo
	code=0
	wait $demo || code=$?
	out=$(cat "$tmp/demo")
	err=
	check_true test "$code" -gt 128
	check_eq "$(leftovers)" ""
done

finish
