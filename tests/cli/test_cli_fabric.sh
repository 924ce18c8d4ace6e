#!/bin/bash
# weft fabric: what it prints, what it writes, and what it says about bad input.
. "$(dirname "$0")/lib.sh"

fabric() { run "$WEFT" fabric "$@"; }
value() { jq -r "$1" <<<"$out"; }

# ---- what a fabric is ----
fabric check --pgft '2;18,18;1,9;1,2'
check_code 0
check_has "$out" '324 hosts, 27 switches, 648 cables'
fabric check --pgft '2;16,16;1,16;1,2'
check_code 1
check_has "$out" 'no RLFT'
fabric check --json --pgft '3;18,18,6;1,18,3;1,1,6'
check_code 0
check_eq "$(value .hosts)" 1944
check_eq "$(value .rlft)" true

fabric convert --pgft '2;4,4;1,2;1,2' --to ibnetdiscover -o "$tmp/net"
check_code 0
fabric check --topology "$tmp/net"
check_code 0
check_has "$out" '2;4,4;1,2;1,2'
fabric convert --topology "$tmp/net" --to pgft
check_eq "$out" '2;4,4;1,2;1,2'
fabric check --topology "$tmp/net" --without s2.1
check_code 1
check_has "$out" 'missing: 1 nodes, 8 cables'
# What is taken away may be called as in the file: id, GUID, description, and ends of cables.
sed 's/"s2\.0"/"spine A; U1"/' "$tmp/net" >"$tmp/named"
for name in S-0002c90200000010 0x0002c90200000010 'spine A; U1'; do
	fabric check --topology "$tmp/named" --without "$name"
	check_has "$out" 'missing: 1 nodes, 8 cables'
	for end in "${name}[3]" "$name:3" 's1.2[5]'; do
		fabric check --topology "$tmp/named" --without "$end" --without "$name:3"
		check_code 1
		check_has "$out" 'missing: 0 nodes, 1 cables'
	done
done
fabric check --pgft '2;4,4;1,2;1,2' --without s1.2-s2.0:0 --without 's2.0[3]'
check_has "$out" 'missing: 0 nodes, 1 cables'
# A cable is gone from the file, at one of its ends: it is there, as long as the other has it.
awk '/^(Switch|Ca)/ { node = $0 }
	node ~ /"s1\.0"/ && /^\[5\]/ { next }
	{ print }' "$tmp/net" >"$tmp/half"
fabric check --topology "$tmp/half"
check_code 0
# A million hosts with something missing: what is different from the formula, and no tables.
million='3;100,100,100;1,100,100;1,1,1'
fabric check --json --pgft "$million" --without s2.0 --without s1.30
check_code 1
check_eq "$(value .pairs_without_a_way)" 199989900
fabric hsd --json --pgft "$million" --without s2.0 --cps shift:777
check_code 0
check_eq "$(value .flows_without_a_way)" 0
check_eq "$(value .max_hsd)" 2
# As even as it can be: 30 destinations on four cables.
fabric route --json --pgft '2;6,6;1,3;1,2' --without s2.0
check_code 0
check_eq "$(value .most_per_up_link)" 8
check_eq "$(value .least_per_up_link)" 7
check_eq "$(value .tables)" 8
# Alike switches have the same table also where it differs from the formula: those of the 16 leaves,
# of the 4 sub-trees, and of all spines. What has no way is counted in all 48.
for gone in '' h0 s1.7; do
	fabric route --json --pgft '3;4,4,4;1,4,4;1,1,1' ${gone:+--without $gone}
	check_eq "$(value '"\(.tables) \(.tables_computed) \(.without_a_way)"')" \
		"$(case $gone in '') echo 48 21 0 ;; h0) echo 48 21 48 ;; *) echo 47 20 188 ;; esac)"
done
# Ports may have larger numbers than the tree has cables.
fabric convert --pgft '2;6,6;1,3;1,2' --without s2.0 --to ibnetdiscover -o "$tmp/low"
sed -E "s/^Switch\t[0-9]+/Switch\t60/" "$tmp/low" >"$tmp/high"
awk '/^Switch/ { s = 1 } /^Ca/ { s = 0 }
	/^\[/ { split($0, p, /[][]/)
		if (s) sub(/^\[[0-9]+\]/, "[" p[2] + 40 "]")
		if (/"S-/) { match($0, /"\[[0-9]+\]/); k = substr($0, RSTART + 2, RLENGTH - 3)
			$0 = substr($0, 1, RSTART + 1) k + 40 substr($0, RSTART + RLENGTH - 1) } }
	{ print }' "$tmp/high" >"$tmp/high.net"
