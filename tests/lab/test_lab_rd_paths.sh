#!/bin/bash
# RD's paths on a tree with several spines: that flow labels and addresses lead over different
# ones, that what the device says of a path is what the network does to it, and that one queue
# pair that uses all of them survives the loss of one. Data is right and in order all the time,
# or rd_paths fails.
#
# Numbers depend on what else the machine does: what misses a floor is tried up to three times.
# shellcheck disable=SC2016 # jq has variables, too
. "$SOURCE/tests/lab/lib.sh"
needs_labs
name=${prefix}p
spines=4
seed=$((RANDOM * 32768 + RANDOM))
echo "rd_paths -S $seed"

# shellcheck disable=SC2153 # BUILD is from the environment
# in_lab HOST ARGUMENTS: rd_paths on the software RNIC, and not for ever.
in_lab() {
	local host=$1
	shift
	timeout -k 5 60 "$WEFT" lab exec "$name" "$host" -- \
		"$WEFT" verbs "$BUILD/bin/rd_paths" "$@" </dev/null
}

# carried DIRECTION: bytes on the first leaf's cables to the spines, as an array.
carried() {
	lab show "$name" --json --interval 1ms | jq -c --arg way "$1" \
		'[.links[] | select(.name | startswith("s1.0-s2.")) | .[$way].bytes]'
}

# send OPTIONS: from h0 to h4, which is on the other leaf. What the sender says is in $tmp/paths,
# what the spines have carried for it in $up and $down. What is to happen meanwhile is a function,
# in $meanwhile.
send() {
	local before_up before_down pids=() pid
	before_up=$(carried up)
	before_down=$(carried down)
	: >"$tmp/said.h0"
	in_lab h4 recv 2>"$tmp/said.h4" &
	pids+=($!)
	in_lab h0 send h4 -S "$seed" "$@" >"$tmp/paths" 2>"$tmp/said.h0" &
	pids+=($!)
	${meanwhile:-:}
	for pid in "${pids[@]}"; do
		checks=$((checks + 1))
		wait "$pid" || fail "rd_paths $* failed:" "$(cat "$tmp"/said.*)"
	done
	up=$(jq -nc "[$(carried up), $before_up] | transpose | map(.[0] - .[1])")
	down=$(jq -nc "[$(carried down), $before_down] | transpose | map(.[0] - .[1])")
	check_eq "$(jq -c '[.peers, .deaths]' "$tmp/paths")" "[1,0]"
}

# holds JSON CONDITION: of jq, which may use $spines.
holds() {
	jq -ne --argjson spines "$spines" "$1 | $2" >/dev/null && return
	printf '    not so: %s\n    of %s\n' "$2" "$1"
	return 1
}

# tried FUNCTION...: until it says that its floors are kept.
tried() {
	local try
	checks=$((checks + 1))
	for try in 1 2 3; do
		"$@" && return
		echo "    once more: $try"
	done
	fail "missed three times: $*"
}

# ---- flow labels ----

# Each label goes its way and stays there: a spine has carried a whole number of shares.
labels() {
	local shares
	send -l 8 -n 40 -w 4
	shares=$(jq -c 'add as $all | map(. * 8 / $all * 100 | round / 100)' <<<"$up")
	echo "Eight labels, shares of the spines: $shares"
	holds "$shares" 'all((. - round) | fabs < 0.3) and (map(select(. > 0.5)) | length > 1)'
}

one_label() {
	send -l 1 -n 40
	echo "One label, bytes on the spines: $up"
	check_true holds "$up" 'add > 600000 and max / add > 0.98'
}

# ---- addresses ----

# Both ways: answers go to the address that the request came from.
one_address() {
	send -a -1 "$1" -n 40
	echo "Address $1, bytes on the spines: $up there, $down back"
	check_true holds "$up" "add > 600000 and .[$1] / add > 0.98"
	check_true holds "$down" ".[$1] / add > 0.6"
}

all_addresses() {
	send -a -n 40
	echo "All addresses, bytes on the spines: $up there, $down back"
	holds "$up" '(add / $spines) as $fair | all(. > 0.85 * $fair and . < 1.15 * $fair)'
}

# More messages under way than the receiver keeps that come early.
crowd() {
	local rate
	send -l 16 -w 32 -s 2048 -t 1.5
	rate=$(jq '.samples | (last.done - first.done) / (last.when - first.when) | round' "$tmp/paths")
	echo "Sixteen labels, 512 messages under way: $rate messages/s"
	holds "$rate" '. > 1500'
}

# ---- what the device says of a path ----

# Of the second half: [path 0, path 1, ...] of the mean of a number.
mean() {
	jq -c --arg what "$1" '[.samples[length / 2 | floor:][].paths | map(.[$what])] | transpose |
		map(add / length * 100 | round / 100)' "$tmp/paths"
}

