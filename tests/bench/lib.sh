# For the shell tests here. To be sourced; wants PERF in the environment.
# shellcheck shell=bash
set -uo pipefail
tmp=$(mktemp -d)
server_pid=''
checks=0

finish() {
	[ -z "$server_pid" ] || kill "$server_pid" 2>/dev/null
	rm -rf "$tmp"
}
trap finish EXIT

fail() {
	echo "FAIL: $*" >&2
	for f in "$tmp"/*; do
		[ ! -f "$f" ] || { echo "--- ${f##*/}" && head -c 4000 "$f"; } >&2
	done
	exit 1
}

# holds FILTER FILE: the jq filter is true for the document.
holds() {
	checks=$((checks + 1))
	jq -e "$1" "$2" >/dev/null || fail "$2: not true: $1"
}

# A port that nobody listens on now, beside other tests that look for one.
free_port() {
	local p
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		p=$((20000 + RANDOM % 10000))
		(exec 3<>"/dev/tcp/127.0.0.1/$p") 2>/dev/null || {
			echo $p
			return
		}
	done
	fail "no free port"
}

# pair NAME CLIENT-ARGUMENTS: server and client over loopback; NAME.json, NAME.out and
# the client's exit status in $status.
pair() {
	local name=$1 port
	shift
	port=$(free_port)
	"$PERF" server -q --bind 127.0.0.1 -p "$port" >"$tmp/$name.server" 2>&1 &
	server_pid=$!
	timeout 100 "$PERF" "$@" -q -p "$port" -j "$tmp/$name.json" 127.0.0.1 \
		>"$tmp/$name.out" 2>"$tmp/$name.err"
	status=$?
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		kill -0 "$server_pid" 2>/dev/null || break
		sleep 0.2
	done
	kill "$server_pid" 2>/dev/null && fail "$name: the server outlived its client"
	wait "$server_pid" 2>/dev/null
	server_pid=''
}

# refuses TEXT ARGUMENT...: $script does, with 2, and says so.
refuses() {
	local text=$1
	shift
	timeout 20 "$script" "$@" >"$tmp/out" 2>&1
	[ $? -eq 2 ] || fail "'$*' was not refused with 2"
	grep -q -- "$text" "$tmp/out" || fail "'$*' does not say '$text'"
}
