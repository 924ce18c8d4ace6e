#!/bin/bash
# The instrument beside ib_send_lat, on the same device and the same cores, in turn: both report the
# median of half a round trip, and must agree within 5 %.
#
# Each is a program of its own, and one of a pair may meet a busy machine alone. So the ratio is
# that of pairs, its median counts, and a machine that was too busy gets another chance, a few
# times: an instrument that measures something else is wrong in all of them.
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

# perftest TYPE SIZE: what it calls typical, which is the median.
perftest() {
	local port common
	port=$(free_port)
	common=(ib_send_lat -c "${1^^}" -s "$2" -n $ROUNDS -F -d weft0 -p "$port")
	timeout 20 taskset -c "${cores[1]}" "$weft" verbs "${common[@]}" >"$tmp/server" 2>&1 &
	server_pid=$!
	for _ in {1..100}; do listens "$port" && break || sleep 0.02; done
	timeout 20 taskset -c "${cores[0]}" "$weft" verbs "${common[@]}" 127.0.0.1 >"$tmp/client" 2>&1 ||
		fail "ib_send_lat: exit status $?"
	wait "$server_pid"
	server_pid=''
	value=$(awk -v n=$ROUNDS -v s="$2" '$1 == s && $2 == n { print $5 }' "$tmp/client")
}

# ours TYPE SIZE: it pins itself, in the same way.
ours() {
	timeout 20 "$weft" bench verbs pingpong -q --net loopback -t "$1-send" -n 1 -s "$2" --passes 1 \
		--rounds $ROUNDS --step-ms 5000 -j "$tmp/ours.json" >"$tmp/ours.out" 2>&1 || fail "bench verbs: exit status $?"
	holds ".series[] | select(.name == \"round\") | .samples | length == $ROUNDS" "$tmp/ours.json"
	value=$(jq '.series[] | select(.name == "round") | .samples | sort | .[length / 2 | floor]' "$tmp/ours.json")
}

# agree TYPE SIZE
agree() {
	local attempt i theirs mine ratio
	for ((attempt = 1; attempt <= ATTEMPTS; attempt++)); do
		: >"$tmp/ratios"
		for ((i = 0; i < PAIRS; i++)); do
			# Each is the first as often as the other.
			if ((i % 2)); then
				perftest "$1" "$2" && theirs=$value
				ours "$1" "$2" && mine=$value
			else
				ours "$1" "$2" && mine=$value
				perftest "$1" "$2" && theirs=$value
			fi
			[ -n "$theirs" ] && [ -n "$mine" ] || fail "$1, $2 bytes: no value"
			echo "$mine $theirs" | awk '{ printf "%.4f %s %s\n", $1 / $2, $1, $2 }' >>"$tmp/ratios"
		done
		ratio=$(sort -n "$tmp/ratios" | awk '{ v[NR] = $1 } END { print v[(NR + 1) / 2] }')
		echo "$1-send, $2 bytes: $ratio of ib_send_lat in $PAIRS pairs"
		awk -v r="$ratio" 'BEGIN { exit !(r >= 0.95 && r <= 1.05) }' && return
	done
	fail "$1-send, $2 bytes: not within 5 % of ib_send_lat in $ATTEMPTS attempts"
}
agree rc 8
agree rc 4096
agree ud 8
echo "ok: $checks checks"
