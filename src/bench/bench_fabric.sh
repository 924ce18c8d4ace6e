#!/bin/bash
# What weft fabric costs, against the size of the tree, and what the simulator says of the
# fat-tree paper's figure 2. Tables, with the targets as PASS or MISS; JSON and, where gnuplot is
# installed, SVG.
set -uo pipefail
bench=bench_fabric
# shellcheck source=src/bench/bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"

WEFT_BUILD=${WEFT_BUILD:-build}
WEFT=$WEFT_BUILD/bin/weft

usage() {
	cat <<'END'
Usage: src/bench/bench_fabric.sh [OPTIONS] [PART ...]

Parts (all, if none is named):
  route   time and memory to compute all routes, 144 to a million hosts
  hsd     time to find the hot spots of all shifts
  sim     the fat-tree paper's figure 2 and its adversarial ring, simulated

Options:
  -q      a short run: fewer stages and sizes
  -o DIR  keep the results there, as fabric-PART.json and .svg
  -h      this text

Exit status: 0 measured, 1 something could not be measured, 2 wrong usage.
END
}

out=''
while getopts qo:h opt; do
	case $opt in
	q) quick=yes ;;
	o) out=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- route hsd sim
[ -x "$WEFT" ] || { echo "bench_fabric: no $WEFT; build it first" >&2 && exit 1; }
make_tmp
out=${out:-$tmp}
failed=0

# verdict VALUE LIMIT: at most
verdict() { awk -v v="$1" -v l="$2" 'BEGIN { print v <= l ? "PASS" : "MISS" }'; }

trees=('2;12,12;1,6;1,2' '2;18,18;1,9;1,2' '3;12,12,12;1,12,6;1,1,2' '3;18,18,6;1,18,3;1,1,6'
	'3;18,18,36;1,18,18;1,1,1')
hosts_of() { local m=${1#*;} h=1 x; for x in $(tr , ' ' <<<"${m%%;*}"); do h=$((h * x)); done; echo "$h"; }

# timed COMMAND...: its time in ms, standard output in $tmp/out.
timed() {
	local start=$EPOCHREALTIME end
	"$@" >"$tmp/out" 2>"$tmp/err" || { failed=1 && cat "$tmp/err" >&2; }
	end=$EPOCHREALTIME
	awk -v a="$start" -v b="$end" 'BEGIN { printf "%.1f", (b - a) * 1000 }'
}

part_route() {
	local tree ms rss verdicts
	echo "# routes of all switches, no table kept: time of the whole command, and its memory"
	printf '#%9s %12s %12s   %s\n' hosts ms 'memory [MB]' target
	: >"$out/fabric-route.dat"
	for tree in "${trees[@]}" '3;100,100,100;1,100,100;1,1,1'; do
		ms=$(timed "$WEFT" fabric route --pgft "$tree" --json)
		rss=$(awk -v k="$(field max_rss_kb "$tmp/out")" 'BEGIN { printf "%.1f", k / 1024 }')
		verdicts=
		case $(hosts_of "$tree") in
		11664) verdicts="<= 200 ms $(verdict "$ms" 200), <= 100 MB $(verdict "$rss" 100)" ;;
		1000000) verdicts="<= 10000 ms $(verdict "$ms" 10000)" ;;
		esac
		printf '%10s %12s %12s   %s\n' "$(hosts_of "$tree")" "$ms" "$rss" "$verdicts"
		echo "$(hosts_of "$tree") $ms $rss" >>"$out/fabric-route.dat"
	done
	plot fabric-route 'Routes of all switches' 'ms, MB' "set logscale xy
set xlabel 'hosts'
plot '$out/fabric-route.dat' using 1:2 with linespoints title 'time [ms]', \
'' using 1:3 with linespoints title 'memory [MB]'"
	echo
}

