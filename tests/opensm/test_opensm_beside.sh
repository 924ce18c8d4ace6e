#!/bin/bash
# Networks with more than a tree: hosts at spines, aggregation nodes in every switch, a host too many
# at a leaf, switches that hang on others, all also with something missing. OpenSM takes our tables
# as they are; ibdm finds a way between all that have an address, and no credit loop.
. "$SOURCE/tests/opensm/lib.sh"

# add NET WHAT...: the network with more nodes, each "name@switch" a host, or "+name@switch" a switch
# that may be named after it, or "*" an aggregation node at every switch. Without "-name"; cables by
# name and port as "-name[port]".
add() {
	local net=$1
	shift
	printf '%s\n' "$@" | awk '
		# A cable, in the text of both ends.
		function join(id, port, guid, sw) {
			text[id] = text[id] sprintf("[%d]%s\t\"S-%s\"[%d]\t\t# \"\" lid 0 4xSDR\n", port,
				guid ? "(" guid ")" : "", sw, ++ports[sw])
			text["S-" sw] = text["S-" sw] sprintf("[%d]\t\"%s\"[%d]%s\t\t# \"\" lid 0 4xSDR\n",
				ports[sw], id, port, guid ? "(" guid ")" : "")
		}
		function host(name, sw, guid) {
			guid = sprintf("2c9aa%06x", ++count)
			new[++news] = "H-0000" guid "0"
			head[news] = sprintf("caguid=0x%s0\nCa\t1 \"%s\"\t\t# \"%s\"\n", guid, new[news], name)
			join(new[news], 1, guid "1", sw)
		}
		function switch_at(name, other, guid) {
			guid = sprintf("0002c9bb%07x0", ++count)
			sw[name] = guid
			ports[guid] = 1
			new[++news] = "S-" guid
			head[news] = sprintf("switchguid=0x%s(%s)\nSwitch\t36 \"S-%s\"\t\t# \"%s\" " \
				"base port 0 lid 0 lmc 0\n", guid, guid, guid, name)
			join(new[news], 1, "", other)
		}
		FNR == NR { what[++n] = $0; if (/^-/) gone[substr($0, 2)] = 1; next }
		FILENAME != last { last = FILENAME; pass++ }
		pass == 1 && /^(Switch|Ca)[ \t]/ {
			split($0, q, "\""); id = substr(q[2], 3); name = q[4]
			if (name in gone) dead[q[2]] = 1
			if (/^Switch/) { sw[name] = id; order[++switches] = id; ports[id] = $2 }
		}
		pass == 1 && /^\[/ {
			split($0, q, "\""); match($0, /^\[[0-9]+\]/)
			port = substr($0, RSTART, RLENGTH)
			if ((name port) in gone) {
				match(q[3], /^\[[0-9]+\]/)
				cut[id port] = cut[substr(q[2], 3) substr(q[3], 1, RLENGTH)] = 1
			}
		}
		pass == 2 && FNR == 1 {
			for (i = 1; i <= n; i++) {
				split(what[i], part, "@")
				if (what[i] ~ /^-/)
					continue
				if (what[i] == "*") {
					for (k = 1; k <= switches; k++)
						host("Mellanox Technologies Aggregation Node", order[k])
				} else if (what[i] ~ /^\+/) {
					switch_at(substr(part[1], 2), sw[part[2]])
				} else
					host(part[1], sw[part[2]])
			}
		}
		pass == 2 && /^(vendid|devid|sysimgguid|caguid|switchguid)/ { above = above $0 "\n"; next }
		pass == 2 && /^(Switch|Ca)[ \t]/ {
			split($0, q, "\""); id = substr(q[2], 3); off = q[2] in dead
			if (/^Switch/) sub(/[0-9]+/, ports[id] > $2 ? ports[id] : $2)
			if (!off) printf "\n%s%s\n%s", above, $0, text[q[2]]
			above = ""; next
		}
		pass == 2 && /^\[/ && !off {
			split($0, q, "\""); match($0, /^\[[0-9]+\]/)
			if (!(q[2] in dead) && !((id substr($0, RSTART, RLENGTH)) in cut)) print
		}
		END { for (i = 1; i <= news; i++) printf "\n%s%s", head[i], text[new[i]] }' - "$net" pass=2 "$net"
}

# beside PGFT ROUTING DEFECTS WHAT...: how many defects `check` names.
beside() {
	local pgft=$1 routing=$2 defects=$3 lmc=0 all hosts dir
	shift 3
	case $routing in lmc:*) lmc=${routing#lmc:} ;; esac
	dir=$(mktemp -d "$tmp/XXXXXX")
	"$WEFT" fabric convert --pgft "$pgft" --to ibnetdiscover >"$tmp/whole"
	add "$tmp/whole" "$@" >"$dir/net"
	hosts=$(grep -c '^Ca' "$tmp/whole")
	all=$(grep -c '^Ca' "$dir/net")
	run "$WEFT" fabric check --topology "$dir/net"
	check_has "$out" "$pgft: "
	check_eq "$(grep -c '^defect: ' <<<"$out")" "$defects"
	run "$WEFT" fabric route --topology "$dir/net" --routing "$routing" --opensm "$dir"
	check_code 0
	check_lacks "$err" "have no way"
	sim_up "$dir/net"
	opensm_file "$dir" -l "$lmc"
	same_tables "$dir/lfts" "$dir/opensm-lfts.dump"
	judge "$dir" "$lmc" "$hosts" "$all"
	# What OpenSM dumps is read again, and ways beside the tree are the same then.
	mkdir "$dir/again"
	run "$WEFT" fabric route --topology "$dir/net" --routing "file:$dir/opensm-lfts.dump" \
		--opensm "$dir/again"
	check_code 0
	same_tables "$dir/lfts" "$dir/again/lfts"
	echo "$pgft, $routing, with $*: $all hosts, $(wc -l <"$tmp/a") entries"
}

beside "2;4,4;1,2;1,2" dmodk 0 admin@s2.0
beside "2;4,4;1,2;1,2" dmodk 0 admin@s2.0 storage1@s2.1 storage2@s2.1
beside "2;4,4;1,2;1,2" lmc:2 0 admin@s2.0 storage@s2.1
beside "2;4,4;1,2;1,2" dmodk 0 '*'
beside "2;12,12;1,6;1,2" dmodk 0 '*' admin@s2.0 gateway@s2.5
beside "2;12,12;1,6;1,2" dmodk 1 more@s1.3 admin@s2.1
beside "2;12,12;1,6;1,2" dmodk 1 +edge@s1.3 x1@edge x2@edge x3@edge admin@s2.4
beside "2;12,12;1,6;1,2" random:3 3 +edge@s2.3 x1@edge +far@s1.2 admin@s2.4 +third@s2.0 y1@third
# In three levels, at each of them.
beside "3;4,4,4;1,4,2;1,1,2" dmodk 0 a1@s3.0 a2@s3.7 a3@s2.5 a4@s2.6 a5@s2.15
beside "3;4,4,4;1,4,2;1,1,2" dmodk 1 '*' a1@s3.0 a3@s2.5 +edge@s2.2 x1@edge
# And with something missing, so that also hosts are not above or below each other only.
beside "2;12,12;1,6;1,2" dmodk 1 admin@s2.1 storage@s2.4 '-s1.3[14]' '-s1.3[20]'
beside "3;4,4,4;1,4,2;1,1,2" dmodk 2 '*' a1@s3.0 a3@s2.5 '-s1.5[6]' '-s2.9[5]'
finish
