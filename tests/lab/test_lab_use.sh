#!/bin/bash
# A lab in use: what it shows of load, hot spots made on purpose, cables that fail and heal.
. "$SOURCE/tests/lab/lib.sh"
needs_labs
name=${prefix}u
lab_new "$name" --pgft "2;4,2;1,4;1,1" --rate 20mbit --routing dmodk --mtu 1500

number() { awk -v a="$1" -v op="$2" -v b="$3" 'BEGIN {
	exit !(op == "<" ? a + 0 < b + 0 : op == ">" ? a + 0 > b + 0 : a + 0 == b + 0) }'; }

# ---- what is there ----
run lab list --json
check_code 0
check_eq "$(jq -r ".[] | select(.name == \"$name\") | .pgft" <<<"$out")" "2;4,2;1,4;1,1"
run lab list
check_has "$out" "$name"
run lab show "$name"
check_code 0
check_has "$out" h7
run lab show "$name" --json --interval 1ms
check_code 0
check_eq "$(jq -c '[.hosts, .switches, .links] | map(length)' <<<"$out")" "[8,6,16]"
check_eq "$(jq -r '.hosts[3].hostname' <<<"$out")" "$name-h3"
check_true number "$(jq '[.links[] | .up.utilisation, .down.utilisation] | max' <<<"$out")" = 0
check_eq "$(jq '[.links[] | select(.alive)] | length' <<<"$out")" 16
# The wire is idle: nobody looks for routers, neighbours or anything else.
check_eq "$(jq '[.links[] | .up.packets, .down.packets] | add' <<<"$out")" 0

# ---- inside ----
run lab exec "$name" h2 -- hostname
check_eq "$out" "$name-h2"
run lab exec "$name" "$name-h2" -- hostname
check_eq "$out" "$name-h2"
run lab exec "$name" s2.1 -- ip -o link
check_has "$out" " d1@"
run lab exec "$name" h0 -- getent hosts h5
check_has "$out" "$name-h5"
run lab exec "$name" h0 -- sh -c 'cd /tmp && ls /sys/class/net'
check_eq "$out" "eth0
lo"
# No way out: not by a route, not by an address of the machine.
run lab exec "$name" h0 -- ip -4 route show default
check_eq "$out" ""
run lab exec "$name" h0 -- ping -c 1 -W 1 192.0.2.1
check_true [ "$code" -ne 0 ]
for address in $(ip -4 -o addr | awk '{ sub("/.*", "", $4); print $4 }' | grep -v '^127'); do
	run lab exec "$name" h0 -- ping -c 1 -W 1 "$address"
	check_true [ "$code" -ne 0 ]
done
# What is started there stays there, and sees its own.
run lab exec "$name" h0 -- sh -c 'ps ax | wc -l'
check_true [ "$out" -lt 10 ]
# Input and output pass through.
check_eq "$(echo hello | lab exec "$name" h1 -- tr a-z A-Z)" HELLO
check_eq "$(cd /usr && lab exec "$name" h1 -- pwd)" /usr

# ---- a hot spot ----
lab cross "$name" --from h0 --to h5 --rate 10mbit --for 3s --json >"$tmp/cross" 2>&1 &
cross=$!
sleep 0.7
run lab show "$name" --json --interval 1
hot=$(jq -c '[.links[] | {name, u: ([.up.utilisation, .down.utilisation] | max)}
	| select(.u > 0.3)] | map(.name) | sort' <<<"$out")
# Destination 5: up to spine 5 mod 4.
check_eq "$hot" '["h0-s1.0","h5-s1.1","s1.0-s2.1","s1.1-s2.1"]'
load=$(jq '.links[] | select(.name == "s1.0-s2.1") | .up.utilisation' <<<"$out")
check_true number "$load" ">" 0.45
check_true number "$load" "<" 0.55
run lab top "$name" --count 1 --interval 0.5
check_code 0
check_has "$(head -n 8 <<<"$out")" s2.1
run lab top "$name" --count 1 --interval 0.5 --json
check_eq "$(jq -e . <<<"$out" >/dev/null && echo json)" json
run lab draw "$name" -o "$tmp/lab.svg" --interval 0.3
check_code 0
check_has "$(cat "$tmp/lab.svg")" "<svg"
check_true xmllint --noout "$tmp/lab.svg"
wait "$cross"
check_eq "$?" 0
echo "cross: $(tr -d '\n' <"$tmp/cross")"
check_true number "$(jq '.received.bytes / .sent.bytes' "$tmp/cross")" ">" 0.99
check_true number "$(jq '.sent.mbit' "$tmp/cross")" ">" 9.5
check_true number "$(jq '.sent.mbit' "$tmp/cross")" "<" 10.5

