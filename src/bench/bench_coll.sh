#!/bin/bash
# Collectives whose processes arrive at different times, by libweft-coll and by the MPI's own: figures 1
# to 4 and table 1 of Qian and Afsahi, Process Arrival Pattern and Shared Memory Aware Alltoall on
# InfiniBand; and sums on a fat tree. Both are measured in turn within each process, call by call, with
# the same delays (weft-mpi-perf arrival --own); ways to do it take turns, run by run. Tables, with the
# targets as PASS or MISS; JSON and, where gnuplot is installed, SVG. Labs that it makes it also takes
# down; every run has a time limit.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
bench=bench_coll

# What is compared with the MPI's own: variants of libweft-coll, as WEFT_COLL has them.
WAYS='auto direct pap_direct shm_direct pap_shm_direct'
SIZES=4,64,256,1K,8K,64K
RANKS=16
# Of the cables of the tree for sums, which must be the bottleneck, and not the machine's cores.
RATE=${RATE:-20mbit}
# Four leaves of six, two spines, three cables to each: on two leaves D-Mod-K has no two flows of a permutation
# meet, in whatever order, and there would be nothing to be seen.
TREE_24='2;6,4;1,2;1,3'
SEED=2 # of the random order: three flows of plain doubling on one cable (weft fabric hsd --cps recdbl)
# What "not slower" allows for noise.
NOISE=1.1

# shellcheck source=src/bench/bench_lib.sh
. "$top/src/bench/bench_lib.sh"
# shellcheck source=src/bench/bench_table.sh
. "$top/src/bench/bench_table.sh"
# shellcheck source=src/bench/bench_lab.sh
. "$top/src/bench/bench_lab.sh"
# shellcheck source=src/bench/bench_coll_lib.sh
. "$top/src/bench/bench_coll_lib.sh"

usage() {
	cat <<END
Usage: src/bench/bench_coll.sh [OPTIONS] [PART]...

Parts (all, if none is named), with minutes per round:
  arrival    MPI_Alltoall, $RANKS processes, arrival at random, MIF 1, 32, 128 and 512: figures 1 and 2 (40)
  scale      4, 8 and 16 processes, MIF 32 and 512: figure 3 (18)
  late       25 % and 75 % of the processes late, MIF 128: figure 4 (15)
  made       what it is made of at MIF 32: awareness, shared memory, copies, each switched off (7)
  fft        the Fourier transform of examples/fft.c, 4, 8 and 16 processes: table 1 (4)
  others     MPI_Allgather, MPI_Bcast, MPI_Allreduce, MPI_Reduce_scatter and MPI_Barrier, MIF 1 and 32 (5)
  allreduce  MPI_Allreduce on 24 hosts of a fat tree, in the tree's order and shuffled (5)

MIF, the maximum imbalance factor, is how many times the time of a message processes are late at most. "own"
is the MPI's own operation; each way has its own beside it, in the same processes and with the same draws of
who is late. "bound" is the wait for the last process, by each of them: who burns cores while it waits makes
others come later than drawn, and has a larger one.

Options:
  -r N           rounds (3)
  -m "MPI ..."   openmpi, mpich (both, as far as they are there)
  -l "PLACE ..." host: all processes on this one, lab: on four hosts (both)
  -n NET         what messages of the MPI's own are moved by: weft, or stock, what the MPI would take
                 by itself (weft)
  -w "WAY ..."   ways to compare with the MPI's own
                 ($WAYS)
  -q             a short run: one round, few ways and sizes, less than a minute per part
  -o DIR         keep the results there, as coll-PART.json, .svg and .dat
  -h             this text

From the environment: RATE ($RATE) of the tree's cables, WEFT_BUILD.
Exit status: 0 measured, 1 something could not be measured or was wrong, 2 wrong usage.
END
}

BUILD=${WEFT_BUILD:-$top/build}
WEFT=$BUILD/bin/weft
PERF=$BUILD/bin/weft-mpi-perf
PARTS='arrival scale late made fft others allreduce'
rounds='' out='' ways='' mpis='' places='host lab' net=weft
[ "${1:-}" != --help ] || set -- -h
while getopts r:m:l:n:w:qo:h c; do
	case $c in
	r) rounds=$OPTARG ;;
	m) mpis=$OPTARG ;;
	l) places=$OPTARG ;;
	n) net=$OPTARG ;;
	w) ways=$OPTARG ;;
	q) quick=yes ;;
	o) out=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
