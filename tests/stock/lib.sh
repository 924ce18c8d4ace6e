# Helpers of the tests that run stock programs on the device. To be sourced; a test is
#
#	. "$(dirname "$0")/lib.sh"
#	needs PACKAGE:PROGRAM...        what must be installed
#	prepare() { ...; }              once, before all (optional)
#	cases() { ...; }                what is run, in every place
#	stock_main "$@"
#
# `cases` runs in several places:
#
#	loopback                        two processes of one host
#	hosts                           two network namespaces joined by a veth pair
#	user-loopback, user-hosts       the same without privileges, when started as root
#
# In the first of them `full` is true and everything is run, in the others a selection.
# A case that fails is reported with all output, and the others still run.
#
# From the environment: WEFT, the command; SOURCE, the source tree; BUILD, the build tree.
# STOCK_PLACES="loopback hosts" selects places; STOCK_ONLY=1: without those of the user.
# shellcheck shell=bash
set -euo pipefail

: "${WEFT:?path of the weft command}" "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
script=$(realpath "$0")
LIMIT=100 # seconds that a program may take; it needs about one
failures=0
passed=0
pids=()   # of the pair that is running
others=() # of what runs longer
tmp=
place=${STOCK_PLACE:-}
# shellcheck source=scripts/hosts.sh
. "$SOURCE/scripts/hosts.sh"

die() {
	echo "FAILED: $*" >&2
	exit 1
}

