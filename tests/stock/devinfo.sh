#!/bin/bash
# What programs see of the device, and of the machine when it is switched off.
# shellcheck source=tests/stock/lib.sh
. "$(dirname "$0")/lib.sh"
needs ibverbs-utils:ibv_devinfo

cases() {
	local gid=::ffff:$HOST_A without

	runs "${weft[@]}" ibv_devices
	expect ibv_devices 0 '^\s+weft0\s+[0-9a-f]{16}$'
	runs "${weft[@]}" ibv_devinfo -l
	expect "ibv_devinfo -l" 0 '^\s+weft0$'
	runs "${weft[@]}" ibv_devinfo -d weft0 -i 1
	expect ibv_devinfo 0 'hca_id:\s+weft0' 'state:\s+PORT_ACTIVE' 'link_layer:\s+Ethernet' \
		'phys_port_cnt:\s+1$'
	runs "${weft[@]}" ibv_devinfo -v
	expect "ibv_devinfo -v" 0 'hca_id:\s+weft0' 'max_qp_wr:\s+[1-9]' 'atomic_cap:\s+ATOMIC_' \
		'gid_tbl_len:\s+1$' "GID\[ +0\]:\s+$gid, RoCE v2"
	runs "${weft[@]}" ibv_devinfo -d mlx5_0
	expect "ibv_devinfo of an absent device" 255 "IB device 'mlx5_0' wasn't found"

	# It waits for events until it is told to end.
	LIMIT=1 runs "${weft[@]}" ibv_asyncwatch
	expect ibv_asyncwatch 124 'weft0: async event FD [0-9]+'

	if full; then
		# Switched off, programs find what they find without Weft: real hardware, or
		# (on most machines) none.
		runs ibv_devices
		without=$code:$out
		WEFT_DEVICE=off runs "${weft[@]}" ibv_devices
		if [ "$code:$out" = "$without" ]; then
			ok "ibv_devices, switched off"
		else
			bad "not what it says without Weft, '$without'" "ibv_devices, switched off"
		fi
		# And a pair that can not run is seen not to run: the check of all the others.
		WEFT_DEVICE=off both "${weft[@]}" ibv_rc_pingpong -d weft0 -p PORT -- \
			"${weft[@]}" ibv_rc_pingpong -d weft0 -p PORT HOST
		if [ "$client_code" -eq 0 ] || [ "$server_code" -eq 0 ] || pingpong_result; then
			bad "it ran without a device" ibv_rc_pingpong
		else
			ok "ibv_rc_pingpong fails, switched off"
		fi
	fi
}
stock_main "$@"
