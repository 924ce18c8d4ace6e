#!/bin/bash
# Short messages straight from the program's buffers, on and off side by side: what the copy that is
# saved is worth, by size, beside what it could be worth; programs that use some buffers more often
# than others, and those that use none twice; and what it is made of, registrations and look-ups.
# Settings take turns, in another order each round. Tables, with the targets as PASS or MISS; JSON
# and, where gnuplot is installed, SVG. A lab that it makes it also takes down; every run has a time
# limit.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
bench=bench_reuse

SETTINGS='off on off-cached on-cached'
PLACES='rd shm'
# Percent that a message may take longer with it than without, and points that what is gained may
# be away from what can be.
SLOWER=1
AWAY=2
SEED=1 # of the order of settings

# shellcheck source=src/bench/bench_lib.sh
. "$top/src/bench/bench_lib.sh"
# shellcheck source=src/bench/bench_table.sh
. "$top/src/bench/bench_table.sh"
# shellcheck source=src/bench/bench_reuse_lib.sh
. "$top/src/bench/bench_reuse_lib.sh"

usage() {
	cat <<END
Usage: src/bench/bench_reuse.sh [OPTIONS] [PART]...

Parts (all, if none is named), with minutes:
  layer     latency of the layer below MPI, 64 bytes to 8 KB, both settings in one process (8)
  pingpong  latency, 64 bytes to 8 KB (figure 5.5 of the thesis; 7)
  onesided  MPI_Put and MPI_Get with a fence, by messages and by one-sided operations (5.7; 20)
  spectrum  1,000 buffers, the i-th used i times: sent, put and got; back to back, and each on
            pages of its own (5.6, 5.8; 60)
  patterns  0, 50 and 100 % of the buffers used again (3.12; 4)
  none      a program that uses no buffer twice: what it costs that, and whether it stops (8)
  coll      MPI_Bcast and MPI_Scatter (5.9; 10)
  reg       registering memory, by size (3.10)
  search    looking for a buffer, in a hash table and in a tree (5.4)

Settings: off (FI_WEFT_REUSE=no: every message is copied first), on (auto) and always (yes); with
-pieces behind it, as off-pieces, the device is used as one that needs memory registered
(FI_WEFT_LOCAL=pieces), with -cached it also keeps registrations, as those have to where registering
takes long (FI_WEFT_CACHE=on). Each is compared with the off of its kind.

Places: rd, two hosts of a lab, by UDP; shm, one host, through shared memory.

Options:
  -r N             rounds (as many as each part needs)
  -s "SETTING ..." ($SETTINGS)
  -p "PLACE ..."   ($PLACES)
  -q               a short run: few rounds and sizes, some minutes in all
  -o DIR           keep the results there, as reuse-PART.json, .svg and .dat
  -h               this text

A gain is 1 - on / off of one round, and of those the median; [quartiles] are of the rounds. What
can be gained at all is (copy - overhead) / off (equation 5.6), with the copy as it was measured in
the runs with off, and the overhead of finding a buffer, on devices that need memory registered, as
weft info has it.

Exit status: 0 measured, 1 something could not be measured, 2 wrong usage.
END
}

BUILD=${WEFT_BUILD:-$top/build}
WEFT=$BUILD/bin/weft
PERF=$BUILD/bin/weft-perf
MPI_PERF=$BUILD/bin/weft-mpi-perf.openmpi
MSG_PERF=$BUILD/bin/weft-msg-perf
rounds='' out='' settings='' places=$PLACES
while getopts r:s:p:qo:h c; do
	case $c in
	r) rounds=$OPTARG ;;
	s) settings=$OPTARG ;;
	p) places=$OPTARG ;;
	q) quick=yes ;;
	o) out=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- layer pingpong onesided spectrum patterns none coll reg search
for name; do
	case $name in
	layer | pingpong | onesided | spectrum | patterns | none | coll | reg | search) ;;
	*) say "there is no part '$name'" && exit 2 ;;
	esac
done
case ${rounds:-1} in *[!0-9]* | 0*) say "not a number of rounds: '$rounds'" && exit 2 ;; esac
settings=${settings:-$(pick "$SETTINGS" 'off on')}
for name in $settings; do
	setting_vars "$name" || exit 2
done
for name in $places; do
	case $name in rd | shm) ;; *) say "there is no place '$name'" && exit 2 ;; esac
done
for program in "$WEFT" "$PERF" "$MPI_PERF" "$MSG_PERF"; do
	[ -x "$program" ] || { say "no $program; build it first" && exit 1; }
done

make_tmp
failed=0
# For bench_table.sh.
# shellcheck disable=SC2034
series=reuse varies=setting facts=''
out=${out:-$tmp}
mkdir -p "$out" || exit 1
RANDOM=$SEED

# ---- one message, by size ----

