#!/bin/bash
# weft env and weft verbs --print-env: what is set, and that a shell reads it back.
set -u
. "$(dirname "$0")/lib.sh"
unset LD_PRELOAD LD_LIBRARY_PATH

# variable NAME: its value after eval of what was printed.
variable() {
	(
		unset LD_PRELOAD LD_LIBRARY_PATH WEFT_ADDR WEFT_NETDEV WEFT_LOG
		export() { command printf '%s\n' "$1"; }
		eval "$out" | sed -n "s/^$1=//p"
	)
}

run "$WEFT" env
check_code 0
check_eq "$err" ""
lib=$(variable LD_LIBRARY_PATH)
check_true test -f "$lib/libibverbs.so.1"
check_true test -f "$lib/libweft-probe.so"
check_eq "$(variable LD_PRELOAD)" "$lib/libibverbs.so.1:$lib/libweft-probe.so"
check_eq "$(variable WEFT_ADDR)" ""
# The hints are comments: eval must not see them.
check_has "$out" "#export UCX_NET_DEVICES='weft0:1'"
plain=$out

run "$WEFT" verbs --print-env
check_code 0
check_eq "$out" "$(grep -v '^#' <<<"$plain")"

# What the user has stays, behind ours; doing it twice changes nothing.
run env LD_PRELOAD="/a/b.so /c d.so" LD_LIBRARY_PATH="/x::/y z:" "$WEFT" env
check_eq "$(variable LD_PRELOAD)" "$lib/libibverbs.so.1:$lib/libweft-probe.so:/a/b.so:/c:d.so"
check_eq "$(variable LD_LIBRARY_PATH)" "$lib:/x::/y z:"
# (Under ASan, the preloaded libraries come before its run-time; here that is no harm.)
run env ASAN_OPTIONS=verify_asan_link_order=0 LD_LIBRARY_PATH="/x:$lib" \
	LD_PRELOAD="$lib/libweft-probe.so:/a/b.so:$lib/libibverbs.so.1" "$WEFT" env
check_eq "$(variable LD_PRELOAD)" "$lib/libibverbs.so.1:$lib/libweft-probe.so:/a/b.so"
check_eq "$(variable LD_LIBRARY_PATH)" "$lib:/x"

# Quoting: a value with every character that a shell might touch.
odd="/q'u\"o\$t\`e\\ (x)*&|;<>#!"
run env LD_LIBRARY_PATH="$odd" "$WEFT" env
check_eq "$(variable LD_LIBRARY_PATH)" "$lib:${odd%%;*}:${odd#*;}"

run "$WEFT" env --addr 127.0.0.1,127.0.0.2 -n lo -l debug --log info
check_code 0
check_eq "$(variable WEFT_ADDR)" 127.0.0.1,127.0.0.2
check_eq "$(variable WEFT_NETDEV)" lo
check_eq "$(variable WEFT_LOG)" info

finish
