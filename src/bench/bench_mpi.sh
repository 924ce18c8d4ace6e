#!/bin/bash
# MPI stacks side by side: weft-mpi-perf on each of them in turn, round by round, so that what slows
# a round slows all. Every run leaves a JSON document; `weft-perf mpi` makes tables of them, with
# the targets as PASS or MISS. Labs that it makes it also takes down; every run has a time limit.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
bench=bench_mpi
# shellcheck source=src/bench/bench_lib.sh
. "$top/src/bench/bench_lib.sh"

usage() {
	cat <<'END'
Usage: src/bench/bench_mpi.sh [OPTIONS] [PART]...

Parts (all, if none is named):
  wire         latency and bandwidth between two hosts, unshaped, beside raw sockets
  speculation  a ping-pong that speculation can not help, unshaped
  overlap      overlap of communication and computation, 1 Gbit/s
  progress     latency while one side computes, 1 Gbit/s
  exchange     programs that compute and exchange, 100 Mbit/s
  host         latency on one host, 16 ranks in MPI_Alltoall
  memory       of a process with 4, 16 and 64 ranks on four hosts

Options:
  -r N            rounds (as many as each part needs)
  -s "STACK ..."  of sm (Open MPI's shared memory), tcp (Open MPI's TCP), net and rxm (libfabric's
                  net and tcp;ofi_rxm), weft, weft-nospec (without speculation), weft-always (whose
                  speculation does not adapt), weft-off (without speculation and progress thread)
                  and weft-rc (connections instead of datagrams); instead of those that each part
                  compares
  -q              a short run: fewer rounds, sizes and iterations
  -o DIR          keep the results there, as mpi-SERIES.json
  -h              this text

Exit status: 0 measured, 1 something could not be measured, 2 wrong usage.
END
}

BUILD=${WEFT_BUILD:-$top/build}
WEFT=$BUILD/bin/weft
PERF=$BUILD/bin/weft-perf
MPI_PERF=$BUILD/bin/weft-mpi-perf.openmpi
rounds='' stacks='' out=''
while getopts r:s:qo:h c; do
	case $c in
	r) rounds=$OPTARG ;;
	s) stacks=$OPTARG ;;
	q) quick=yes ;;
	o) out=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- wire speculation overlap progress exchange host memory
for program in "$WEFT" "$PERF" "$MPI_PERF"; do
	[ -x "$program" ] || { echo "bench_mpi: no $program; build it first" >&2 && exit 1; }
done

make_tmp
failed=0

# ---- stacks ----

# stack NAME: how to run on it, in net, args and vars; fails when it is not there.
stack() {
	local ofi='--mca pml cm --mca mtl ofi --mca btl self --mca opal_common_ofi_provider_include'
	net=stock args='' vars=()
	case $1 in
	sm) args='--mca pml ob1 --mca btl vader,self' ;;
	tcp) args='--mca pml ob1 --mca btl tcp,self' ;;
	net) args="$ofi net" ;;
	rxm) args="$ofi 'tcp;ofi_rxm'" ;;
	weft) ;;
	weft-always) vars=(FI_WEFT_USAGE=0) ;;
	weft-nospec) vars=(FI_WEFT_SPECULATE=no) ;;
	weft-off) vars=(FI_WEFT_SPECULATE=no WEFT_PROGRESS=off) ;;
	weft-rc) vars=(FI_WEFT_TRANSPORT=rc) ;;
	*) say "there is no stack '$1'" && exit 2 ;;
	esac
	[[ $1 == weft* ]] || return 0
	net=weft
	vars+=(FI_WEFT_STATS=yes)
	[ -e "$BUILD/lib/libweft-fi.so" ]
}

# ---- labs ----

