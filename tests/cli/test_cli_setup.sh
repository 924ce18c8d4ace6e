#!/bin/bash
# scripts/setup.sh with pretended package tools: what it asks of apt, and when.
set -u
. "$(dirname "$0")/lib.sh"
: "${SOURCE:?source directory}"

# A world with a dpkg-query that knows the packages in $tmp/installed, an apt-get that
# writes down its arguments, and an id that says who we are.
bin=$tmp/bin
mkdir "$bin"
for tool in bash cat grep sort mktemp rm env dirname; do
	ln -s "$(command -v $tool)" "$bin/$tool"
done
printf '%s\n' "#!$(command -v bash)" "grep -qx \"\${!#}\" $tmp/installed && echo installed || exit 1" \
	>"$bin/dpkg-query"
printf '%s\n' "#!$(command -v bash)" \
	"echo \"\$DEBIAN_FRONTEND \$*\" >>$tmp/calls" \
	"case \" \$* \" in *' update '*) exit 0 ;; esac" \
	"[ -e $tmp/apt-works ] || { echo 'E: no luck'; rm -f $tmp/apt-fails-once && : >$tmp/apt-works; exit 100; }" \
	>"$bin/apt-get"
printf '%s\n' "#!$(command -v bash)" "cat $tmp/uid" >"$bin/id"
chmod +x "$bin"/{dpkg-query,apt-get,id}
setup() { run env -i PATH="$bin" "$SOURCE/scripts/setup.sh" "$@"; }
reset() {
	rm -f "$tmp/calls" "$tmp/apt-works"
	: >"$tmp/calls"
	echo "${1:-0}" >"$tmp/uid"
}

# All there: silence, and no apt.
reset
"$SOURCE/scripts/setup.sh" --list build demo >"$tmp/installed"
: >"$tmp/apt-works"
setup build demo
check_code 0
check_eq "$out$err" ""
check_eq "$(cat "$tmp/calls")" ""

# One removed: only that one is installed, without questions.
grep -vx perftest "$tmp/installed" >"$tmp/some" && mv "$tmp/some" "$tmp/installed"
reset
: >"$tmp/apt-works"
setup build demo
check_code 0
check_eq "$out" "setup: installing 1 Debian packages: perftest"
check_eq "$(wc -l <"$tmp/calls")" 1
check_has "$(cat "$tmp/calls")" "noninteractive"
check_has "$(cat "$tmp/calls")" "install -y --no-install-recommends perftest"

# A build does not ask for an MPI; the demo asks for one, the tests for both.
check_lacks "$("$SOURCE/scripts/setup.sh" --list build)" mpi
check_has "$("$SOURCE/scripts/setup.sh" --list demo)" openmpi-bin
check_lacks "$("$SOURCE/scripts/setup.sh" --list demo)" mpich
check_has "$("$SOURCE/scripts/setup.sh" --list test)" mpich

# Lists that are not there yet: update, and once more.
reset
setup demo
check_code 0
check_eq "$(grep -c update "$tmp/calls")" 1
check_eq "$(grep -c install "$tmp/calls")" 2

# An ordinary user without sudo is told what to do.
reset 1000
setup demo
check_code 2
check_has "$err" "  apt-get install -y --no-install-recommends perftest"
check_eq "$(cat "$tmp/calls")" ""

setup nonsense
check_code 2
check_has "$err" "unknown set 'nonsense'"

finish
