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
check_has "$err" 'warning: the fabric has'

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

fabric sim --pgft '2;12,12;1,12;1,1' --ranks 24 --rounds 3 --paths hashed --json \
	--stripe original --stripe hsam:4 --stripe bss:12,3
check_code 0
check_eq "$(value 'map(.policy)|join(" ")')" 'original hsam:4 bss:12,3'
check_eq "$(value '.[1].to_first_policy < 1 and .[2].to_first_policy < 1')" true

# ---- pictures ----
fabric draw --pgft '2;4,4;1,2;1,2' --cps shift --order random:1
check_code 0
check_true xmllint --noout "$tmp/out"
fabric draw --pgft '2;4,4;1,2;1,2' --cps shift -o "$tmp/x.html"
check_code 0
check_true grep -q '"stages":\[{"name":"1 of 15"' "$tmp/x.html"

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
fabric order --topology "$tmp/two"
check_code 2
check_has "$err" "host 12 is called 'gw(1)', which no launcher would read"
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
bad 'cannot read' check --topology "$tmp/absent"
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
printf '0>1\n0>9\n' >"$tmp/far"
bad "$tmp/far:2" hsd --pgft '1;4;1;1' --cps "file:$tmp/far"
bad 'no node or cable' check --pgft '1;4;1;1' --without s9.9
bad 'ecmp' hsd --pgft '1;4;1;1' --cps shift --routing ecmp
bad 'not' sim --pgft '1;4;1;1' --cps shift --bytes lots
bad '--stripe' sim --pgft '1;4;1;1' --stripe bss:4
bad '--ranks' sim --pgft '1;4;1;1' --stripe original --ranks 5
printf 'Unicast lids\n0x0001 xyz\n' >"$tmp/lfts"
bad "$tmp/lfts:" hsd --pgft '1;4;1;1' --cps shift --routing "file:$tmp/lfts"

for c in check route order hsd sim draw convert; do
	fabric $c --help
	check_code 0
	check_has "$out" "Usage: weft fabric $c"
done
finish
