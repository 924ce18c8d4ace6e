#!/bin/bash
# shellcheck disable=SC2016 # what is in single quotes is for shells of the lab
# The command at work: exit codes and signals of exec, top with and without a terminal,
# traffic that is interrupted, pictures.
. "$SOURCE/tests/lab/lib.sh"
export LC_ALL=C # arrows and bars in ASCII
needs_labs
name=${prefix}c
lab_new "$name" --pgft "2;2,2;1,2;1,2" --rate 50mbit --routing lmc:1

# ---- exec ----
run lab exec "$name" h0 -- sh -c 'exit 7'
check_code 7
run lab exec "$name" h0 sh -c 'kill -9 $$'
check_code 137
run lab exec "$name" h0 no-such-program
check_code 127
run lab exec "$name" h0 /dev/null
check_code 126
run lab exec "$name" h4 true
check_code 2
check_has "$err" "its hosts are h0 to h3, its switches s1.0 to s2.1"
check_eq "$(echo 'echo "$0"' | SHELL=/bin/sh "$WEFT" lab exec "$name" h1)" /bin/sh
# The signal that was meant for it reaches the command, which may choose its own end.
"$WEFT" lab exec "$name" h0 -- sh -c 'trap "exit 5" TERM; echo >"$0"; sleep 60 & wait' "$tmp/ready" &
child=$!
for _ in {1..200}; do
	[ ! -e "$tmp/ready" ] || break
	sleep 0.02
done
kill -TERM $child
wait $child
check_eq "$?" 5

# ---- cross ----
address=$(lab show "$name" --json --interval 1ms | jq -r '.hosts[3].addresses[1]')
run lab cross "$name" --from h0 --to "$address" --rate 20mbit --for 1 --json
check_code 0
check_eq "$(jq -r '.to + " " + .address' <<<"$out")" "h3 $address"
check_true jq -e '.sent.mbit > 18 and .sent.mbit < 22 and .lost.share < 0.05' <<<"$out" >/dev/null
# Slow flows are flows, too.
run lab cross "$name" --from h0 --to h1 --rate 16kbit --for 1s --json
check_true jq -e '.received.datagrams > 5' <<<"$out" >/dev/null
"$WEFT" lab cross "$name" --from h0 --to h3 --rate 20mbit --for 60s --json >"$tmp/cut" &
cross=$!
sleep 1
kill -INT $cross
kill -TERM $cross
wait $cross
check_eq "$?" 0
check_true jq -e '.seconds > 0.3 and .seconds < 30 and .received.datagrams > 0' "$tmp/cut" >/dev/null
run lab cross "$name" --from h0 --to h0 --rate 1mbit --for 1s
check_code 2
check_has "$err" "the hosts must be different"
run lab cross "$name" --from h0 --to s1.0 --rate 1mbit --for 1s
check_code 2
check_has "$err" "s1.0 is a switch"

# ---- cables ----
run lab fail "$name" h0-s1.0 s1.0-s2.7
check_code 2
check_has "$err" "lab $name has no cable 's1.0-s2.7'; its cables are h0-s1.0 to s1.1-s2.1:1"
check_true jq -e 'all(.links[]; .alive)' <<<"$(lab show "$name" --json --interval 1ms)" >/dev/null
run lab fail "$name" h0-s1.0 s2.1-s1.0:1
check_code 0
check_eq "$(lab show "$name" --interval 1ms | awk '$NF == "failed" { printf "%s ", $1 }')" \
	"h0-s1.0 s1.0-s2.1:1 "
run lab cross "$name" --from h0 --to h3 --rate 1mbit --for 200ms
check_code 1
# One at a time, while the other of the same switch is still away.
run lab heal "$name" s1.0-s2.1:1
check_code 0
run lab heal "$name" --all
check_code 0
check_eq "$out" "1 cable is back."
run lab cross "$name" --from h0 --to h3 --rate 1mbit --for 200ms
check_code 0

# ---- top ----
"$WEFT" lab cross "$name" --from h0 --to h3 --rate 40mbit --for 60s >/dev/null &
cross=$!
sleep 0.5
run lab top "$name" --interval 500ms
check_code 0
check_has "$(sed -n 3p <<<"$out")" ">"
check_eq "$(wc -l <<<"$out")" 26
run lab top "$name" --interval 300ms --count 2 --json
check_eq "$(jq -s length <<<"$out")" 2
check_true jq -es '.[1].flows[0] | .mbit > 20 and .utilisation > 0.4' <<<"$out" >/dev/null
# In a terminal: a page of its own, until q, and everything put back.
(sleep 1.5 && printf q) | timeout 20 script -qec "$WEFT lab top $name --interval 200ms" /dev/null \
	>"$tmp/screen"
check_eq "$?" 0
check_has "$(cat "$tmp/screen")" $'\e[?1049h'
check_has "$(cat "$tmp/screen")" "CABLE"
check_has "$(tail -c 40 "$tmp/screen")" $'\e[?7h\e[?25h\e[?1049l'

# ---- pictures ----
run lab draw "$name" --interval 300ms
check_has "$out" "<svg"
check_has "$out" "Mbit/s"
run lab draw "$name" --interval 1ms -o "$tmp/no/such/file"
check_code 1
check_has "$err" "No such file or directory"
kill -INT $cross
wait $cross

# ---- routes ----
run lab show "$name" --routes --interval 1ms
check_code 0
check_has "$out" "  s1.0   d1     h1 h1+1"

# Who watches a lab that goes down hears of it.
"$WEFT" lab top "$name" --interval 100ms --count 0 >/dev/null 2>"$tmp/gone" &
top=$!
sleep 0.5
lab_end "$name"
wait $top
check_eq "$?" 1
check_has "$(cat "$tmp/gone")" "lab $name is gone"
finish
