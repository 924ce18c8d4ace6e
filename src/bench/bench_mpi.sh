#!/bin/bash
# MPI stacks side by side: weft-mpi-perf on each of them in turn, round by round, so that what slows
# a round slows all. Prints a line for each kind, key and stack: the median of the rounds, and that
# of the ratios to the first stack in the same round, with the quartiles. Labs that it makes it also
# takes down; every run has a time limit. Percentages have no ratio.
set -uo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd) || exit 1

usage() {
	cat <<'END'
Usage: src/bench/bench_mpi.sh [OPTIONS] [PART]...

Parts (all, if none is named):
  wire      latency and bandwidth between two hosts, unshaped
  late      a ping-pong that speculation can not help, unshaped
  overlap   overlap of communication and computation, 1 Gbit/s
  progress  latency while one side computes, 1 Gbit/s
  exchange  programs that compute and exchange, 1 Gbit/s
  host      latency on one host, 16 ranks in MPI_Alltoall, memory of 4 and 16 ranks

Options:
  -r N            rounds (3)
  -s "STACK ..."  of sm (Open MPI's shared memory), tcp (Open MPI's TCP), net and rxm (libfabric's
                  net and tcp;ofi_rxm), weft, and weft-off (without speculation and progress
                  thread); ratios are to the first ("tcp net rxm weft weft-off", on one host
                  "sm tcp weft"; stacks that are not there are left out)
  -q              a short run: fewer sizes and iterations
  -o FILE         keep the values of all rounds: round, stack, kind, key, value
  -h              this text
END
}

BUILD=${WEFT_BUILD:-$top/build}
WEFT=$BUILD/bin/weft
PERF=$BUILD/bin/weft-mpi-perf.openmpi
rounds=3 stacks='' quick=no raw=''
while getopts r:s:qo:h c; do
	case $c in
	r) rounds=$OPTARG ;;
	s) stacks=$OPTARG ;;
	q) quick=yes ;;
	o) raw=$OPTARG ;;
	h) usage && exit 0 ;;
	*) usage >&2 && exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[ $# -gt 0 ] || set -- wire late overlap progress exchange host
for program in "$WEFT" "$PERF"; do
	[ -x "$program" ] || { echo "bench_mpi: no $program; build it first" >&2 && exit 1; }
done

tmp=$(mktemp -d)
labs=()
cleanup() {
	local lab
	trap - EXIT INT TERM
	for lab in "${labs[@]}"; do
		"$WEFT" lab down "$lab" >/dev/null
	done
	rm -rf "$tmp"
}
trap cleanup EXIT
trap 'cleanup; exit 130' INT
trap 'cleanup; exit 143' TERM

# ---- stacks ----

# stack NAME: how to run on it, in net, args and vars; fails when it is not there.
stack() {
	local ofi='--mca pml cm --mca mtl ofi --mca btl self --mca opal_common_ofi_provider_include'
	net=stock args='' vars=(OMPI_MCA_mpi_yield_when_idle="$yield")
	case $1 in
	sm) args='--mca pml ob1 --mca btl vader,self' ;;
	tcp) args='--mca pml ob1 --mca btl tcp,self' ;;
	net) args="$ofi net" ;;
	rxm) args="$ofi 'tcp;ofi_rxm'" ;;
	weft | weft-off)
		net=weft
		[ -e "$BUILD/lib/libweft-fi.so" ] || return 1
		[ "$1" = weft ] || vars+=(FI_WEFT_SPECULATE=no WEFT_PROGRESS=off)
		;;
	*) echo "bench_mpi: there is no stack '$1'" >&2 && exit 2 ;;
	esac
}

# ---- labs ----

# Two hosts. The bucket that shapes a lab's links holds 2 ms, which is all of a message of 128 KB,
# and is full again after each computation: 0.26 ms is enough to reach the rate.
lab_up() {
	local name=$1 rate=$2 port
	labs+=("$name")
	"$WEFT" lab up "$name" --pgft "1;2;1;1" --rate "$rate" --mtu 1500 >/dev/null || exit 1
	[ "$rate" != unlimited ] || return 0
	for port in "h0 eth0" "h1 eth0" "s1.0 d0" "s1.0 d1"; do
		"$WEFT" lab exec "$name" "${port% *}" -- tc qdisc change dev "${port#* }" root \
			tbf rate "$rate" burst 32k latency 20ms || exit 1
	done
}

# ---- running ----

# once ROUND STACK WHERE RANKS KEYS VALUE KIND OPTIONS: appends to the values. KEYS are columns
# with commas between them, VALUE is one.
once() {
	local round=$1 stack=$2 where=() ranks=$4 keys=$5 value=$6
	[ -z "$3" ] || where=(--lab "$3")
	shift 6
	timeout -k 5 240 env "${vars[@]}" "$WEFT" run "${where[@]}" --net "$net" -n "$ranks" \
		--mpi-args "$args" "$PERF" "$@" -T "$limit" >"$tmp/out" 2>"$tmp/err" </dev/null || {
		echo "bench_mpi: $stack: $*: failed: $(tail -n 3 "$tmp/err")" >&2
		return
	}
	awk -v keys="$keys" -v value="$value" -v head="$round $stack $part.$1.$ranks" '
		BEGIN { n = split(keys, key, ",") }
		/^#/ { if ($2 == key[1]) for (i = 2; i <= NF; i++) column[$i] = i - 1; next }
		column[value] {
			k = $column[key[1]]
			for (i = 2; i <= n; i++)
				k = k "/" $column[key[i]]
			print head, k, $column[value] }' "$tmp/out" >>"$tmp/values"
}

