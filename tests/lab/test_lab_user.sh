#!/bin/bash
# An ordinary user's labs: one command, no root anywhere. Run by root, it becomes a user.
. "$SOURCE/tests/lab/lib.sh"
if [ "$(id -u)" -eq 0 ]; then
	# What is under somebody's home may be out of reach: a copy.
	stage_for_user
	cp "$BUILD/bin/check_routes" "$stage/bin/"
	cp -r "$SOURCE/tests" "$stage/"
	chmod -R a+rX "$stage"
	mkdir -m 777 "$tmp/user"
	# Not exec: our own files are to be removed.
	env -u XDG_RUNTIME_DIR TMPDIR="$tmp/user" HOME="$tmp/user" WEFT="$stage/bin/weft" \
		BUILD="$stage" SOURCE="$stage" setpriv --reuid 65534 --regid 65534 --clear-groups \
		-- "$stage/tests/lab/test_lab_user.sh"
	code=$?
	check_eq "$(ls -A "$tmp/user")" ""
	check_eq "$(ls -d /tmp/weft-65534 2>/dev/null)" ""
	[ "$failures" -eq 0 ] || finish
	exit $code
fi
cd "$tmp" || exit 1 # where we come from may be out of our reach
needs_labs
name=${prefix}n
lab_new "$name" --pgft "2;4,4;1,2;1,2" --rate 100mbit
run lab list
check_has "$out" "$name"
check_has "$out" user
lab show "$name" --json --interval 1ms >"$tmp/lab.json"
"$BUILD/bin/check_routes" <"$tmp/lab.json" >"$tmp/verdict"
check_eq "$?" 0
jq -r '.hosts[].addresses[]' "$tmp/lab.json" >"$tmp/targets"
for host in $(jq -r '.hosts[].name' "$tmp/lab.json"); do
	run lab exec "$name" "$host" -- fping -q -u -r 3 -t 500 -i 1 -f "$tmp/targets"
	check_code 0
	check_eq "$out$err" ""
done
run lab exec "$name" h3 -- hostname
check_eq "$out" "$name-h3"
run lab exec "$name" h3 -- id -u
check_eq "$out" 0
# What is made there belongs to the user.
run lab exec "$name" h3 -- touch "$tmp/made"
check_eq "$(stat -c %u "$tmp/made")" "$(id -u)"
# From inside, onto another host.
run lab exec "$name" h3 -- "$WEFT" lab exec "$name" h7 -- hostname
check_eq "$out" "$name-h7"
run lab fail "$name" s1.0-s2.0:1 s1.1-s2.0:0
check_code 0
run lab heal "$name" --all
check_code 0
run lab cross "$name" --from h0 --to h9 --rate 20mbit --for 500ms --json
check_code 0
check_true [ "$(jq '.received.bytes > 0.9 * .sent.bytes' <<<"$out")" = true ]
run lab draw "$name" --interval 1ms -o "$tmp/lab.svg"
check_code 0
# MPI programs.
run "$WEFT" run --lab "$name" -n 5 --mpi openmpi hostname
check_code 0
check_eq "$(sort <<<"$out" | tr '\n' ' ')" "$name-h0 $name-h1 $name-h2 $name-h3 $name-h4 "
run "$WEFT" run --lab "$name" -n 3 --mpi mpich sh -c 'sleep 0.5; hostname'
check_code 0
check_eq "$(sort <<<"$out" | tr '\n' ' ')" "$name-h0 $name-h1 $name-h2 "
# In a pipe, nobody is kept waiting by the process that stays.
check_has "$(lab up "${prefix}q" --pgft "1;2;1;1" | cat)" "${prefix}q"
lab_end "${prefix}q"
lab_end "$name"
finish
