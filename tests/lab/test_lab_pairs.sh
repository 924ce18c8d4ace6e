#!/bin/bash
# test_lab_pairs.sh PGFT ROUTING...: brings the lab up under each routing; every host reaches
# every address of every other; the kernels' routes are those of the closed form, and packets
# follow them; afterwards nothing is left.
. "$SOURCE/tests/lab/lib.sh"
needs_labs
pgft=${1//:/;} # CMake has a use of its own for ";"
shift

# Every host pings every address, its own included; eight hosts at a time.
ping_all() {
	local name=$1 host hosts
	lab show "$name" --json --interval 1ms >"$tmp/lab.json"
	mapfile -t hosts < <(jq -r '.hosts[].name' "$tmp/lab.json")
	jq -r '.hosts[].addresses[]' "$tmp/lab.json" >"$tmp/targets"
	# Three tries of half a second: the machine may be busy.
	printf '%s\n' "${hosts[@]}" | xargs -P 8 -I HOST sh -c "'$WEFT' lab exec '$name' HOST \
		fping -q -u -r 3 -t 500 -i 1 -f '$tmp/targets' >'$tmp/fping.HOST' 2>&1 </dev/null"
	for host in "${hosts[@]}"; do
		checks=$((checks + 1))
		[ -f "$tmp/fping.$host" ] && [ ! -s "$tmp/fping.$host" ] ||
			fail "$host does not reach:" "$(head -5 "$tmp/fping.$host")"
	done
	rm -f "$tmp"/fping.*
}

# Packets take the way that the tables say: an expired packet names the switch
trace() {
	local name=$1 from=$2 to=$3 expected
	expected=$("$BUILD/bin/check_routes" --path "$from" "$to" <"$tmp/lab.json")
	run lab exec "$name" "$from" traceroute -n -q 1 -w 2 "$to"
	check_eq "$(awk 'NR > 1 { print $2 }' <<<"$out")" "$expected"
}

before=$(census)
for routing; do
	name=${prefix}p
	lab_new "$name" --pgft "$pgft" --rate 1gbit --routing "$routing"
	ping_all "$name"
	"$BUILD/bin/check_routes" <"$tmp/lab.json" >"$tmp/verdict"
	check_eq "$?" 0
	echo "$routing: $(cat "$tmp/verdict")"
	if [ "$routing" != ecmp ]; then
		n=$(jq '.hosts | length' "$tmp/lab.json")
		trace "$name" h0 "h$((n - 1))"
		trace "$name" "h$((n / 2))" h1
		trace "$name" h1 h0
	fi
	mapfile -t held < <(namespaces_of "$name")
	check_true [ "${#held[@]}" -gt "$(jq '(.hosts | length) * 2' "$tmp/lab.json")" ]
	lab_end "$name"
	check_eq "$(still_held "${held[@]}")" ""
	check_eq "$(processes "$name")" ""
done
check_eq "$(diff <(echo "$before") <(census))" ""
finish
