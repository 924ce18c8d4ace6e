#!/bin/bash
# Help, version, wrong usage: words and exit codes.
set -u
. "$(dirname "$0")/lib.sh"

run "$WEFT"
check_code 2
check_has "$err" "Usage: weft COMMAND"
check_eq "$out" ""

for flag in --help -h help "help help" "help --help"; do
	# shellcheck disable=SC2086 # two words
	run "$WEFT" $flag
	check_code 0
	check_has "$out" "Usage: weft COMMAND"
	check_has "$out" "Examples:"
	check_eq "$err" ""
done

# Every manual page is named.
run "$WEFT" --help
for page in "$SOURCE"/docs/man/*.[17]*; do
	page=${page##*/}
	page=${page%.in}
	check_has "$out" "${page%.*}(${page##*.})"
done

run "$WEFT" --version
check_code 0
check_eq "$out" "weft $VERSION"

# Every command that is listed explains itself, both ways, with examples.
commands=$("$WEFT" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
check_has "$commands" verbs
for c in $commands; do
	[ "$c" != help ] || continue
	run "$WEFT" "$c" --help
	check_code 0
	check_has "$out" "Usage: weft $c"
	check_has "$out" "Examples:"
	text=$out
	run "$WEFT" help "$c"
	check_code 0
	check_eq "$out" "$text"
	run "$WEFT" "$c" --no-such-option
	check_code 2
	check_has "$err" "weft $c: unrecognized option '--no-such-option'"
	check_has "$err" "Try 'weft $c --help'."
done

run "$WEFT" vrebs
check_code 2
check_has "$err" "unknown command 'vrebs'; did you mean 'verbs'?"
run "$WEFT" inf
check_has "$err" "did you mean 'info'?"
run "$WEFT" help evn
check_code 2
check_has "$err" "did you mean 'env'?"
run "$WEFT" supercalifragilistic
check_code 2
check_has "$err" "unknown command 'supercalifragilistic'"
check_lacks "$err" "did you mean"
run "$WEFT" ""
check_code 2
check_lacks "$err" "did you mean"
run "$WEFT" --frob
check_code 2
check_has "$err" "unknown option '--frob'"

run "$WEFT" verbs
check_code 2
check_has "$err" "which program?"
run "$WEFT" env ls
check_code 2
check_has "$err" "unexpected argument 'ls'"
run "$WEFT" info more
check_code 2
check_has "$err" "unexpected argument 'more'"

# Options are checked before anything runs.
for c in "verbs -p" env; do
	# shellcheck disable=SC2086 # two words
	set -- $c
	for bad in 10.0.0 10.0.0.1, "" 10.0.0.256 ::1 10.0.0.1,x; do
		run "$WEFT" "$@" --addr "$bad"
		check_code 2
		check_has "$err" "--addr $bad is not understood; expected an IPv4 address"
	done
	run "$WEFT" "$@" --netdev nosuch0
	check_code 2
	check_has "$err" "--netdev nosuch0: no such network interface"
	run "$WEFT" "$@" --log loud
	check_code 2
	check_has "$err" "--log loud is not understood; expected one of error|warn|info|debug"
	run "$WEFT" "$@" --log
	check_code 2
	check_has "$err" "requires an argument"
done

# Output that can not be written is a failure, not silence.
if [ -w /dev/full ]; then
	code=0
	err=$("$WEFT" --help 2>&1 >/dev/full) || code=$?
	check_code 1
	check_has "$err" "cannot write the output: No space left on device"
fi

finish