# layer_once PLACE SUFFIX: of settings off and on with that suffix, which are in one process.
layer_once() {
	local size off on ratio copy options=(-r "$(pick 60 4)" -n "$(pick 300 100)" -T 100)
	local start=("$MSG_PERF" latency)
	key="$1 msg"
	case $2 in
	-pieces) options+=(-L) ;;
	-cached) options+=(-L -C) ;;
	esac
	[ $quick = no ] || options+=(-s "64,8K")
	say "$key, off$2 on$2, round $round"
	if [ "$1" = rd ]; then
		lab_up || { failed=1 && return; }
		"$WEFT" lab exec "$lab" h1 -- "${start[@]}" "${options[@]}" -l "$tmp/meet" </dev/null >/dev/null 2>&1 &
		pids+=($!)
		start=("$WEFT" lab exec "$lab" h0 -- "${start[@]}" -c "$tmp/meet")
	fi
	bounded "${start[@]}" "${options[@]}" >"$tmp/out" 2>"$tmp/err" || {
		say "$key: failed ($?): $(tail -n 3 "$tmp/err")"
		failed=1
	}
	stop
	while read -r size off on ratio _ _ copy; do
		record "$key $size" "off$2" "$off"
		record "$key $size" "on$2" "$on"
		record "$key $size" "on$2 / off$2" "$ratio" # of neighbours
		record "$key $size" copy "$copy"
	done < <(grep -v '^#' "$tmp/out")
}

part_layer() {
	local place suffix
	begin layer usec "messages of the layer below MPI, half a round trip, both settings in one process
# improvement: median [quartiles] of the processes'; theoretical: (copy - overhead) / off"
	for ((round = 1; round <= ${rounds:-$(pick 10 1)}; round++)); do
		for place in $places; do
			for suffix in '' -pieces -cached; do
				case " $settings " in *" on$suffix "*) layer_once "$place" "$suffix" ;; esac
			done
		done
	done
	gains near
	write_json
	plot_gains
	note
}

# by_size PLACE NAME KIND OPTIONS: latencies of weft-mpi-perf, as "PLACE NAME SIZE", by each setting.
by_size() {
	local s size us copy
	key="$1 $2"
	shuffle
	for s in "${order[@]}"; do
		run "$s" "$1" 2 "$MPI_PERF" "${@:3}" --copy --json || continue
		while read -r size us copy; do
			record "$key $size" "$s" "$us"
			case $s in off*) record "$key $size" "copy" "$copy" ;; esac
		done < <(paste <(field size) <(field p50_us) <(field copy_us))
	done
}

part_pingpong() {
	local place sizes
	sizes=$(pick 64:8K:2 64:8K:128)
	begin pingpong usec "ping-pong, half a round trip, from one buffer and into another
# improvement: median [quartiles] of the rounds'; theoretical: (copy - overhead) / off"
	for ((round = 1; round <= ${rounds:-$(pick 21 1)}; round++)); do
		for place in $places; do
			by_size "$place" send latency -m "$sizes" -w "$(pick 300 50)" -i "$(pick 2000 200)" \
				-T "$(pick 8 3)"
		done
	done
	gains near
	write_json
	plot_gains
	statistics
	note
}

# One-sided operations of Open MPI go by messages, unless told to use those of libfabric.
onesided_by() { # messages|rdma
	exports=()
	[ "$1" = messages ] || exports=(OMPI_MCA_osc_rdma_priority=101 "OMPI_MCA_btl=ofi,self")
}

part_onesided() {
	local place sizes how kind exports=()
	sizes=$(pick 64:8K:2 64:8K:128)
	begin onesided usec "MPI_Put or MPI_Get and MPI_Win_fence: by messages, and by the provider's own
# improvement: median [quartiles] of the rounds'; theoretical: (copy - overhead) / off"
	for ((round = 1; round <= ${rounds:-$(pick 11 1)}; round++)); do
		for place in $places; do
			for how in $(pick 'messages rdma' rdma); do
				onesided_by "$how"
				for kind in put get; do
					by_size "$place" "$kind $how" "$kind" -m "$sizes" -w "$(pick 300 50)" \
						-i "$(pick 1000 100)" -T "$(pick 8 3)"
				done
			done
		done
	done
	exports=()
	gains near
	write_json
	plot_gains
	statistics
	note
}

# ---- many buffers ----

# spectrum_one PLACE WAY LAYOUT SIZE: a process for each, since what it has learnt stays with it.
spectrum_one() {
	local s
	key="$1 $2 $3"
	shuffle
	for s in "${order[@]}"; do
		run "$s" "$1" 2 "$MPI_PERF" spectrum --by "$2" --layout "$3" -m "$4" \
			--buffers "$(pick 1000 60)" -T "$(pick 15 3)" --json || continue
		record "$key $(field size)" "$s" "$(field mean_us)"
	done
}

part_spectrum() {
	local place size exports=()
	begin spectrum usec "1,000 buffers, of which the i-th is used i times, mixed: mean of all uses
# with the registrations that were made on the way; runs take at most 15 s
# improvement: median [quartiles] of the rounds'"
	for ((round = 1; round <= ${rounds:-$(pick 3 1)}; round++)); do
		for place in $places; do
			for size in $(pick '256 1K 4K 8K' 4K); do
				exports=()
				spectrum_one "$place" send packed "$size"
				[ $quick = yes ] || spectrum_one "$place" send pages "$size"
				onesided_by rdma
				[ $quick = yes ] || spectrum_one "$place" put pages "$size"
				[ $quick = yes ] || spectrum_one "$place" get pages "$size"
			done
		done
	done
	exports=()
	gains
	write_json
	plot_gains
	statistics
	note
}

