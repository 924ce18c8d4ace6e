#!/bin/bash
# FI_WEFT_STATS: what endpoints tell of themselves, at the end and when a signal asks.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
dir=$BUILD/tests/mpi/openmpi
needs_mpi "$dir/mpi_p2p"

run env FI_WEFT_STATS=yes "$WEFT" run -n 2 "$dir/mpi_p2p"
check_code 0
check_eq "$(grep -c '^weft\[[0-9]*\]: sent ' <<<"$err")" 2
# Short and long messages, both sides early: all protocols have had work.
for what in "sent 0 eager" " 0 read" " 0 put" "hit 0," "packets 0,"; do
	check_lacks "$err" "$what"
done

check_lacks "$err" "of them frequent" # nothing has to be registered
check_lacks "$err" "copied when" # on one host that would gain nothing

# Where it has to be, buffers are counted, and copies saved.
run env FI_WEFT_STATS=yes FI_WEFT_LOCAL=pieces FI_WEFT_CACHE=on FI_WEFT_REUSE=yes \
	"$WEFT" run -n 2 "$dir/mpi_p2p"
check_code 0
check_eq "$(grep -c '^weft\[[0-9]*\]: [1-9][0-9]* buffers, [1-9][0-9]* of them frequent, in a table of [1-9][0-9]* bytes, which grows ' <<<"$err")" 2
check_eq "$(grep -c '; [1-9][0-9]* copies of [1-9][0-9]* bytes saved$' <<<"$err")" 2

run "$WEFT" run -n 2 "$dir/mpi_p2p"
check_lacks "$err" "weft["

FI_WEFT_STATS=usr1 "$WEFT" run -n 2 "$dir/mpi_random" -t 4 >"$tmp/out" 2>"$tmp/err" &
job=$!
sleep 2
rank=$(pgrep -P $job -x mpi_random | head -1)
check_true kill -USR1 "$rank"
sleep 1
check_eq "$(grep -c "^weft\[$rank\]: sent " "$tmp/err")" 1
wait $job
check_eq "$?" 0
check_eq "$(grep -c "^weft\[$rank\]: sent " "$tmp/err")" 2
check_eq "$(grep -c '^weft\[[0-9]*\]: sent ' "$tmp/err")" 3
finish
