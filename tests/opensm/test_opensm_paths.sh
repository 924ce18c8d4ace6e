#!/bin/bash
# test_opensm_paths.sh PGFT: with LMC 2, a host has four addresses. Packets to them, followed from
# switch to switch by ibtracert, have no link in common but the hosts' own.
. "$SOURCE/tests/opensm/lib.sh"
pgft=${1//:/;}

dir=$tmp/d
mkdir "$dir"
"$WEFT" fabric convert --pgft "$pgft" --to ibnetdiscover >"$tmp/net"
hosts=$(grep -c '^Ca' "$tmp/net")
run "$WEFT" fabric route --pgft "$pgft" --routing lmc:2 --opensm "$dir"
check_code 0
sim_up "$tmp/net"
opensm_file "$dir" -l 2

# trace FROM TO ADDRESS: the links between switches, "out of this port into that".
trace() {
	sim ibtracert $((($1 + 1) * 4)) $((($2 + 1) * 4 + $3)) >"$tmp/trace" 2>&1
	check_has "$(head -n 1 "$tmp/trace")" "\"h$1\""
	check_has "$(tail -n 1 "$tmp/trace")" "\"h$2\""
	awk '/^\[[0-9]+\] -> / {
		match($0, /{[^}]*}\[[0-9]+\]/); into = substr($0, RSTART, RLENGTH)
		if (/-> switch port/ && from ~ /{/) print from $1 " " into
		from = into; sub(/\[[0-9]+\]$/, "", from)
	}' "$tmp/trace"
}

# Between leaves, near and far.
for pair in "0 $((hosts - 1))" "$((hosts - 1)) 0" "$((hosts / 2)) 1" "7 $((hosts / 3))"; do
	read -r from to <<<"$pair"
	for address in 0 1 2 3; do
		trace "$from" "$to" $address
	done >"$tmp/links"
	links=$(wc -l <"$tmp/links")
	check_true [ "$links" -ge 8 ]
	check_eq $((links % 4)) 0
	check_eq "$(sort -u "$tmp/links" | wc -l)" "$links"
	echo "h$from to h$to: $links links between switches, all different"
done
finish
