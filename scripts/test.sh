#!/bin/bash
# Builds and tests the flavours, and sums up. Every flavour runs, also after one has
# failed; the exit code is 0 only if all of them passed.
#
#   scripts/test.sh [plain] [asan] [tsan]      TESTS=regex: only tests that match
#
# Tests labelled `plain` (stock programs, which can not carry a sanitizer) run only in
# the plain flavour. JOBS tests run at once, except those that ask to be alone.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

[ $# -gt 0 ] || set -- plain asan tsan
started=$SECONDS
summary=()
failed=0

run_flavour() {
	local flavour=$1 dir=build args=()
	if [ "$flavour" != plain ]; then
		dir=build-$flavour
		args+=(-LE '^plain$')
	fi
	[ -z "${TESTS:-}" ] || args+=(-R "$TESTS")
	scripts/build.sh "$dir" || return 1
	(cd "$dir" && ctest --output-on-failure --no-tests=error -j "${JOBS:-$(nproc)}" \
		"${args[@]+"${args[@]}"}" </dev/null)
}

for flavour in "$@"; do
	case $flavour in
	plain | asan | tsan) ;;
	*)
		echo "test: unknown flavour '$flavour'; known: plain asan tsan" >&2
		exit 2
		;;
	esac
	echo "== $flavour"
	since=$SECONDS
	if run_flavour "$flavour"; then
		result=passed
	else
		result=FAILED
		failed=1
	fi
	summary+=("$(printf '%-6s %-7s %4d s' "$flavour" "$result" $((SECONDS - since)))")
done

echo
echo "== summary, $((SECONDS - started)) s"
printf '%s\n' "${summary[@]}"
exit $failed
