#!/bin/bash
# weft reproduce and weft bench, ended in the middle by every kind of signal: no process, namespace,
# lab, shared memory or temporary file is left, what was measured is, and --resume goes on.
#
# All of it happens in namespaces of the test's own, where there is nobody else: whatever is there
# afterwards, we have left.
if [ -z "${INSIDE-}" ]; then
	command -v jq >/dev/null || exit 77
	own=(unshare --mount --pid --net --ipc --fork --kill-child --mount-proc)
	[ "$(id -u)" -eq 0 ] || own+=(--map-root-user)
	"${own[@]}" true 2>/dev/null || exit 77
	INSIDE=yes exec "${own[@]}" "$0"
fi
mount -t tmpfs own /dev/shm && ip link set lo up || exit 77
. "$(dirname "$0")/../cli/lib.sh"
bench=$(dirname "$WEFT")/weft-mpi-perf.openmpi
mkdir "$tmp/tmp" "$tmp/labs" "$tmp/live"
export TMPDIR=$tmp/tmp WEFT_LAB_DIR=$tmp/labs WEFT_LIVE_DIR=$tmp/live

# What there is of ours, into a file: asked by this shell itself, since a shell that it starts to
# ask would be there, too. Namespaces live as long as a process or a mount has them.
traces() {
	ps -eo pid=,ppid=,stat=,args= >"$tmp/ps"
	{
		awk '$1 != 1 && $3 !~ /^Z/ && !($2 == 1 && $4 == "ps")' "$tmp/ps"
		grep -e ' - nsfs ' -e "$tmp" /proc/self/mountinfo
		find /dev/shm "$tmp/tmp" "$tmp/labs" "$tmp/live" -mindepth 1
		ip -o link show | grep -v ' lo:'
	} >"$tmp/traces"
	test -s "$tmp/traces"
}

# Ends process $pid by signal $1, in the middle of $2; $3 seconds are enough for all to be gone.
end() {
	local i code=0
	kill -"$1" "$pid" || fail "$2 had ended before SIG$1"
	for ((i = 0; i < $3 * 10; i++)); do
		kill -0 "$pid" 2>/dev/null || break
		sleep 0.1
	done
	check_true test "$i" -lt $(($3 * 10))
	kill -KILL "$pid" 2>/dev/null
	{ wait "$pid" || code=$?; } 2>/dev/null
	check_eq "$2 by SIG$1: $code" "$2 by SIG$1: $((128 + $(kill -l "$1")))"
	for ((; i < $3 * 10; i++)); do
		traces || break
		sleep 0.1
	done
	checks=$((checks + 1))
	! traces || fail "left by $2 after SIG$1:" "$(cat "$tmp/traces")"
}

# await SECONDS CONDITION...
await() {
	local n=$(($1 * 20))
	shift
	for ((; n > 0; n--)); do
		"$@" && return
		sleep 0.05
	done
	fail "waited in vain for: $*" "$(cat "$tmp/err")"
}
has_round() { jq -e '.rounds | length >= 1' "$1" >/dev/null 2>&1; }
has_sample() { jq -e '[.series[].samples | length] | max >= 1' "$1" >/dev/null 2>&1; }
runs() { pgrep -f -- "$1" >/dev/null; }

# reproduce SIGNAL FIGURE EXPERIMENT PROGRAM: killed in its second round, while PROGRAM runs. What
# comes behind it takes far longer than we wait, so that nobody is gone by having finished.
reproduce() {
	local to=$tmp/$3-$1 rounds
	"$WEFT" reproduce --quick "$2" fattree/fig2 thesis/fig4.16 --out "$to" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	await 60 has_round "$to/$3.json"
	await 20 runs "$4"
	end "$1" "$2" 20
	check_true has_round "$to/$3.json"
	check_eq "$(ls -A "$to/.work")" ''
	check_true test -z "$(find "$to" -name '*.part')"
	[ "$1" != KILL ] || return
	check_has "$(cat "$tmp/err")" 'the same with --resume goes on'
	check_true test -s "$to/report.html"
	# What was there before is there, and is not measured again.
	rounds=$(jq -c '.rounds[0]' "$to/$3.json")
	run timeout 100 "$WEFT" reproduce --quick --resume "$2" --out "$to"
	check_code 0
	check_eq "$(jq -c '.rounds[0]' "$to/$3.json")" "$rounds"
	traces
	check_eq "$(jq .complete "$to/$3.json")" true
	check_true test ! -s "$tmp/traces"
}
reproduce INT onetomany/fig2 onetomany-size weft-perf
reproduce KILL onetomany/fig2 onetomany-size weft-perf
reproduce TERM onetomany/fig6 onetomany-fan weft-verbs-perf
if [ -x "$bench" ]; then
	reproduce TERM thesis/fig3.3 thesis-mpi-latency weft-mpi-perf.openmpi
	reproduce KILL thesis/fig3.3 thesis-mpi-latency weft-mpi-perf.openmpi
	reproduce KILL thesis/fig3.12 thesis-buffers weft-mpi-perf.openmpi
fi

# At once, while the place is being made: a signal that comes just before somebody waits for it
# must not be waited for. catches: it takes SIGINT, SIGTERM and SIGHUP by now.
catches() {
	local key value
	while read -r key value; do
		[ "$key" != SigCgt: ] || [ $((0x$value & 0x4003)) -ne $((0x4003)) ] || return 0
	done <"/proc/$1/status"
	return 1
}
for i in {0..31}; do
	"$WEFT" reproduce --quick --quiet fattree/fig2 --out "$tmp/once" >"$tmp/out" 2>"$tmp/err" &
	pid=$!
	until catches $pid; do :; done
	sleep 0.00$((i % 8))
	end TERM "reproduce, just begun," 5
done

# weft bench: the device with peers of its own, and MPI.
for signal in INT TERM KILL; do
	rm -f "$tmp/b.json"
	"$WEFT" bench verbs pingpong -t rc-send,rd-read -n 8 -s 64K --passes 1000 -j "$tmp/b.json" \
		>"$tmp/out" 2>"$tmp/err" &
	pid=$!
	await 30 has_sample "$tmp/b.json"
	end $signal "bench verbs" 10
	check_true has_sample "$tmp/b.json"
	[ -x "$bench" ] || continue
	rm -f "$tmp/b.json"
	"$WEFT" bench mpi latency --compare weft,stock -r 50 -T 20 -j "$tmp/b.json" -- -i 100000 -m 8 \
		>"$tmp/out" 2>"$tmp/err" &
	pid=$!
	await 60 has_sample "$tmp/b.json"
	await 20 runs weft-mpi-perf.openmpi
	end $signal "bench mpi" 30
	check_true has_sample "$tmp/b.json"
done
finish
