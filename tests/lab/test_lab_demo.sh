#!/bin/bash
# The lab's part of the demo: fills every row, D-Mod-K's is the best, and nothing is left,
# neither at its end nor when it is interrupted.
. "$SOURCE/tests/lab/lib.sh"
needs_labs
export WEFT_BUILD=$BUILD
before=$(census)
run "$SOURCE/scripts/demo_lab.sh" --quick
check_code 0
echo "$out"
check_eq "$err" ""
check_eq "$(grep -cE '^  (dmodk|random:1|ecmp) ' <<<"$out")" 3
# The mean over all ranks: on a busy machine a single one may come late for other reasons.
mean() { awk -v r="$1" '$1 == r { print $4 }' <<<"$out"; }
check_true awk -v a="$(mean dmodk)" -v b="$(mean random:1)" -v c="$(mean ecmp)" \
	'BEGIN { exit !(a > b && a > c && c > 0) }'
check_true xmllint --noout "$BUILD/demo-lab.svg"
check_eq "$(pgrep -f "lab up demo")" ""

for signal in INT TERM; do
	set -m # or background commands ignore SIGINT
	"$SOURCE/scripts/demo_lab.sh" --quick >"$tmp/demo" 2>&1 </dev/null &
	demo=$!
	set +m
	for ((i = 0; i < 300; i++)); do
		grep -q "routing" "$tmp/demo" && [ -n "$(pgrep -f 'lab up demo')" ] && break
		sleep 0.05
	done
	sleep 0.$((RANDOM % 10))
	kill -$signal "$demo"
	wait "$demo"
	check_true [ $? -gt 128 ]
	check_eq "$(pgrep -f 'lab up demo')" ""
done
check_eq "$(diff <(echo "$before") <(census))" ""
finish
