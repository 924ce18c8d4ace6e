#!/bin/bash
# weft lab without a lab: help, suggestions, wrong usage.
set -u
. "$(dirname "$0")/lib.sh"
export WEFT_LAB_DIR=$tmp/labs

run "$WEFT" lab
check_code 2
check_has "$err" "Usage: weft lab COMMAND"
for flag in --help -h help; do
	run "$WEFT" lab $flag
	check_code 0
	check_has "$out" "Usage: weft lab COMMAND"
	check_eq "$err" ""
done

# Every command explains itself, both ways, with examples, within 90 columns.
commands=$("$WEFT" lab --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
check_eq "$(wc -w <<<"$commands")" 10
for c in $commands; do
	run "$WEFT" lab "$c" --help
	check_code 0
	check_has "$out" "Usage: weft lab $c"
	check_has "$out" "Examples:"
	check_eq "$(awk 'length > 90' <<<"$out")" ""
	text=$out
	run "$WEFT" lab help "$c"
	check_eq "$out" "$text"
	run "$WEFT" lab "$c" --no-such-option
	check_code 2
	check_has "$err" "weft lab $c: unrecognized option '--no-such-option'"
	check_has "$err" "Try 'weft lab $c --help'."
done

run "$WEFT" lab lsit
check_code 2
check_has "$err" "weft lab: unknown command 'lsit'; did you mean 'list'?"
run "$WEFT" lab help corss
check_code 2
check_has "$err" "did you mean 'cross'?"
run "$WEFT" lab supercalifragilistic
check_code 2
check_lacks "$err" "did you mean"

# refused WORDS ARGUMENTS...
refused() {
	local words=$1
	shift
	run "$WEFT" lab "$@"
	check_code 2
	check_eq "$out" ""
	check_has "$err" "$words"
}

refused "which name?" up
refused "which tree?" up fat
refused "in a shell it needs quotes" up fat --pgft 2
refused "unexpected argument 'x'" up fat --pgft "1;2;1;1" x
refused "--rate 100: which unit? For example 100mbit" up fat --pgft "1;2;1;1" --rate 100
refused "bytes per second" up fat --pgft "1;2;1;1" --rate 100mbps
refused "expected a number from 1280 to 65535" up fat --pgft "1;2;1;1" --mtu 1279
refused "expected a number from 1280 to 65535" up fat --pgft "1;2;1;1" --mtu " 1500"
refused "--routing best:" up fat --pgft "1;2;1;1" --routing best
refused "at most 15 characters" up abcdefghijklmnop --pgft "1;2;1;1"
refused "which lab?" down
refused "either names or --all" down fat --all
refused "unexpected argument 'fat'" list fat
refused "which lab, and which host?" exec
refused "which host? For example: weft lab exec fat h0" exec fat
refused "'-c' is in the place of a command" exec fat h0 -c
for c in show top draw cross fail heal; do
	refused "which lab?" $c
done
refused "unexpected argument 'thin'" show fat thin
refused "--interval '0.1.2' is not a time" show fat --interval 0.1.2
refused "--interval 0 is too short" top fat --interval 0
refused "--count -1 is not understood" top fat --count -1
refused "--for 'soon' is not a time" cross fat --for soon
refused "--rate unlimited: a flow needs a rate" cross fat --rate unlimited
refused "which cable?" fail fat
refused "unrecognized option '--all'" fail fat --all
refused "either cables or --all" heal fat h0-s1.0 --all
for c in show top draw "exec fat"; do
	# shellcheck disable=SC2086 # two words
	refused "there is no lab 'fat'" $c fat
done

run "$WEFT" lab list
check_code 0
check_eq "$out" ""
check_has "$err" "No lab is up."
run "$WEFT" lab list --json
check_code 0
check_eq "$out" "[]"
check_true test ! -e "$WEFT_LAB_DIR"

finish
