#!/bin/bash
# Configures and builds one flavour, quietly unless something is wrong.
#
#   scripts/build.sh build|build-asan|build-tsan
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1
case $dir in
build) flavour=(-DWEFT_SANITIZE=) ;;
build-asan) flavour=('-DWEFT_SANITIZE=address,undefined') ;;
build-tsan) flavour=(-DWEFT_SANITIZE=thread) ;;
*)
	echo "build: unknown directory '$dir'" >&2
	exit 2
	;;
esac

# A cache that was made with another generator or in another place is of no use:
# CMake would refuse it.
if [ -f "$dir/CMakeCache.txt" ] &&
	! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$dir/CMakeCache.txt"; then
	rm -rf "$dir"
fi

log=$(mktemp)
trap 'rm -f "$log"' EXIT
# An empty array must not count as unset on older shells.
generator=()
[ -f "$dir/CMakeCache.txt" ] || generator=(-G Ninja)
if ! cmake -S . -B "$dir" "${generator[@]+"${generator[@]}"}" "${flavour[@]}" \
	-DWEFT_WERROR=ON >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
echo "building $dir"
if ! nice cmake --build "$dir" --parallel "${JOBS:-$(nproc)}" >"$log" 2>&1; then
	cat "$log" >&2
	exit 1
fi
