#!/bin/bash
# A rank is killed in a collective: the others get errors, in each variant. One that is only late is
# waited for.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
mpi=${1:?openmpi or mpich}
program=$BUILD/tests/coll/$mpi/coll_killed
needs_mpi "$program"
case $mpi in
openmpi) survive=--enable-recovery ;;
mpich) survive=-disable-auto-cleanup ;;
esac

# said OPERATION: how many ranks have said that they got errors.
said() {
	grep -c "^rank [0-9]*, $1 of $bytes bytes: an error after .*, another after" "$tmp/said"
}

how=() # options of coll_killed

# one_killed RANKS BYTES OPERATIONS [WEFT-RUN-OPTION]...: what those that are left say is in $tmp/said. Open
# MPI's launcher sometimes does not notice that they have ended, so it is not waited for. Fails where Hydra has
# died of SIGPIPE, as it does now and then when ranks end one after the other: what they say then is lost.
one_killed() {
	local ranks=$1 bytes=$2 ops pid i
	read -ra ops <<<"$3"
	shift 3
	: >"$tmp/said" # looked at before the one that writes it may have begun
	timeout -k 5 60 "$WEFT" run --coll "$@" -n "$ranks" --mpi-args $survive "$program" \
		"${how[@]}" "$bytes" "${ops[@]}" >"$tmp/said" 2>"$tmp/err" </dev/null &
	pid=$!
	for ((i = 0; i < 500; i++)); do
		[ "$(grep -c '^rank ' "$tmp/said")" -lt $(((ranks - 1) * ${#ops[@]})) ] || break
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	kill $pid 2>/dev/null
	wait $pid 2>/dev/null
	[ $? -ne $((128 + $(kill -l PIPE))) ]
}

# killed RANKS BYTES "OPERATION=VARIANT ..." [WEFT-RUN-OPTION]...: all that are left say so, of each.
killed() {
	local ranks=$1 bytes=$2 ops op _
	read -ra ops <<<"$3"
	export WEFT_COLL=${3// /,}
	shift 3
	for _ in 1 2 3; do
		! one_killed "$ranks" "$bytes" "${ops[*]%%=*}" "$@" || break
	done
	for op in "${ops[@]}"; do
		check_eq "$op: $(said "${op%%=*}")" "$op: $((ranks - 1))"
	done
	printf '%s, %d ranks%s: errors after %s s\n' "$WEFT_COLL" "$ranks" "${how[*]:+, ${how[*]}}" \
		"$(sed -n 's/.*an error after \([0-9.]*\) s.*/\1/p' "$tmp/said" | sort -nu | tr '\n' ' ')"
}

# one_ended RANKS BYTES OPERATION [WEFT-RUN-OPTION]...: likewise, the MPI's own does it, and they get an error
# of the MPI's, or are ended, and say why. $over: Hydra was, too, which may end the rest when it sees one end.
one_ended() {
	local ranks=$1 bytes=$2 op=$3 pid i
	shift 3
	over=yes
	: >"$tmp/said"
	: >"$tmp/err"
	WEFT_COLL=auto timeout -k 5 60 "$WEFT" run --coll "$@" -n "$ranks" --mpi-args $survive "$program" \
		"${how[@]}" "$bytes" "$op" >"$tmp/said" 2>"$tmp/err" </dev/null &
	pid=$!
	for ((i = 0; i < 400; i++)); do
		[ "$(finished)" -lt $((ranks - 1)) ] || break
		kill -0 $pid 2>/dev/null || break
		sleep 0.1
	done
	! kill $pid 2>/dev/null || over=no
	wait $pid 2>/dev/null
	[ $? -ne $((128 + $(kill -l PIPE))) ]
}

# ended RANKS BYTES OPERATION [WEFT-RUN-OPTION]...: all that are left.
ended() {
	local began=$SECONDS over _
	for _ in 1 2 3; do
		! one_ended "$@" || break
	done
	if [ $over = no ] || [ "$mpi" = openmpi ]; then
		check_eq "$3 by the MPI's own: $(finished)" "$3 by the MPI's own: $(($1 - 1))"
	else
		check_has "$(cat "$tmp/err")" "by the MPI's own"
	fi
	printf "%s by the MPI's own, %d ranks: %d were ended, within %d s\n" "$3" "$1" \
		"$(grep -c "$lost" "$tmp/err")" $((SECONDS - began))
}
lost="^weft-coll: .*; rank [0-9]* of [0-9]* has been in .*, by the MPI's own, for .* its process ends"
finished() {
	{
		sed -n 's/^rank \([0-9]*\), .*: an error.* after .*/\1/p' "$tmp/said"
		sed -n "s/^weft-coll: .*; rank \([0-9]*\) of .*/\1/p" "$tmp/err"
	} | sort -u | wc -l
}

# patient BYTES OPERATION OPTION [WEFT-RUN-OPTION]...: nobody is ended who waits for one that is there.
patient() {
	local bytes=$1 op=$2 option=$3
	shift 3
	# shellcheck disable=SC2086 # options with their values
	run env WEFT_COLL=auto WEFT_COLL_PATIENCE=1s timeout -k 5 60 "$WEFT" run --coll "$@" -n 4 "$program" \
		$option "$bytes" "$op"
	check_code 0
	check_lacks "$err" "its process ends"
	check_eq "$(grep -c "^rank [0-9]*, $op of $bytes bytes: no error after .*, none after" <<<"$out")" 4
}

# Hydra's proxy often does not survive a rank that it has started; on a lab each host has its own.
if [ "$mpi" = openmpi ]; then
	killed 4 4 "alltoall=pap_shm_direct allreduce=tree barrier=dissem bcast=tree"
	killed 4 100000 "alltoall=direct"
	WEFT_COLL_FETCH=no killed 4 100000 "alltoall=pap_direct"
	how=(-r 0)
	killed 4 3000000 "bcast=tree"
	how=(-i 300)
	killed 4 100000 "bcast=direct barrier=dissem"
	how=()
	ended 4 100000 allgather
	patient 100000 allgather "-l 6"
	patient 100000 allgather "-s 6"
fi
needs_labs
lab_new "${prefix}kill" --pgft "1;4;1;1"
on=(--lab "${prefix}kill")
killed 4 4 "allreduce=tree allgather=tree barrier=dissem alltoall=pap_shm_direct" "${on[@]}"
killed 4 100000 "alltoall=pap_direct reduce_scatter=halving" "${on[@]}"
ended 4 600000 bcast "${on[@]}"
ended 4 100000 allgather "${on[@]}"
# Who only waits for it, in a call of another communicator than that in which the network has given it up: it
# is the root, or on a host that another one waits for.
for variant in direct tree; do
	killed 4 40 "barrier=dissem bcast=$variant" "${on[@]}"
done
for variant in tree halving; do
	killed 3 4 "barrier=dissem allreduce=$variant" "${on[@]}"
done
# The fifth call is one in which the MPI's own is tried.
how=(-w 4)
ended 4 4 barrier "${on[@]}"
ended 4 4 allreduce "${on[@]}"
# In the set-up of a communicator.
how=(-w 0)
ended 4 4 alltoall "${on[@]}"
check_true grep -q "has been in the set-up of another communicator" "$tmp/err"
patient 4 alltoall "-w 0 -l 4" "${on[@]}"
# In the first call of one that is not set up yet.
export WEFT_COLL_AFTER=3
ended 4 4 alltoall "${on[@]}"
check_true grep -q "has been in another communicator's first calls" "$tmp/err"
patient 4 alltoall "-w 0 -l 4" "${on[@]}"
export WEFT_COLL_AFTER=0
how=()
# It is stopped for longer than ours wait before they ask, and not for as long as the provider does.
WEFT_RD_TIMEOUT=30000 patient 600000 bcast "-s 8" "${on[@]}"
if [ "$mpi" = mpich ]; then
	lab_end "${prefix}kill"
	finish
fi

# Of two on a host, the one that does not talk to other hosts: who waits for its master, or for others
# who do, must hear of it, too.
killed 8 4 "barrier=dissem alltoall=pap_shm_direct allreduce=tree allgather=tree" "${on[@]}"
killed 8 40 "bcast=direct" "${on[@]}"
killed 7 20 "alltoall=pap_direct reduce_scatter=halving" "${on[@]}"

# One that a broadcast goes to, while there is more of it than slots for it.
how=(-r 0)
killed 8 3000000 "bcast=direct" "${on[@]}"
killed 8 3000000 "bcast=tree" "${on[@]}"
# The same, and the one that it comes from, in the midst of it.
how=(-i 400 -r 0)
killed 8 20000 "bcast=direct" "${on[@]}"
how=(-i 400)
killed 7 200000 "bcast=tree" "${on[@]}"
killed 7 20000 "alltoall=pap_direct allreduce=tree" "${on[@]}"
how=()

# One of 48 comes late: nobody else is asked for, and it only as often as time has passed: twice a second, and
# all ranks of other hosts each four seconds.
export WEFT_COLL=alltoall=pap_direct,barrier=dissem WEFT_COLL_STATS=yes
run timeout -k 5 90 "$WEFT" run --coll "${on[@]}" -n 48 "$program" -l 2 4 alltoall barrier
unset WEFT_COLL WEFT_COLL_STATS
check_code 0
check_eq "$(grep -c "^rank [0-9]*, alltoall of 4 bytes: no error after .*, none after" <<<"$out")" 48
check_eq "$(grep -c "^rank [0-9]*, barrier of 4 bytes: no error after .*, none after" <<<"$out")" 48
waited=$(sed -n 's/^rank 0, .*: no error after \([0-9]*\).*/\1/p' <<<"$out" | sort -n | tail -n 1)
most=$((2 * (${waited:-0} + 2) + (${waited:-0} + 1) / 4 * 36))
asks=$(sed -n 's/.*asked others \([0-9]*\) times.*/\1/p' <<<"$err" | sort -n | tail -n 1)
echo "asked $asks times in $waited s"
[ "${asks:-0}" -ge 2 ] && [ "${asks:-999}" -le $most ] ||
	fail "one that came 2 s late was asked for ${asks:-0} times, in ${waited:-?} s"
lab_end "${prefix}kill"
finish