# Another flow fills most of spine 1.
hot_spot() {
	local cross rtt time
	"$WEFT" lab cross "$name" --from h1 --to h5 --rate 90mbit --for 20s >/dev/null &
	cross=$!
	sleep 0.3
	send -a -w 2 -s 8192 -t 1.2
	kill "$cross"
	wait "$cross" || fail "no cross traffic"
	rtt=$(mean rtt_ms)
	time=$(mean us_per_kb)
	echo "A flow of 90 Mbit/s on spine 1: rtt $rtt ms, completion $time us/KB"
	holds "$rtt" '.[1] > 1.5 * (del(.[1]) | max)' &&
		holds "$time" '.[1] > 1.5 * (del(.[1]) | max)'
}

# ---- a cable ----

pull_out() {
	local i
	for ((i = 0; i < 500; i++)); do
		grep -q going "$tmp/said.h0" && break
		sleep 0.02
	done
	sleep 0.7
	lab fail "$name" s1.0-s2.2 >/dev/null
	failed=$EPOCHREALTIME
	at_fail=$(carried up)
	sleep 1.2
	at_heal=$(carried up)
	healed=$EPOCHREALTIME
	lab heal "$name" s1.0-s2.2 >/dev/null
}

# What became of path 2 and the others: times in seconds, rates in messages per second, and what was
# completed by each path without the cable and after it was back.
story() {
	jq -c --argjson failed "$failed" --argjson healed "$healed" '
		def round3: . * 1000 | round / 1000;
		def rate: if length < 2 then 0
			else (last.done - first.done) / (last.when - first.when) | round end;
		def span($from; $to): map(select(.when >= $from and .when <= $to));
		def gain($i): last.paths[$i].completions - first.paths[$i].completions;
		def since($state; $event): (map(select(.paths[2].state == $state)) | first | .when //
			infinite) - $event | round3;
		.gap_ms as $gap | .samples as $all |
		($all | span(0; $failed)) as $before |
		($all | span($failed; $healed)) as $without |
		($all | span($healed; infinite)) as $after |
		{
			rates: [($before[10:], $without, $after) | rate],
			gap: ($gap / 1000 | round3),
			silent: ($without | since("silent"; $failed)),
			active: ($after | since("active"; $healed)),
			states: [($before, $without) | last.paths[2].state],
			mistaken: ([$all[].paths[0, 1, 3].state == "silent" | if . then 1 else 0 end] |
				add / length | round3),
			completion: ($without | last.paths | map(.us_per_kb | round)),
			without: ([0, 1, 2, 3] | map(. as $i | $without | gain($i))),
			after: ([0, 1, 2, 3] | map(. as $i | $after | gain($i)))
		}' "$tmp/paths"
}

# pulled LEAST OPTIONS: LEAST of the rate must be left.
pulled() {
	local least=$1 said
	shift
	meanwhile=pull_out send -a -w 8 -s 4096 -t 3.3 "$@"
	said=$(story)
	jq -r '"    messages/s before, without, after: \(.rates); longest gap \(.gap) s",
		"    path 2 silent \(.silent) s after the loss, active \(.active) s after it is back",
		"    others taken for silent: \(.mistaken) of the time",
		"    completed without it: \(.without), \(.completion) us/KB; after: \(.after)"' \
		<<<"$said"
	# Nothing went over the cable that was not there, and then something did.
	check_eq "$(jq '.[2]' <<<"$at_heal")" "$(jq '.[2]' <<<"$at_fail")"
	holds "$(carried up)" ".[2] > ${at_heal}[2] + 100000" || return
	# Were nothing rescued, the gap would be as long as the cable was away.
	holds "$said" '.silent < 1 and .active < 1.2 and .gap < 1' &&
		holds "$said" '.states == ["active", "silent"] and .mistaken < 0.25' &&
		holds "$said" '.completion[2] > 1.5 * (.completion | del(.[2]) | add / length)' &&
		holds "$said" '(.without | del(.[2]) | min > 10) and (.after | min > 30)' &&
		holds "$said" ".rates[1] > $least * .rates[0]"
}

lab_new "$name" --pgft "2;4,2;1,$spines;1,1" --rate 100mbit --mtu 1500 --routing ecmp
tried labels
one_label
tried crowd
lab_end "$name"

lab_new "$name" --pgft "2;4,2;1,$spines;1,1" --rate 100mbit --mtu 1500 --routing lmc:2
for ((i = 0; i < spines; i++)); do
	one_address $i
done
tried all_addresses
tried hot_spot
echo "Without a spine for 1.2 s, all paths used as before:"
tried pulled 0.02
echo "Without a spine for 1.2 s, leaving silent paths alone:"
tried pulled 0.2 -x
lab_end "$name"
finish
