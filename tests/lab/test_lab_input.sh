#!/bin/bash
# Whatever is wrong: one sentence, exit code 2, and nothing half-built.
. "$SOURCE/tests/lab/lib.sh"
needs_labs
before=$(census)
name=${prefix}i

# refused WORD COMMAND...: a word of the sentence
refused() {
	local word=$1
	shift
	run "$@"
	check_code 2
	check_has "$err" "$word"
	check_eq "$out" ""
	# One sentence; what is wrong on the command line may be followed by where help is.
	checks=$((checks + 1))
	[ "$(grep -vc "^Try 'weft" <<<"$err")" -eq 1 ] || fail "more than one line" "$err"
}
up() { lab up "$name" "$@"; }
refuses() { refused "$1" up "${@:2}"; }
none() {
	check_eq "$(lab list --json | jq "[.[] | select(.name == \"$name\")] | length")" 0
	check_eq "$(processes "$name")" ""
}

# ---- tuples, rates, and the rest of the command line ----
refuses pgft
refuses "" --pgft ""
refuses "" --pgft hello
refuses "" --pgft "2;12,2;1,12"
refuses "" --pgft "2;12,2;1,12;1,1;"
refuses "" --pgft "2;12;1,12;1,1"
refuses "" --pgft "0;;;"
refuses "" --pgft "2;12,0;1,12;1,1"
refuses "" --pgft "2;12,-2;1,12;1,1"
refuses "" --pgft "2;99999,99999;1,1;1,1"
refuses "" --pgft "3;4294967295,4294967295,4294967295;1,1,1;1,1,1"
refuses unit --pgft "1;2;1;1" --rate 100
refuses "" --pgft "1;2;1;1" --rate ""
refuses "" --pgft "1;2;1;1" --rate 0mbit
refuses "" --pgft "1;2;1;1" --rate -5mbit
refuses "" --pgft "1;2;1;1" --rate 1e400gbit
refuses "" --pgft "1;2;1;1" --rate nanmbit
refuses bytes --pgft "1;2;1;1" --rate 100mbps
refuses "" --pgft "1;2;1;1" --rate 100mbitx
refuses "" --pgft "1;2;1;1" --mtu 10
refuses "" --pgft "1;2;1;1" --mtu 70000
refuses "" --pgft "1;2;1;1" --mtu x
refuses "" --pgft "1;2;1;1" --routing best
refuses "" --pgft "1;2;1;1" --routing random
refuses "" --pgft "1;2;1;1" --routing random:x
refuses "" --pgft "1;2;1;1" --routing lmc:9
refuses "" --pgft "1;2;1;1" --routing lmc:-1
refuses nonsense --pgft "1;2;1;1" nonsense
refuses nonsense --pgft "1;2;1;1" --nonsense
none
for bad in "" . .. a/b -x 1a "a b" "a;b" abcdefghijklmnop a_b a- 'a$b'; do
	refused "" lab up --pgft "1;2;1;1" -- "$bad"
done
run lab
check_code 2
check_has "$err" Usage
refused "upp" lab upp
refused "" lab down
refused "" lab exec
refused "" lab show
refused "there is no lab" lab show "$name"
refused "there is no lab" lab exec "$name" h0 true
refused "there is no lab" lab down "$name"
refused "there is no lab" lab top "$name"
refused "there is no lab" lab draw "$name"
refused "there is no lab" lab fail "$name" h0-s1.0
refused "there is no lab" lab cross "$name" --from h0 --to h1 --rate 1mbit --for 1s

# ---- labs that are there ----
lab_new "$name" --pgft "2;2,2;1,2;1,1" --rate 10mbit
refused "already" up --pgft "1;2;1;1"
check_eq "$(lab show "$name" --json --interval 1ms | jq '.hosts | length')" 4 # the old one
for host in h4 x "" s3.0 h-1 h0x 127.0.0.1 10.0.0.300; do
	refused "" lab exec "$name" "$host" true
done
refused "" lab fail "$name" h0-s1.1
refused "" lab fail "$name" h0-h1
refused "" lab heal "$name" ""
for bad in "--from h0 --to h0" "--from h0 --to h9" "--from s1.0 --to h0" "--from h0" \
	"--from h0 --to h1 --rate 5" "--from h0 --to h1 --for never" "--from h0 --to h1 --for 0s"; do
	# shellcheck disable=SC2086 # words
	refused "" lab cross "$name" --rate 1mbit --for 1s $bad
done
refused "" lab show "$name" --interval x
refused "" lab top "$name" --interval -1 --count 1
run lab exec "$name" h0 -- sh -c 'exit 7'
check_code 7
run lab exec "$name" h0 -- no-such-program
check_code 127
run lab exec "$name" h0 -- /etc/passwd
check_code 126
run lab exec "$name" h0 -- sh -c 'kill -9 $$'
check_code 137
lab_end "$name"

# ---- a kernel without the queue ----
run env LD_PRELOAD="$BUILD/lib/libno_tbf.so" "$WEFT" lab up "$name" --pgft "2;4,4;1,2;1,2"
check_code 2
check_has "$err" tbf
check_eq "$(wc -l <<<"$err")" 1
none

# ---- no permission ----
if [ "$(id -u)" -eq 0 ]; then
	run setpriv --bounding-set -all --inh-caps -all -- "$WEFT" lab up "$name" --pgft "1;2;1;1"
	check_code 2
	check_has "$err" "no permission"
	check_eq "$(wc -l <<<"$err")" 1
fi
# In a chroot, say, not even root can make a user namespace.
if [ "$(id -u)" -eq 0 ] && unshare -U true 2>/dev/null; then
	stage_for_user
	# A world where users may not: a user namespace that allows no more of them.
	unshare -U sleep 100 &
	world=$!
	for ((i = 0; i < 100; i++)); do
		[ "$(readlink /proc/$world/ns/user)" = "$(readlink /proc/self/ns/user)" ] || break
		sleep 0.02
	done
	echo "0 0 70000" >"/proc/$world/uid_map"
	echo "0 0 70000" >"/proc/$world/gid_map"
	run nsenter -t "$world" -U sh -c 'echo 0 >/proc/sys/user/max_user_namespaces
		exec setpriv --reuid 65534 --regid 65534 --clear-groups -- "$@"' sh \
		"$stage/bin/weft" lab up "$name" --pgft "1;2;1;1"
	kill "$world"
	check_code 2
	check_has "$err" "no permission"
	check_eq "$(wc -l <<<"$err")" 1
fi
none

# ---- no files, no memory for files ----
run sh -c "ulimit -n 64; exec setpriv --bounding-set -sys_resource -- '$WEFT' lab up '$name' --pgft '2;12,2;1,12;1,1'"
check_code 2
check_has "$err" "ulimit"
run env WEFT_LAB_DIR=relative "$WEFT" lab up "$name" --pgft "1;2;1;1"
check_code 2
run env WEFT_LAB_DIR=/proc/nowhere "$WEFT" lab up "$name" --pgft "1;2;1;1"
check_code 2
none
mkdir -m 777 "$tmp/open"
run env WEFT_LAB_DIR="$tmp/open" "$WEFT" lab up "$name" --pgft "1;2;1;1"
check_code 2
check_has "$err" "somebody else"

# ---- what a damaged file does ----
lab_new "$name" --pgft "1;2;1;1"
dir=/run/weft/lab/$name
if [ -f "$dir/lab.json" ]; then
	for text in '' '{' '[]' '{"pgft": 3}' '{"pgft":"9;9","routing":"dmodk"}'; do
		echo "$text" >"$dir/lab.json"
		run lab show "$name"
		check_code 2
		check_has "$err" damaged
		run lab list
		check_code 0
	done
	rm "$dir/lab.json"
	run lab show "$name"
	check_code 2
fi
lab_end "$name"
check_eq "$(diff <(echo "$before") <(census))" ""
finish
