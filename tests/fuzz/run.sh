#!/bin/sh
# Fuzzes every parser of src/wire, src/fabric and src/msg, and results of weft bench, with libFuzzer.
#
#   run.sh [EXECUTIONS]      per target, 10000000 unless given
#   run.sh --build-only
#   run.sh --minimise        merges what was found into the corpus of this folder
#
# CLANG names the compiler, FUZZ_OUT where programs, found inputs and logs go
# (build/fuzz unless set), FUZZ_TARGETS the targets (all unless set).
# Exits with 1 when anything was found; the input is then in FUZZ_OUT/findings.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
src=$here/../../src
out=${FUZZ_OUT:-$here/../../build/fuzz}
clang=${CLANG:-clang}
targets=${FUZZ_TARGETS:-mpa fpdu mark seg term hello dgram rd pgft msg live lft net job result}

case ${1:-10000000} in
--build-only | --minimise) mode=${1#--} runs=0 ;;
*[!0-9]*)
	echo "usage: $0 [EXECUTIONS | --build-only | --minimise]" >&2
	exit 2
	;;
*) mode=run runs=${1:-10000000} ;;
esac

# Longest input that is worth trying.
max_len() {
	case $1 in
	mpa) echo 600 ;;
	fpdu) echo 1024 ;;
	mark) echo 2048 ;;
	seg) echo 128 ;;
	term) echo 64 ;;
	hello) echo 40 ;;
	dgram) echo 256 ;;
	rd) echo 1100 ;;
	pgft) echo 256 ;;
	msg) echo 300 ;;
	live) echo 1700 ;;
	lft) echo 2048 ;;
	net) echo 2048 ;;
	job) echo 512 ;;
	result) echo 4096 ;;
	*)
		echo "no such target: $1" >&2
		exit 2
		;;
	esac
}

# What a target is linked with: the folder of its parser, and what that one uses.
build() {
	case $1 in
	# Without the page, which CMake makes a part of.
	pgft | lft | net | job) set -- "$1" "$src"/fabric/fabric_[!p]*.c "$src/fabric/fabric_pgft.c" \
		"$src/util/util_rand.c" "$src/util/util_number.c" -lm ;;
	msg) set -- "$1" "$src"/msg/msg_wire.c ;;
	result) set -- "$1" -D_GNU_SOURCE -I"$src/bench" "$src"/bench/bench_result.c "$src"/bench/bench_result_file.c \
		"$src"/bench/bench_sample.c -ljansson -lm ;;
	live) set -- "$1" "$src"/msg/msg_live.c "$src/util/util_dir.c" -lm ;;
	*) set -- "$1" "$src"/wire/*.c ;;
	esac
	target=$1
	shift
	"$clang" -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=all -I"$src/wire" -I"$src/fabric" -I"$src/util" \
		-I"$src/msg" -I"$src/stripe" \
		-o "$out/fuzz_$target" "$here/fuzz_$target.c" "$@"
}

# The summary's numbers come from libFuzzer's own log.
run() {
	mkdir -p "$out/found/$1"
	begin=$(date +%s)
	if "$out/fuzz_$1" -runs="$runs" -max_len="$(max_len "$1")" -timeout=10 \
		-print_final_stats=1 -use_value_profile=1 \
		-artifact_prefix="$out/findings/$1-" \
		"$out/found/$1" "$here/corpus/$1" >"$out/$1.log" 2>&1; then
		result=clean
	else
		result=FOUND
		failed=1
		tail -40 "$out/$1.log"
	fi
	printf '%-6s %s: %s executions, %s s, coverage %s, %s inputs found\n' "$1" "$result" \
		"$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/$1.log")" \
		"$(($(date +%s) - begin))" \
		"$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$out/$1.log" | tail -1)" \
		"$(find "$out/found/$1" -type f | wc -l)"
}

# The seeds stay; of what else adds coverage the smallest, up to 60 in all.
minimise() {
	mkdir -p "$out/found/$1" "$out/min"
	rm -rf "$out/min/$1"
	mkdir "$out/min/$1"
	"$out/fuzz_$1" -set_cover_merge=1 "$out/min/$1" "$here/corpus/$1" "$out/found/$1" \
		>"$out/$1.log" 2>&1
	find "$here/corpus/$1" -type f ! -name 'seed-*' -delete
	find "$out/min/$1" -type f -size -4k -printf '%s %p\n' | sort -n | cut -d' ' -f2- |
		while read -r f; do
			[ "$(find "$here/corpus/$1" -type f | wc -l)" -lt 60 ] || break
			find "$here/corpus/$1" -name 'seed-*' -exec cmp -s "$f" {} \; -print |
				grep -q . || cp "$f" "$here/corpus/$1/"
		done
	echo "$1: $(find "$here/corpus/$1" -type f | wc -l) inputs"
}

mkdir -p "$out/findings"
failed=0
for t in $targets; do
	max_len "$t" >/dev/null
	echo "building $t"
	build "$t"
done
[ "$mode" = build-only ] && exit 0
for t in $targets; do
	if [ "$mode" = minimise ]; then
		minimise "$t"
	else
		echo "running $t, $runs executions, log in $out/$t.log"
		run "$t"
	fi
done
exit $failed
