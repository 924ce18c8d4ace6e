#!/bin/bash
# weft verbs runs programs: arguments and exit codes go through untouched.
set -u
. "$(dirname "$0")/lib.sh"

run "$WEFT" verbs printf '[%s]' "two words" --help -n "" '*'
check_code 0
check_eq "$out" "[two words][--help][-n][][*]"
check_eq "$err" ""

run "$WEFT" verbs sh -c 'exit 7'
check_code 7
run "$WEFT" verbs -- sh -c 'exit 0'
check_code 0
# shellcheck disable=SC2016 # for the inner shell
run "$WEFT" verbs --log info -n lo --addr=127.0.0.1 sh -c 'echo "$WEFT_LOG $WEFT_NETDEV $WEFT_ADDR"'
check_eq "$out" "info lo 127.0.0.1"
# The libraries are loaded, also in a grandchild.
run "$WEFT" verbs sh -c 'cat /proc/self/maps; true'
check_has "$out" "/libibverbs.so.1"
check_has "$out" "/libweft-probe.so"

run "$WEFT" verbs no-such-program-anywhere
check_code 127
check_eq "$err" "weft verbs: program 'no-such-program-anywhere' was not found in PATH"
run "$WEFT" verbs ./no-such-program
check_code 127
check_eq "$err" "weft verbs: program './no-such-program' was not found"
run "$WEFT" verbs "$tmp"
check_code 126
check_has "$err" "cannot execute '$tmp': Permission denied"
printf '#!/no/such/interpreter\n' >"$tmp/script"
chmod +x "$tmp/script"
run "$WEFT" verbs "$tmp/script"
check_code 126
check_has "$err" "its interpreter was not found"

# Without its libraries: one sentence, and nothing runs.
mkdir -p "$tmp/lonely/bin"
cp "$WEFT" "$tmp/lonely/bin/weft"
run "$tmp/lonely/bin/weft" verbs echo ran
check_code 2
check_eq "$out" ""
check_has "$err" "libibverbs.so.1 and libweft-probe.so are neither in $tmp/lonely/bin/../lib/weft nor"
check_eq "$(wc -l <"$tmp/err")" 1
# A libibverbs.so.1 that is not ours does not count.
mkdir -p "$tmp/lonely/lib"
echo >"$tmp/lonely/lib/libibverbs.so.1"
run "$tmp/lonely/bin/weft" verbs echo ran
check_code 2

# A directory that LD_PRELOAD can not name.
mkdir -p "$tmp/with blank/bin" "$tmp/with blank/lib/weft"
cp "$WEFT" "$tmp/with blank/bin/"
touch "$tmp/with blank/lib/weft/"{libibverbs.so.1,libweft-probe.so}
run "$tmp/with blank/bin/weft" verbs echo ran
check_code 2
check_has "$err" "can not preload from a path with a blank"

# As an ordinary user, and through a symbolic link.
ln -s "$WEFT" "$tmp/weft-link"
run "$tmp/weft-link" verbs true
check_code 0
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
	stage_for_user
	run setpriv --reuid 65534 --regid 65534 --clear-groups "$stage/bin/weft" verbs sh -c 'id -u'
	check_code 0
	check_eq "$out" 65534
fi

finish
