#!/bin/bash
# MPI programs: mpi.sh openmpi|mpich rc|ud, and mpi.sh openmpi ofi
#
# mpi_check.c knows every byte that must arrive. All ways between processes but the device
# are forbidden: shared memory by what the MPIs are told, TCP because it is on nobody's
# list. Between two hosts the interface counts what went over it.
#
#	rc, ud    UCX with rc_verbs or ud_verbs (both MPIs)
#	ofi       libfabric's verbs provider with datagrams (Open MPI's mtl ofi)
# shellcheck source=tests/stock/lib.sh
. "$(dirname "$0")/lib.sh"
mpi=${1:-}
transport=${2:-}
needs "$([ "$mpi" = mpich ] && echo mpich || echo openmpi-bin):mpirun.$mpi" \
	"$([ "$mpi" = mpich ] && echo libmpich-dev || echo libopenmpi-dev):mpicc.$mpi"

prepare() {
	"mpicc.$mpi" -O1 -o "$STOCK_SHARED/mpi_check" "$SOURCE/tests/stock/mpi_check.c" \
		>"$tmp/compiler" 2>&1 || die "mpicc.$mpi: $(cat "$tmp/compiler")"
}

# Starts commands on the second host as ssh would; the MPIs' launchers call it with a
# host and a command. A host name of its own, or MPI would take it for the same machine.
write_agent() {
	cat >"$tmp/agent" <<-END
		#!/bin/sh
		while [ "\${1#-}" != "\$1" ]; do shift; done # options for ssh
		host=\$1
		shift
		[ "\$host" = $HOST_B ] || exec sh -c "\$*"
		exec nsenter -t $HOSTS_HOLDER -n -- unshare -u sh -c "hostname weft-b; \$*"
	END
	chmod +x "$tmp/agent"
}

# launcher RANKS: the command line in $run. Ranks outnumber cores, so none is pinned.
launcher() {
	case $mpi in
	openmpi)
		run=(mpirun.openmpi --oversubscribe --bind-to none -np "$1")
		if [ "$transport" = ofi ]; then
			# Windows over messages: osc sm would use shared memory.
			run+=(--mca pml cm --mca mtl ofi --mca osc pt2pt --mca btl self
				--mca opal_common_ofi_provider_include "verbs;ofi_rxd")
		else
			run+=(--mca pml ucx --mca osc ucx --mca btl self)
		fi
		if [ -n "$HOSTS_HOLDER" ]; then
			run+=(-H "$HOST_A:$1,$HOST_B:$1" --map-by node --mca plm_rsh_agent "$tmp/agent"
				--mca oob_tcp_if_include "$HOST_A/24")
		fi
		;;
	mpich)
		run=(mpirun.mpich -bind-to none -n "$1")
		if [ -n "$HOSTS_HOLDER" ]; then
			run+=(-hosts "$HOST_A,$HOST_B" -launcher ssh -launcher-exec "$tmp/agent")
		fi
		;;
	esac
}

# Every byte that left the first host, in both directions.
crossed() { awk '$1 == "weft-a:" { print ($2 < $10 ? $2 : $10) }' /proc/net/dev; }

# check RANKS KB
check() {
	local before=0 what="$mpi, $transport, $1 ranks, messages up to $2 KB"
	launcher "$1"
	[ -z "$HOSTS_HOLDER" ] || before=$(crossed)
	runs "${mpi_env[@]}" "${weft[@]}" "${run[@]}" "$STOCK_SHARED/mpi_check" "$2"
	if [ "$code" -ne 0 ] || ! says "mpi_check: $1 ranks, .* all good"; then
		bad "exit code $code" "$what"
	elif [ "$transport" != ofi ] && ! says "tag\(${transport}_verbs/weft0:1"; then
		bad "UCX does not say that it uses weft0" "$what"
	elif says 'ep_cfg.*(tcp|posix|sysv|cma)/'; then
		bad "UCX uses something else, too" "$what"
	elif [ -n "$HOSTS_HOLDER" ] && [ $(($(crossed) - before)) -lt $(($2 * 1024)) ]; then
		bad "only $(($(crossed) - before)) bytes went over the link" "$what"
	else
		ok "$what"
	fi
}

# Without the device there is no other way.
control() {
	launcher 2
	runs "${mpi_env[@]}" WEFT_DEVICE=off "${weft[@]}" "${run[@]}" "$STOCK_SHARED/mpi_check" 1
	if [ "$code" -eq 0 ] || says 'all good'; then
		bad "it ran without a device" "$mpi, $transport"
	else
		ok "$mpi, $transport: fails without the device"
	fi
}

cases() {
	mpi_env=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
		MPIR_CVAR_NOLOCAL=1)
	if [ "$transport" = ofi ]; then
		mpi_env+=(FI_PROVIDER="verbs;ofi_rxd")
	else
		mpi_env+=(UCX_TLS="${transport}_v,self" UCX_NET_DEVICES=weft0:1
			UCX_LOG_LEVEL=info)
	fi
	[ -z "$HOSTS_HOLDER" ] || write_agent
	check 2 4096
	if full; then
		# libfabric's ofi_rxd crashes with more ranks, over its UDP provider, too.
		[ "$transport" = ofi ] || check 4 256
		control
	fi
}
stock_main "$@"
