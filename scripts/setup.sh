#!/bin/bash
# Makes sure that the Debian packages of the named sets are installed.
#
#   scripts/setup.sh [--list] SET...      sets: build demo test bench fuzz lint
#
# Installs only what is missing; without anything missing it does not touch apt. As
# an ordinary user it uses sudo when there is one that needs no password or a
# terminal to ask on; otherwise it prints the command to run and exits with 2.
# With --list it only prints the names of the packages.
set -euo pipefail

packages_of() {
	case $1 in
	# ibverbs-utils: what the README tries first once Weft is built
	build) echo gcc libc6-dev make cmake ninja-build pkgconf libibverbs-dev \
		libjansson-dev libmnl-dev libcmocka-dev libfabric-dev ibverbs-utils ;;
	# iputils-ping: what the README tries on a lab
	demo) echo perftest iproute2 util-linux openmpi-bin libopenmpi-dev iputils-ping gnuplot-nox ;;
	bench) echo iproute2 util-linux gnuplot-nox ucx-utils openmpi-bin libopenmpi-dev ;;
	test) echo perftest ibverbs-utils iproute2 util-linux procps jq tshark ucx-utils \
		openmpi-bin libopenmpi-dev mpich libmpich-dev iputils-ping fping traceroute \
		iperf3 libxml2-utils libfabric-bin opensm ibsim-utils ibutils \
		infiniband-diags chromium chromium-driver curl ;;
	fuzz) echo clang libclang-rt-dev ;;
	lint) echo clang-format clang-tidy ;;
	*)
		echo "setup: unknown set '$1'; known: build demo test bench fuzz lint" >&2
		exit 2
		;;
	esac
}

# One package name per line that is not completely installed.
missing() {
	local p
	for p in "$@"; do
		[ "$(dpkg-query -W -f '${db:Status-Status}' "$p" 2>/dev/null)" = installed ] ||
			echo "$p"
	done
}

main() {
	local set list=no wanted=() absent=()
	if [ "${1:-}" = --list ]; then
		list=yes
		shift
	fi
	for set in "$@"; do
		# shellcheck disable=SC2207 # package names have no blanks
		wanted+=($(packages_of "$set")) || exit 2
	done
	if [ $list = yes ]; then
		printf '%s\n' "${wanted[@]}" | sort -u
		return 0
	fi
	if ! command -v dpkg-query >/dev/null; then
		echo "setup: this is not a Debian system; needed are what Debian calls:" >&2
		echo "  ${wanted[*]}" >&2
		echo "setup: going on as if they were there" >&2
		return 0
	fi
	mapfile -t absent < <(missing "${wanted[@]}" | sort -u)
	[ ${#absent[@]} -gt 0 ] || return 0

	local install="apt-get install -y --no-install-recommends ${absent[*]}"
	local as_root=()
	if [ "$(id -u)" -ne 0 ]; then
		if ! command -v sudo >/dev/null || { ! sudo -n true 2>/dev/null && [ ! -t 0 ]; }; then
			echo "setup: ${#absent[@]} Debian packages are missing. As root, run:" >&2
			echo "  $install" >&2
			exit 2
		fi
		as_root=(sudo)
	fi
	echo "setup: installing ${#absent[@]} Debian packages: ${absent[*]}"
	apt_install "${as_root[@]}" -- "${absent[@]}"
}

# apt_install [sudo] -- PACKAGE...
# The package lists may be absent (a fresh container) or old: refresh them when the
# first attempt fails. Output is shown only when the second one fails, too.
apt_install() {
	local as_root=() log
	while [ "$1" != -- ]; do
		as_root+=("$1")
		shift
	done
	shift
	log=$(mktemp)
	# shellcheck disable=SC2064 # the name is known now, and local
	trap "rm -f '$log'" EXIT
	# env inside sudo, which drops variables; some packages ask questions otherwise.
	local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q
		-o Dpkg::Use-Pty=0 -o DPkg::Lock::Timeout=300)
	local install=("${apt[@]}" install -y --no-install-recommends "$@")
	"${install[@]}" >"$log" 2>&1 </dev/null && return 0
	if "${apt[@]}" update >"$log" 2>&1 </dev/null &&
		"${install[@]}" >>"$log" 2>&1 </dev/null; then
		return 0
	fi
	cat "$log" >&2
	echo "setup: the packages could not be installed; the reason is above" >&2
	exit 2
}

main "$@"