# shellcheck disable=SC2086
[ $# -gt 0 ] || set -- $PARTS
for name; do
	case " $PARTS " in *" $name "*) ;; *) say "there is no part '$name'" && exit 2 ;; esac
done
case ${rounds:-1} in *[!0-9]* | 0*) say "not a number of rounds: '$rounds'" && exit 2 ;; esac
for name in $mpis; do
	case $name in openmpi | mpich) ;; *) say "there is no MPI '$name'" && exit 2 ;; esac
done
for name in $places; do
	case $name in host | lab) ;; *) say "there is no place '$name'" && exit 2 ;; esac
done
case $net in weft | stock) ;; *) say "there is no network '$net'" && exit 2 ;; esac
rounds=${rounds:-$(pick 3 1)}
asked=$ways
ways=${ways:-$(pick "$WAYS" auto)}
[ -x "$WEFT" ] || { say "no $WEFT; build it first" && exit 1; }
if [ -z "$mpis" ]; then
	for name in openmpi mpich; do
		[ ! -x "$PERF.$name" ] || mpis+=" $name"
	done
	[ $quick = no ] || mpis=${mpis%% mpich}
fi
for name in $mpis; do
	[ -x "$PERF.$name" ] || { say "no $PERF.$name; build it first" && exit 1; }
done

make_tmp
failed=0
lab_prefix=co
# For bench_table.sh.
# shellcheck disable=SC2034
series=coll varies=variant facts=''
out=${out:-$tmp}
mkdir -p "$out" || exit 1

# ---- figures 1 and 2 ----

