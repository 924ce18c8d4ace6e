# Helpers of the lab's tests: those of the command line (check_*, run, finish), and
#
#	lab ARGUMENTS           weft lab, with labs of this test only
#	needs_labs; needs_mpi PROGRAM   the test is skipped without
#	lab_new NAME OPTIONS    brings one up that the test takes down at its end
#	census; nothing_left    nothing of what was there in between is left
#
# From the environment: WEFT, the command; SOURCE, the source tree; BUILD, the build tree.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$SOURCE/tests/cli/lib.sh"

# Names of their own, so that tests can run side by side and beside a user's labs.
prefix=t$$
labs=()

# Places where it can not be shown are rare, and not passed over in silence.
needs_labs() {
	local why
	run "$WEFT" lab up "${prefix}try" --pgft "1;2;1;1"
	if [ "$code" -eq 0 ]; then
		"$WEFT" lab down "${prefix}try" >/dev/null
		return
	fi
	why=$err
	case $why in
	*"no permission to make"*)
		echo "skipped: $why"
		exit 77
		;;
	esac
	echo "FAILED: no lab comes up: $why"
	exit 1
}

# needs_mpi PROGRAM: where no MPI was found there is none.
needs_mpi() {
	[ ! -x "$1" ] || return 0
	echo "skipped: there are no MPI programs"
	exit 77
}

lab() { "$WEFT" lab "$@"; }

lab_new() {
	labs+=("$1")
	run lab up "$@"
	check_code 0
	[ "$code" -eq 0 ] || finish
}

lab_end() {
	run lab down "$1"
	check_code 0
}

cleanup_labs() {
	local name
	for name in "${labs[@]}"; do
		lab down "$name" >/dev/null 2>&1
	done
	rm -rf "$tmp"
}
trap cleanup_labs EXIT

# ---- what is there on the machine ----

# Namespaces of a running lab, one per line, as the kernel names them.
namespaces_of() {
	local holder
	holder=$(lab show "$1" --json --interval 1ms | jq .pid)
	{
		readlink /proc/"$holder"/ns/{net,uts,mnt,pid,ipc}
		find /proc/"$holder"/fd -lname '*:\[*' -printf '%l\n'
	} | sort -u
}

# still_held NAMESPACE...: who keeps one of them alive, as a process, a file or a mount.
still_held() {
	[ $# -gt 0 ] && [ -n "$1" ] || {
		echo "no namespaces given"
		return
	}
	printf '%s\n' "$@" >"$tmp/held"
	{
		find /proc/[0-9]*/ns /proc/[0-9]*/fd -type l -printf '%l %p\n' 2>/dev/null
		cat /proc/[0-9]*/mountinfo 2>/dev/null
	} | grep -Ff "$tmp/held" | while read -r what where; do
		is_alive "$(cut -d / -f 3 <<<"$where")" && echo "$what $where"
	done
}

# Dead, but not yet asked for by its parent, counts as dead: some machines' first process
# takes its time.
is_alive() {
	case $(sed 's/.*) //' "/proc/$1/stat" 2>/dev/null) in
	"" | [ZX]*) return 1 ;;
	esac
}

# What the machine has: interfaces, mounts, routes, addresses, named namespaces, files.
census() {
	{
		ip -o addr | sed 's/valid_lft.*//'
		ip -o link | awk '{ print $2 }'
		ip route
		cat /proc/self/mounts
		ls -d /run/netns/* /run/weft/* /dev/shm/* /etc/hosts 2>/dev/null
		cat /etc/hosts /proc/sys/kernel/hostname
		sysctl net.ipv4.ip_forward net.ipv4.conf.all.rp_filter
	} 2>/dev/null
}

# Processes of ours that a lab could have left: that of the lab itself keeps its arguments.
processes() { pgrep -f -- "lab up $1"; }
