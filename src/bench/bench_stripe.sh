#!/bin/bash
# Striping policies side by side, on trees of real packets: displaced rings, collectives, a hot spot
# that comes and goes, two jobs that share a tree, links that fail; and in the simulator. Policies
# take turns, round by round, so that what slows a round slows all. Tables, with the targets as PASS
# or MISS; JSON and, where gnuplot is installed, SVG. Labs that it makes it also takes down; every
# run has a time limit.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1
bench=bench_stripe

# What is compared: as the environment variable FI_WEFT_STRIPING has it. "single" is the original.
POLICIES='single hsam:4 bss:4,2 bss:8,2 bss:12,3 hsam:12'
# What is judged: policies of our own.
OURS='auto pull:12,6'
# Of the cables. All hosts share the machine's cores: the rate must leave the network the bottleneck.
RATE=${RATE:-50mbit}
MTU=${MTU:-9000}
TREE_24='2;12,2;1,12;1,1'
TREE_48='2;12,4;1,12;1,1'
SEED=1 # of random orders and of links that fail

# shellcheck source=src/bench/bench_lib.sh
. "$top/src/bench/bench_lib.sh"
# shellcheck source=src/bench/bench_table.sh
. "$top/src/bench/bench_table.sh"
# shellcheck source=src/bench/bench_lab.sh
. "$top/src/bench/bench_lab.sh"
# shellcheck source=src/bench/bench_stripe_lib.sh
. "$top/src/bench/bench_stripe_lib.sh"
# shellcheck source=src/bench/bench_stripe_time.sh
. "$top/src/bench/bench_stripe_time.sh"

usage() {
	cat <<END
Usage: src/bench/bench_stripe.sh [OPTIONS] [PART]...

Parts (all, if none is named), with minutes per round:
  drc      displaced ring, 24 hosts, step 12, where all messages cross the tree: hashed routes, a
           random table, several addresses; beside D-Mod-K without contention (6)
  coll     MPI_Alltoall and MPI_Allgather, 24 and 48 hosts, hosts in order and shuffled (25)
  hotspot  messages of 1 MB while a flow of 80 % of a link comes and goes (3)
  jobs     two jobs of 12 hosts each that share the tree, alone and together (2)
  fail     messages of mixed sizes while links fail and heal, each byte checked (1)
  sim      weft fabric sim --stripe with 24, 64 and 1,024 hosts (2)

Options:
  -r N            rounds (3)
  -p "POLICY ..." to compare ($POLICIES);
                  single is always there
  -u "POLICY ..." to judge: ours ($OURS)
  -a              drc: all steps, not only step 12 (one round takes an hour)
  -q              a short run: one round, few policies, less than a minute per part
  -o DIR          keep the results there, as stripe-PART.json, .svg and .dat
  -h              this text

From the environment: RATE ($RATE) and MTU ($MTU) of the cables, WEFT_BUILD.
Exit status: 0 measured, 1 something could not be measured or was lost, 2 wrong usage.
END
}

BUILD=${WEFT_BUILD:-$top/build}
WEFT=$BUILD/bin/weft
MPI_PERF=$BUILD/bin/weft-mpi-perf.openmpi
rounds='' out='' all_steps=no policies='' ours=''
while getopts r:p:u:aqo:h c; do
	case $c in
	r) rounds=$OPTARG ;;
	p) policies=$OPTARG ;;
	u) ours=$OPTARG ;;
	a) all_steps=yes ;;
	q) quick=yes ;;
	o) out=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- drc coll hotspot jobs fail sim
for name; do
	case $name in
	drc | coll | hotspot | jobs | fail | sim) ;;
	*) say "there is no part '$name'" && exit 2 ;;
	esac
done
case ${rounds:-1} in *[!0-9]* | 0*) say "not a number of rounds: '$rounds'" && exit 2 ;; esac
ours=${ours:-$(pick "$OURS" "${OURS%% *}")}
policies=${policies:-$(pick "$POLICIES" 'single hsam:12')}
case " $policies " in *" single "*) ;; *) policies="single $policies" ;; esac
rounds=${rounds:-$(pick 3 1)}
for program in "$WEFT" "$MPI_PERF"; do
	[ -x "$program" ] || { say "no $program; build it first" && exit 1; }
done