# lab_up HOSTS RATE: hosts at one switch. The bucket that shapes a lab's links holds 2 ms, which is
# all of a message of 128 KB, and is full again after each computation: 0.26 ms is enough to reach
# the rate.
lab_up() {
	local hosts=$1 rate=$2 port
	lab=mpi$$
	if ! "$WEFT" lab up "$lab" --pgft "1;$hosts;1;1" --rate "$rate" --mtu 1500 >/dev/null; then
		say "without a lab there is no measurement between hosts"
		failed=1
		return 1
	fi
	[ "$rate" != unlimited ] || return 0
	for port in "h0 eth0" "h1 eth0" "s1.0 d0" "s1.0 d1"; do
		"$WEFT" lab exec "$lab" "${port% *}" -- tc qdisc change dev "${port#* }" root \
			tbf rate "$rate" burst 32k latency 20ms || exit 1
	done
}

# ---- running ----

# What became of RTRs, by the statistics that every rank prints at its end.
rtr_json() {
	awk -v of="$1" '
		/: sent .* RTRs sent/ { for (i = 1; i < NF; i++) if ($i == "RTRs") {
			sent += $(i + 2); used += $(i + 4) } }
		END { row = "{\"of\": \"" of "\", \"rtrs\": \"%s\", \"n\": %s}"
			printf "{\"rows\": [" row ",\n" row ",\n" row "]}\n", "sent", sent + 0,
				"used", used + 0, "used_pct", sent ? 100 * used / sent : "null" }' "$2"
}

# once STACK RANKS KIND OPTIONS: a document more for the series and its round.
once() {
	local stack=$1 ranks=$2 name=$1.$round${tag:+.$tag} where=()
	shift 2
	[ -z "$lab" ] || where=(--lab "$lab")
	bounded env "${vars[@]}" "$WEFT" run "${where[@]}" --net "$net" -n "$ranks" \
		--mpi-args "$args" "${pin[@]}" "$MPI_PERF" "$@" -T "$seconds" --json \
		>"$tmp/out" 2>"$tmp/err" || {
		say "$series: $stack, $ranks ranks: failed ($?): $(tail -n 3 "$tmp/err")"
		failed=1
		return
	}
	mv "$tmp/out" "$tmp/$series.$name.json"
	files+=("$tmp/$series.$name.json")
	[[ $stack == weft || $stack == weft-always ]] || return 0
	rtr_json "$series${tag:+ $tag}" "$tmp/err" >"$tmp/rtr.$name.json"
	rtr_files+=("$tmp/rtr.$name.json")
}

# each "STACK ..." RANKS KIND OPTIONS: one round, in turn.
each() {
	local s
	for s in ${stacks:-$1}; do
		stack "$s" || continue
		once "$s" "${@:2}"
	done
}

# raw COMMAND OPTIONS: one round of sockets between h0 and h1, without MPI.
raw() {
	local file=$tmp/$series.raw.$round.json address
	address=$("$WEFT" lab exec "$lab" h1 -- hostname -I) || return
	"$WEFT" lab exec "$lab" h1 -- timeout "$limit" "$PERF" server -q </dev/null >/dev/null 2>&1 &
	pids+=($!)
	if bounded "$WEFT" lab exec "$lab" h0 -- "$PERF" "$@" -q -j "$file" "${address%% *}" \
		>/dev/null 2>"$tmp/err"; then
		files+=("$file")
	else
		say "$series: raw sockets: failed: $(tail -n 3 "$tmp/err")"
		failed=1
	fi
	stop
}

# begin SERIES N SECONDS: so many rounds, unless -r says otherwise, of runs that measure for so long
# at most; then `while next`.
begin() {
	series=$1 most=${rounds:-$2} seconds=$3 round=0 tag=''
	files=() rtr_files=() pin=()
	say "$series"
	busy=()
	! is_busy || busy=(--busy)
}

next() { [ $((round++)) -lt "$most" ]; }