# measure WHERE RANKS KEYS VALUE KIND OPTIONS: all rounds on all stacks.
measure() {
	local round s
	for ((round = 1; round <= rounds; round++)); do
		for s in ${stacks:-$usual}; do
			stack "$s" || continue
			echo "bench_mpi: round $round, $s: ${*:5}" >&2
			once "$round" "$s" "$@"
		done
	done
}

run_part() {
	local few='' part=$1 ranks
	usual='tcp net rxm weft weft-off' yield=0 limit=40
	[ $quick = no ] || few="-i 5" limit=20
	# shellcheck disable=SC2086 # options are words
	case $1 in
	wire)
		lab_up "$wire" unlimited
		measure "$wire" 2 size p50_us latency -m 8:64K:8
		measure "$wire" 2 size p50_MBps bw -m 64K:4M:4 $few
		;;
	late)
		lab_up "$wire" unlimited
		measure "$wire" 2 size,timing p50_us pingpong-late
		;;
	overlap)
		lab_up "$slow" 1gbit
		[ $quick = no ] || few+=' -m 64K:8M:128'
		measure "$slow" 2 size,scenario,side overlap_pct overlap $few
		;;
	progress)
		lab_up "$slow" 1gbit
		measure "$slow" 2 size,scenario,side,delay_x left_pct progress $few -m 1M
		;;
	exchange)
		lab_up "$slow" 1gbit
		measure "$slow" 2 size,model,ratio T_iter_us exchange
		;;
	host)
		usual='sm tcp weft' # in this order: sm is what the others are held to
		measure '' 2 size p50_us latency -m 8:64K:8
		yield=1
		measure '' 16 size mean_us alltoall $few
		for ranks in 4 16; do
			measure '' $ranks when,what mean_MiB memory
		done
		;;
	*) echo "bench_mpi: there is no part '$1'" >&2 && exit 2 ;;
	esac
}

# ---- results ----

# From "round stack kind key value", in the order of appearance.
report() {
	awk '
	function sort(a, n,   i, j, x) {
		for (i = 2; i <= n; i++) {
			x = a[i]
			for (j = i - 1; j > 0 && a[j] > x; j--)
				a[j + 1] = a[j]
			a[j + 1] = x
		}
	}
	function at(a, n, q,   p, i) {
		p = 1 + (n - 1) * q
		i = int(p)
		return a[i] + (p - i) * (a[i < n ? i + 1 : i] - a[i])
	}
	{
		row = $3 " " $4
		if (!($3 in base)) base[$3] = $2 # the first stack of a kind
		if (!(row in order)) rows[++nrows] = row
		if (!((row, $2) in seen)) { seen[row, $2] = 1; order[row] = order[row] " " $2 }
		if ($5 != "-") v[row, $2, $1] = $5 # "-": the machine was too busy for a result
		if ($1 > last) last = $1
	}
	END {
		printf "# %-22s %-36s %-9s %6s %12s %8s  %s\n", "part.kind.ranks", "size", "stack", "rounds", "median", "ratio", "quartiles"
		for (i = 1; i <= nrows; i++) {
			row = rows[i]; split(row, w, " "); m = split(order[row], s, " ")
			for (k = 1; k <= m; k++) {
				n = nr = 0
				for (r = 1; r <= last; r++) {
					if (!((row, s[k], r) in v)) continue
					a[++n] = v[row, s[k], r]
					b = (row, base[w[1]], r) in v ? v[row, base[w[1]], r] : 0
					if (b > 0 && w[1] !~ /^(overlap|progress)/) q[++nr] = a[n] / b
				}
				sort(a, n); sort(q, nr)
				printf "%-24s %-36s %-9s %6d %12s", w[1], w[2], s[k], n, n ? sprintf("%.2f", at(a, n, 0.5)) : "-"
				if (nr) printf " %8.3f  [%.3f .. %.3f]", at(q, nr, 0.5), at(q, nr, 0.25), at(q, nr, 0.75)
				print ""
			}
		}
	}' "$tmp/values"
}

: >"$tmp/values"
wire=mpiw$$ slow=mpis$$
for name; do
	run_part "$name"
	for lab in "${labs[@]}"; do
		"$WEFT" lab down "$lab" >/dev/null
	done
	labs=()
done
[ -z "$raw" ] || cp "$tmp/values" "$raw"
[ -s "$tmp/values" ] || { echo "bench_mpi: nothing could be measured" >&2 && exit 1; }
report
