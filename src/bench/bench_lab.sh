# Labs of benchmarks, several at a time. To be sourced, behind bench_lib.sh, which takes them down; wants
# WEFT, `tmp`, and `lab_prefix`, what names of labs begin with.
# shellcheck shell=bash

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

# hosts NAME HOST...: a file for --order.
hosts() {
	printf '%s\n' "${@:2}" >"$tmp/$1"
	echo "file:$tmp/$1"
}
