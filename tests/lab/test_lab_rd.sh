#!/bin/bash
# How RD behaves on links: whether it fills one, shares it with itself and with TCP, survives
# sixteen senders to one receiver and links that break; and that data is right meanwhile.
#
# A goal is what it is made for, and printed; a floor is what a run may not miss. Between the
# two lie the chance of single drops at a short queue, with which two streams of TCP share no
# better, and a machine that does other things.
. "$SOURCE/tests/lab/lib.sh"
needs_labs
name=${prefix}r
rate=100

# shellcheck disable=SC2153 # BUILD is from the environment
# in_lab HOST PROGRAM ARGUMENTS: on the software RNIC, and not for ever.
in_lab() {
	local host=$1 program=$2
	shift 2
	timeout -k 5 60 "$WEFT" lab exec "$name" "$host" -- \
		"$WEFT" verbs "$BUILD/bin/$program" "$@" </dev/null
}

# flows OMIT "HOST OPTIONS"...: senders to h0, all at once; what arrived is in $tmp/flows.
# What is to happen meanwhile is a function, in $meanwhile.
flows() {
	local omit=$1 sender pids=() pid
	shift
	in_lab h0 rd_flow recv -n $# -O "$omit" -T 50 --json >"$tmp/flows" 2>"$tmp/said.h0" &
	pids+=($!)
	for sender; do
		# shellcheck disable=SC2086 # options are words
		set -- $sender
		in_lab "$1" rd_flow send h0 -N "$@" 2>"$tmp/said.$1" &
		pids+=($!)
	done
	${meanwhile:-:}
	for pid in "${pids[@]}"; do
		checks=$((checks + 1))
		wait "$pid" || fail "a program of rd_flow failed:" "$(cat "$tmp"/said.*)"
	done
	jq -r '.[] | "    \(.name): \(.mbit) Mbit/s, longest gap \(.gap_ms) ms; \(.notes)"' "$tmp/flows"
}

value() { jq -r "$1" "$tmp/flows"; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# verdict WHAT VALUE GOAL FLOOR
verdict() {
	if at_least "$2" "$3"; then
		printf '%s: %.3f, goal %s\n' "$1" "$2" "$3"
	else
		printf '%s: %.3f, goal %s MISSED, floor %.3f\n' "$1" "$2" "$3" "$4"
	fi
}

# judge WHAT GOAL FLOOR EXPRESSION FLOWS...: up to three times, until the floor
# is kept. The expression is of jq, of the array of flows.
judge() {
	local what=$1 goal=$2 floor=$3 expression=$4 try got
	shift 4
	for try in 1 2 3; do
		flows "$@"
		got=$(value "$expression")
		sum=$(value "[.[].mbit] | add / $rate")
		verdict "$what" "${got:-0}" "$goal" "$floor"
		at_least "${got:-0}" "$floor" && at_least "${sum:-0}" 0.9 && break
		echo "    once more: $try"
	done
	check_true at_least "${got:-0}" "$floor"
	verdict "    of the link" "${sum:-0}" 0.9 0.9
	check_true at_least "${sum:-0}" 0.9
}

least_share='[.[].mbit] | min / add'

alone() {
	judge "One flow, MTU $1" 0.93 0.93 ".[0].mbit / $rate" 0 "h1 -t 4 $2"
}

# BBR measures instead of filling queues, and keeps little beside whoever fills them: RD may not
# leave it much less than TCP's CUBIC does.
beside_bbr() {
	local theirs='(.[] | select(.name == "h2").mbit) / ([.[].mbit] | add)' least
	if ! grep -qw bbr /proc/sys/net/ipv4/tcp_available_congestion_control; then
		echo "BBR: this kernel has none"
		return
	fi
	flows 1 "h1 -t 5 -c cubic" "h2 -t 5 -c bbr"
	least=$(value "$theirs / 2")
	printf "BBR's share beside TCP's CUBIC: %.3f\n" "$(value "$theirs")"
	judge "BBR's share beside RD" 0.4 "$least" "$theirs" 1 "h1 -t 5" "h2 -t 5 -c bbr"
}

incast() {
	local i senders=()
	for ((i = 1; i <= 16; i++)); do
		senders+=("h$i -t 6")
	done
	judge "16 to 1, the worst against its fair share" 0.3 0.3 \
		"([.[].mbit] | min) / ($rate / 16)" 0 "${senders[@]}"
}

pull_out() {
	sleep 1.5
	lab fail "$name" "$1" >/dev/null
	sleep 1
	lab heal "$name" "$1" >/dev/null
	healed=$EPOCHREALTIME
}

# All data arrives, or rd_flow fails.
pulled() {
	local cable=$1 gap late
	meanwhile="pull_out $cable" flows 0 "h1 -t 4"
	gap=$(value '.[0].gap_ms')
	late=$(value ".[0].gap_end - $healed")
	printf 'Without %s for a second: a gap of %.0f ms, over %.3f s after it is back, goal 1\n' \
		"$cable" "$gap" "$late"
	check_true at_least "$gap" 900
	check_true at_least 1 "$late"
}

mixed() {
	local seed=$((RANDOM * 32768 + RANDOM)) server client
	export WEFT_FAULT="loss=0.02,dup=0.01,reorder=0.02,corrupt=0.01,seed=$seed"
	echo "Mixed operations: WEFT_FAULT=$WEFT_FAULT, rd_mix -S $seed"
	in_lab h0 rd_mix serve -t 5.5 -S "$seed" >"$tmp/mix.h0" 2>&1 &
	server=$!
	in_lab h1 rd_mix join h0 -t 5.5 -S "$seed" >"$tmp/mix.h1" 2>&1 &
	client=$!
	unset WEFT_FAULT
	pull_out h0-s1.0
	pull_out h1-s1.0
	for pid in $server $client; do
		checks=$((checks + 1))
		wait "$pid" || fail "rd_mix failed:" "$(cat "$tmp"/mix.*)"
	done
	grep -h operations "$tmp"/mix.* | sed 's/^/    /'
}

lab_new "$name" --pgft "1;17;1;1" --rate ${rate}mbit --mtu 1500
alone 1500 ""
judge "Two flows, the lesser's share" 0.4 0.3 "$least_share" 1 "h1 -t 8" "h2 -t 8"
judge "Beside TCP's CUBIC, the lesser's share" 0.4 0.3 "$least_share" 1 "h1 -t 8" \
	"h2 -t 8 -c cubic"
beside_bbr
incast
pulled h0-s1.0
pulled h1-s1.0
mixed
lab_end "$name"

lab_new "$name" --pgft "1;2;1;1" --rate ${rate}mbit --mtu 9000
alone 9000 ""
alone "9000, Writes" -w
lab_end "$name"
finish