fabric route --json --topology "$tmp/high.net"
check_eq "$(value .most_per_up_link)" 8
check_eq "$(value .least_per_up_link)" 7
# A cable is gone from the file, at both of its ends.
awk '/^(Switch|Ca)/ { node = $0 }
	node ~ /"s1\.0"/ && /^\[5\]/ { next }
	node ~ /"s2\.0"/ && /^\[1\]/ { next }
	{ print }' "$tmp/net" >"$tmp/cut"
fabric check --topology "$tmp/cut"
check_code 1
check_has "$out" 'defect:'

fabric hsd --topology "$tmp/cut" --cps shift
check_code 0
check_has "$err" 'warning: the fabric has 1 defect, '

# ---- hot spots ----
fabric hsd --pgft '2;18,18;1,9;1,2' --cps shift --json
check_code 0
check_eq "$(value '[.avg_max_hsd,.max_hsd,.stages,.avg_max_up,.avg_max_down,.avg_max_leaf_up]|tostring')" \
	'[1,1,323,1,1,1]'
fabric hsd --pgft '2;18,18;1,9;1,2' --cps ring --order adversarial --json
check_eq "$(value .max_hsd)" 17
fabric hsd --pgft '2;12,12;1,6;1,2' --cps shift --exclude 24:1 --json
check_true test "$(value '.avg_max_hsd > 1')" = true
fabric hsd --pgft '2;12,12;1,6;1,2' --cps shift --exclude 24:1 --routing compact --json
check_eq "$(value .max_hsd)" 1
fabric hsd --pgft '2;12,12;1,6;1,2' --cps shift --order random:3 --hottest 2 --per-stage --json
check_eq "$(value '.hottest|length')" 2
check_eq "$(value '.hottest[0].degree == (.hottest[0].flows|length)')" true
check_eq "$(value '.hottest[0].degree == .max_hsd')" true
check_eq "$(value '.per_stage|length')" 143
check_eq "$(value '([.per_stage[].max]|add/length) - .avg_max_hsd|fabs < 1e-9')" true
printf '0>1 2>3\n0>2\n+ 1>3\n' >"$tmp/pattern"
fabric hsd --pgft '1;4;1;1' --cps "file:$tmp/pattern" --json
check_eq "$(value .stages)" 2
# A stage is a list of flows: a rank may be in several.
printf '0>1 0>2 0>3 1>0\n' >"$tmp/pattern"
fabric hsd --pgft '1;4;1;1' --cps "file:$tmp/pattern" --hottest 1 --json
check_eq "$(value '[.max_hsd, (.hottest[0].flows|map(.to_rank))]|tostring')" '[3,[1,2,3]]'
fabric sim --pgft '1;4;1;1' --cps "file:$tmp/pattern" --json
check_code 0
check_eq "$(value .bytes)" $((4 * 65536))
for progress in step async; do
	fabric sim --pgft '1;4;1;1' --cps "file:$tmp/pattern" --progress $progress
	check_code 0
done
fabric draw --pgft '1;4;1;1' --cps "file:$tmp/pattern" -o "$tmp/several.html"
check_code 0
# Names of others' files do not steer the terminal.
sed $'s/"h3"/"\033[31mh\\x9b3"/; s/"s1\\.0"/"\007leaf"/' "$tmp/net" >"$tmp/steer"
for words in '--links' '--hottest 99' '--without nobody:1'; do
	# shellcheck disable=SC2086 # an option and its value
	fabric hsd --topology "$tmp/steer" --cps shift $words
	check_true test -z "$(tr -d '\n -~' <"$tmp/out")"
	check_true test -z "$(tr -d '\n -~' <"$tmp/err")"
done
fabric hsd --topology "$tmp/steer" --cps shift --links
check_has "$out" '\x1b[31mh\x9b3[1]>\x07leaf'
fabric route --topology "$tmp/steer" --lfts -
check_has "$out" "('?leaf'):"
check_true test -z "$(tr -d '\n -~' <"$tmp/out")"
fabric hsd --topology "$tmp/steer" --cps shift --hottest 64 --json
check_eq "$(value '.hottest|length')" 64

