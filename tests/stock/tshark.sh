#!/bin/bash
# The wire format, judged by Wireshark: it decodes MPA, DDP and RDMAP and checks CRCs by
# itself. A capture holds every operation of an RC queue pair, small and in many segments.
# Whatever tshark calls malformed, whatever CRC it finds wrong and whatever byte it can not
# decode fails the test; and damage that is done to a capture must be found, or the check
# would be worth nothing.
# shellcheck source=tests/stock/lib.sh
. "$(dirname "$0")/lib.sh"
needs tshark:tshark wireshark-common:dumpcap ibverbs-utils:ibv_rc_pingpong perftest:ib_read_bw
STOCK_PLACES=hosts # captures are taken in namespaces of our own

# RDMAP operations as tshark prints them, with those of RFC 7306, and Weft's own.
WRITE=0x00 READ_REQUEST=0x01 READ_RESPONSE=0x02 SEND=0x03 SEND_SOLICITED=0x05 TERMINATE=0x07
IMMEDIATE=0x08 IMMEDIATE_SOLICITED=0x09 ATOMIC_REQUEST=0x0a ATOMIC_RESPONSE=0x0b
SEND_IMM=0x0c SEND_IMM_SOLICITED=0x0d CONTROL=0x0e

# ---- capturing ----

# until_seen FILE HOST TEXT: until a packet with this text, which we send, is in the file.
until_seen() {
	local file=$1 host=$2 text=$3 i
	for ((i = 0; i < 400; i++)); do
		echo "$text" >"/dev/udp/$host/9" || true
		sleep 0.02
		! grep -qa "$text" "$file" 2>/dev/null || return 0
	done
	die "the capture of $file does not work: $(cat "$tmp/dumpcap")"
}

# capture FILE INTERFACE HOST COMMAND...: what goes by while the command runs, except for
# the connections by which stock programs find each other (see free_port).
capture() {
	local file=$1 interface=$2 host=$3 status=0
	shift 3
	rm -f "$file" # an older one holds the words that we wait for
	dumpcap -q -P -B 64 -i "$interface" -f "not portrange 30000-32767" -w "$file" \
		>"$tmp/dumpcap" 2>&1 </dev/null &
	dumpcap=$!
	others=("$dumpcap")
	until_seen "$file" "$host" begin-of-capture
	"$@" || status=$?
	until_seen "$file" "$host" end-of-capture
	kill -INT "$dumpcap"
	wait "$dumpcap" || die "dumpcap: $(cat "$tmp/dumpcap")"
	others=()
	# "Packets received/dropped on interface 'lo': 12/0 (...)"
	grep -q '/0 (' "$tmp/dumpcap" || die "packets were not captured: $(cat "$tmp/dumpcap")"
	return $status
}

# ---- judging ----

# What Sends carry is nobody's protocol. Left on, these would guess, and complain. Our ports
# are the kernel's choice and may be known as those of some protocol or other (41170 is
# Manolito's): what a packet holds counts first.
guess_nothing=(--disable-protocol rpcordma --disable-protocol smb_direct
	-o tcp.try_heuristic_first:TRUE -o udp.try_heuristic_first:TRUE)
ours='!(udp.port == 9)' # without what until_seen sends

decode() { tshark -2 "${guess_nothing[@]}" "$@" 2>"$tmp/tshark" || die "tshark: $(cat "$tmp/tshark")"; }

# Sets $complaints to what tshark has to say against a capture, nothing if all is well.
# $frames: how many frames with a CRC it has checked.
judge() {
	local file=$1 lines good bad
	complaints=$(decode -r "$file" \
		-Y "$ours && (_ws.malformed || _ws.expert.severity == \"Error\")")
	complaints+=$(decode -r "$file" -Y "tcp.len > 0 && !iwarp_mpa && !tcp.reassembled_in &&
		!tcp.analysis.retransmission" | sed 's/^/not decoded: /')
	lines=$(decode -r "$file" -Y iwarp_mpa.fpdu -O iwarp_mpa)
	frames=$(grep -c 'ULPDU length:' <<<"$lines" || true)
	good=$(grep -c 'Good CRC32' <<<"$lines" || true)
	bad=$(grep -c 'Bad CRC32' <<<"$lines" || true)
	if [ "$bad" -ne 0 ] || [ "$good" -ne "$frames" ] || [ "$frames" -eq 0 ]; then
		complaints+="$frames frames, $good good CRCs, $bad bad ones"
	fi
}

# missing FILE OPERATION...: names those that are not in the capture.
missing() {
	local file=$1 all op
	shift
	all=$(decode -r "$file" "${lua[@]}" -T fields -e iwarp_rdma.opcode | tr , '\n' | sort -u)
	for op; do
		grep -qx "$op" <<<"$all" || echo "no frame with operation $op"
	done
}

# verdict_of WHAT FILE OPERATION...
verdict_of() {
	local what=$1 file=$2
	shift 2
	judge "$file"
	complaints+=$(missing "$file" "$@")
	if [ -n "$complaints" ]; then
		bad "$(head -n 20 <<<"$complaints")" "$what"
	else
		ok "$what: $frames frames"
	fi
}

# ---- cases ----

every_operation=("$WRITE" "$READ_REQUEST" "$READ_RESPONSE" "$SEND" "$SEND_SOLICITED" "$TERMINATE"
	"$IMMEDIATE" "$IMMEDIATE_SOLICITED" "$ATOMIC_REQUEST" "$ATOMIC_RESPONSE" "$SEND_IMM"
	"$SEND_IMM_SOLICITED" "$CONTROL")

operations() { runs env "$@" "$WEFT" verbs --addr 127.0.0.1 "$BUILD/bin/stock_verbs_ops"; }

# all_operations VARIABLE=VALUE...
all_operations() {
	local what="every operation of RC${*:+, $*}" file=$tmp/rc.pcap
	begin
	capture "$file" lo 127.0.0.1 operations "$@"
	if [ "$code" -ne 0 ] || [ "$out" != "all good" ]; then
		bad "exit code $code" "$what"
		return
	fi
	case " $* " in
	*" WEFT_MARKERS=1 "*)
		if ! "$BUILD/bin/stock_mpa_reframe" "$file" "$tmp/reframed.pcap" >"$tmp/client" 2>&1; then
			bad "the stream can not be taken apart" "$what"
			return
		fi
		file=$tmp/reframed.pcap
		;;
	esac
	verdict_of "$what" "$file" "${every_operation[@]}"
}

