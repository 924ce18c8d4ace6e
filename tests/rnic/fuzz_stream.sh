#!/bin/sh
# Fuzzes the device's stream with libFuzzer, as tests/fuzz/run.sh does the parsers.
#
#   fuzz_stream.sh [EXECUTIONS]     10000000 unless given
#   fuzz_stream.sh --build-only
#   fuzz_stream.sh --minimise       merges what was found into the corpus
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

mkdir -p "$out/findings" "$out/found/stream"
"$clang" -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined \
	-fno-sanitize-recover=all -I"$src/wire" -I"$src/util" -I"$src/rnic" -I"$src/rd" -I"$src/shm" \
	-I"$here/../../include" -I"$here/../fuzz" \
	-o "$out/fuzz_stream" "$here/fuzz_stream.c" \
	"$src"/rnic/*.c "$src"/rd/*.c "$src"/shm/*.c "$src"/wire/*.c "$src"/util/*.c -lpthread

case ${1:-10000000} in
--build-only) ;;
--minimise)
	rm -rf "$out/min/stream"
	mkdir -p "$out/min/stream"
	# the fewest inputs that reach everything
	"$out/fuzz_stream" -set_cover_merge=1 -use_counters=0 "$out/min/stream" "$here/corpus" \
		"$out/found/stream" >"$out/stream.log" 2>&1
	find "$here/corpus" -type f ! -name 'seed-*' -delete
	cp "$out"/min/stream/* "$here/corpus/"
	echo "stream: $(find "$here/corpus" -type f | wc -l) inputs"
	;;
*[!0-9]*)
	echo "usage: $0 [EXECUTIONS | --build-only | --minimise]" >&2
	exit 2
	;;
*)
	cd "$out"
	exec "$out/fuzz_stream" -runs="$((${1:-10000000} / jobs))" -jobs="$((jobs > 1 ? jobs : 0))" \
		-workers="$((jobs > 1 ? jobs : 0))" -max_len=600 -timeout=10 -print_final_stats=1 \
		-artifact_prefix="$out/findings/stream-" "$out/found/stream" "$here/corpus"
	;;
esac