# reuse_once PLACE OPTIONS
reuse_once() {
	local s percent size us
	key="$1 reuse"
	shuffle
	for s in "${order[@]}"; do
		run "$s" "$1" 2 "$MPI_PERF" reuse "${@:2}" --json || continue
		while read -r percent size us; do
			record "$1 $percent% $size" "$s" "$us"
		done < <(paste <(field reuse_pct) <(field size) <(field p50_us))
	done
}

# A process for each, or what it has learnt of one would be of use, or in the way, for the next.
part_patterns() {
	local place percent options=(-w 50 -i "$(pick 1000 100)" -T "$(pick 10 3)")
	begin patterns usec "ping-pong of which so many percent use the buffer of the one before
# improvement: median [quartiles] of the rounds'"
	for ((round = 1; round <= ${rounds:-$(pick 5 1)}; round++)); do
		for place in $places; do
			for percent in $(pick '0 50 100' ''); do
				reuse_once "$place" --percent "$percent" -m 64:1M:4 "${options[@]}"
			done
			[ $quick = no ] || reuse_once "$place" -m 64:64K:1024 "${options[@]}"
		done
	done
	gains
	no_reuse_ratios
	write_json
	plot_patterns
	note
}

# Each of the messages is from another buffer: more than a table has room for without growing, and
# between hosts, where they may be so long that a registration would pay, up to 32 KB.
part_none() {
	local place longest
	begin none usec "a program that uses no buffer twice
# improvement: median [quartiles] of the rounds'"
	for ((round = 1; round <= ${rounds:-$(pick 21 1)}; round++)); do
		for place in $places; do
			longest=8K
			[ "$place" = shm ] || longest=32K
			reuse_once "$place" --percent 0 -m "$(pick "64:$longest:2" 1K)" -w 50 -i "$(pick 5000 6000)" \
				-T "$(pick 10 3)"
		done
	done
	gains slower
	adapted
	write_json
	plot_gains
	statistics
	note
}

# ---- collectives ----

# More ranks than cores take turns: waiting for a core is most of what is measured.
part_coll() {
	local place kind ranks s size us
	ranks=4
	begin coll usec "MPI_Bcast and MPI_Scatter on $ranks ranks, mean of all ranks, a barrier behind each
# improvement: median [quartiles] of the rounds'"
	for ((round = 1; round <= ${rounds:-$(pick 11 1)}; round++)); do
		for place in $places; do
			for kind in bcast scatter; do
				key="$place $kind"
				shuffle
				for s in "${order[@]}"; do
					pinned=no run "$s" "$place" $ranks "$MPI_PERF" "$kind" -w "$(pick 100 20)" \
						-m "$(pick 64:8K:2 4K)" -i "$(pick 500 50)" -T "$(pick 8 3)" --json ||
						continue
					while read -r size us; do
						record "$key $size" "$s" "$us"
					done < <(paste <(field size) <(field p50_us))
				done
			done
		done
	done
	gains
	write_json
	plot_gains
	note
}

# ---- what it is made of ----

# rows COLUMN...: of a table of weft-perf, whose first column is the key.
rows() {
	local line i
	while read -r -a line; do
		for ((i = 1; i <= $#; i++)); do
			[ "${!i}" = - ] || record "${line[0]}" "${!i}" "${line[i]}"
		done
	done < <(grep -v '^#' "$tmp/out")
}

# alone PROGRAM...: one that needs nobody else; prints its table.
alone() {
	bounded "$@" >"$tmp/out" 2>"$tmp/err" && cat "$tmp/out" && return
	say "$part: failed: $(tail -n 3 "$tmp/err")"
	failed=1
	return 1
}

part_reg() {
	begin reg usec "registering memory"
	facts=''
	alone "$WEFT" verbs "$PERF" reg -r "$(pick 10 1)" -s "$(pick 4K,8K,16K,32K,64K,128K,256K,512K,1M,2M,4M,8M,16M,32M,64M 4K,1M)" ||
		return
	rows - reg_first dereg_first reg_again dereg_again memcpy
	write_json
	plot_columns "bytes" 2 "registering memory, and copying it"
	note
}

part_search() {
	begin search nsec "looking for a buffer"
	facts=''
	alone "$MSG_PERF" search -r "$(pick 20 3)" -n "$(pick 20000 1000)" || return
	rows known - - hash tree
	write_json
	plot_columns "buffers" 10 "looking for a buffer"
	note
}

# ---- all ----

unset WEFT_RD_SHM # may be set for other measurements
export OMPI_MCA_mpi_yield_when_idle=0
for name; do
	"part_$name"
done
[ $failed -eq 0 ]