# One bit of one payload; verbs_ops.c fills it with these bytes.
damaged() {
	local at
	begin
	cp "$tmp/rc.pcap" "$tmp/damaged.pcap"
	at=$(LC_ALL=C grep -m 1 -obUaP '\x17\x1e\x25\x2c\x33\x3a\x41\x48' "$tmp/damaged.pcap") ||
		die "the capture does not hold what was sent"
	printf '\x16' | dd of="$tmp/damaged.pcap" bs=1 seek="${at%%:*}" conv=notrunc status=none
	judge "$tmp/damaged.pcap"
	case $complaints in
	*", 1 bad ones"*) ok "a damaged byte is found" ;;
	*) bad "tshark did not find the damage: $complaints" "a damaged byte is found" ;;
	esac
}

# Programs of others, between the hosts.
stock_programs() {
	pingpong ibv_rc_pingpong -c -n 20 -s 100003
	perftest ib_send_bw -n 20 -q 2 -s 100003
	perftest ib_write_bw -n 20 -s 100003
	perftest ib_read_bw -n 20 -s 100003
	perftest ib_atomic_lat -n 20
}

between_hosts() {
	local failed=$failures
	capture "$tmp/hosts.pcap" weft-a "$HOST_B" stock_programs
	[ "$failures" -eq "$failed" ] || return 0
	begin
	verdict_of "stock programs" "$tmp/hosts.pcap" $SEND $WRITE $READ_REQUEST $READ_RESPONSE \
		$ATOMIC_REQUEST $ATOMIC_RESPONSE $CONTROL
}

# UD is not MPA; a few lines of Lua hand the datagram to the same dissector.
datagrams() {
	local complaints what="datagrams of UD"
	begin
	capture "$tmp/ud.pcap" lo 127.0.0.1 \
		runs "$WEFT" verbs --addr 127.0.0.1 "$BUILD/bin/stock_verbs_ops" ud
	lua=(-X "lua_script:$SOURCE/tests/stock/weft_ud.lua")
	complaints=$(decode "${lua[@]}" -r "$tmp/ud.pcap" -Y "$ours && _ws.malformed")
	complaints+=$(missing "$tmp/ud.pcap" $SEND $SEND_IMM)
	lua=()
	if [ "$code" -ne 0 ] || [ -n "$complaints" ]; then
		bad "exit code $code; $complaints" "$what"
	else
		ok "$what"
	fi
}

# RD: the test program of all its operations, over UDP.
reliable_datagrams() {
	local complaints what="reliable datagrams"
	begin
	capture "$tmp/rd.pcap" lo 127.0.0.1 runs "$BUILD/bin/test_rnic_rd"
	lua=(-X "lua_script:$SOURCE/tests/stock/weft_ud.lua")
	complaints=$(decode "${lua[@]}" -r "$tmp/rd.pcap" -Y "$ours && _ws.malformed" | head -n 5)
	complaints+=$(missing "$tmp/rd.pcap" $SEND $SEND_IMM $WRITE $IMMEDIATE $READ_REQUEST $READ_RESPONSE \
		$ATOMIC_REQUEST $ATOMIC_RESPONSE)
	lua=()
	if [ "$code" -ne 0 ] || [ -n "$complaints" ]; then
		bad "exit code $code; $complaints" "$what"
	else
		ok "$what"
	fi
}

cases() {
	lua=()
	all_operations
	damaged
	all_operations WEFT_MARKERS=1
	full || return 0
	all_operations WEFT_FPDU=512
	all_operations WEFT_FPDU=1300 WEFT_MARKERS=1
	between_hosts
	datagrams
	reliable_datagrams
}
stock_main "$@"
