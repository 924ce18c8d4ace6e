#!/bin/bash
# Switches and cables are taken out of a network; our tables around them are taken by OpenSM as
# they are, and ibdm finds a way between all hosts that are left, and no credit loop.
. "$SOURCE/tests/opensm/lib.sh"

# without NET PATTERN...: the network without the nodes that have these names and without the
# cables "name[port]" given by their lower end.
without() {
	local net=$1
	shift
	printf '%s\n' "$@" | awk '
		# The nodes: their ids by name, and the peer at each port.
		FNR == NR { gone[$1] = 1; next }
		FILENAME != last { last = FILENAME; pass++ }
		/^(Switch|Ca)[ \t]/ {
			split($0, q, "\""); id = q[2]; name = q[4]
			if (pass == 1 && name in gone) dead[id] = 1
		}
		pass == 1 && /^\[/ {
			split($0, q, "\""); match($0, /^\[[0-9]+\]/)
			port = substr($0, 2, RLENGTH - 2)
			if ((name "[" port "]") in gone) {
				match(q[3], /^\[[0-9]+\]/)
				cut[id, port] = cut[q[2], substr(q[3], 2, RLENGTH - 2)] = 1
			}
			next
		}
		pass == 2 && /^(vendid|devid|sysimgguid|caguid|switchguid|Switch|Ca)/ { head = head $0 "\n" }
		pass == 2 && /^(Switch|Ca)[ \t]/ { if (!(id in dead)) printf "\n%s", head; head = "" }
		pass == 2 && /^\[/ && !(id in dead) {
			split($0, q, "\""); match($0, /^\[[0-9]+\]/)
			if (!(q[2] in dead) && !((id, substr($0, 2, RLENGTH - 2)) in cut)) print
		}' - "$net" pass=2 "$net"
}

# around PGFT HOSTS-LEFT WHAT...
around() {
	local pgft=$1 left=$2 dir
	shift 2
	dir=$(mktemp -d "$tmp/XXXXXX")
	"$WEFT" fabric convert --pgft "$pgft" --to ibnetdiscover >"$tmp/whole"
	without "$tmp/whole" "$@" >"$dir/net"
	check_eq "$(grep -c '^Ca' "$dir/net")" "$left"
	run "$WEFT" fabric route --topology "$dir/net" --opensm "$dir"
	check_code 0
	sim_up "$dir/net"
	opensm_file "$dir"
	same_tables "$dir/lfts" "$dir/opensm-lfts.dump"
	judge "$dir" 0 "$left"
	echo "$pgft without $*: $(wc -l <"$tmp/a") entries"
}

around "2;4,4;1,2;1,2" 16 "s1.0[5]"
around "2;12,12;1,6;1,2" 144 s2.3
around "2;12,12;1,6;1,2" 142 s2.0 "s1.3[14]" "s1.3[21]" "s1.7[17]" h5 h100
around "3;4,4,4;1,4,2;1,1,2" 64 s3.1 s2.2 "s1.5[6]" "s2.9[5]"
around "3;4,4,4;1,4,2;1,1,2" 60 s1.6 h24 h25 h26 h27 s3.0 "s1.0[7]"
finish