# needs PACKAGE:PROGRAM...
needs() {
	local pair absent=()
	for pair; do
		command -v "${pair#*:}" >/dev/null || absent+=("${pair%%:*} (for ${pair#*:})")
	done
	[ ${#absent[@]} -eq 0 ] || die "these Debian packages are not installed: ${absent[*]}"
}

full() { [ "$place" = "$STOCK_FULL" ]; }
privileged() { [ "$(id -u)" -eq 0 ]; }

prepare() { :; }

# ---- clean-up ----

# Ends what this test has started, and nothing else.
cleanup() {
	local pid
	trap - EXIT INT TERM
	for pid in "${pids[@]}" "${others[@]}"; do
		kill "$pid" 2>/dev/null || true
	done
	for pid in "${pids[@]}" "${others[@]}"; do
		wait "$pid" 2>/dev/null || true
	done
	hosts_down
	[ -z "$tmp" ] || rm -rf "$tmp"
}

new_tmp() {
	tmp=$(mktemp -d)
	trap cleanup EXIT
	trap 'cleanup; exit 130' INT
	trap 'cleanup; exit 143' TERM
}

# ---- results ----

# ok CASE: one line.
ok() {
	passed=$((passed + 1))
	printf '%-14s %5.2f s  %s\n' "$place" "$(since)" "$*"
}

# bad REASON CASE: with everything that was written by both sides.
bad() {
	local reason=$1 f
	shift
	failures=$((failures + 1))
	printf '%-14s FAILED   %s\n    %s\n' "$place" "$*" "$reason"
	for f in server client; do
		[ -s "$tmp/$f" ] || continue
		echo "    --- $f:"
		tail -n 40 "$tmp/$f" | sed 's/^/    | /'
	done
}

begin() { started=$EPOCHREALTIME; }
since() { awk -v a="$started" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }'; }

# ---- two programs ----

# A port that nobody listens on now. Below the range that the kernel hands out.
free_port() {
	local p
	for _ in {1..50}; do
		p=$((30000 + RANDOM % 2700))
		(exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || {
			echo $p
			return
		}
	done
	die "no free port"
}

# start_server PORT COMMAND...: leaves its process in $server and returns when it
# listens.
start_server() {
	local port=$1
	shift
	start_b timeout -k 5 "$LIMIT" "$@" >"$tmp/server" 2>&1 </dev/null
	server=$!
	pids=("$server")
	hosts_wait_port "$port" "$server"
}

# both SERVER... -- CLIENT...: runs the pair and leaves the output in $tmp/server and
# $tmp/client, and both exit codes in $server_code and $client_code. In both, the words
# PORT and HOST stand for a free port and the server's address.
both() {
	local server_words=() client port word client_pid
	while [ "$1" != -- ]; do
		server_words+=("$1")
		shift
	done
	shift
	# Another program may take the port between the look and the use: try again.
	for _ in 1 2 3; do
		port=$(free_port)
		: >"$tmp/client"
		start_server "$port" "${server_words[@]/#PORT/$port}" && break
		kill "$server" 2>/dev/null || true
		wait "$server" 2>/dev/null || true
		server=
	done
	if [ -z "$server" ]; then
		server_code=127 client_code=127
		return 0
	fi
	client=()
	for word; do
		word=${word/#PORT/$port}
		client+=("${word/#HOST/$HOST_B}")
	done
	timeout -k 5 "$LIMIT" "${client[@]}" >"$tmp/client" 2>&1 </dev/null &
	client_pid=$!
	pids+=("$client_pid")
	client_code=0 server_code=0
	wait "$client_pid" || client_code=$?
	# Without its client a server may wait for ever.
	[ $client_code -eq 0 ] || { sleep 0.5 && kill "$server" 2>/dev/null; } || true
	wait "$server" || server_code=$?
	pids=()
}

# verdict CHECK CASE: after `both`; CHECK is a command that judges $tmp/client.
verdict() {
	local check=$1
	shift
	if [ "$client_code" -ne 0 ] || [ "$server_code" -ne 0 ]; then
		bad "exit codes: client $client_code, server $server_code (124: took over $LIMIT s)" "$@"
	elif ! $check; then
		bad "the output has no result: $check" "$@"
	else
		ok "$@"
	fi
}

# A pingpong prints "... = 12.34 usec/iter" when it is done.
pingpong_result() {
	awk '/usec\/iter/ { good = $(NF - 1) > 0 } END { exit !good }' "$tmp/client"
}

# perftest prints a line of numbers for every message size. The result, a latency or a
# message rate, must be positive in all of them; with -a (all sizes) there are many.
perftest_result() {
	# Column 5 is the typical latency, or the rate in millions per second; the
	# bandwidth before it is rounded to 0.00 for small messages on a busy machine.
	awk -v want="$result_rows" '
		$1 ~ /^[0-9]+$/ && NF >= 5 { rows++; if (!($5 > 0)) zero = 1 }
		END { exit zero || rows < want }' "$tmp/client"
}

# pingpong PROGRAM OPTIONS
pingpong() {
	begin
	both "${weft[@]}" "$@" -d weft0 -p PORT -- "${weft[@]}" "$@" -d weft0 -p PORT HOST
	verdict pingpong_result "$@"
}

# perftest PROGRAM OPTIONS
perftest() {
	begin
	result_rows=1
	# UD has no messages larger than 4096, which is the twelfth size.
	case " $* " in *" -a "*) result_rows=12 ;; esac
	both "${weft[@]}" "$@" -d weft0 -F -p PORT -- "${weft[@]}" "$@" -d weft0 -F -p PORT HOST
	verdict perftest_result "$@"
}

# ---- single programs ----

# runs COMMAND...: output in $out, exit code in $code.
runs() {
	begin
	: >"$tmp/server"
	code=0
	timeout -k 5 "$LIMIT" "$@" >"$tmp/client" 2>&1 </dev/null || code=$?
	out=$(cat "$tmp/client")
}

# says PATTERN...: $out matches all of these extended regular expressions.
says() {
	local p
	for p; do
		grep -Eq -- "$p" <<<"$out" || return 1
	done
}

# expect CASE CODE PATTERN...: judges what `runs` has left.
expect() {
	local what=$1 want=$2
	shift 2
	if [ "$code" -ne "$want" ]; then
		bad "exit code $code instead of $want" "$what"
	elif ! says "$@"; then
		bad "the output lacks one of: $*" "$what"
	else
		ok "$what"
	fi
}

# ---- places ----

# What an ordinary user needs, where he can reach it: the source and build trees may be
# in somebody's home.
stage() {
	local stage=$STOCK_SHARED/stage
	[ ! -d "$stage" ] || return 0
	mkdir -p "$stage"/{bin,lib,scripts,tests/stock}
	cp "$WEFT" "$BUILD"/bin/stock_* "$stage/bin/"
	cp -L "$BUILD"/lib/{libibverbs.so.1,libweft-probe.so} "$stage/lib/"
	cp "$SOURCE/scripts/hosts.sh" "$stage/scripts/"
	cp "$SOURCE"/tests/stock/*.{sh,lua} "$stage/tests/stock/"
	mkdir -m 777 "$stage/home"
}

# as_user COMMAND...: becomes it, without privileges and with nothing of the user's home.
as_user() {
	local stage=$STOCK_SHARED/stage
	exec setpriv --reuid 65534 --regid 65534 --clear-groups --inh-caps=-all \
		env HOME="$stage/home" TMPDIR="$stage/home" SOURCE="$stage" BUILD="$stage" \
		WEFT="$stage/bin/weft" "$@"
}

# run_place PLACE ARGUMENTS: to be started in the background. Becomes the test itself, so
# that a signal to it reaches the one who knows what to clean up.
run_place() {
	export STOCK_PLACE=$1
	shift
	case $STOCK_PLACE in
	user-*)
		stage
		cd "$STOCK_SHARED"
		as_user "stage/tests/stock/${script##*/}" "$@"
		;;
	*) exec "$script" "$@" ;;
	esac
}

# All places, one after the other; each in a shell of its own. Only when all of them
# were skipped (exit code 77), the test is.
run_places() {
	local where places code child status=77
	read -ra places <<<"${STOCK_PLACES:-loopback hosts}"
	if privileged && [ -z "${STOCK_ONLY:-}" ]; then
		places+=("${places[@]/#/user-}")
	fi
	new_tmp
	chmod 755 "$tmp"
	export STOCK_SHARED=$tmp STOCK_FULL=${places[0]}
	prepare "$@"
	for where in "${places[@]}"; do
		run_place "$where" "$@" &
		child=$!
		pids=("$child")
		code=0
		wait "$child" || code=$?
		pids=()
		case $code in
		77) ;;
		0) [ $status -ne 77 ] || status=0 ;;
		*) status=1 ;;
		esac
	done
	exit $status
}

stock_main() {
	[ -n "$place" ] || run_places "$@"
	case $place in
	*hosts)
		hosts_enter "$script" "$@"
		if [ "$HOSTS_MODE" != namespaces ]; then
			echo "$place: skipped, network namespaces are not allowed here"
			exit 77
		fi
		new_tmp
		hosts_up || die "two network namespaces could not be set up"
		weft=("$WEFT" verbs)
		;;
	*loopback)
		HOSTS_MODE=loopback
		new_tmp
		hosts_up
		weft=("$WEFT" verbs --addr 127.0.0.1)
		;;
	*) die "unknown place '$place'" ;;
	esac
	cases "$@"
	echo "$place: $passed passed, $failures failed"
	[ "$failures" -eq 0 ]
}