# Two of them meet on one cable, whose rate is less than both: what does not fit is lost.
lab cross "$name" --from h0 --to h5 --rate 18mbit --for 2s --json >"$tmp/a" &
a=$!
lab cross "$name" --from h1 --to h5 --rate 18mbit --for 2s --json >"$tmp/b" &
wait "$a" $!
got=$(jq -s 'map(.received.mbit) | add' "$tmp/a" "$tmp/b")
echo "two of 18 into 20 Mbit/s: $got"
check_true number "$got" ">" 18
check_true number "$got" "<" 21.5
check_true number "$(lab show "$name" --json --interval 1ms |
	jq '.links[] | select(.name == "s1.0-s2.1") | .up.drops')" ">" 0

# ---- cables ----
reaches() { lab exec "$name" h0 -- fping -q -r 3 -t 300 "$1" >/dev/null 2>&1; }
check_true reaches h5
run lab fail "$name" s1.0-s2.1
check_code 0
run lab fail "$name" s2.1-s1.0 # again, and the other way round
check_code 0
check_eq "$(lab show "$name" --json --interval 1ms | jq -c '[.links[] | select(.alive | not) | .name]')" \
	'["s1.0-s2.1"]'
run reaches h5
check_true [ "$code" -ne 0 ]
check_true reaches h6 # by another spine
check_true reaches h1
run lab draw "$name" -o - --interval 1ms
check_has "$out" "<svg"
run lab heal "$name" s1.0-s2.1
check_code 0
check_true reaches h5
# A host's only cable: its addresses and routes come back, too.
run lab fail "$name" h0-s1.0
check_code 0
run reaches h5
check_true [ "$code" -ne 0 ]
run lab heal "$name" --all
check_code 0
check_true reaches h5
"$BUILD/bin/check_routes" <<<"$(lab show "$name" --json --interval 1ms)" >"$tmp/routes"
check_eq "$?" 0
lab_end "$name"

# ECMP goes on by what is left; many flows, or one could be lucky.
lab_new "$name" --pgft "2;4,2;1,4;1,1" --rate 1gbit --routing ecmp
run lab fail "$name" s1.0-s2.1
run lab exec "$name" h0 -- traceroute -n -q 1 -w 1 -N 1 h5
ways() {
	# 48 times: that one of four is never chosen happens once in a quarter of a million.
	for ((i = 0; i < 48; i++)); do
		lab exec "$name" h0 -- traceroute -n -q 1 -w 1 -f 2 -m 2 -p $((34000 + i)) h5 |
			awk 'NR > 1 { print $2 }'
	done | sort | uniq -c | sort -rn
}
spine1=$(lab show "$name" --json --interval 1ms | jq -r '.switches[] | select(.name == "s2.1") | .address')
broken=$(ways)
check_lacks "$broken" "$spine1"
run lab heal "$name" s1.0-s2.1
healed=$(ways)
check_has "$healed" "$spine1"
check_true [ "$(wc -l <<<"$healed")" -eq 4 ]
lab_end "$name"

# Three levels: what comes up by one port goes on by all of them, not by one. And the flow stays
# where its ports lead it, whatever its sender's kernel thinks of it.
lab_new "$name" --pgft "3;4,4,2;1,4,4;1,1,1" --rate unlimited --routing ecmp
lab exec "$name" h0 -- bash -c 'for ((p = 20000; p < 20400; p++)); do echo x >/dev/udp/h31/$p; done'
second=$(lab show "$name" --json --interval 1ms |
	jq -c '[.links[] | select(.name | test("^s2[.][0-3]-")) | .up.packets]')
echo "400 flows over 16 ports of the second level: $second"
check_eq "$(jq 'add' <<<"$second")" 400
check_true [ "$(jq 'min' <<<"$second")" -ge 5 ]
check_true [ "$(jq 'max' <<<"$second")" -le 60 ]
lab_end "$name"

# Without a rate there is no queue, and what is fast is fast.
lab_new "$name" --pgft "2;2,2;1,2;1,1" --rate unlimited
run lab exec "$name" h0 -- tc qdisc show dev eth0
check_lacks "$out" tbf
run lab show "$name"
check_code 0
lab_end "$name"
finish
