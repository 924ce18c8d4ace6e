#!/bin/bash
# The instrument beside ib_send_lat, on the same device and the same cores, in turn: both report the
# median of half a round trip, and must agree within 5 %.
#
# Each is a program of its own, and one of a pair may meet a busy machine alone. So the ratio is
# that of pairs, and its median counts, with the interval that 15 pairs give it (the fourth from
# either end: 95 %). An attempt whose interval is wider than what is asked for tells nothing, and is
# made again, a few times; if none of them tells anything the test is skipped.
# shellcheck source=tests/bench/lib.sh
. "$(dirname "$0")/lib.sh"
for program in jq ib_send_lat taskset; do
	command -v $program >/dev/null || exit 77
done
# Polling for each other on one core is another measurement.
mapfile -t cores < <(taskset -cp $$ | sed 's/.*: //' | tr ',' '\n' |
	awk -F- '{ for (i = $1; i <= (NF > 1 ? $2 : $1); i++) print i }')
[ ${#cores[@]} -ge 2 ] || exit 77
weft=$BUILD/bin/weft
PAIRS=15 ATTEMPTS=4 ROUNDS=2000

# listens PORT: somebody does, here.
listens() { awk -v at="$(printf ':%04X' "$1")" '$4 == "0A" && index($2, at) { n = 1 } END { exit !n }' /proc/net/tcp /proc/net/tcp6; }

# perftest TYPE SIZE: what it calls typical, which is the median; nothing if it was kept from running
# for so long that it, or its peer, gave up: two that poll for each other beside others take a time
# slice for each message.
perftest() {
	local port common
	port=$(free_port)
	common=(ib_send_lat -c "${1^^}" -s "$2" -n $ROUNDS -F -d weft0 -p "$port")
	timeout 15 taskset -c "${cores[1]}" "$weft" verbs "${common[@]}" >"$tmp/server" 2>&1 &
	server_pid=$!
	for _ in {1..100}; do listens "$port" && break || sleep 0.02; done
	timeout 10 taskset -c "${cores[0]}" "$weft" verbs "${common[@]}" 127.0.0.1 >"$tmp/client" 2>&1
	kill "$server_pid" 2>/dev/null
	wait "$server_pid" 2>/dev/null
	server_pid=''
	value=$(awk -v n=$ROUNDS -v s="$2" '$1 == s && $2 == n { print $5 }' "$tmp/client")
}

# ours TYPE SIZE: the same; it pins itself.
ours() {
	timeout 20 "$weft" bench verbs pingpong -q --net loopback -t "$1-send" -n 1 -s "$2" --passes 1 \
		--rounds $ROUNDS --step-ms 5000 -j "$tmp/ours.json" >"$tmp/ours.out" 2>&1 || fail "bench verbs: exit status $?"
	holds '[.series[] | select(.name == "round") | .samples | length > 0] == [true]' "$tmp/ours.json"
	value=$(jq --argjson n $ROUNDS '.series[] | select(.name == "round") | .samples | select(length == $n) | sort |
		.[length / 2 | floor]' "$tmp/ours.json")
}

# agree TYPE SIZE
agree() {
	local attempt i theirs mine low ratio high told=''
	for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
		: >"$tmp/ratios"
		for ((i = 0; i < PAIRS; i++)); do
			# Each is the first as often as the other.
			if ((i % 2)); then
				perftest "$1" "$2"
				theirs=$value
				ours "$1" "$2"
				mine=$value
			else
				ours "$1" "$2"
				mine=$value
				perftest "$1" "$2"
				theirs=$value
			fi
			[ -n "$theirs" ] && [ -n "$mine" ] || continue 2
			echo "$mine $theirs" | awk '{ printf "%.4f %s %s\n", $1 / $2, $1, $2 }' >>"$tmp/ratios"
		done
		read -r low ratio high < <(sort -n "$tmp/ratios" |
			awk '{ v[NR] = $1 } END { print v[4], v[8], v[12] }')
		echo "$1-send, $2 bytes: $ratio [$low..$high] of ib_send_lat in $PAIRS pairs"
		awk -v l="$low" -v h="$high" 'BEGIN { exit !(h - l <= 0.1) }' || continue
		awk -v r="$ratio" 'BEGIN { exit !(r >= 0.95 && r <= 1.05) }' && return
		told=yes
	done
	[ -z "$told" ] || fail "$1-send, $2 bytes: not within 5 % of ib_send_lat"
	echo "$1-send, $2 bytes: the machine is too busy to say"
	busy=yes
}
busy=''
agree rc 8
agree rc 4096
agree ud 8
[ -z "$busy" ] || exit 77
echo "ok: $checks checks"
