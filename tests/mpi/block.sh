#!/bin/bash
# FI_WEFT_WAIT=block: who sleeps at once does not sleep when a message has just come, only because
# Open MPI asks whether there is another one.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
program=$BUILD/bin/weft-mpi-perf.openmpi
if [ ! -x "$program" ]; then
	echo "skipped: there is no Open MPI"
	exit 77
fi
run env FI_WEFT_WAIT=block FI_WEFT_SLEEP=100ms "$WEFT" run -n 2 "$program" latency -m 8 -i 30 -w 2 \
	-T 30 --json
check_code 0
check_true jq -e '[.. | .p50_us? // empty] | length > 0 and max < 50000' <<<"$out"
finish
