#!/bin/bash
# test_opensm_tables.sh PGFT ROUTING...: OpenSM takes our tables and dumps the same; ibdm finds a
# way between all hosts and no credit loop; we read the dump as what we wrote. Roots and hosts, as
# files for OpenSM's own routing, are taken as well.
. "$SOURCE/tests/opensm/lib.sh"
pgft=${1//:/;} # CMake has a use of its own for ";"
shift

net=$tmp/net
run "$WEFT" fabric convert --pgft "$pgft" --to ibnetdiscover
check_code 0
cp "$tmp/out" "$net"
hosts=$(grep -c '^Ca' "$net")

# by_file ROUTING
by_file() {
	local dir=$tmp/${1//:/-} lmc=0
	case $1 in lmc:*) lmc=${1#lmc:} ;; esac
	mkdir "$dir" "$dir/again"
	run "$WEFT" fabric route --pgft "$pgft" --routing "$1" --opensm "$dir"
	check_code 0
	sim_up "$net"
	opensm_file "$dir" -l "$lmc"
	same_tables "$dir/lfts" "$dir/opensm-lfts.dump"
	judge "$dir" "$lmc" "$hosts"
	run "$WEFT" fabric route --pgft "$pgft" --routing "file:$dir/opensm-lfts.dump" \
		--opensm "$dir/again"
	check_code 0
	same_tables "$dir/lfts" "$dir/again/lfts"
	# The same from the network as it is found by the programs of the fabric.
	sim ibnetdiscover >"$dir/found" 2>"$dir/found.err"
	check_eq "$(grep -c '^Ca' "$dir/found")" "$hosts"
	rm -rf "$dir/again"
	mkdir "$dir/again"
	run "$WEFT" fabric route --topology "$dir/found" --routing "$1" --opensm "$dir/again"
	check_code 0
	same_tables "$dir/lfts" "$dir/again/lfts"
	echo "$1: $(wc -l <"$tmp/a") entries"
}

# by_engine ENGINE: with our roots, and for ftree with our list of hosts.
by_engine() {
	local dir=$tmp/$1 options=(-a "$tmp/dmodk/roots")
	[ "$1" != ftree ] || options+=(-u "$tmp/dmodk/cas")
	mkdir "$dir"
	sim_up "$net"
	opensm_run "$dir" -R "$1" -r "${options[@]}"
	configured "$dir" "$1"
	judge "$dir" 0 "$hosts"
}

for routing; do
	by_file "$routing"
done
# Their own engines take most of the time on large fabrics, and learn nothing new there.
if [ "$hosts" -lt 1000 ]; then
	by_engine updn
	by_engine ftree
fi
finish