# table NAME FILE...
table() {
	local json=()
	[ -z "$out" ] || json=(-j "$out/mpi-$1.json")
	if [ $# -eq 1 ] || ! "$PERF" mpi "${busy[@]}" "${json[@]}" "${@:2}"; then
		failed=1
	fi
}

rtr_table() { [ ${#rtr_files[@]} -eq 0 ] || table "$series-rtr" "${rtr_files[@]}"; }

# ---- parts ----

part_wire() {
	local rivals='tcp net rxm weft'
	lab_up 2 unlimited || return
	begin wire-latency "$(pick 9 3)" "$(pick 8 3)"
	while next; do
		each "$rivals" 2 latency -m 8:64K:8
		raw lat -k tcp,udp -s 8,64,512,4K,32K -r 3 -n 300 --max-seconds "$seconds"
	done
	table "$series" "${files[@]}"
	begin wire-bandwidth "$(pick 5 2)" "$(pick 5 3)"
	while next; do
		each "$rivals" 2 bw -m 64K:4M:4 -i "$(pick 20 5)"
		raw bw -k tcp,udp-gso -s 64K,256K,1M,4M -r 3 -t "$(pick 50 20)" \
			--max-seconds "$seconds"
	done
	table "$series" "${files[@]}"
}

# Small differences: many short rounds, and each rank on a core of its own, because which cores they
# get makes a larger one.
part_speculation() {
	lab_up 2 unlimited || return
	begin speculation "$(pick 11 3)" "$(pick 5 4)"
	# shellcheck disable=SC2016
	pin=(sh -c 'exec taskset -c $((OMPI_COMM_WORLD_RANK % $(nproc))) "$0" "$@"')
	while next; do
		each 'weft weft-always weft-nospec' 2 pingpong-late -i "$(pick 300 50)" -w 100
	done
	table "$series" "${files[@]}"
	rtr_table
}

part_overlap() {
	lab_up 2 1gbit || return
	begin overlap "$(pick 2 1)" "$(pick 25 12)"
	while next; do
		each 'tcp weft weft-off' 2 overlap -i 5 -m "$(pick 64K:8M:2 64K:4M:8)"
	done
	table "$series" "${files[@]}"
	rtr_table
}

part_progress() {
	lab_up 2 1gbit || return
	begin progress "$(pick 2 1)" "$(pick 10 6)"
	while next; do
		each 'tcp weft weft-off' 2 progress -m 1M -i "$(pick 5 3)"
	done
	table "$series" "${files[@]}"
}

# Both ranks compute at the same time: with two cores, links must be slow to leave them some of it.
# All have the same to compute, as multiples of about what 128 KB take.
part_exchange() {
	lab_up 2 100mbit || return
	begin exchange "$(pick 2 1)" "$(pick 12 6)"
	while next; do
		for tag in model-1 model-2; do
			each 'tcp weft weft-off' 2 exchange --model "${tag#model-}" -d 11000 \
				-i "$(pick 20 10)"
		done
	done
	table "$series" "${files[@]}"
	rtr_table
}

part_host() {
	begin host-latency "$(pick 9 3)" "$(pick 8 3)"
	while next; do
		each 'sm tcp weft' 2 latency -m 8:64K:8
	done
	table "$series" "${files[@]}"
	begin alltoall "$(pick 5 2)" "$(pick 5 4)"
	while next; do
		OMPI_MCA_mpi_yield_when_idle=1 each 'sm weft' 16 alltoall -m 8:32K:16 -i "$(pick 300 100)"
	done
	table "$series" "${files[@]}"
}

# Ranks of one host would share memory: all of them take the network, as if they had hosts of their
# own. Many ranks on few cores start slowly.
part_memory() {
	lab_up 4 unlimited || return
	begin memory 1 30
	while next; do
		for tag in $(pick '4 16 64' '4 16'); do
			WEFT_RD_SHM=off each 'tcp weft weft-rc' "$tag" memory
		done
	done
	table "$series" "${files[@]}"
}

run_part() {
	case $1 in
	wire) part_wire ;;
	speculation) part_speculation ;;
	overlap) part_overlap ;;
	progress) part_progress ;;
	exchange) part_exchange ;;
	host) part_host ;;
	memory) part_memory ;;
	*) say "there is no part '$1'" && exit 2 ;;
	esac
	labs_down
}

# ---- all ----

[ -z "$out" ] || mkdir -p "$out" || exit 1
unset WEFT_RD_SHM # may be set for other measurements
export OMPI_MCA_mpi_yield_when_idle=0
for name; do
	run_part "$name"
done
[ $failed -eq 0 ]
