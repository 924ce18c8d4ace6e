#!/bin/bash
# Stock programs with the replacement preloaded or found by LD_LIBRARY_PATH; hardware
# and its providers beside it.
set -eu
: "${LIB:?the replacement}" "${REAL:?the library that it stands in for}" "${FAKE:?fake library}"
: "${CDEV:?library that pretends a character device}"
dir=$(dirname "$LIB")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
	echo "FAILED: $*"
	cat "$tmp/out" "$tmp/err" 2>/dev/null | sed 's/^/    | /'
	exit 1
}
# with_weft HOW COMMAND...: output in $tmp/out, complaints in $tmp/err.
with_weft() {
	local how=$1
	shift
	case $how in
	preload) set -- env LD_PRELOAD="${PRELOAD_FIRST:-}$LIB" "$@" ;;
	path) set -- env LD_PRELOAD="${PRELOAD_FIRST:-}" LD_LIBRARY_PATH="$dir" "$@" ;;
	esac
	"$@" >"$tmp/out" 2>"$tmp/err" || fail "$how: $* exits with $?"
}
# devices: names that ibv_devices lists, on one line.
devices() {
	sed 1,2d "$tmp/out" | awk '{ printf "%s%s", sep, $1; sep = " " }'
}
expect() {
	[ "$1" = "$2" ] || fail "got '$1', expected '$2'"
}

command -v ibv_devices >/dev/null || { echo "ibverbs-utils is not installed"; exit 77; }
real_devices=$(ibv_devices 2>/dev/null | sed 1,2d | awk '{ printf "%s ", $1 }')

for how in preload path; do
	with_weft $how ibv_devices
	expect "$(devices)" "${real_devices}weft0"
	expect "$(cat "$tmp/err")" ""
	with_weft $how ibv_devinfo -d weft0
	grep -q 'hca_id:.*weft0' "$tmp/out" || fail "no weft0"
	grep -q 'state:.*PORT_ACTIVE' "$tmp/out" || fail "port not active"
	with_weft $how ibv_devinfo -v -d weft0
	grep -q 'GID\[ *0\]' "$tmp/out" || fail "no GID"
	WEFT_ONLY=1 with_weft $how ibv_devices
	expect "$(devices)" "weft0"

	# Another library in the place of the system's.
	WEFT_REAL_IBVERBS=$FAKE with_weft $how ibv_devices
	expect "$(devices)" "fake0 weft0"
	WEFT_REAL_IBVERBS=$FAKE WEFT_DEVICE=off with_weft $how ibv_devices
	expect "$(devices)" "fake0"
	# None: one line, and Weft's device.
	for none in /no/such/library libibverbs.so.1 "$LIB"; do
		WEFT_REAL_IBVERBS=$none with_weft $how ibv_devices
		expect "$(devices)" "weft0"
		expect "$(wc -l <"$tmp/err")" 1
		grep -q 'libibverbs was not found.*WEFT_REAL_IBVERBS=PATH' "$tmp/err" || fail "no line"
	done
done

# A kernel device, seen through a sysfs of our own, with the real library and its real
# providers: these bind to the replacement and must find themselves in the real one.
sys=$tmp/sys
mkdir -p "$sys/class/infiniband_verbs/uverbs99" "$sys/class/infiniband/rxe_test"
echo 6 >"$sys/class/infiniband_verbs/abi_version"
echo rxe_test >"$sys/class/infiniband_verbs/uverbs99/ibdev"
echo 231:250 >"$sys/class/infiniband_verbs/uverbs99/dev"
echo 2 >"$sys/class/infiniband_verbs/uverbs99/abi_version"
echo "1: CA" >"$sys/class/infiniband/rxe_test/node_type"
echo 0011:2233:4455:6677 >"$sys/class/infiniband/rxe_test/node_guid"
export SYSFS_PATH=$sys
PRELOAD_FIRST=$CDEV:
LD_PRELOAD=$CDEV ibv_devices >"$tmp/out" 2>"$tmp/err" || true
if grep -q rxe_test "$tmp/out"; then
	for how in preload path; do
		with_weft $how ibv_devices
		expect "$(devices)" "rxe_test weft0"
		expect "$(awk '$1 == "rxe_test" { print $2 }' "$tmp/out")" 0011223344556677
		expect "$(cat "$tmp/err")" ""
	done
else
	echo "no provider to test with (ibverbs-providers): skipped that part"
fi
unset SYSFS_PATH
PRELOAD_FIRST=

# Every provider that is installed can be loaded: all that it imports is here.
cat >"$tmp/load.c" <<'END'
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (!dlopen(argv[i], RTLD_NOW))
			return printf("%s\n", dlerror()), 1;
	return 0;
}
END
providers=("$(dirname "$REAL")"/libibverbs/*.so)
if [ -e "${providers[0]}" ] && ${CC:-cc} -o "$tmp/load" "$tmp/load.c" -ldl; then
	for how in preload path; do
		with_weft $how "$tmp/load" "${providers[@]}"
	done
	echo "${#providers[@]} providers loaded"
fi

# Programs that know nothing of verbs do not notice: no output, no other library.
WEFT_LOG=debug with_weft preload bash -c 'cat /proc/$$/maps'
expect "$(cat "$tmp/err")" ""
expect "$(grep -o '/[^ ]*libibverbs[^ ]*' "$tmp/out" | sort -u)" "$(realpath "$LIB")"
echo "all passed"
