#!/bin/bash
# Hosts with two interfaces, a cable to a switch of its own on each: an endpoint uses both, each for
# what it is worth, and does without one while that is gone. With connections it has one.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
program=$BUILD/bin/weft-mpi-perf.openmpi
links=$BUILD/tests/mpi/openmpi/mpi_links
needs_mpi "$program"
needs_labs
name=${prefix}if
# Between h0 and h2 address i has interface i, both ways.
lab_new "$name" --pgft "1;3;2;1" --rate 200mbit --routing lmc:1
printf 'h0\nh2\n' >"$tmp/hosts"

# Bytes that the two hosts have sent by each interface: [[h0's], [h2's]]
carried() {
	lab show "$name" --json --interval 1ms | jq -c '[("h0", "h2") as $h |
		[("0", "1") as $i | .links[] | select(.name == "\($h)-s1.\($i)") | .up.bytes]]'
}

# on_two POLICY [NAME=VALUE]...: 32 MB each way. Of what was sent the part that has left by the
# first interface, per host, is in $first; what rank 0 has seen in all, in MB/s, in $speed.
on_two() {
	local before after
	before=$(carried)
	run env FI_WEFT_STATS=yes FI_WEFT_SPECULATE=no FI_WEFT_STRIPING="$1" "${@:2}" timeout 60 \
		"$WEFT" run --lab "$name" -n 2 --order "file:$tmp/hosts" \
		"$program" bibw -m 1M -i 16 -w 2 -W 2 -T 30
	check_code 0
	after=$(carried)
	first=$(jq -nc "[$before, $after] | transpose | map(transpose | map(.[1] - .[0]) |
		.[0] / add * 100 | round / 100)")
	speed=$(awk '$1 == 1048576 { print $4 }' <<<"$out")
	echo "$*: $speed MB/s, by the first interface $first"
}

# holds JSON CONDITION
holds() { jq -ne "$1 | $2" >/dev/null; }

# ---- both, and one ----

on_two even:2
check_true holds "$first" 'all(. > 0.4 and . < 0.65)'
on_two single
check_true holds "$first" 'all(. > 0.98)'
on_two even:4 FI_WEFT_TRANSPORT=rc
check_true holds "$first" 'all(. > 0.98)'

# ---- the second has an eighth of the bandwidth ----

second_is() { # RATE
	local host
	for host in h0 h2; do
		run lab exec "$name" $host -- tc qdisc change dev eth1 root tbf rate "$1" burst 59000 \
			latency 20ms
		check_code 0
	done
}

second_is 25mbit
for policy in weighted:4,1 pull:2; do
	on_two $policy
	# Each host divides what it reads: one of them may have begun with the wrong half.
	check_true holds "$first" 'all(. > 0.45 and . < 0.97) and add / length > 0.55'
done
second_is 200mbit

# ---- one is gone for a while: all messages arrive, once, in order ----

# until_sent JSON I: h0 has sent 4 MB more by interface I than it had then.
until_sent() {
	local i
	for ((i = 0; i < 300; i++)); do
		holds "[$1, $(carried)]" ".[1][0][$2] - .[0][0][$2] > 4e6" && return
		sleep 0.05
	done
	return 1
}

# pull_out I: while h0 sends; by the other one it goes on, and by both when the cable is back.
pull_out() {
	local before ok=0
	before=$(carried)
	until_sent "$before" "$1" && until_sent "$before" $((1 - $1)) || ok=1
	lab fail "$name" "h0-s1.$1"
	carried >"$tmp/gone"
	sleep 1.5
	until_sent "$(cat "$tmp/gone")" $((1 - $1)) || ok=1
	carried >"$tmp/back"
	lab heal "$name" "h0-s1.$1"
	until_sent "$(cat "$tmp/back")" "$1" || ok=1
	return $ok
}

for i in 0 1; do
	pull_out $i >/dev/null &
	hand=$!
	run env FI_WEFT_STRIPING=pull:2 FI_WEFT_STRIPE_MIN=16k timeout 100 "$WEFT" run --lab "$name" \
		-n 2 --order "file:$tmp/hosts" "$links" -t 12
	check_code 0
	check_has "$out" " checks, 0 failures"
	wait "$hand"
	check_eq "interface $i: $?" "interface $i: 0"
	grep '^messages' <<<"$out"
	echo "h0 without interface $i: from $(jq -c '.[0]' "$tmp/gone") to $(jq -c '.[0]' "$tmp/back") bytes"
	check_eq "$(jq ".[0][$i]" "$tmp/back")" "$(jq ".[0][$i]" "$tmp/gone")"
done
lab_end "$name"
finish