part_hsd() {
	local tree ms note
	echo "# hot-spot degree of all shifts, in routing order"
	printf '#%9s %12s %14s   %s\n' hosts ms 'ns per flow' target
	: >"$out/fabric-hsd.dat"
	for tree in "${trees[@]}"; do
		ms=$(timed "$WEFT" fabric hsd --pgft "$tree" --cps shift --json)
		[ "$(field max_hsd "$tmp/out")" = 1 ] || { say "$tree: hot spots" && failed=1; }
		note=
		[ "$(hosts_of "$tree")" != 11664 ] || note="<= 5000 ms $(verdict "$ms" 5000)"
		awk -v n="$(hosts_of "$tree")" -v ms="$ms" -v note="$note" 'BEGIN {
			printf "%10d %12s %14.1f   %s\n", n, ms, ms * 1e6 / (n * (n - 1)), note }'
		echo "$(hosts_of "$tree") $ms" >>"$out/fabric-hsd.dat"
	done
	plot fabric-hsd 'Hot-spot degree of all shifts' 'ms' "set logscale xy
set xlabel 'hosts'
plot '$out/fabric-hsd.dat' using 1:2 with linespoints title 'time'"
	echo
}

# simulate ARGUMENTS...: percent of the hosts' bandwidth; of several orders the median, the lowest
# and the highest
simulate() {
	local name
	"$WEFT" fabric sim --pgft '3;18,18,6;1,18,3;1,1,6' --json -q "$@" >"$tmp/sim" || failed=1
	for name in bandwidth bandwidth_min bandwidth_max; do
		# Only the object itself: its orders are further in.
		sed -n "s/^  \"$name\": \([0-9.e+-]*\).*/\1/p" "$tmp/sim"
	done | awk '{ printf("%s%.1f", (NR > 1 ? " " : ""), 100 * $1) }'
	# Of several orders, the events of one that is typical.
	awk -v e="$(field events "$tmp/sim")" -v s="$(field seconds "$tmp/sim")" \
		'BEGIN { print e, s }' >>"$tmp/events"
}

part_sim() {
	local sizes='4K 8K 16K 32K 64K 128K 256K' stages=16 orders=7 size cps row ring
	[ $quick = no ] || { sizes='8K 64K' stages=4 orders=3; }
	: >"$tmp/events"
	echo "# figure 2: 1944 hosts, percent of the hosts' bandwidth; $stages stages of shift, spread;"
	echo "# random: the median of $orders orders, and from where to where they reach"
	printf '#%7s %21s %21s %14s %14s\n' size 'shift random' 'recdbl random' 'shift order' topo-recdbl
	: >"$out/fabric-sim.dat"
	for size in $sizes; do
		row=$size
		for cps in shift recdbl; do
			row+=" $(simulate --cps $cps --order "random:1..$orders" --bytes "$size" --stages $stages)"
		done
		for cps in shift topo-recdbl; do
			row+=" $(simulate --cps $cps --bytes "$size" --stages $stages)"
		done
		# shellcheck disable=SC2086 # the columns
		printf '%8s %8s (%4s-%4s) %8s (%4s-%4s) %14s %14s\n' $row
		echo "$row" >>"$out/fabric-sim.dat"
	done
	ring=$(simulate --cps ring --order adversarial --bytes 256K)
	echo "adversarial ring: $ring percent (the paper: 7.1) $(verdict "$(awk -v r="$ring" \
		'BEGIN { d = r - 7; print d < 0 ? -d : d }')" 0.5)"
	awk '{ e += $1; s += $2 } END { printf "%.1f million events in %.1f s: %.1f million per second\n",
		e / 1e6, s, e / s / 1e6 }' "$tmp/events"
	plot fabric-sim "Figure 2: 1944 hosts" "percent of the hosts' bandwidth" "set yrange [0:105]
set xlabel 'message size'
plot '$out/fabric-sim.dat' using 0:2:3:4:xtic(1) with yerrorlines title 'shift, random order', \
'' using 0:5:6:7 with yerrorlines title 'recursive doubling, random order', \
'' using 0:8 with linespoints title 'shift, routing order', \
'' using 0:9 with linespoints title 'topology-aware recursive doubling'"
	echo
}

for part; do
	case $part in
	route | hsd | sim) "part_$part" ;;
	*) say "there is no part '$part'" && exit 2 ;;
	esac
done
exit $failed