make_tmp
failed=0
# shellcheck disable=SC2034 # for bench_lab.sh
lab_prefix=st
# For bench_table.sh.
# shellcheck disable=SC2034
series=stripe varies=policy compared="$policies $ours" facts="\"link_MBps\": $(link_MBps), \"mtu\": $MTU, "
out=${out:-$tmp}
mkdir -p "$out" || exit 1

# ---- displaced ring ----

drc_once() { # LAB POLICY: MB/s per rank, of all and of the slowest, for each step
	local step mean worst options=(--steps 12 -i "$(pick 6 2)" -w "$(pick 4 1)" -T "$(pick 25 12)")
	[ $all_steps = no ] || options=(--steps 1-23 -W 2 -i "$(pick 3 1)" -w "$(pick 2 1)" -T "$(pick 100 25)")
	key=$1
	run "$2" "$1" 24 routing "$MPI_PERF" drc -m 1M "${options[@]}" --json || return
	while read -r step mean worst; do
		record "$1, step $step" "$2" "$mean"
		record "$1, step $step, slowest" "$2" "$worst"
	done < <(paste <(field step) <(field MBps) <(field worst_MBps))
}

drc_targets() {
	local p base key='ecmp, step 12'
	for p in $ours; do
		target "$key" "$p" ">=" 1.5 single
		target "$key" "$p" ">=" 0.9 single 'dmodk, step 12'
		for base in $policies; do
			[ "$base" = single ] || target "$key" "$p" ">=" 1 "$base"
		done
	done
}

# A line for each policy over all steps, ecmp.
drc_plot() {
	local p lines=''
	[ $all_steps = yes ] || { bars "$(link_MBps)" && return; }
	for p in $policies $ours; do
		awk "$stats"'$2 == p && $1 ~ /^ecmp, step [0-9]+$/ { take() }
			END { for (k = 1; k <= n_keys; k++) { step = keys[k]; sub(/.* /, "", step)
				print step, median(keys[k], p) } }' p="$p" "$rec" >"$out/stripe-drc.$p.dat"
		lines+="${lines:+, }'$out/stripe-drc.$p.dat' with linespoints title '$p'"
	done
	plot stripe-drc "$title, ecmp" "$unit" "set yrange [0:*]
set key outside right
set xlabel 'step'
plot $lines, $(link_MBps) with lines lc 0 title 'the link'"
}

part_drc() {
	local routings routing p limit=$limit
	[ $all_steps = no ] || limit=240
	routings=$(pick 'ecmp random:1 lmc:4' ecmp)
	begin drc MB/s "displaced ring, 24 hosts, 1 MB: bandwidth per rank; the link: $(link_MBps) MB/s"
	for routing in dmodk $routings; do
		lab_up "$routing" "$TREE_24" "$routing" || return
	done
	for ((round = 1; round <= rounds; round++)); do
		drc_once dmodk single
		for routing in $routings; do
			for p in $policies $ours; do
				drc_once "$routing" "$p"
			done
		done
	done
	table
	drc_targets
	write_json
	drc_plot
	note
}

# ---- collectives ----

# Which messages MPI_Alltoall sends at a time, and to whom, matters: Open MPI starts all of them at
# once (its "linear"), where nothing stays on one link for long; MPICH and MVAPICH exchange one pair
# at a time, where one busy link holds up two, and these their next ones.
# coll_once KEY LAB RANKS ORDER COLLECTIVE POLICY: MB/s that each rank sends, for each size.
coll_once() {
	local size us kind=$5 exports=() # for command_of
	key="$1 $5"
	if [ "$kind" = pairwise ]; then
		kind=alltoall
		exports=(OMPI_MCA_coll_tuned_use_dynamic_rules=1
			OMPI_MCA_coll_tuned_alltoall_algorithm=2)
	fi
	run "$6" "$2" "$3" "$4" "$MPI_PERF" "$kind" -m "$(pick 256K 64K)" -i "$(pick 5 2)" \
		-w "$(pick 2 1)" -T "$(pick 20 10)" --json || return
	while read -r size us; do
		record "$1 $5 $((size / 1024))K" "$6" \
			"$(awk -v n="$3" -v s="$size" -v t="$us" 'BEGIN { printf "%.4f", (n - 1) * s / t }')"
	done < <(paste <(field size) <(field mean_us))
}

# coll_set KEY LAB RANKS ORDER POLICY...
coll_set() {
	local how p
	for how in $(pick 'alltoall pairwise allgather' alltoall); do
		for p in "${@:5}"; do
			coll_once "${@:1:4}" "$how" "$p"
		done
	done
}

