#!/bin/bash
# The benchmark: raw sockets and the software RNIC side by side, between two network
# namespaces on this machine, then MPI on Weft beside other stacks, with the targets as PASS
# or MISS. Everything that it starts it also ends; every part has a time limit.
#
#   scripts/bench.sh [--quick | --full] [--mpi | --no-mpi] [--stripe | --no-stripe] [--reuse | --no-reuse] [--coll | --no-coll] [--hop] [--raw] [--no-pin] [--strict] [--out DIR]
set -uo pipefail
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1

usage() {
	cat <<'END'
Usage: scripts/bench.sh [OPTION]...

Measures latency, bandwidth, memory and sockets per connection or peer, and the cost of being
idle; of MPI latency and bandwidth, overlap of communication and computation, and memory, beside
Open MPI's own transports and libfabric's. Prints tables and leaves JSON (and SVG, where gnuplot is
installed) in build/bench.

  --quick     fourteen minutes instead of seven hours
  --full      all of it, in seven hours; so does no option
  --mpi       MPI only (src/bench/bench_mpi.sh measures single parts of it)
  --no-mpi    without MPI, striping, reuse and collectives: half a minute, or five
  --fabric    fat trees only (src/bench/bench_fabric.sh)
  --stripe    striping only (src/bench/bench_stripe.sh measures single parts of it)
  --no-stripe without striping: four minutes, or two hours
  --reuse     short messages from buffers that are used again only (src/bench/bench_reuse.sh
              measures single parts of it)
  --no-reuse  without these
  --coll      collectives whose processes arrive at different times only (src/bench/bench_coll.sh
              measures single parts of it)
  --no-coll   without these
  --hop       a router namespace between the two hosts
  --raw       sockets only, without the software RNIC
  --no-pin    let the scheduler place the processes
  --strict    exit with 3 when a target is missed
  --out DIR   another directory for the results
END
}

quick=no hop=no raw=no device=yes mpi=yes fabric=yes stripe=yes reuse=yes coll=yes out=$top/build/bench
perf_options=() report_options=() args=()
for ((i = 1; i <= $#; i++)); do
	case ${!i} in
	--quick) quick=yes ;;
	--full) quick=no ;;
	--hop) hop=yes ;;
	--raw) raw=yes mpi=no fabric=no stripe=no reuse=no coll=no ;;
	--mpi) device=no fabric=no stripe=no reuse=no coll=no ;;
	--fabric) device=no mpi=no stripe=no reuse=no coll=no ;;
	--stripe) device=no mpi=no fabric=no reuse=no coll=no ;;
	--reuse) device=no mpi=no fabric=no stripe=no coll=no ;;
	--coll) device=no mpi=no fabric=no stripe=no reuse=no ;;
	--no-mpi) mpi=no stripe=no reuse=no coll=no ;;
	--no-stripe) stripe=no ;;
	--no-reuse) reuse=no ;;
	--no-coll) coll=no ;;
	--no-pin) perf_options+=(--no-pin) ;;
	--strict) report_options+=(--strict) ;;
	--out)
		i=$((i + 1))
		out=$(realpath -m -- "${!i:?--out needs a directory}") || exit 2
		args+=(--out "$out")
		continue
		;;
	-h | --help)
		usage
		exit 0
		;;
	*)
		echo "bench: unknown option '${!i}'; try --help" >&2
		exit 2
		;;
	esac
	args+=("${!i}")
done

cd "$top" || exit 1
# shellcheck source=scripts/hosts.sh
. scripts/hosts.sh
hosts_enter "$PWD/scripts/bench.sh" "${args[@]}"

BUILD=${WEFT_BUILD:-$PWD/build}
PERF=$BUILD/bin/weft-perf
LIMIT=200 # seconds for one part
port=18615
server_pid='' client_pid='' router_pid=''
failed=0
files=()
same_results=() same_targets=()

