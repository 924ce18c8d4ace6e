#!/bin/bash
# SIGKILL at any moment: while a lab comes up, and while it is there and in use. Nothing is
# left but files, and those go with `down`, or with the next `up` of that name.
. "$SOURCE/tests/lab/lib.sh"
needs_labs
before=$(census)
name=${prefix}k
labs+=("$name")
tree="2;12,12;1,6;1,2"

# Those of one lab, by what the kernel calls them: nobody else holds what we can not see.
gone() {
	local i
	for ((i = 0; i < 100; i++)); do
		[ -n "$(processes "$name")" ] || return 0
		sleep 0.02
	done
	return 1
}

# ---- while it comes up ----
half=0
for ms in 2 5 10 20 30 45 60 80 100 130 160 200 250; do
	"$WEFT" lab up "$name" --pgft "$tree" >/dev/null 2>&1 &
	up=$!
	sleep "$(printf '0.%03d' "$ms")"
	kill -9 "$up" 2>/dev/null
	wait "$up" 2>/dev/null
	state=$(lab list --json | jq -r ".[] | select(.name == \"$name\") | .name")
	if [ -z "$state" ]; then
		half=$((half + 1))
		check_true gone
	fi
	run lab down "$name"
	case $code/$err in
	0/* | 2/*"there is no lab"*) ;;
	*) fail "down after $ms ms" "$err" ;;
	esac
	check_true gone
	run lab down "$name"
	check_code 2
done
echo "killed before it was up: $half of 13"
check_true [ "$half" -ge 2 ]

# The name of a dead lab is free.
"$WEFT" lab up "$name" --pgft "$tree" >/dev/null 2>&1 &
up=$!
sleep 0.03
kill -9 "$up"
wait "$up" 2>/dev/null
run lab up "$name" --pgft "2;2,2;1,2;1,1"
if [ "$code" -ne 0 ]; then # it was faster than we
	lab down "$name"
	run lab up "$name" --pgft "2;2,2;1,2;1,1"
fi
check_code 0

# ---- while it is used: programs that run there, children of theirs, a shared memory ----
lab exec "$name" h1 sh -c 'sleep 1000 & sleep 1000 & echo x >/dev/shm/left; echo up; wait' \
	>"$tmp/there" 2>&1 &
user=$!
for ((i = 0; i < 200; i++)); do
	grep -qs up "$tmp/there" && break
	sleep 0.02
done
mapfile -t held < <(namespaces_of "$name")
check_true [ -n "$(still_held "${held[@]}")" ]
holder=$(lab show "$name" --json --interval 1ms | jq .pid)
kill -9 "$holder"
wait "$user" 2>/dev/null
for ((i = 0; i < 100; i++)); do
	[ -z "$(still_held "${held[@]}")" ] && break
	sleep 0.05
done
check_eq "$(still_held "${held[@]}")" ""
run lab exec "$name" h1 true
check_code 2
check_has "$err" "dead"
check_eq "$(lab list --json | jq -c "[.[] | select(.name == \"$name\")]")" "[]"
run lab down "$name"
check_code 0

# ---- whoever waits for it is not kept waiting, and takes its program with it ----
lab_new "$name" --pgft "1;2;1;1"
"$WEFT" lab exec "$name" h0 sleep 1000 &
user=$!
for ((i = 0; i < 100; i++)); do
	[ -n "$(pgrep -P "$user")" ] && break
	sleep 0.02
done
child=$(pgrep -P "$user")
kill -9 "$user"
wait "$user" 2>/dev/null
for ((i = 0; i < 100; i++)); do
	is_alive "$child" || break
	sleep 0.02
done
run is_alive "$child"
check_code 1

# ---- nor is `down` by somebody who is stopped and does not see that his program ended ----
"$WEFT" lab exec "$name" h0 sleep 1000 &
user=$!
for ((i = 0; i < 100; i++)); do
	[ -n "$(pgrep -P "$user")" ] && break
	sleep 0.02
done
kill -STOP "$user"
mapfile -t held < <(namespaces_of "$name" | grep -v '^pid')
started=$SECONDS
lab_end "$name"
check_true [ $((SECONDS - started)) -le 8 ]
check_eq "$(still_held "${held[@]}")" ""
kill -CONT "$user"
wait "$user"
check_eq "$?" 137

# ---- a failed `up` does not take what is not its own: the name went to another lab ----
labs+=("${prefix}o")
"$WEFT" lab up "${prefix}o" --pgft "$tree" >/dev/null 2>&1 &
up=$!
sleep 0.08
kill -STOP "$up"
lab down "${prefix}o" >/dev/null 2>&1
run lab up "${prefix}o" --pgft "1;4;1;1"
check_code 0
kill -CONT "$up"
wait "$up"
check_eq "$(lab show "${prefix}o" --json --interval 1ms | jq .host_count)" 4

# ---- a lab in a lab: its process has another number there; the right one dies ----
labs+=("${prefix}in")
run lab exec "${prefix}o" h0 -- "$WEFT" lab up "${prefix}in" --pgft "1;2;1;1"
check_code 0
run lab exec "${prefix}in" h1 -- hostname # from outside
check_eq "$out" "${prefix}in-h1"
inner=$(lab show "${prefix}in" --json --interval 1ms | jq .pid)
check_true is_alive "$inner"
run lab exec "${prefix}o" h0 -- "$WEFT" lab down "${prefix}o"
check_code 2
check_has "$err" inside
lab_end "${prefix}in"
run is_alive "$inner"
check_code 1
lab_end "${prefix}o"
check_eq "$(diff <(echo "$before") <(census))" ""
finish