# MPI_Allgather of long messages is a ring of neighbours: in order, two of them cross the tree, and
# there is nothing to avoid.
coll_targets() {
	local key p
	while read -r key; do
		for p in $ours; do
			case $key in
			dmodk* | leaf* | *order*allgather* | *alltoall*) target "$key" "$p" ">=" 0.97 single ;;
			*)
				target "$key" "$p" ">=" 1.8 single
				target "$key" "$p" ">=" 1.27 hsam:4
				target "$key" "$p" ">=" 1 hsam:12
				;;
			esac
		done
	done < <(cut -f 1 "$rec" | awk '!seen[$0]++')
}

half_rate() { awk -v r="$RATE" 'BEGIN { n = r + 0; sub(/^[0-9.]*/, "", r); print n / 2 r }'; }

part_coll() {
	local n sizes chosen=$policies
	sizes=$(pick '24 48' 24)
	[ "$policies" != "$POLICIES" ] || chosen='single hsam:4 hsam:12' # the others would take hours
	begin coll MB/s "collectives: what each rank sends per second; the link: $(link_MBps) MB/s,
# with 48 hosts half of that: they share the machine's cores"
	lab_up ecmp24 "$TREE_24" ecmp && lab_up dmodk24 "$TREE_24" dmodk || return
	[ "$sizes" = 24 ] || RATE=$(half_rate) lab_up ecmp48 "$TREE_48" ecmp || return
	for ((round = 1; round <= rounds; round++)); do
		for n in $sizes; do
			# shellcheck disable=SC2086 # lists of policies
			coll_set "$n in order" "ecmp$n" "$n" routing $chosen $ours
			# shellcheck disable=SC2086
			[ $quick = yes ] || coll_set "$n shuffled" "ecmp$n" "$n" random:$SEED $chosen $ours
		done
		# shellcheck disable=SC2086
		coll_set "dmodk 24" dmodk24 24 routing single $ours
		# shellcheck disable=SC2086
		[ $quick = yes ] || coll_set "leaf 12" ecmp24 12 routing single $ours
	done
	table
	coll_targets
	write_json
	bars "$(link_MBps)"
	note
}

# ---- simulator ----

# sim_once KEY ARGUMENTS: µs of the last round, by each policy; a round is a seed. What paths are is
# known to programs only, and to us: that decides what "auto" divides by.
sim_once() {
	local p real
	key=$1
	for p in $policies $ours; do
		real=$p
		[ "$p" != auto ] || case $* in *distinct*) real=pull:12 ;; *) real=pull:12,6 ;; esac
		say "$key, $p, seed $round"
		if bounded "$WEFT" fabric sim -q "${@:2}" --stripe "$real" --seed "$round" --json >"$tmp/out" \
			2>"$tmp/err"; then
			record "$key" "$p" "$(field last_round_us)"
		else
			say "$key: $p: failed ($?): $(tail -n 3 "$tmp/err")"
			failed=1
		fi
	done
}

part_sim() {
	local paths p key big='2;12,12;1,12;1,1'
	begin sim usec "simulated, time of the last round, rounds are seeds; links of 2000 MB/s, hosts of 1500"
	busy='' # which does not matter here
	local limit=400 # of 1,024 hosts a simulation takes some seconds, beside others a minute
	for ((round = 1; round <= rounds; round++)); do
		for paths in $(pick 'hashed distinct' hashed); do
			sim_once "24 drc $paths" --pgft "$big" --ranks 24 --cps drc:12 --bytes 1M \
				--rounds 20 --paths "$paths"
			sim_once "64 drc $paths" --pgft "$big" --ranks 64 --cps drc:32 --bytes 1M \
				--rounds 20 --paths "$paths"
			sim_once "64 alltoall $paths" --pgft "$big" --ranks 64 --bytes 64K --paths "$paths"
			[ $quick = yes ] || sim_once "1024 drc $paths" --pgft '2;32,32;1,32;1,1' \
				--cps drc:512 --bytes 512K --rounds 10 --paths "$paths"
		done
	done
	digits=0 table
	while read -r key; do
		for p in $ours; do
			target "$key" "$p" "<=" 1 hsam:12
		done
	done < <(cut -f 1 "$rec" | awk '!seen[$0]++')
	write_json
	bars
	note
}

# ---- all ----

unset WEFT_RD_SHM # may be set for other measurements
for name; do
	"part_$name"
	stop
	labs_down
done
[ $failed -eq 0 ]
