#!/bin/bash
# Two labs at a time, with hosts of the same names: neither sees or hears of the other. And
# many that come and go at once.
. "$SOURCE/tests/lab/lib.sh"
needs_labs
before=$(census)
a=${prefix}a b=${prefix}b
lab_new "$a" --pgft "2;4,2;1,4;1,1" --rate 100mbit
lab_new "$b" --pgft "2;2,2;1,2;1,1" --rate 10mbit --routing ecmp
net_a=$(lab show "$a" --json --interval 1ms | jq -r .net)
net_b=$(lab show "$b" --json --interval 1ms | jq -r .net)
check_true [ "$net_a" != "$net_b" ]
first_b=$(lab show "$b" --json --interval 1ms | jq -r '.hosts[0].addresses[0]')
run lab exec "$a" h0 -- ping -c 1 -W 1 "$first_b"
check_true [ "$code" -ne 0 ]
# The same port on the same host of both, traffic in one, silence in the other.
lab cross "$a" --from h0 --to h5 --rate 50mbit --for 2s >/dev/null &
cross=$!
run lab show "$b" --json --interval 1
check_eq "$(jq '[.links[] | .up.packets, .down.packets] | add' <<<"$out")" 0
wait "$cross"
check_eq "$?" 0
run lab exec "$b" h0 -- sh -c 'ls /dev/shm; ps ax | grep -c "[c]ross"'
check_eq "$out" 0
# MPI jobs on both at once, whose processes have the same numbers and files the same names.
"$WEFT" run --lab "$a" -n 4 --mpi openmpi hostname >"$tmp/job.a" 2>&1 &
job=$!
run "$WEFT" run --lab "$b" -n 4 --mpi openmpi hostname
check_code 0
check_eq "$(sort <<<"$out" | tr '\n' ' ')" "$b-h0 $b-h1 $b-h2 $b-h3 "
wait "$job"
check_eq "$?" 0
check_eq "$(sort "$tmp/job.a" | tr '\n' ' ')" "$a-h0 $a-h1 $a-h2 $a-h3 "
lab_end "$a"
run lab exec "$b" h0 -- fping -q h1 h2 h3
check_code 0
lab_end "$b"

# Six at once, of which two want one name: one of those is refused, cleanly.
pids=()
for i in 1 2 3 4 5 5; do
	labs+=("${prefix}m$i")
	"$WEFT" lab up "${prefix}m$i" --pgft "2;4,4;1,2;1,2" >/dev/null 2>>"$tmp/refused" &
	pids+=($!)
done
failed=0
for pid in "${pids[@]}"; do
	wait "$pid" || failed=$((failed + 1))
done
check_eq "$failed" 1
check_eq "$(grep -c already "$tmp/refused")" 1
check_eq "$(lab list --json | jq "[.[] | select(.name | startswith(\"${prefix}m\")) | .net] | unique | length")" 5
for i in 1 2 3 4 5; do
	"$WEFT" lab down "${prefix}m$i" &
	pids[i]=$!
done
for i in 1 2 3 4 5; do
	wait "${pids[i]}"
	check_eq "$?" 0
done

# Addresses and routes of the machine are left alone: a machine that has the first ones.
labs+=("${prefix}x")
run unshare -n sh -c "ip link set lo up && ip addr add 10.64.7.7/30 dev lo &&
	ip route add 10.65.0.0/17 dev lo && '$WEFT' lab up ${prefix}x --pgft '1;2;1;1' --json"
if [ "$(id -u)" -eq 0 ]; then
	check_code 0
	check_eq "$(jq -r .net <<<"$out")" "10.66.0.0/16"
	lab_end "${prefix}x"
fi

# --all takes down what is there; in a place of its own, not to disturb a user's labs.
mkdir -m 700 "$tmp/dir"
export WEFT_LAB_DIR=$tmp/dir
lab_new one --pgft "1;2;1;1"
lab_new two --pgft "1;2;1;1"
run lab down --all
check_code 0
check_eq "$(lab list --json | jq length)" 0
run lab down --all
check_code 0
check_eq "$(ls -A "$tmp/dir")" ""
unset WEFT_LAB_DIR
check_eq "$(diff <(echo "$before") <(census))" ""
finish
