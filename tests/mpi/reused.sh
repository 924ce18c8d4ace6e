#!/bin/bash
# Where memory has to be registered, MPI_Send from a buffer that is used again and again does not copy
# it, if that is asked for; by itself only where it pays.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
program=$BUILD/bin/weft-mpi-perf.openmpi
needs_mpi "$program"

saved() { # REUSE: by both ranks
	run env FI_WEFT_LOCAL=pieces FI_WEFT_CACHE=on FI_WEFT_REUSE="$1" FI_WEFT_STATS=yes "$WEFT" run -n 2 \
		"$program" latency -m 4K -i 200 -w 20 -T 20
	check_code 0
	sum=$(sed -n 's/.*; \([0-9]*\) copies of .* saved$/\1/p' <<<"$err" | awk '{ n += $1 } END { print n + 0 }')
}

saved yes
check_true test "$sum" -ge 400
saved no
check_eq "$sum" 0
# What is short is injected, and so copied, anyway.
run env FI_WEFT_LOCAL=pieces "$WEFT" run -n 1 fi_info -p weft -v
check_has "$out" "inject_size: 1024"
run env FI_WEFT_LOCAL=pieces FI_WEFT_REUSE=no "$WEFT" run -n 1 fi_info -p weft -v
check_has "$out" "inject_size: 8192"
finish
