# Helpers of the command line tests. Each test script sources this, calls check_*
# and ends with `finish`. WEFT is the binary under test.
# shellcheck shell=bash

: "${WEFT:?path of the weft binary}"
failures=0
checks=0
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

fail() {
	failures=$((failures + 1))
	local from=${BASH_SOURCE[2]:-${BASH_SOURCE[1]}} # called by a check, or by the script itself
	printf 'FAILED %s:%s: %s\n' "${from##*/}" "${BASH_LINENO[1]:-${BASH_LINENO[0]}}" "$1"
	if [ -n "${2:-}" ]; then
		printf '%s\n' "$2" | sed 's/^/    | /'
	fi
}

# run COMMAND...: sets $code, $out, $err.
run() {
	code=0
	"$@" >"$tmp/out" 2>"$tmp/err" </dev/null || code=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
}

check_code() {
	checks=$((checks + 1))
	[ "$code" = "$1" ] || fail "exit code $code, expected $1" "$out$err"
}

# check_has TEXT PATTERN: PATTERN is a fixed string that TEXT must contain.
check_has() {
	checks=$((checks + 1))
	case $1 in
	*"$2"*) ;;
	*) fail "'$2' not found in:" "$1" ;;
	esac
}

check_lacks() {
	checks=$((checks + 1))
	case $1 in
	*"$2"*) fail "'$2' found in:" "$1" ;;
	esac
}

check_eq() {
	checks=$((checks + 1))
	[ "$1" = "$2" ] || fail "got '$1', expected '$2'"
}

check_true() {
	checks=$((checks + 1))
	"$@" || fail "not true: $*"
}

# Puts the scripts and what was built where an ordinary user can reach them, since the
# source tree may be in somebody's home: $stage/scripts, $stage/bin, $stage/lib.
stage_for_user() {
	local build
	build=$(dirname "$(dirname "$(realpath "$WEFT")")")
	stage=$tmp/stage
	chmod 755 "$tmp"
	mkdir -p "$stage"/{bin,lib/dv}
	cp "$build"/bin/weft "$build"/bin/weft-perf "$stage/bin/"
	cp -L "$build"/lib/{libibverbs.so.1,libweft-probe.so,libweft-fi.so} "$stage/lib/"
	cp -L "$build"/lib/dv/libweftdv.so.1 "$stage/lib/dv/"
	cp -r "$(dirname "${BASH_SOURCE[0]}")/../../scripts" "$stage/"
	chmod -R a+rX "$stage"
}

finish() {
	echo "$checks checks, $failures failed"
	[ "$failures" -eq 0 ]
	exit
}
