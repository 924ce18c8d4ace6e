#!/bin/bash
# Hosts with several addresses: long messages take all of them, and each of its own way through the
# network; what leads nowhere is not used, and holds nothing up.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
program=$BUILD/bin/weft-mpi-perf.openmpi
needs_mpi "$program"
needs_labs
name=${prefix}ad

# carried PATTERN: bytes that the links of this name have carried upwards, one per line.
carried() {
	lab show "$name" --json --interval 1ms | jq --arg re "$1" \
		'.links[] | select(.name | test($re)) | .up.bytes'
}

# striped POLICY HOST HOST [NAME=VALUE]...: 32 MB each way between two hosts; what is said of paths is
# in $said, one line per rank. Each rank reads what it receives: were some written, one
# rank might move nearly all, and the other too little to be told the addresses meanwhile.
striped() {
	printf '%s\n' "$2" "$3" >"$tmp/hosts"
	run env FI_WEFT_STATS=yes FI_WEFT_SPECULATE=no FI_WEFT_STRIPING="$1" "${@:4}" timeout 60 \
		"$WEFT" run --lab "$name" -n 2 --order "file:$tmp/hosts" \
		"$program" bibw -m 512K -i 16 -w 1 -W 4 -T 20
	check_code 0
	said=$(sed -n 's/.*: with [^ ]* over \([a-z ]*\), .*by path: \(.*\)/\1: \2/p' <<<"$err")
}

# Of $said: how many paths there are to an address that is not the first, in each line.
others() { awk -F ' to ' '{ printf "%s%d", (NR > 1 ? " " : ""), NF - 1 }' <<<"$said"; }

# spread N: in each of the last lines of stdin at least half of a fair share of all bytes.
spread() {
	awk -v n="$1" '{ sum += $1; if (NR == 1 || $1 < min) min = $1 }
		END { exit !(NR == n && min > sum / n / 2) }'
}

# ---- LMC: address i has spine i ----

lab_new "$name" --pgft "2;2,2;1,4;1,1" --rate 500mbit --routing lmc:2
striped even:4 h0 h2
check_eq "$(cut -d : -f 1 <<<"$said")" $'addresses\naddresses'
check_eq "$(others)" "3 3"
check_true spread 4 < <(carried '^s1.0-s2')
check_true spread 4 < <(carried '^s1.1-s2')
# More paths than addresses: ports beside them; and fewer.
striped even:6 h0 h2
check_eq "$(cut -d : -f 1 <<<"$said")" $'addresses and ports\naddresses and ports'
striped even:2 h0 h2
check_eq "$(others)" "1 1"
# With losses, duplicates and disorder.
striped pull:4 h0 h2 WEFT_FAULT=loss=0.01,dup=0.01,reorder=0.02,seed=3
check_eq "$(cut -d : -f 1 <<<"$said")" $'addresses\naddresses'

# An address that no way leads to, and one that both have.
lab exec "$name" h2 -- ip addr add 198.51.100.1/24 dev eth0
for host in h0 h2; do
	lab exec "$name" $host -- ip addr add 198.51.101.1/24 dev eth0
done
lab exec "$name" h0 -- ip route add 198.51.100.0/24 via "$(lab exec "$name" h0 -- ip route |
	sed -n 's/.* via \([^ ]*\) .*/\1/p' | head -1)" dev eth0 onlink
began=$SECONDS
striped even:4 h0 h2
check_true [ $((SECONDS - began)) -lt 9 ]
check_lacks "$said" 198.51
lab_end "$name"

# ---- several interfaces ----

lab_new "$name" --pgft "2;4,2;2,4;1,1" --rate 500mbit --routing lmc:1
striped even:2 h0 h4
check_eq "$(cut -d : -f 1 <<<"$said")" $'addresses\naddresses'
check_true spread 2 < <(carried '^h0-s1')
check_true spread 2 < <(carried '^h4-s1')
lab_end "$name"

# The same with a subnet on each interface, beside the lab's own.
lab_new "$name" --pgft "1;2;2;1" --rate 500mbit
for i in 0 1; do
	switch=$(lab exec "$name" h0 -- ip neigh show dev eth$i | cut -d ' ' -f 1)
	for host in 0 1; do
		lab exec "$name" h$host -- ip addr add 198.51.$((100 + i)).$((1 + host))/24 \
			dev eth$i noprefixroute
		lab exec "$name" h$host -- ip route add 198.51.$((100 + i)).0/24 via "$switch" \
			dev eth$i onlink
		lab exec "$name" s1.$i -- ip route add 198.51.$((100 + i)).$((1 + host)) via \
			"$(lab show "$name" --json --interval 1ms | jq -r ".hosts[$host].addresses[0]")" \
			dev d$host onlink
	done
done
striped even:3 h0 h1
check_eq "$(cut -d : -f 1 <<<"$said")" $'addresses\naddresses'
check_has "$said" "to 198.51.100.1"
check_has "$said" "to 198.51.101.2"
check_true spread 2 < <(carried '^h0-s1')
check_true spread 2 < <(carried '^h1-s1')
lab_end "$name"
finish
