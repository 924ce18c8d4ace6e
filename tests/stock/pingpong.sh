#!/bin/bash
# The pingpongs of ibverbs-utils: pingpong.sh rc|uc|ud|srq|xsrq
# shellcheck source=tests/stock/lib.sh
. "$(dirname "$0")/lib.sh"
needs ibverbs-utils:ibv_rc_pingpong

# Sizes: one byte, more than an MTU, many segments and not a multiple of four.
rc() {
	pingpong ibv_rc_pingpong -c
	pingpong ibv_rc_pingpong -c -e -s 65537
	pingpong ibv_rc_pingpong -N -g 0
	if full; then
		pingpong ibv_rc_pingpong
		pingpong ibv_rc_pingpong -e
		pingpong ibv_rc_pingpong -t
		events_and_stamps
		pingpong ibv_rc_pingpong -c -s 1
		pingpong ibv_rc_pingpong -c -s 1000003 -n 50
		pingpong ibv_rc_pingpong -c -r 1 -n 200
		pingpong ibv_rc_pingpong -c -m 4096 -l 3
		# Two addresses: each GID is one of them.
		weft=("$WEFT" verbs --addr "127.0.0.1,127.0.0.2")
		pingpong ibv_rc_pingpong -c -g 1
		weft=("$WEFT" verbs --addr 127.0.0.1)
		refused "on demand paging" ibv_rc_pingpong -o
		refused "device memory" ibv_rc_pingpong -j
	fi
}

# With both -t and -e the pingpong takes an event that finds no completion for an error,
# although a completion may always come between its arming and its polling, and be taken
# by that poll. One good run of three shows that the device does not make it the rule.
events_and_stamps() {
	local command=(ibv_rc_pingpong -t -e -N -c)
	begin
	for _ in 1 2 3; do
		both "${weft[@]}" "${command[@]}" -d weft0 -p PORT -- \
			"${weft[@]}" "${command[@]}" -d weft0 -p PORT HOST
		[ "$client_code" -ne 0 ] || [ "$server_code" -ne 0 ] || break
	done
	verdict pingpong_result "${command[@]}"
}

uc() {
	pingpong ibv_uc_pingpong -c
	pingpong ibv_uc_pingpong -c -e -s 65537
	if full; then
		pingpong ibv_uc_pingpong -g 0
		pingpong ibv_uc_pingpong -c -s 1
		pingpong ibv_uc_pingpong -c -s 1000003 -n 50
	fi
}

ud() {
	pingpong ibv_ud_pingpong -c
	pingpong ibv_ud_pingpong -c -e -s 4096
	if full; then
		pingpong ibv_ud_pingpong -g 0
		pingpong ibv_ud_pingpong -c -s 1
		refused "larger than the MTU" ibv_ud_pingpong -s 5000
	fi
}

srq() {
	pingpong ibv_srq_pingpong -c
	pingpong ibv_srq_pingpong -c -e
	if full; then
		pingpong ibv_srq_pingpong -g 0 -q 1
		pingpong ibv_srq_pingpong -c -q 64 -n 100
		pingpong ibv_srq_pingpong -c -s 100001 -n 100
		pingpong ibv_srq_pingpong -r 20 -q 8
	fi
}

# XRC is not offered: a sentence and an exit code, before it waits for anybody.
xsrq() {
	runs "${weft[@]}" ibv_xsrq_pingpong -d weft0
	expect "ibv_xsrq_pingpong is refused" 1 "Couldn't Open the XRC Domain 95"
}

# refused WHAT PROGRAM...: ends by itself, with an error and no signal.
refused() {
	local what=$1
	shift
	runs "${weft[@]}" "$@" -d weft0
	expect "$* is refused ($what)" 1 .
}

cases() { "$1"; }
stock_main "$@"
