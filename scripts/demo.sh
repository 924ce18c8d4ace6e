#!/bin/bash
# The demo: stock perftest programs on the software RNIC beside raw sockets, between two
# network namespaces, as one table. Takes less than a minute. Everything that it starts
# it also ends.
#
#   scripts/demo.sh [--quick]      --quick: a tenth of the iterations, rough numbers
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/hosts.sh
. scripts/hosts.sh
hosts_enter "$PWD/scripts/demo.sh" "$@"

BUILD=${WEFT_BUILD:-$PWD/build}
WEFT=$BUILD/bin/weft
PERF=$BUILD/bin/weft-perf
LIMIT=30 # seconds for one measurement; each takes about two
iterations=20000 big=2000 rounds=6
if [ "${1:-}" = --quick ]; then
	iterations=2000 big=500 rounds=2
fi
port=18515
tmp=$(mktemp -d)
failed=0

# By the shell's own list of what it started: a number that we had yet to write down
# when the signal came is on it. Again until they are gone: a child that has not yet
# become its program still has this shell's handlers.
cleanup() {
	local i pids
	trap '' INT TERM
	trap - EXIT
	for ((i = 0; i < 40; i++)); do
		pids=$(jobs -pr)
		[ -n "$pids" ] || break
		# shellcheck disable=SC2086 # one word each
		kill $pids 2>/dev/null
		sleep 0.05
	done
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'cleanup; exit 130' INT
trap 'cleanup; exit 143' TERM

# One core for each side, as polling programs want it.
pin_a=() pin_b=()
if [ "$(nproc)" -ge 2 ] && command -v taskset >/dev/null; then
	mapfile -t cores < <(taskset -pc $$ | sed 's/.*: //' | tr , '\n' |
		awk -F- '{ for (i = $1; i <= ($2 == "" ? $1 : $2); i++) print i }')
	pin_a=(taskset -c "${cores[0]}")
	pin_b=(taskset -c "${cores[1]}")
fi

# pair SERVER-COMMAND -- CLIENT-COMMAND: runs both, keeps the client's output in
# $tmp/out. In both, the word PORT stands for a fresh port number and HOST for the
# server's address.
pair() {
	local server=() client=() word server_pid client_pid result i
	port=$((port + 1))
	while [ "$1" != -- ]; do
		server+=("${1/#PORT/$port}")
		shift
	done
	shift
	for word; do
		word=${word/#PORT/$port}
		client+=("${word/#HOST/$HOST_B}")
	done
	start_b "${server[@]}" >"$tmp/server" 2>&1 </dev/null
	server_pid=$!
	hosts_wait_port "$port" "$server_pid"
	timeout "$LIMIT" "${client[@]}" >"$tmp/out" 2>"$tmp/err" </dev/null &
	client_pid=$!
	wait "$client_pid"
	result=$?
	if [ $result -ne 0 ]; then
		echo "demo: '${client[*]}' failed ($result):" >&2
		cat "$tmp/err" "$tmp/out" "$tmp/server" >&2
		failed=1
	fi
	# A server ends with its client; one that does not is in the way.
	for ((i = 0; i < 50; i++)); do
		kill -0 "$server_pid" 2>/dev/null || break
		sleep 0.02
	done
	kill "$server_pid" 2>/dev/null
	wait "$server_pid" 2>/dev/null
	return $result
}

# Each measurement leaves its number in $value, empty if it failed. (Not on standard
# output: in a subshell the traps above would know nothing of the processes.)

# perftest COLUMN PROGRAM OPTIONS: a column of the last line of numbers.
perftest() {
	local column=$1
	shift
	value=
	pair "${pin_b[@]}" "$WEFT" verbs "$@" -d weft0 -F -p PORT -- \
		"${pin_a[@]}" "$WEFT" verbs "$@" -d weft0 -F -p PORT HOST || return
	value=$(awk -v c="$column" '$1 ~ /^[0-9]+$/ && NF >= 4 { v = $c } END { print v }' "$tmp/out")
}

# The median, in microseconds.
latency() { perftest 5 "$@" -n $iterations; }

# The average, in 10^6 bytes per second.
bandwidth() {
	perftest 4 "$@" --report_gbits
	[ -z "$value" ] || value=$(awk -v g="$value" 'BEGIN { print g * 125 }')
}

# raw lat|bw KINDS SIZES: measures plain sockets, for raw_value KIND SIZE. It chooses
# its cores by itself, the same ones.
raw() {
	pair "$PERF" server -q -p PORT -- \
		"$PERF" "$1" -q -k "$2" -s "$3" -n $((iterations / 10)) -r $rounds -p PORT -j "$tmp/$1.json" HOST || return
	"$PERF" plot "$tmp/$1.json" >"$tmp/$1"
}
# The larger one of KIND and KIND-block: which way of waiting gives a socket its best
# bandwidth depends on the machine.
raw_value() {
	awk -v k="$2" -v s="$3" 'NF == 1 { kind = $1 }
		NF == 2 && (kind == k || kind == k "-block") && $1 == s && $2 > best { best = $2 }
		END { print best }' "$tmp/$1"
}

# row WHAT SIZE UNIT SOCKET RAW: with $value as Weft's.
row() {
	awk -v what="$1" -v size="$2" -v unit="$3" -v name="$4" -v raw="$5" -v weft="$value" 'BEGIN {
		form = unit == "us" ? "%.2f us" : "%.0f MB/s"
		printf "%-22s %5s %13s %13s %-8s", what, size,
			weft == "" ? "failed" : sprintf(form, weft),
			raw == "" ? "failed" : sprintf(form, raw), name
		if (weft != "" && raw != "")
			printf " %5.2f", weft / raw
		print ""
	}'
}

main() {
	local tcp udp
	hosts_up || exit 1
	echo "Stock perftest on the software RNIC, beside raw sockets"
	if [ "$HOSTS_MODE" = namespaces ]; then
		echo "two network namespaces joined by veth, $(nproc) cores, Linux $(uname -r)"
	else
		echo "two processes over loopback (namespaces are not allowed here)," \
			"$(nproc) cores, Linux $(uname -r)"
	fi
	echo
	printf '%-22s %5s %13s %13s %-8s %5s\n' "" size Weft socket "" ratio
	touch "$tmp/lat" "$tmp/bw"
	raw lat tcp,udp 8
	tcp=$(raw_value lat tcp 8)
	udp=$(raw_value lat udp 8)
	latency ib_send_lat -s 8
	row "RC send latency" 8 us TCP "$tcp"
	latency ib_write_lat -s 8
	row "RC write latency" 8 us TCP "$tcp"
	latency ib_read_lat -s 8
	row "RC read round trip" 8 us "TCP x 2" "$(awk -v t="$tcp" 'BEGIN { if (t != "") print 2 * t }')"
	latency ib_send_lat -c UD -s 8
	row "UD send latency" 8 us UDP "$udp"

	raw bw tcp,tcp-block 64K,1M
	tcp=$(raw_value bw tcp 65536)
	bandwidth ib_send_bw -s 65536 -n $iterations
	row "RC send bandwidth" 64K MB TCP "$tcp"
	bandwidth ib_write_bw -s 65536 -n $iterations
	row "RC write bandwidth" 64K MB TCP "$tcp"
	bandwidth ib_read_bw -s 65536 -n $iterations
	row "RC read bandwidth" 64K MB TCP "$tcp"
	tcp=$(raw_value bw tcp 1048576)
	bandwidth ib_write_bw -s 1048576 -n $big
	row "RC write bandwidth" 1M MB TCP "$tcp"
	echo
	echo "Latency: median of half a round trip; a lower ratio is better. Bandwidth: a higher"
	echo "one. Both sides poll, except the target of reads and of write bandwidth, which sleeps:"
	echo "the device's own thread serves it. 'make bench' measures more, and more carefully."
	if [ "$HOSTS_MODE" != namespaces ]; then
		echo "Loopback has segments of 64 KB and spares raw TCP most of its work, so the"
		echo "bandwidth ratios are lower here than between hosts or namespaces."
	fi
	[ $failed -eq 0 ]
}
main
