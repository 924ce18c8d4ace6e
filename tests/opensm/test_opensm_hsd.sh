#!/bin/bash
# test_opensm_hsd.sh PGFT: the degree of every link in every stage of the shift, as ibdm counts it
# by walking the tables that OpenSM dumped, and as `weft fabric hsd` says.
#
# ibdm's own summary is no judge: behind the first link that has several flows it counts less. Its
# dump of flows by port is. It has no flows on the cables from leaves to hosts: these are left out
# of ours.
. "$SOURCE/tests/opensm/lib.sh"
pgft=${1//:/;}

dir=$tmp/d
mkdir "$dir"
"$WEFT" fabric convert --pgft "$pgft" --to ibnetdiscover >"$tmp/net"
hosts=$(grep -c '^Ca' "$tmp/net")
# node GUID, without leading zeros, and name
sed -n 's/^\(Switch\|Ca\)[^"]*"[SH]-0*\([0-9a-f]*\)"[^"]*"\([^"]*\)".*/\2 \3/p' "$tmp/net" >"$tmp/names"
check_true [ "$(wc -l <"$tmp/names")" -gt "$hosts" ]

# Host number i has LID i + 1.
cat >"$tmp/shift.tcl" <<'END'
lassign $argv hosts
set f [new_IBFabric]
IBFabric_parseSubnetLinks $f opensm-subnet.lst
IBFabric_parseFdbFile $f opensm.fdbs
ibdmCalcMinHopTables $f
ibdmRankFabricByRoots $f [ibdmFindRootNodesByMinHop $f]
ibdmCongInit $f
for {set s 1} {$s < $hosts} {incr s} {
	for {set i 0} {$i < $hosts} {incr i} {
		ibdmCongTrace $f [expr {$i + 1}] [expr {($i + $s) % $hosts + 1}]
	}
	puts "STAGE [expr {$s - 1}]"
	puts [ibdmCongDump $f]
	ibdmCongClear $f
}
exit
END

# theirs: "stage node[port] degree" of every port that has flows.
theirs() {
	(cd "$dir" && timeout -k 5 "$LIMIT" ibdmsh "$tmp/shift.tcl" "$hosts" 2>"$tmp/ibdm.err") |
		tr -d '\000' | awk '
		FNR == NR { name[$1] = $2; next }
		/^STAGE/ { stage = $2 }
		/^PORT:/ {
			split($1, part, /[:\/]/); guid = substr(part[2], 2); sub(/^0*/, "", guid)
			sub(/NUM:/, "", $2)
			if ($2 > 0) print stage, name[guid] "[" substr(part[4], 2) "]", $2
		}' "$tmp/names" - | sort
}

# ours ROUTING-OPTIONS
ours() {
	"$WEFT" fabric hsd --pgft "$pgft" --cps shift --links "$@" |
		sed -n '/>h[0-9]* /d; s/^\([0-9]* [^ >]*\)>[^ ]* /\1 /p' | sort
}

# compare ROUTING: and the same with the tables read from OpenSM's dump.
compare() {
	rm -rf "$dir"
	mkdir "$dir"
	run "$WEFT" fabric route --pgft "$pgft" --routing "$1" --opensm "$dir"
	check_code 0
	sim_up "$tmp/net"
	opensm_file "$dir"
	theirs >"$tmp/theirs"
	ours --routing "$1" >"$tmp/ours"
	ours --routing "file:$dir/opensm-lfts.dump" >"$tmp/dumped"
	check_eq "$(cut -d ' ' -f 1 "$tmp/ours" | uniq | sort -u | wc -l)" $((hosts - 1))
	check_eq "$(diff "$tmp/theirs" "$tmp/ours" | head -n 5)" ""
	check_eq "$(diff "$tmp/theirs" "$tmp/dumped" | head -n 5)" ""
	echo "$1: $(wc -l <"$tmp/theirs") links of $((hosts - 1)) stages, degrees up to" \
		"$(cut -d ' ' -f 3 "$tmp/theirs" | sort -n | tail -n 1)"
}

compare dmodk
check_eq "$(cut -d ' ' -f 3 "$tmp/theirs" | sort -u)" 1
compare random:7
check_true [ "$(cut -d ' ' -f 3 "$tmp/theirs" | sort -n | tail -n 1)" -gt 2 ]
finish