cleanup() {
	local pid
	trap - EXIT INT TERM
	for pid in $client_pid $server_pid $router_pid; do
		kill "$pid" 2>/dev/null
	done
	hosts_down
}
trap cleanup EXIT
trap 'cleanup; exit 130' INT
trap 'cleanup; exit 143' TERM

progress() { echo "bench: $*" >&2; }

# Replaces the veth pair by two, with a router between them.
router_up() {
	unshare -n setpriv --pdeathsig KILL sleep infinity &
	router_pid=$!
	local i on_r=(nsenter -t "$router_pid" -n --)
	for ((i = 0; i < 250; i++)); do
		[ "$(readlink /proc/$$/ns/net)" != "$(readlink /proc/$router_pid/ns/net)" ] && break
		sleep 0.02
	done
	ip link del weft-a || return 1
	HOST_A=10.77.1.2
	HOST_B=10.77.2.2
	ip link add weft-a type veth peer name weft-ra netns "$router_pid" &&
		on_b ip link add weft-b type veth peer name weft-rb netns "$router_pid" &&
		"${on_r[@]}" ip link set lo up &&
		"${on_r[@]}" ip addr add 10.77.1.1/24 dev weft-ra &&
		"${on_r[@]}" ip addr add 10.77.2.1/24 dev weft-rb &&
		"${on_r[@]}" ip link set weft-ra up && "${on_r[@]}" ip link set weft-rb up &&
		"${on_r[@]}" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward' &&
		ip addr add $HOST_A/24 dev weft-a && ip link set weft-a up &&
		ip route add default via 10.77.1.1 &&
		on_b ip addr add $HOST_B/24 dev weft-b && on_b ip link set weft-b up &&
		on_b ip route add default via 10.77.2.1 || return 1
	for ((i = 0; i < 100; i++)); do
		# Both ends up, and the kernel has finished with it.
		case $(ip -br link show weft-a)/$(on_b ip -br link show weft-b) in
		*" UP "*/*" UP "*) return 0 ;;
		esac
		sleep 0.02
	done
	return 1
}

# part NAME COMMAND OPTIONS: one server and one client; NAME.json and a table. A fresh
# pair for each, so that what one leaves behind does not count for the next.
part() {
	local name=$1 json=$out/$1.json result
	shift
	port=$((port + 1))
	progress "$name"
	start_b "${run[@]}" "$PERF" server -p "$port" "${perf_options[@]}" </dev/null
	server_pid=$!
	hosts_wait_port "$port" "$server_pid"
	rm -f "$json"
	timeout "$LIMIT" "${run[@]}" "$PERF" "$@" -p "$port" "${perf_options[@]}" -j "$json" \
		"$HOST_B" </dev/null &
	client_pid=$!
	wait "$client_pid"
	result=$?
	client_pid=''
	# The server ends with its client; one that does not is in the way.
	for ((i = 0; i < 50; i++)); do
		kill -0 "$server_pid" 2>/dev/null || break
		sleep 0.1
	done
	kill "$server_pid" 2>/dev/null
	wait "$server_pid" 2>/dev/null
	server_pid=''
	[ ! -s "$json" ] || files+=("$json")
	if [ $result -ne 0 ]; then
		progress "$name: something could not be measured ($result)"
		failed=1
	fi
}

# wait_listening PORT: until a server that was just started is there.
wait_listening() {
	local i
	for ((i = 0; i < 100; i++)); do
		ss -ltn "sport = :$1" | grep -q LISTEN && return
		sleep 0.02
	done
}

server_end() {
	kill "$server_pid" 2>/dev/null
	wait "$server_pid" 2>/dev/null
	server_pid=''
}

# rd_local TEST SIZE: RD between two processes of one host, through shared memory: the median of
# half a round trip in microseconds, or the MB/s of one stream from its begin to its end, since
# ucx_perftest has no median of that.
rd_local() {
	local -x WEFT_ADDR=127.0.0.1 WEFT_RD_SHM=on
	local rounds=(-r 5)
	[ "$1" = lat ] || rounds=(-r 1 -t 250)
	timeout 60 "${run[@]}" "$PERF" server -p "$port" "${perf_options[@]}" </dev/null >/dev/null 2>&1 &
	server_pid=$!
	wait_listening "$port"
	timeout 30 "${run[@]}" "$PERF" "$1" -k rd -s "$2" "${rounds[@]}" -q -j - \
		-p "$port" "${perf_options[@]}" 127.0.0.1 </dev/null 2>/dev/null |
		"$PERF" plot /dev/stdin 2>/dev/null | awk 'NF == 2 { print $2 }'
	server_end
}

# ucx_local TRANSPORTS TEST SIZE COUNT: the same of ucx_perftest's tag matching. Its last line is
#   iterations, latency: median average overall, MB/s: average overall, messages/s: ...
# and its MB are 2^20 bytes, ours 10^6.
ucx_local() {
	local -x UCX_TLS=$1
	taskset -c 1 timeout 30 ucx_perftest -p "$port" </dev/null >/dev/null 2>&1 &
	server_pid=$!
	wait_listening "$port"
	timeout 30 taskset -c 0 ucx_perftest 127.0.0.1 -p "$port" -t "$2" -s "$3" -n "$4" -f \
		</dev/null 2>/dev/null |
		awk -v lat="$([ "$2" = tag_lat ] && echo 1)" \
			'$NF + 0 > 0 && NF >= 8 { v = lat ? $(NF - 6) : $(NF - 2) * 1.048576 }
			END { if (v > 0) print v }'
	server_end
}

# quantile Q VALUE...: of those that are there.
quantile() {
	local q=$1
	shift
	printf '%s\n' "$@" | grep . | sort -g | awk -v q="$q" '{ v[NR] = $1 } END {
		if (!NR)
			exit
		i = int(1 + (NR - 1) * q)
		printf "%.6g\n", v[i] + (1 + (NR - 1) * q - i) * (v[i < NR ? i + 1 : i] - v[i]) }'
}

# pairwise A... -- B...: the quotients, one for each round that has both.
pairwise() {
	awk 'BEGIN { for (n = 1; ARGV[n] != "--"; n++)
			;
		for (i = 1; i < n; i++)
			if (ARGV[i] > 0 && ARGV[n + i] > 0)
				printf "%.4f\n", ARGV[i] / ARGV[n + i] }' "$@"
}

numbers() { [ $# -eq 0 ] || printf '%s\n' "$@" | sed 's/^$/null/' | paste -sd,; }

# same_host_row TEST SIZE COUNT: RD and UCX in turn, five times each, and the ratio of those that
# ran one after the other. The cores of a virtual machine may be moved at any time, which makes
# everything here two or three times as long: only neighbours can be compared. RD is held to UCX
# without cma, which moves a message as RD moves a short one: through a buffer.
same_host_row() {
	local test=$1 size=$2 count=$3 what=latency unit=usec relation='<=' pass=false mark=MISS i
	local rd=() posix=() cma=() pairs=() m q1 q3
	[ "$test" = lat ] || what=bandwidth unit=MBps relation='>='
	for ((i = 0; i < 5; i++)); do
		port=$((port + 1))
		rd+=("$(rd_local "$test" "$size")")
		port=$((port + 1))
		posix+=("$(ucx_local posix,self "tag_$test" "$size" "$count")")
		[ $quick = no ] || continue
		port=$((port + 1))
		cma+=("$(ucx_local posix,cma,self "tag_$test" "$size" "$count")")
	done
	mapfile -t pairs < <(pairwise "${rd[@]}" -- "${posix[@]}")
	m=$(quantile 0.5 "${pairs[@]}") q1=$(quantile 0.25 "${pairs[@]}")
	q3=$(quantile 0.75 "${pairs[@]}")
	if [ -z "$m" ]; then
		progress "same host: $what at $size bytes could not be measured"
		failed=1
		return
	fi
	! awk "BEGIN { exit !($m $relation 1) }" || pass=true mark=PASS
	printf '%-9s %8d %-4s %9s %10s %14s   %s [%s .. %s], %s 1 %s\n' "$what" "$size" "$unit" \
		"$(quantile 0.5 "${rd[@]}")" "$(quantile 0.5 "${posix[@]}")" \
		"$(quantile 0.5 "${cma[@]}")" "$m" "$q1" "$q3" "$relation" $mark
	same_results+=("{\"test\": \"$test\", \"size\": $size, \"unit\": \"$unit\",
 \"rd\": [$(numbers "${rd[@]}")], \"ucx_posix\": [$(numbers "${posix[@]}")],
 \"ucx_posix_cma\": [$(numbers "${cma[@]}")]}")
	same_targets+=("{\"what\": \"$what at $size bytes: rd / ucx posix\", \"value\": $m,
 \"q1\": $q1, \"q3\": $q3, \"relation\": \"$relation\", \"limit\": 1.0, \"pass\": $pass}")
}

joined() {
	local IFS=,
	echo "$*"
}

# RD through shared memory beside UCX. Needs a loopback interface of its own.
same_host() {
	progress "same-host"
	if ! command -v ucx_perftest >/dev/null; then
		echo "# same host: ucx_perftest is not installed (Debian: ucx-utils)"
		return
	fi
	if [ "$(nproc)" -lt 2 ]; then
		echo "# same host: two processes that poll need two cores"
		return
	fi
	ip link set lo up 2>/dev/null
	echo "# two processes of one host: RD through shared memory, and ucx_perftest (tag matching)"
	echo "# in turn; medians, and the median [quartiles] of the ratios of neighbours"
	echo "#           #bytes             RD  UCX posix  UCX posix,cma   RD / UCX posix"
	same_host_row lat 8 200000
	[ $quick = yes ] || same_host_row lat 1024 100000
	same_host_row lat 8192 50000
	[ $quick = yes ] || same_host_row bw 8192 200000
	same_host_row bw 65536 20000
	same_host_row bw 1048576 2000
	echo
	printf '{"program": "bench.sh", "command": "same-host",\n"results": [%s],\n"targets": [%s]}\n' \
		"$(joined "${same_results[@]}")" "$(joined "${same_targets[@]}")" \
		>"$out/same-host.json"
	files+=("$out/same-host.json")
}

# MPI, with programs and labs of its own.
mpi_stacks() {
	local json options=(-o "$out")
	[ $quick = no ] || options+=(-q)
	has_mpi MPI || return
	rm -f "$out"/mpi-*.json
	WEFT_BUILD=$BUILD src/bench/bench_mpi.sh "${options[@]}" </dev/null &
	client_pid=$!
	wait "$client_pid" || failed=1
	client_pid=''
	for json in "$out"/mpi-*.json; do
		[ ! -s "$json" ] || files+=("$json")
	done
}

# What weft fabric costs, and what its simulator says.
fat_trees() {
	local options=(-o "$out")
	[ $quick = no ] || options+=(-q)
	echo "Fat trees: what weft fabric costs"
	echo
	WEFT_BUILD=$BUILD src/bench/bench_fabric.sh "${options[@]}" </dev/null || failed=1
}

# Whether MPI can be measured; says what is missing.
has_mpi() {
	[ -x "$BUILD/bin/weft-mpi-perf.openmpi" ] && command -v mpirun >/dev/null && return
	echo "# $1 is left out: Weft was built without Open MPI, or it is gone (Debian:"
	echo "# openmpi-bin libopenmpi-dev; then build again)"
	echo
	return 1
}

# compared SERIES TITLE: what src/bench/bench_SERIES.sh compares, in labs and on this host.
compared() {
	local options=(-o "$out") json
	[ $quick = no ] || options+=(-q)
	has_mpi "$2" || return
	rm -f "$out/$1"-*
	WEFT_BUILD=$BUILD "src/bench/bench_$1.sh" "${options[@]}" </dev/null &
	client_pid=$!
	wait "$client_pid" || failed=1
	client_pid=''
	for json in "$out/$1"-*.json; do
		[ ! -s "$json" ] || files+=("$json")
	done
}

# One document of all parts, made of whole documents.
combine() {
	local f comma=
	{
		echo "{"
		for f in "${files[@]}"; do
			printf '%s"%s":\n' "$comma" "$(basename "$f" .json)"
			cat "$f"
			comma=,
		done
		echo "}"
	} >"$out/bench.json"
}

# plot NAME TITLE YLABEL: NAME.svg from NAME.json.
plot() {
	command -v gnuplot >/dev/null && [ -s "$out/$1.json" ] || return 0
	"$PERF" plot "$out/$1.json" >"$out/$1.dat" || return 0
	gnuplot <<END || progress "gnuplot could not draw $1.svg"
set terminal svg size 900,600 noenhanced
set output "$out/$1.svg"
set title "$2"
set xlabel "message size [bytes]"
set ylabel "$3"
set logscale xy
set logscale x 2
set format x "%.0b%B"
set key outside right
set grid
stats "$out/$1.dat" using 1 nooutput
plot for [i=0:STATS_blocks-2] "$out/$1.dat" index i using 1:2 with linespoints title columnheader(1)
END
}

# The four cases of overlap, each with a line for every stack.
plot_overlap() {
	command -v gnuplot >/dev/null && [ -s "$out/mpi-overlap.json" ] || return 0
	"$PERF" plot "$out/mpi-overlap.json" >"$out/mpi-overlap.dat" || return 0
	(cd "$out" && gnuplot 2>/dev/null) <<'END' || progress "gnuplot could not draw mpi-overlap.svg"
set terminal svg size 1000,700 noenhanced
set output "mpi-overlap.svg"
set multiplot layout 2,2 title "Overlap of communication and computation, 1 Gbit/s"
set logscale x 2
set format x "%.0b%B"
set xrange [49152:11000000]
set yrange [-5:105]
set xlabel "message size [bytes]"
set ylabel "overlap [%]"
set key center right
set grid
line(stack, case) = sprintf("< awk '$0 == \"%s/%s\" { on = 1; next } !NF { on = 0 } on' mpi-overlap.dat; echo", stack, case)
do for [case in "receiver-early/receiver receiver-early/sender sender-early/receiver sender-early/sender"] {
	set title case
	plot for [stack in "tcp weft weft-off"] line(stack, case) using 1:2 with linespoints title stack
}
END
}

where() {
	if [ "$HOSTS_MODE" != namespaces ]; then
		echo "two processes over loopback (namespaces are not allowed here)"
	elif [ $hop = yes ]; then
		echo "two network namespaces with a router namespace between them, no shaping"
	else
		echo "two network namespaces joined by a veth pair, no shaping"
	fi
}

# The plan. UD messages may be longer than the MTU on this device: one UDP datagram. The
# parts "transports" are figures 6.3 to 6.5 of the thesis: UD, RD and RC at every size.
measure_all() {
	local every_size=1,2,4,8,16,32,64,128,256,512,1K,2K,4K,8K,16K,32K,64K,128K,256K,512K,1M
	local lat=tcp,udp,udp-conn bw=tcp,udp,tcp-block,udp-conn,udp-gso,memcpy
	if [ $raw = no ]; then
		lat=tcp,rc,udp,ud,rd,udp-conn,rc-write,rc-write-spin,rc-read,rc-read-passive
		lat+=,rd-write,rd-read,uc,uc-write
		bw=tcp,rc,udp,ud,rd,udp-gso,rc-write,rc-read,rd-write,rd-read,uc,tcp-block
		bw+=,udp-conn,memcpy
	fi
	perf_options+=(--ud-max 65483)
	if [ $quick = yes ]; then
		part latency-8 lat -k $lat -s 8 -r 10 -n 1000 --max-seconds 7
		part bandwidth bw -k $bw -s 8,60000,64K,1M -r 5 -t 30 --max-seconds 15
		if [ $raw = no ]; then
			part peers peers --max-peers 64
			part peers-rd peers -k rd --max-peers 64
			part idle idle -k rc,uc,ud,rd --seconds 3
		fi
	else
		part latency-8 lat -k $lat -s 8 -r 20 -n 5000 --max-seconds 50
		part latency lat -k $lat -s 2,64,512,4K,16K,60000,256K,1M -r 10 -n 300 \
			--max-seconds 60
		part bandwidth bw -k $bw -s 8,64,512,4K,16K,60000,64K,256K,1M -r 11 -t 80 \
			--max-seconds 120
		if [ $raw = no ]; then
			part transports-latency lat -k ud,rd,rc -s $every_size -r 5 -n 200 \
				--max-seconds 60
			part transports-bandwidth bw -k ud,rd,rc -s $every_size -r 5 -t 40 \
				--max-seconds 60
			part peers peers --max-peers 512
			part peers-rd peers -k rd --max-peers 1024
			part idle idle -k rc,rc-write,rc-read,uc,ud,rd,rd-write,rd-read --seconds 10
		fi
	fi
}

main() {
	# The namespaces stand for two machines: reliable datagrams take the network, too.
	export WEFT_RD_SHM=off
	run=()
	if [ $raw = no ]; then
		run=("$BUILD/bin/weft" verbs)
		[ -x "${run[0]}" ] || {
			progress "no ${run[0]}; build it first, or use --raw"
			exit 1
		}
	fi
	[ -x "$PERF" ] || {
		progress "no $PERF; build it first"
		exit 1
	}
	mkdir -p "$out" || exit 1
	hosts_up || exit 1
	if [ $hop = yes ]; then
		if [ "$HOSTS_MODE" != namespaces ] || ! router_up; then
			progress "the router namespace could not be made"
			exit 1
		fi
	fi
	if [ $device = yes ]; then
		echo "Raw sockets and the software RNIC side by side"
		echo "$(where); $(nproc) cores, Linux $(uname -r)"
		echo
		measure_all
		[ $raw = yes ] || same_host
	fi
	if [ $mpi = yes ]; then
		echo "MPI on Weft and on other stacks side by side"
		echo "labs, network namespaces with a switch between them; $(nproc) cores, Linux $(uname -r)"
		echo
		mpi_stacks
	fi
	[ $fabric = no ] || fat_trees
	if [ $stripe = yes ]; then
		echo "Striping policies side by side"
		echo "labs, trees of network namespaces; $(nproc) cores, Linux $(uname -r)"
		echo
		compared stripe striping
	fi
	if [ $reuse = yes ]; then
		echo "Short messages from buffers that are used again, with a copy and without"
		echo "labs and this host; $(nproc) cores, Linux $(uname -r)"
		echo
		compared reuse "buffer reuse"
	fi
	if [ $coll = yes ]; then
		echo "Collectives whose processes arrive at different times"
		echo "labs and this host; $(nproc) cores, Linux $(uname -r)"
		echo
		compared coll collectives
	fi
	if [ $device = no ] && [ $mpi = no ] && [ $stripe = no ] && [ $reuse = no ] && [ $coll = no ]; then
		[ $failed -eq 0 ]
		exit
	fi
	if [ ${#files[@]} -eq 0 ]; then
		progress "nothing was measured"
		exit 1
	fi
	combine
	plot latency "Latency, half a round trip" "microseconds"
	plot bandwidth "Bandwidth" "MB/s"
	plot transports-latency "UD, RD and RC: latency, half a round trip" "microseconds"
	plot transports-bandwidth "UD, RD and RC: bandwidth" "MB/s"
	plot mpi-wire-latency "MPI between two hosts: latency, half a round trip" "microseconds"
	plot mpi-wire-bandwidth "MPI between two hosts: bandwidth" "MB/s"
	plot_overlap
	"$PERF" report "${report_options[@]}" "${files[@]}"
	local result=$?
	echo
	echo "Results as JSON: $out"
	[ $failed -eq 0 ] || exit 1
	exit $result
}
main
