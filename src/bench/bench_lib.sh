# What the benchmarks of this directory share. To be sourced; wants `bench`, the script's name.
# shellcheck shell=bash

tmp=''
run_pid=''         # of what runs bounded
pids=()            # of others, in the background
declare -A labs=() # names of those that are up, ...
lab=''             # ... and of one more, where one is enough
limit=120 # seconds for one run, with all that comes before and after it
quick=no

say() { echo "$bench: $*" >&2; }

# pick FULL QUICK
pick() { if [ $quick = yes ]; then echo "$2"; else echo "$1"; fi; }

# field NAME [FILE]: the values of that name in a document of JSON, one for each line that has it.
field() { sed -n "s/.*\"$1\": \([0-9.e+-]*\).*/\1/p" "${2:-$tmp/out}"; }

# ---- running ----

# stop: ends what runs in the background.
stop() {
	local pid
	for pid in "${pids[@]}" $run_pid; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	pids=() run_pid=''
}

labs_down() {
	[ -z "$lab" ] || labs[$lab]=$lab
	[ ${#labs[@]} -eq 0 ] || "$WEFT" lab down "${labs[@]}" >/dev/null
	labs=() lab=''
}

cleanup() {
	trap - EXIT INT TERM
	stop
	labs_down
	rm -rf "$tmp"
}

# make_tmp: $tmp, which goes when the script ends, however it does, and with it all else that is ours.
make_tmp() {
	tmp=$(mktemp -d) || exit 1
	trap cleanup EXIT
	trap 'cleanup; exit 130' INT
	trap 'cleanup; exit 143' TERM
}

# In the background, so that a signal to the script is not kept waiting.
bounded() {
	local result
	timeout -k 5 "$limit" "$@" </dev/null &
	run_pid=$!
	wait "$run_pid"
	result=$?
	run_pid=''
	return "$result"
}

# Whether others want the cores now, when nothing of ours runs: ten looks at who is runnable, each
# of which sees the script.
is_busy() {
	local n=0 runnable i
	for ((i = 0; i < 10; i++)); do
		read -r _ _ _ runnable _ </proc/loadavg
		n=$((n + ${runnable%/*}))
		sleep 0.05
	done
	[ $n -gt 15 ]
}

# stolen: what the host of a virtual machine has given to others of the time that its cores wanted to work,
# and that time, since the machine was started; stolen SINCE: percent since then, of what was printed then.
stolen() {
	awk -v since="${1:-}" '$1 == "cpu" {
		work = $2 + $3 + $4 + $7 + $8 + $9
		if (since == "")
			print $9, work
		else if (split(since, s, " ") == 2 && work > s[2])
			printf "%d\n", 100 * ($9 - s[1]) / (work - s[2])
	}' /proc/stat
}

# plot NAME TITLE YLABEL MORE: NAME.svg in $out, where gnuplot is installed.
plot() {
	command -v gnuplot >/dev/null || return 0
	gnuplot <<END || say "gnuplot could not draw $1.svg"
set terminal svg size 900,600 noenhanced
set output "$out/$1.svg"
set title "$2"
set ylabel "$3"
set grid
set key left top
$4
END
}
