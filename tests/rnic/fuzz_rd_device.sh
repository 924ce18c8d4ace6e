#!/bin/sh
# Fuzzes the packets of an RD peer with libFuzzer, as tests/fuzz/run.sh does the parsers.
#
#   fuzz_rd_device.sh [EXECUTIONS]     10000000 unless given
#   fuzz_rd_device.sh --build-only
#   fuzz_rd_device.sh --minimise       merges what was found into the corpus
#
# CLANG names the compiler, FUZZ_OUT where the program, found inputs and the log go
# (build/fuzz unless set), JOBS how many run at once (1 unless set).
# Exits with 1 when anything was found; the input is then in FUZZ_OUT/findings.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
src=$here/../../src
out=${FUZZ_OUT:-$here/../../build/fuzz}
clang=${CLANG:-clang}
jobs=${JOBS:-1}

mkdir -p "$out/findings" "$out/found/rd_device"
"$clang" -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=all -I"$src/wire" -I"$src/util" -I"$src/rnic" -I"$src/rd" -I"$src/shm" \
	-I"$here/../../include" -I"$here/../fuzz" \
	-o "$out/fuzz_rd_device" "$here/fuzz_rd_device.c" \
	"$src"/rnic/*.c "$src"/rd/*.c "$src"/shm/*.c "$src"/wire/*.c "$src"/util/*.c -lpthread

case ${1:-10000000} in
--build-only) ;;
--minimise)
	rm -rf "$out/min/rd_device"
	mkdir -p "$out/min/rd_device"
	# the fewest inputs that reach everything
	"$out/fuzz_rd_device" -set_cover_merge=1 -use_counters=0 "$out/min/rd_device" "$here/corpus_rd" \
		"$out/found/rd_device" >"$out/rd_device.log" 2>&1
	find "$here/corpus_rd" -type f ! -name 'seed-*' -delete
	cp "$out"/min/rd_device/* "$here/corpus_rd/"
	echo "rd_device: $(find "$here/corpus_rd" -type f | wc -l) inputs"
	;;
*[!0-9]*)
	echo "usage: $0 [EXECUTIONS | --build-only | --minimise]" >&2
	exit 2
	;;
*)
	cd "$out"
	exec "$out/fuzz_rd_device" -runs="$((${1:-10000000} / jobs))" -jobs="$((jobs > 1 ? jobs : 0))" \
		-workers="$((jobs > 1 ? jobs : 0))" -max_len=400 -timeout=10 -print_final_stats=1 \
		-artifact_prefix="$out/findings/rd_device-" "$out/found/rd_device" "$here/corpus_rd"
	;;
esac
