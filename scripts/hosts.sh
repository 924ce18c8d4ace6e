# Two hosts on one machine: two network namespaces joined by a veth pair. To be sourced
# by a bash script that is started again inside the first of them:
#
#	. scripts/hosts.sh
#	hosts_enter "$0" "$@"     does not return the first time
#	hosts_up                  now $HOST_A and $HOST_B are addresses
#	on_b COMMAND &            runs on the second host; plain commands run on the first
#	hosts_down                in the EXIT trap
#
# Nothing needs a name in the system and nothing is left behind: a namespace lives as
# long as a process in it. Root uses plain namespaces, others a user namespace. Where
# neither is allowed, both "hosts" are this machine and talk over loopback.
# shellcheck shell=bash

hosts_enter() {
	local script=$1 flag=-n
	shift
	[ -z "${HOSTS_MODE:-}" ] || return 0
	[ "$(id -u)" -eq 0 ] || flag=-Urn
	# Tried as a whole: containers forbid one step or another.
	if unshare $flag bash -c 'ip link set lo up && unshare -n true &&
		ip link add weft-try type veth peer name weft-try2' 2>/dev/null; then
		HOSTS_MODE=namespaces exec unshare $flag -- "$script" "$@"
	fi
	export HOSTS_MODE=loopback
}

hosts_up() {
	HOST_A=127.0.0.1
	HOST_B=127.0.0.1
	HOSTS_HOLDER=
	[ "$HOSTS_MODE" = namespaces ] || return 0
	HOST_A=10.77.0.1
	HOST_B=10.77.0.2
	unshare -n setpriv --pdeathsig KILL sleep infinity &
	HOSTS_HOLDER=$!
	# Until unshare has done its work, the holder is still in our namespace.
	while [ "$(readlink /proc/$$/ns/net)" = "$(readlink /proc/$HOSTS_HOLDER/ns/net)" ]; do
		sleep 0.02
	done
	ip link set lo up
	ip link add weft-a type veth peer name weft-b netns "$HOSTS_HOLDER"
	ip addr add $HOST_A/24 dev weft-a
	ip link set weft-a up
	on_b ip link set lo up
	on_b ip addr add $HOST_B/24 dev weft-b
	on_b ip link set weft-b up
	# A device looks for interfaces that are up, and the kernel takes a moment. (Not
	# /sys: it shows the namespace that it was mounted in.)
	local i
	for ((i = 0; i < 100; i++)); do
		case $(ip -br link show weft-a)/$(on_b ip -br link show weft-b) in
		*" UP "*/*" UP "*) return 0 ;;
		esac
		sleep 0.02
	done
	echo "hosts: the veth pair does not come up" >&2
	return 1
}

on_b() {
	if [ -n "$HOSTS_HOLDER" ]; then
		nsenter -t "$HOSTS_HOLDER" -n -- "$@"
	else
		"$@"
	fi
}

# start_b COMMAND...: the same in the background; its process is $!, not a subshell's.
start_b() {
	if [ -n "$HOSTS_HOLDER" ]; then
		nsenter -t "$HOSTS_HOLDER" -n -- "$@" &
	else
		"$@" &
	fi
}

hosts_down() {
	[ -z "${HOSTS_HOLDER:-}" ] || kill "$HOSTS_HOLDER" 2>/dev/null
	HOSTS_HOLDER=
}

# hosts_wait_port PORT PID: until the second host listens on the port; fails when the
# process that should do so has ended, or after ten seconds.
hosts_wait_port() {
	local hex i
	hex=$(printf ':%04X' "$1")
	for ((i = 0; i < 500; i++)); do
		# Column 2 is the local address, column 4 the state; 0A is LISTEN.
		if on_b cat /proc/net/tcp /proc/net/tcp6 2>/dev/null |
			awk -v p="$hex\$" '$2 ~ p && $4 == "0A" { found = 1 } END { exit !found }'; then
			return 0
		fi
		kill -0 "$2" 2>/dev/null || return 1
		sleep 0.02
	done
	return 1
}