part_arrival() {
	local mif sizes mifs
	sizes=$(pick $SIZES 4,256,8K) mifs=$(pick 1,32,128,512 32)
	# One by one: for a program MIFs do not change, and the choice is made for it.
	for mif in ${mifs//,/ }; do
		measure arrival "$(pick 30 8)" "$ways" "$RANKS" -m "$sizes" --mif "$mif" -i "$(pick 300 60)"
	done

	from_raw arrival-own completion 'mif' own "MPI_Alltoall of the MPI's own, $RANKS processes: time of a call, mean over all (figure 1)"
	table
	lines own
	write_json
	note

	for mif in ${mifs//,/ }; do
		from_raw "arrival-$mif" completion '' all \
			"MPI_Alltoall, $RANKS processes, MIF $mif: time of a call, mean over all (figure 2)" "$mif"
		table
		lines
		write_json
		from_raw "beyond-$mif" beyond '' all \
			"the same without the wait for the last one to arrive, MIF $mif" "$mif"
		table
		[ "$mif" != 32 ] || paper_targets
		never_slower
		lines
		write_json
		note
	done
	totals arrival
}

# The paper's, against what is beyond the bound, by the way that is chosen automatically.
paper_targets() {
	local where
	grep -q $'\tauto\t' "$rec.pairs" || return 0
	explain "auto against the MPI's own in the same processes, after the paper's 3.5 at 4 and 256 B"
	while read -r where; do
		beside "$where 4" auto 0.286
		beside "$where 256" auto 0.286
		beside "$where 8192" auto 0.667
	done < <(wheres)
}

# ---- figure 3 ----

part_scale() {
	local n mif some
	some=$(chosen 'auto direct pap_direct')
	# MIFs one by one, as above.
	for n in $(pick '4 8 16' '4 8'); do
		for mif in $(pick '32 512' 32); do
			measure scale "$(pick 10 5)" "$some" "$n" -m "$(pick 4,8K 8K)" --mif "$mif" -i "$(pick 300 40)"
		done
	done
	from_raw scale beyond 'ranks mif' all "MPI_Alltoall of 4, 8 and 16 processes: time of a call without the wait for
# the last one to arrive (figure 3)"
	table
	never_slower
	bars
	write_json
	note
	from_raw scale-whole completion 'ranks mif' all "the same with the wait, and the wait"
	table
	write_json
	note
}

# ---- figure 4 ----

part_late() {
	local late
	for late in 25 75; do
		measure late "$(pick 20 6)" "$ways" "$RANKS" -m "$(pick $SIZES 4,8K)" --mif 128 --late $late -i "$(pick 300 40)"
	done
	for late in 25 75; do
		from_raw "late-$late" completion '' all \
			"MPI_Alltoall, $RANKS processes, $late % come late, MIF 128: time of a call, mean over all (figure 4)" '' $late
		table
		lines
		write_json
		from_raw "late-beyond-$late" beyond '' all "the same without the wait for the last one to arrive" '' $late
		table
		never_slower
		lines
		write_json
		note
	done
	totals late
}

# ---- what it is made of ----

part_made() {
	local some
	some=$(pick 'pap_shm_direct shm_direct pap_direct apart direct copied zerocopy' 'pap_direct direct')
	measure made "$(pick 15 5)" "$some" "$RANKS" -m "$(pick 4,256,8K,64K 256)" --mif 32 -i "$(pick 300 40)"
	from_raw made beyond '' all "what it is made of: time of a call without the wait for the last one, MIF 32;
# pap_ is aware of arrival, shm_ has one message per pair of hosts; all go by shared memory within a host,
# but for apart, which is pap_direct without; copied and zerocopy are pap_direct with copies, and without"
	table
	bars
	write_json
	note
}

# ---- table 1 ----

part_fft() {
	local mpi place n class way
	begin fft seconds "Fourier transform (examples/fft.c), total time (table 1)"
	: >"$rec.pairs"
	for ((round = 1; round <= rounds; round++)); do
		for mpi in $mpis; do
			for place in $places; do
				for n in $(pick '4 8 16' 4); do
					for class in $(pick 'S W' S); do
						for way in $(chosen 'auto direct'); do
							fft_once "$place" "$mpi" "$n" "$class" "$way"
						done
					done
				done
			done
		done
	done
	digits=4 table
	never_slower
	bars
	write_json
	note
}

# ---- other operations ----

part_others() {
	local op
	for op in $(pick 'allgather bcast allreduce reduce_scatter barrier' 'allreduce barrier'); do
		measure others "$(pick 12 4)" "$(chosen auto)" "$RANKS" --op "$op" -m "$(pick 8,1K,32K 1K)" --mif "$(pick 1,32 1)" -i "$(pick 300 40)"
	done
	from_raw others beyond 'op mif' all "other operations, $RANKS processes: time of a call without the wait for the last one
# (MPI_Bcast: for the root)"
	table
	never_slower
	bars
	write_json
	note
}

# ---- sums on a tree ----

part_allreduce() {
	local key way places=tree label first some
	first=$(first_mpi) # what the tree does to a sum does not depend on it
	some=$(chosen 'auto tree blind')
	local mpis=$first
	lab_make tree --pgft "$TREE_24" --rate "$RATE" --mtu 9000 --routing dmodk || return
	for label in 'in order' shuffled; do
		more=(--order routing)
		[ "$label" = 'in order' ] || more=(--order "random:$SEED")
		# All at once (-d 0): what is left is the operation.
		measure allreduce "$(pick 60 8)" "$some" 24 --op allreduce \
			-m "$(pick 8,8K,64K 8K)" --mif 1 -d 0 -i "$(pick 40 10)"
	done
	more=()
	from_raw allreduce beyond '' all "MPI_Allreduce, 24 hosts of a fat tree ($RATE, D-Mod-K), ranks in the order of the tree
# and shuffled: time of a call; tree knows the hosts' places in it, blind does not"
	table
	never_slower
	explain 'whoever knows the places is as fast in any order; shuffled, blind takes longer'
	key="shuffled $first $(pick 65536 8192)" # short messages hold no cable
	for way in ${some/blind/}; do
		target "$key" "$way" "<=" $NOISE "$way" "${key/shuffled/in order}"
	done
	[[ ! " $some " =~ \ tree\ .*blind ]] || target "$key" tree "<=" 0.9 blind
	bars
	write_json
	note
}

# ---- all ----

unset WEFT_RD_SHM WEFT_COLL WEFT_COLL_COPY_MAX WEFT_COLL_COPY_FAR WEFT_COLL_TOPOLOGY # may be set for other measurements
for name; do
	measured=''
	"part_$name"
	stop
	labs_down
done
verdicts
[ $failed -eq 0 ]
