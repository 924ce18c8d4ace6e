#!/bin/bash
# ucx_perftest: ucx.sh rc|ud
#
# Two layers: UCT drives one transport directly, UCP (what MPIs use) chooses among those
# that are allowed, and says which it took. Nothing else is allowed here: rc_v stands for
# rc_verbs with ud_verbs to set up connections, ud_v for ud_verbs alone.
# shellcheck source=tests/stock/lib.sh
. "$(dirname "$0")/lib.sh"
needs ucx-utils:ucx_perftest

# UCX prints "Final: ITERATIONS ..." and then latency, bandwidth and rate; with several
# threads some columns are empty.
ucx_result() {
	awk '$1 == "Final:" { good = $2 > 0 && $NF > 0 } END { exit !good }' "$tmp/client"
}

ucp_result() {
	ucx_result && grep -q "ep_cfg.*(${transport}_verbs/weft0:1" "$tmp/client" &&
		! grep -qE 'ep_cfg.*(tcp|posix|sysv|cma)/' "$tmp/client"
}

ucx_pair() {
	both "${ucx_env[@]}" "${weft[@]}" ucx_perftest -p PORT -- \
		"${ucx_env[@]}" "${weft[@]}" ucx_perftest HOST -p PORT -w 10 "$@"
}

# uct TEST OPTIONS
uct() {
	begin
	ucx_env=(env UCX_WARN_UNUSED_ENV_VARS=n)
	ucx_pair -x "${transport}_verbs" -d weft0:1 -t "$@"
	verdict ucx_result "UCT ${transport}_verbs -t $*"
}

# ucp TEST OPTIONS
ucp() {
	begin
	ucx_env=(env UCX_TLS="${transport}_v" UCX_NET_DEVICES=weft0:1 UCX_LOG_LEVEL=info)
	ucx_pair -t "$@"
	verdict ucp_result "UCP ${transport}_v -t $*"
}

messages() {
	ucp tag_lat -n 500
	ucp tag_bw -s 100003 -n 100
	ucp ucp_am_bw -s 100003 -n 100
	if full; then
		ucp tag_bw -s 1000003 -n 20
		ucp tag_lat -U -n 500
		ucp tag_lat -e -n 500
		ucp tag_lat -D iov,iov -s 16,48,8192 -n 200
		ucp tag_lat -E sleep -n 200
		ucp tag_sync_lat -n 500
		ucp tag_bw -M multi -T 2 -n 500
		ucp stream_lat -n 500
		ucp stream_bw -s 10003 -n 200
		ucp ucp_am_lat -n 500
		uct am_lat -n 500
		uct am_lat -D bcopy -s 2001 -n 500
		uct am_lat -D zcopy -s 4001 -n 500
		uct am_bw -D zcopy -s 4001 -n 500
	fi
}

one_sided() {
	ucp ucp_put_lat -n 500
	ucp ucp_put_bw -s 100003 -n 100
	ucp ucp_get -s 100003 -n 50
	ucp ucp_fadd -n 100
	if full; then
		ucp ucp_get -n 100
		ucp ucp_add -n 500
		ucp ucp_swap -n 100
		ucp ucp_cswap -n 100
	fi
}

# What UCX takes from the device itself; UD has only messages.
rdma() {
	uct put_lat -n 500
	uct fadd -n 500
	if full; then
		uct put_bw -D bcopy -s 1001 -n 500
		uct put_bw -D zcopy -s 100003 -n 500
		uct get -D bcopy -s 1001 -n 500
		uct get -D zcopy -s 100003 -n 500
		uct add_lat -n 500
		uct add_mr -n 500
		uct cswap -n 500
	fi
}

# Without the device there is no other way: what ran above ran on it.
control() {
	begin
	ucx_env=(env WEFT_DEVICE=off UCX_TLS="${transport}_v" UCX_NET_DEVICES=weft0:1)
	ucx_pair -t tag_lat -n 500
	if [ "$client_code" -eq 0 ] || ucx_result; then
		bad "it ran without a device" "UCP ${transport}_v"
	else
		ok "UCP ${transport}_v fails without the device"
	fi
}

cases() {
	transport=$1
	messages
	one_sided
	if [ "$transport" = rc ]; then
		rdma
	fi
	if full; then
		control
	fi
}
stock_main "$@"
