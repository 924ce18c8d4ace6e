# Labs of benchmarks, and what runs in the background. To be sourced, behind bench_lib.sh; wants WEFT,
# `tmp`, and `lab_prefix`, what names of labs begin with.
# shellcheck shell=bash

declare -A labs=()

# lab_make KEY OPTIONS: the lab ${labs[KEY]}.
lab_make() {
	local name=$lab_prefix$$-${#labs[@]}
	if ! "$WEFT" lab up "$name" "${@:2}" >/dev/null; then
		say "without a lab there is no measurement between hosts"
		failed=1
		return 1
	fi
	labs[$1]=$name
}

labs_down() {
	[ ${#labs[@]} -eq 0 ] || "$WEFT" lab down "${labs[@]}" >/dev/null
	labs=()
}

# hosts NAME HOST...: a file for --order.
hosts() {
	printf '%s\n' "${@:2}" >"$tmp/$1"
	echo "file:$tmp/$1"
}

pids=()

# stop: ends what runs in the background.
stop() {
	local pid
	for pid in "${pids[@]}" $run_pid; do
		kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null
	done
	pids=() run_pid=''
}