# ---- orders and tables ----
fabric order --pgft '2;2,2;1,1;1,2' --as openmpi-rankfile
check_eq "$out" $'rank 0=h0 slot=0\nrank 1=h1 slot=0\nrank 2=h2 slot=0\nrank 3=h3 slot=0'
fabric order --pgft '2;2,2;1,1;1,2' --as mpich --exclude 1:1
check_eq "$(wc -l <<<"$out")" 3
fabric order --pgft '2;2,2;1,1;1,2' --as slurm-topology
check_has "$out" 'SwitchName='
fabric route --pgft '2;4,4;1,2;1,2' --opensm "$tmp/sm"
check_code 0
for f in lfts guid2lid roots cas ca-order; do check_true test -s "$tmp/sm/$f"; done
fabric route --pgft '2;4,4;1,2;1,2' --opensm "$tmp/sm" --json
check_eq "$(value .tables)" 6
# What is refused leaves what was there before, and nothing else.
sed 's/"h7"/"h\&7"/' "$tmp/net" >"$tmp/odd"
echo before >"$tmp/ranks"
before=$(cat "$tmp"/sm/*)
for as in mpich slurm-topology; do
	fabric order --topology "$tmp/odd" --as $as -o "$tmp/ranks"
	check_code 2
	check_has "$err" 'no launcher would read'
	check_eq "$(cat "$tmp/ranks")" before
	fabric order --topology "$tmp/odd" --as $as
	check_code 2
	check_eq "$out" ''
done
mv "$tmp/sm/ca-order" "$tmp/saved"
mkdir "$tmp/sm/ca-order"
fabric route --topology "$tmp/odd" --routing random:1 --opensm "$tmp/sm"
check_code 1
check_has "$err" 'ca-order'
rmdir "$tmp/sm/ca-order"
mv "$tmp/saved" "$tmp/sm/ca-order"
check_eq "$(cat "$tmp"/sm/*)" "$before"
check_eq "$(cd "$tmp" && echo ranks* sm/*)" 'ranks sm/ca-order sm/cas sm/guid2lid sm/lfts sm/roots'
# OpenSM takes any name.
fabric route --topology "$tmp/odd" --opensm "$tmp/sm"
check_code 0
check_has "$(cat "$tmp/sm/ca-order")" 'h&7'
# A file keeps its mode, a link its place.
chmod 640 "$tmp/ranks"
ln -s ranks "$tmp/link"
fabric order --pgft '1;4;1;1' -o "$tmp/link"
check_code 0
check_eq "$(stat -c %a "$tmp/ranks") $(head -1 "$tmp/ranks") $(readlink "$tmp/link")" '640 h0 ranks'
# Its own tables, read back, have the same hot spots as the formula.
fabric route --pgft '2;4,4;1,2;1,2' --routing random:5 --lfts "$tmp/lfts"
check_code 0
fabric hsd --pgft '2;4,4;1,2;1,2' --cps shift --routing "file:$tmp/lfts" --json
a=$out
fabric hsd --pgft '2;4,4;1,2;1,2' --cps shift --routing random:5 --json
check_eq "$a" "$out"
fabric route --json --pgft '3;18,18,36;1,18,18;1,1,1'
check_eq "$(value .entries)" 18895680

# ---- simulation ----
fabric sim --pgft '2;4,4;1,2;1,2' --cps shift --bytes 32K --json
check_code 0
check_eq "$(value '.bytes')" $((16 * 15 * 32768))
check_true test "$(value '.bandwidth > 0.9')" = true
a=$(value '[.us,.events]|tostring')
fabric sim --pgft '2;4,4;1,2;1,2' --cps shift --bytes 32K --json
check_eq "$(value '[.us,.events]|tostring')" "$a"
fabric sim --pgft '2;4,4;1,2;1,2' --cps recdbl --progress exchange -q
check_code 0
fabric sim --pgft '2;4,4;1,2;1,2' --cps shift --ranks 8 --json
check_eq "$(value '[.ranks,.stages]|tostring')" '[8,7]'
# Several orders: the median, and the range.
fabric sim --pgft '2;4,4;1,2;1,2' --cps shift --order random:3..7 --json
check_code 0
check_eq "$(value '.orders|map(.seed)|sort|tostring')" '[3,4,5,6,7]'
check_eq "$(value '.bandwidth == (.orders|map(.bandwidth)|sort)[2]')" true
check_eq "$(value '[.bandwidth_min,.bandwidth_max] == (.orders|map(.bandwidth)|[min,max])')" true
a=$(value '.orders[]|select(.seed == 5).us')
fabric sim --pgft '2;4,4;1,2;1,2' --cps shift --order random:5 --json
check_eq "$(value .us)" "$a"
fabric sim --pgft '2;4,4;1,2;1,2' --cps shift --order random:3..7
check_has "$out" 'the median of 5 orders, from'
a=$(sed -n 's/^\([0-9]* packets, [0-9]* events\) .*/\1/p' <<<"$out")
fabric sim --pgft '2;4,4;1,2;1,2' --cps shift --order random:3..7 --json
check_eq "$(value '"\(.packets) packets, \(.events) events"')" "$a"
fabric sim --pgft '2;4,4;1,2;1,2' --cps shift --order random:3..6
check_has "$out" 'the median of 4 orders (the lower of the two in the middle), from'
fabric sim --pgft '1;4;1;1' --cps shift --order random:9223372036854775807..9223372036854775808 --json
check_eq "$(grep -o '"seed": .*[^,]' <<<"$out" | sort)" \
	$'"seed": "9223372036854775808"\n"seed": 9223372036854775807'

fabric sim --pgft '2;12,12;1,12;1,1' --ranks 24 --rounds 3 --paths hashed --json \
	--stripe original --stripe hsam:4 --stripe bss:12,3
check_code 0
check_eq "$(value 'map(.policy)|join(" ")')" 'original hsam:4 bss:12,3'
check_eq "$(value '.[1].to_first_policy < 1 and .[2].to_first_policy < 1')" true
fabric sim --pgft '2;12,12;1,12;1,1' --ranks 24 --cps drc:12 --bytes 256K --rounds 5 \
	--paths hashed --json --stripe single --stripe hsam:12 --stripe pull:12 --stripe pull:12,6 \
	--stripe hop:12
check_code 0
check_eq "$(value 'map(.policy)|join(" ")')" 'single hsam:12 pull:12 pull:12,6 hop:12'
check_eq "$(value 'map(.to_first_policy) | .[2] < .[1] and .[3] < .[1] and .[4] < .[1]')" true

# What a policy takes does not depend on the others, but on the addresses.
stripe() { fabric sim --pgft '2;12,12;1,12;1,1' --ranks 24 --rounds 1 --json "$@"; }
stripe --stripe original
a=$(value '.[0].last_round_us')
stripe --stripe original --stripe hsam:4
check_eq "$(value '.[0].last_round_us')" "$a"
b=$(value '.[1].last_round_us')
stripe --stripe hsam:4 --stripe original --stripe hsam:12 --addresses 12
check_eq "$(value '[.[].last_round_us][:2]|tostring')" "[$b,$a]"
stripe --stripe original --addresses 1
check_true test "$(value ".[0].last_round_us < $a")" = true

# ---- pictures ----
fabric draw --pgft '2;4,4;1,2;1,2' --cps shift --order random:1
check_code 0
check_true xmllint --noout "$tmp/out"
fabric draw --pgft '2;4,4;1,2;1,2' --cps shift -o "$tmp/x.html"
check_code 0
check_true grep -q '"stages":\[{"name":"1 of 15"' "$tmp/x.html"

# Pairs without a way are counted, with nothing beside the tree, too.
fabric route --pgft '2;2,4;1,2;1,1' --without s1.0-s2.0 --without s1.1-s2.1 --opensm "$tmp/lost.d"
check_code 0
check_has "$err" 'warning: 8 pairs of hosts have no way'
# A leaf without a cable to a spine still has a way to it, for who manages it.
fabric route --pgft '2;18,18;1,9;1,1' --without s1.0-s2.0 --opensm "$tmp/mgmt.d"
check_eq "$err" ''
spine=$(printf '0x%04x' $((325 + 18)))
check_eq "$(grep -c "^$spine " "$tmp/mgmt.d/lfts")" 27
# Each of two leaves has one spine, and no third leaf has both.
fabric route --pgft '2;2,2;1,2;1,1' --without s1.0-s2.0 --without s1.1-s2.1 --lfts "$tmp/lost"
check_has "$err" 'pairs of a leaf and a switch have no way'
# Hosts whose leaf is gone do not take part.
fabric order --pgft '2;4,4;1,2;1,2' --without s1.0
check_eq "$(head -1 <<<"$out") $(wc -l <<<"$out")" 'h4 12'

# ---- beside the tree ----
awk '/^Switch/ { sub(/[0-9]+/, 36) } { print }
	END {
		printf "Ca 1 \"H-f0\" # \"admin HCA-1\"\n[1](f1) \"S-0002c90200000010\"[30]\n"
		printf "Switch 36 \"S-e0\" # \"edge\"\n[1] \"S-0002c90100000020\"[30]\n"
		printf "Ca 2 \"H-f4\" # \"gw(1)\"\n[2](f6) \"S-e0\"[2]\n"
		for (i = 1; i <= 4; i++)
			printf "Ca 1 \"H-d%d\" # \"Mellanox Technologies Aggregation Node\"\n" \
				"[1](c%d) \"S-0002c901000000%d0\"[36]\n", i, i, i
	}' "$tmp/net" >"$tmp/beside"
fabric check --topology "$tmp/beside"
check_code 1
check_has "$out" "2;4,4;1,2;1,2: 16 hosts, 6 switches"
check_has "$out" "defect: switch edge has cables to only one switch, s1.1: it is no part of the tree"
check_has "$out" "beside the tree: switch 'edge' at port 30 of switch 's1.1'"
check_has "$out" "beside the tree: host 'admin' at port 30 of switch 's2.0'"
check_has "$out" "beside the tree: host 'gw(1)' at port 2 of switch 'edge'"
check_has "$out" "beside the tree: 4 aggregation nodes, inside of switches"
fabric check --topology "$tmp/beside" --json
check_eq "$(grep -c "' at port " <<<"$out")" 3
fabric route --topology "$tmp/beside" --opensm "$tmp/beside.d"
check_code 0
check_eq "$(grep -c '^Unicast' "$tmp/beside.d/lfts")" 7
check_eq "$(grep -c '^0x' "$tmp/beside.d/guid2lid")" 29
check_eq "$(grep -c . "$tmp/beside.d/cas")" 16
echo admin >"$tmp/job"
fabric order --topology "$tmp/beside" --hosts "$tmp/job"
check_code 2
check_has "$err" "'admin' is beside the tree and can not be ordered"
# What is beside the tree can be taken away: by name, GUID, id, machine, description or cable.
for gone in edge 0xe0 S-e0 's1.1[30]' edge:1; do
	fabric check --topology "$tmp/beside" --without "$gone"
	check_code 1
	check_eq "$(grep -c '^beside' <<<"$out")" 2
	check_eq "$(grep -c 'gw(1)\|^missing' <<<"$out")" 0
done
for gone in admin 'admin HCA-1' 0xf1 H-f0 'admin[1]' s2.0:30; do
	fabric route --topology "$tmp/beside" --without "$gone" --opensm "$tmp/beside.e"
	check_code 0
	check_eq "$(grep -c '^0x' "$tmp/beside.e/guid2lid")" 28
	check_eq "$(grep -c '^0x00000000000000f1' "$tmp/beside.e/guid2lid")" 0
done
fabric check --topology "$tmp/beside" --without 'Mellanox Technologies Aggregation Node'
check_eq "$(grep -c '^beside' <<<"$out")" 3
fabric check --topology "$tmp/beside" --without 'edge[9]'
check_code 2
check_has "$err" "there is no cable 'edge[9]'"
# It is converted, too, or a warning says that it is not.
fabric convert --topology "$tmp/beside" --to ibnetdiscover -o "$tmp/beside2"
check_code 0
for net in beside beside2; do
	fabric check --topology "$tmp/$net" --json
	echo "$out" >"$tmp/$net.json"
	fabric route --topology "$tmp/$net" --lfts "$tmp/$net.lfts"
done
check_eq "$(cat "$tmp/beside2.json")" "$(cat "$tmp/beside.json")"
check_eq "$(sed "s/: '.*//" "$tmp/beside2.lfts")" "$(sed "s/: '.*//" "$tmp/beside.lfts")"
fabric convert --topology "$tmp/beside" --without edge --to ibnetdiscover
check_eq "$(grep -c 'edge\|gw(1)' <<<"$out")" 0
fabric convert --topology "$tmp/beside" --to pgft
check_eq "$out" '2;4,4;1,2;1,2'
check_has "$err" 'beside the tree are 1 switches and 6 ports of hosts'
# Only hosts at spines and aggregation nodes: nothing is wrong.
sed '/^Switch 36 "S-e0"/,$d' "$tmp/beside" >"$tmp/admin"
fabric check --topology "$tmp/admin"
check_code 0
check_has "$out" "a whole real-life fat tree"

# ---- machines with two adapters ----
# h0 and h4 are n0's, h1 and h5 n1's, h8 and h9 n2's; h12 has a strange name.
sed 's/"h0"/"n0 mlx5_0"/; s/"h4"/"n0 mlx5_1"/; s/"h1"/"n1 mlx5_0"/; s/"h5"/"n1 mlx5_1"/
	s/"h8"/"n2 HCA-1"/; s/"h9"/"n2 HCA-2"/; s/"h12"/"gw(1)"/' "$tmp/net" >"$tmp/two"
fabric check --topology "$tmp/two"
check_code 0
fabric order --topology "$tmp/two" --as mpich
check_code 2
check_has "$err" "host 12 is called 'gw(1)', which no launcher would read"
# A list of names is for no launcher.
fabric order --topology "$tmp/two"
check_code 0
check_has "$out" 'gw(1)'
cp "$tmp/out" "$tmp/names"
fabric order --topology "$tmp/two" --order "file:$tmp/names"
check_eq "$out" "$(cat "$tmp/names")"
sed 's/"h7"/"h,7"/' "$tmp/net" >"$tmp/odd"
fabric order --topology "$tmp/odd"
check_code 2
check_has "$err" "host 7 is called 'h,7', which would not be read again from a list"
# Two adapters with one description are a machine, too.
sed 's/"h0"/"n0 HCA-1"/; s/"h4"/"n0 HCA-1"/' "$tmp/net" >"$tmp/same"
echo n0 >"$tmp/job"
fabric order --topology "$tmp/same" --hosts "$tmp/job" --as openmpi-rankfile
check_code 0
check_eq "$out" "$(printf 'rank 0=n0 slot=0\nrank 1=n0 slot=1')"
fabric route --topology "$tmp/two" --opensm "$tmp/two.d"
check_code 0
check_has "$(cat "$tmp/two.d/ca-order")" $'0x000d\tgw(1)'
two() { fabric order --topology "$tmp/two" --hosts "$tmp/job" "$@"; }
printf 'n0\nh2\nn2\n' >"$tmp/job"
two
check_code 0
check_eq "$out" "$(printf 'n0/mlx5_0\nh2\nn0/mlx5_1\nn2/HCA-1\nn2/HCA-2')"
cp "$tmp/out" "$tmp/names"
two --order "file:$tmp/names"
check_eq "$out" "$(cat "$tmp/names")"
two --order "file:$tmp/job"
check_eq "$out" "$(printf 'n0/mlx5_0\nn0/mlx5_1\nh2\nn2/HCA-1\nn2/HCA-2')"
two --order "file:$tmp/job" --as openmpi
check_eq "$out" "$(printf 'n0 slots=2\nh2 slots=1\nn2 slots=2')"
two --as openmpi
check_code 2
check_has "$err" "ranks of 'n0' are not together"
two --as openmpi-rankfile
check_eq "$out" "$(printf 'rank %s slot=%s\n' 0=n0 0 1=h2 0 2=n0 1 3=n2 0 4=n2 1)"
two --as mpich
check_eq "$out" "$(printf '%s:1\n' n0 h2 n0 n2 n2)"
# What it writes it reads: a machine that is named several times is its hosts, one after the other.
for as in names openmpi-rankfile mpich slurm; do
	two --as $as -o "$tmp/launch"
	two --order "file:$tmp/launch"
	check_eq "$out" "$(cat "$tmp/names")"
done
two --order random:3 --as openmpi-rankfile -o "$tmp/launch"
two --order "file:$tmp/launch" --as openmpi-rankfile
check_eq "$out" "$(cat "$tmp/launch")"
two --order "file:$tmp/job" --as openmpi -o "$tmp/launch"
two --order "file:$tmp/launch"
check_eq "$out" "$(printf 'n0/mlx5_0\nn0/mlx5_1\nh2\nn2/HCA-1\nn2/HCA-2')"
printf 'n2:1\nn0 slots=1\nh2\nn2:1\n' >"$tmp/launch"
two --order "file:$tmp/launch"
check_eq "$out" "$(printf 'n2/HCA-1\nn0/mlx5_0\nh2\nn2/HCA-2')"
for lines in 'n0\nn0\nn0\n' 'h2\nn0\nn0/mlx5_1\n' 'h2\nh2\nn0:3\n' 'n0:2\nh2\nn0:1\n' 'h2 h3\n'; do
	# shellcheck disable=SC2059 # lines
	printf "$lines" >"$tmp/launch"
	two --order "file:$tmp/launch"
	check_code 2
	check_has "$err" "line "
done
two --as slurm-topology
check_eq "$out" "$(printf 'SwitchName=%s\n' 's1.0 Nodes=n0,h2' 's1.2 Nodes=n2' 't2.0 Switches=s1.0,s1.2')"
printf 'n0/mlx5_1\nn1\n' >"$tmp/job"
two
check_eq "$out" "$(printf '%s\n' n1/mlx5_0 n0/mlx5_1 n1/mlx5_1)"
fabric check --topology "$tmp/two" --without n0
check_has "$out" "missing: 2 nodes"
fabric check --topology "$tmp/two" --without "n0 mlx5_1"
check_has "$out" "missing: 1 nodes"
printf 'n0\nn1\nn0\n' >"$tmp/job"
two --as slurm
check_eq "$out" "$(printf '%s\n' n0 n1 n0 n1)"
printf 'n0\nn0\nn0\n' >"$tmp/job"
two
check_code 2
check_has "$err" "line 3 of"

# ---- bad input: one sentence, exit code 2 ----
bad() { # WORDS that the sentence has; ARGUMENTS
	local words=$1
	shift
	fabric "$@"
	check_code 2
	check_has "$err" "$words"
	check_lacks "$err" $'\n'"weft"
}
bad 'either --pgft or --topology' hsd --cps shift
bad 'weft fabric' check --pgft '2;18,18;1,9'
bad 'weft fabric' check --pgft '2;0,18;1,9;1,2'
bad 'can not open' check --topology "$tmp/absent"
head -c 300 "$tmp/net" >"$tmp/short"
bad "$tmp/short:" check --topology "$tmp/short"
# In parts, and in a circle.
{ cat "$tmp/net"; printf 'Switch 4 "S-f1"\n[1] "H-f2"[1]\nCa 1 "H-f2"\n'; } >"$tmp/parts"
bad "$tmp/parts:$(grep -n '"S-f1"$' "$tmp/parts" | cut -d : -f 1): the network is in several parts" \
	check --topology "$tmp/parts"
for i in 1 2 3; do
	printf 'Switch 4 "S-%s"\n[1] "S-%s"[2]\n[3] "H-%s0"[1]\nCa 1 "H-%s0"\n' $i $((i % 3 + 1)) $i $i
done >"$tmp/circle"
bad "$tmp/circle:2: no fat tree: switches 'S-1' and 'S-2' are joined" check --topology "$tmp/circle"
bad 'what is exchanged' hsd --pgft '1;4;1;1'
bad 'weft fabric hsd' hsd --pgft '1;4;1;1' --cps shft
printf 'h0\nh1\nh0\n' >"$tmp/twice"
bad "line 3 of" order --pgft '1;4;1;1' --order "file:$tmp/twice"
printf 'h0\nnowhere\n' >"$tmp/where"
bad "line 2 of" hsd --pgft '1;4;1;1' --cps shift --hosts "$tmp/where"
printf 'h0 h1 h2\n' >"$tmp/where"
bad "line 1 of" order --pgft '1;4;1;1' --hosts "$tmp/where"
printf '0>1\n0>9\n' >"$tmp/far"
bad "$tmp/far:2" hsd --pgft '1;4;1;1' --cps "file:$tmp/far"
printf '0>99999999999999999999\n' >"$tmp/far"
bad 'there is no rank 99999999999999999999; expected 0 to 3' hsd --pgft '1;4;1;1' --cps "file:$tmp/far"
# What can be said once only.
for words in 'check --topology x' 'order --as names --order routing' 'hsd --cps ring --hottest 3' \
	'draw --output x' 'sim --bytes 2K --stripe original' 'route --lfts x' 'convert --to pgft'; do
	# shellcheck disable=SC2086 # a command and its options
	set -- $words
	command=$1
	shift
	bad "$1 was given twice" "$command" "$@" "$1" "$2"
done
bad '--output was given twice' draw --pgft '1;4;1;1' -o "$tmp/x" --output "$tmp/y"
printf '0>1 0>2\n' >"$tmp/two"
bad 'one receiver' sim --pgft '1;4;1;1' --cps "file:$tmp/two" --progress exchange
printf 'h0\nh1 slots=4\n' >"$tmp/slots"
bad 'line 2 of' hsd --pgft '1;4;1;1' --cps shift --order "file:$tmp/slots"
bad '3:1' hsd --pgft '1;4;1;1' --cps shift --exclude 3:
bad '--lids is for' hsd --pgft '1;4;1;1' --cps shift --lids "$tmp/sm/guid2lid"
for with in --json '--hottest 3' --per-stage; do
	# shellcheck disable=SC2086 # an option and its value
	bad '--links' hsd --pgft '1;4;1;1' --cps shift --links $with
done
bad 'both' route --pgft '1;4;1;1' --lfts - --json
bad '--rounds' sim --pgft '1;4;1;1' --cps shift --rounds 3
bad '--rounds' sim --pgft '1;4;1;1' --cps shift --paths hashed
bad '--addresses' sim --pgft '1;4;1;1' --cps shift --addresses 3
bad 'hsam:13 has more paths than a host has addresses, 12' sim --pgft '2;12,12;1,12;1,1' --ranks 4 --stripe hsam:13
bad 'addresses, 1' sim --pgft '1;4;1;1' --stripe hsam:2
bad '--addresses 13: the most is 12' sim --pgft '2;12,12;1,12;1,1' --stripe hsam:13 --addresses 13
bad '--addresses 17: the most is 16' sim --pgft '2;12,12;1,12;1,1' --stripe original --paths hashed \
	--addresses 17
bad '--addresses is at least 1' sim --pgft '2;12,12;1,12;1,1' --stripe original --addresses 0
bad '--stages' sim --pgft '1;4;1;1' --stripe original --stages 3
bad '--ranks 5' sim --pgft '1;4;1;1' --cps shift --ranks 5
bad 'days' sim --pgft '2;18,18;1,9;1,2' --cps shift --bytes 1024G
bad 'days' sim --pgft '2;18,18;1,9;1,2' --stripe original --bytes 1024G
bad 'random:1..8' sim --pgft '1;4;1;1' --cps shift --order random:5..3
bad 'a tuple can not say' convert --pgft '1;4;1;1' --without h1 --to pgft
bad '65535' route --pgft '1;70000;1;1'
bad '65535' convert --pgft '1;70000;1;1' --to ibnetdiscover -o "$tmp/wide"
check_true test ! -e "$tmp/wide"
bad 'read once' hsd --topology - --hosts - --cps shift
bad 'read once' hsd --pgft '1;4;1;1' --order file:- --cps file:-
bad 'port 99' check --pgft '1;4;1;1' --without 's1.0[99]'
bad "no node 'nobody'" check --pgft '1;4;1;1' --without nobody:3
bad 'no node or cable' check --pgft '1;4;1;1' --without s9.9
bad 'ecmp' hsd --pgft '1;4;1;1' --cps shift --routing ecmp
bad 'not' sim --pgft '1;4;1;1' --cps shift --bytes lots
bad '--stripe' sim --pgft '1;4;1;1' --stripe bss:4
bad 'pull:N,B and hop:N' sim --pgft '1;4;1;1' --stripe jump:4
bad '--ranks' sim --pgft '1;4;1;1' --stripe original --ranks 5
printf 'Unicast lids\n0x0001 xyz\n' >"$tmp/lfts"
bad "$tmp/lfts:" hsd --pgft '1;4;1;1' --cps shift --routing "file:$tmp/lfts"

# Standard input, as any other file.
from() { # TEXT ARGUMENTS
	printf %b "$1" >"$tmp/in"
	shift
	code=0
	out=$("$WEFT" fabric "$@" 2>"$tmp/err" <"$tmp/in") || code=$?
	err=$(cat "$tmp/err")
}
from 'h2\nh1\n' order --pgft '1;4;1;1' --hosts -
check_eq "$out" $'h1\nh2'
from 'h2\nh1\n' order --pgft '1;4;1;1' --order file:-
check_eq "$out" $'h2\nh1'
from '0>1\n0>9\n' hsd --pgft '1;4;1;1' --cps file:-
check_code 2
check_has "$err" 'standard input:2:'

# ---- what the machine can not do: exit code 1 ----
cannot() { # WORDS ARGUMENTS; standard output is full
	local words=$1
	shift
	code=0
	"$WEFT" fabric "$@" >/dev/full 2>"$tmp/err" || code=$?
	err=$(cat "$tmp/err")
	check_code 1
	check_has "$err" "$words"
	check_lacks "$err" $'\n'"weft"
}
cannot 'No such file' convert --pgft '1;4;1;1' --to pgft -o "$tmp/absent/x"
cannot 'No such file' route --pgft '1;4;1;1' --opensm "$tmp/absent/x"
cannot 'Not a directory' draw --pgft '1;4;1;1' -o "$tmp/net/x.svg"
for words in order 'convert --to pgft' 'convert --to ibnetdiscover' draw 'route --lfts -' check \
	route 'check --json' 'hsd --cps shift' 'hsd --cps shift --links' 'sim --cps shift' --help; do
	# shellcheck disable=SC2086 # a command and its options
	cannot 'No space left' $words --pgft '2;4,4;1,2;1,2'
	case $words in
	order | convert* | draw)
		# shellcheck disable=SC2086
		cannot 'No space left' $words --pgft '2;4,4;1,2;1,2' -o /dev/full
		;;
	esac
done
cannot 'No space left' route --pgft '2;4,4;1,2;1,2' --lfts /dev/full
# Nor more than a file may have: what was written of it is gone.
(
	ulimit -f 8
	code=0
	"$WEFT" fabric route --pgft '2;18,18;1,9;1,2' --lfts "$tmp/limit" 2>"$tmp/err" || code=$?
	echo "$code $(cd "$tmp" && echo limit*) $(cat "$tmp/err")" >"$tmp/in"
)
check_has "$(cat "$tmp/in")" '1 limit* weft'
check_has "$(cat "$tmp/in")" 'File too large'
# More than fits into a buffer, so that the disk is full long before the end.
cannot 'No space left' route --pgft '2;18,18;1,9;1,2' --lfts -

for c in check route order hsd sim draw convert; do
	fabric $c --help
	check_code 0
	check_has "$out" "Usage: weft fabric $c"
done
finish
