# What the benchmarks of this directory share. To be sourced; wants `bench`, the script's name.
# shellcheck shell=bash

run_pid=''
limit=120 # seconds for one run, with all that comes before and after it
quick=no

say() { echo "$bench: $*" >&2; }

# pick FULL QUICK
pick() { if [ $quick = yes ]; then echo "$2"; else echo "$1"; fi; }

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
