# Labs and runs of bench_stripe.sh. To be sourced by it, behind bench_lab.sh.
# shellcheck shell=bash

# ---- labs ----

# lab_up KEY TUPLE ROUTING: the lab ${labs[KEY]}.
lab_up() { lab_make "$1" --pgft "$2" --rate "$RATE" --mtu "$MTU" --routing "$3"; }

# What a cable carries one way, in MB/s: the physical limit of whatever one host sends.
link_MBps() {
	awk -v r="$RATE" 'BEGIN { n = r + 0; sub(/^[0-9.]*/, "", r)
		f["kbit"] = 1e3; f["mbit"] = 1e6; f["gbit"] = 1e9; print n * f[r] / 8e6 }'
}

# ---- running ----

exports=() # variables of one run

# command_of POLICY LAB RANKS ORDER PROGRAM...: in $cmd.
command_of() {
	cmd=(env "${exports[@]}" FI_WEFT_STRIPING="$1" FI_WEFT_STATS=yes "$WEFT" run --lab "${labs[$2]}" -n "$3"
		--order "$4" "${@:5}")
}

# run POLICY LAB RANKS ORDER PROGRAM...: its output in $tmp/out. What can not be measured is said,
# and is missing from the table.
run() {
	command_of "$@"
	say "${key:+$key, }$1${round:+, round $round}"
	bounded "${cmd[@]}" >"$tmp/out" 2>"$tmp/err" || {
		say "$key: $1: failed ($?): $(grep -v '^weft\[\|^-*$' "$tmp/err" | head -n 5)"
		failed=1
		return 1
	}
	grep -q '^ {' "$tmp/out" && return
	say "$key: $1: the time was over before there was a result"
	failed=1
	return 1
}
