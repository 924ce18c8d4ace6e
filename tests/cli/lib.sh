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
	printf 'FAILED %s:%s: %s\n' "${BASH_SOURCE[2]##*/}" "${BASH_LINENO[1]}" "$1"
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

finish() {
	echo "$checks checks, $failures failed"
	[ "$failures" -eq 0 ]
	exit
}
