#!/bin/bash
# The benchmark: raw sockets and the software RNIC side by side, between two network
# namespaces on this machine, with the targets as PASS or MISS. Everything that it starts
# it also ends; every part has a time limit.
#
#   scripts/bench.sh [--quick] [--hop] [--raw] [--no-pin] [--strict] [--out DIR]
set -uo pipefail
top=$(cd "$(dirname "$0")/.." && pwd) || exit 1

usage() {
	cat <<'END'
Usage: scripts/bench.sh [OPTION]...

Measures latency, bandwidth, memory and sockets per connection or peer, and the cost of being
idle; prints tables and leaves JSON (and SVG, where gnuplot is installed) in build/bench.

  --quick     half a minute instead of some minutes
  --hop       a router namespace between the two hosts
  --raw       sockets only, without the software RNIC
  --no-pin    let the scheduler place the processes
  --strict    exit with 3 when a target is missed
  --out DIR   another directory for the results
END
}

quick=no hop=no raw=no out=$top/build/bench
perf_options=() report_options=() args=()
for ((i = 1; i <= $#; i++)); do
	case ${!i} in
	--quick) quick=yes ;;
	--hop) hop=yes ;;
	--raw) raw=yes ;;
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

# rd_local TEST SIZE: RD between two processes of one host, through shared memory: the median of
# half a round trip in microseconds, or of a stream in MB/s.
rd_local() {
	local column=6
	[ "$1" = lat ] || column=5
	port=$((port + 1))
	WEFT_ADDR=127.0.0.1 WEFT_RD_SHM=on "${run[@]}" "$PERF" server -p "$port" \
		"${perf_options[@]}" </dev/null >/dev/null 2>&1 &
	server_pid=$!
	for ((i = 0; i < 100; i++)); do
		ss -ltn "sport = :$port" | grep -q LISTEN && break
		sleep 0.02
	done
	WEFT_ADDR=127.0.0.1 WEFT_RD_SHM=on timeout 30 "${run[@]}" "$PERF" "$1" -k rd -s "$2" -r 5 \
		-p "$port" "${perf_options[@]}" 127.0.0.1 </dev/null 2>/dev/null |
		awk -v c=$column '$1 == "rd" { print $c }'
	kill "$server_pid" 2>/dev/null
	wait "$server_pid" 2>/dev/null
	server_pid=''
}

# ucx_local TRANSPORTS TEST SIZE COUNT: the same of ucx_perftest's tag matching, as it reports it
# over all.
ucx_local() {
	local column=4 cpus
	[ "$2" = tag_lat ] || column=6
	cpus=$(nproc)
	port=$((port + 1))
	UCX_TLS=$1 taskset -c $((cpus > 1 ? 1 : 0)) timeout 30 ucx_perftest -p "$port" \
		</dev/null >/dev/null 2>&1 &
	server_pid=$!
	for ((i = 0; i < 100; i++)); do
		ss -ltn "sport = :$port" | grep -q LISTEN && break
		sleep 0.02
	done
	UCX_TLS=$1 timeout 30 taskset -c 0 ucx_perftest 127.0.0.1 -p "$port" -t "$2" -s "$3" \
		-n "$4" -f </dev/null 2>/dev/null | awk -v c=$column 'NF >= 8 { v = $c } END { print v }'
	kill "$server_pid" 2>/dev/null
	wait "$server_pid" 2>/dev/null
	server_pid=''
}

# same_host_row WHAT TEST SIZE UCX_TEST COUNT: in turn, three times; medians.
same_host_row() {
	local what=$1 test=$2 size=$3 ucx_test=$4 count=$5 round
	local rd=() posix=() cma=()
	for ((round = 0; round < 3; round++)); do
		rd+=("$(rd_local "$test" "$size")")
		posix+=("$(ucx_local posix,self "$ucx_test" "$size" "$count")")
		cma+=("$(ucx_local posix,cma,self "$ucx_test" "$size" "$count")")
	done
	median() { printf '%s\n' "$@" | sort -n | sed -n 2p; }
	printf '%-22s %10s %12s %16s\n' "$what" "$(median "${rd[@]}")" \
		"$(median "${posix[@]}")" "$(median "${cma[@]}")"
}

# RD through shared memory beside UCX. Needs a loopback interface of its own.
same_host() {
	progress "same host"
	if ! command -v ucx_perftest >/dev/null; then
		echo "# same host: ucx_perftest is not installed (Debian: ucx-utils)"
		return
	fi
	ip link set lo up 2>/dev/null
	echo
	echo "# two processes of one host: RD through shared memory, and ucx_perftest (tag matching)"
	echo "#                              RD    UCX posix    UCX posix,cma"
	same_host_row "8 bytes [usec]" lat 8 tag_lat 200000
	[ $quick = yes ] || same_host_row "1 KB [usec]" lat 1024 tag_lat 100000
	same_host_row "8 KB [usec]" lat 8192 tag_lat 50000
	[ $quick = yes ] || same_host_row "8 KB [MB/s]" bw 8192 tag_bw 200000
	same_host_row "64 KB [MB/s]" bw 65536 tag_bw 20000
	same_host_row "1 MB [MB/s]" bw 1048576 tag_bw 2000
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
	echo "Raw sockets and the software RNIC side by side"
	echo "$(where); $(nproc) cores, Linux $(uname -r)"
	echo
	measure_all
	[ $raw = yes ] || same_host
	combine
	plot latency "Latency, half a round trip" "microseconds"
	plot bandwidth "Bandwidth" "MB/s"
	plot transports-latency "UD, RD and RC: latency, half a round trip" "microseconds"
	plot transports-bandwidth "UD, RD and RC: bandwidth" "MB/s"
	"$PERF" report "${report_options[@]}" "${files[@]}"
	local result=$?
	echo
	echo "Results as JSON: $out"
	[ $failed -eq 0 ] || exit 1
	exit $result
}
main
