# Helpers of the tests with OpenSM: those of the command line (check_*, run, finish), and
#
#	sim_up NET              starts ibsim with this network, a fresh one each time
#	sim PROGRAM...          runs a program on it, as the first host
#	opensm_file DIR [OPTIONS]
#	                        OpenSM with the files that `weft fabric route --opensm DIR` has
#	                        written; what it dumps is in DIR, too
#	sim_down
#
# From the environment: WEFT, the command; SOURCE, the source tree; BUILD, the build tree.
# shellcheck shell=bash
set -uo pipefail
# shellcheck source=tests/cli/lib.sh
. "$SOURCE/tests/cli/lib.sh"

PATH=$PATH:/usr/sbin:/sbin # OpenSM and the diagnostic programs are there
export LC_ALL=C
LIMIT=120 # seconds that a program may take; OpenSM never ends on some errors
simulator=
count=0

# needs PACKAGE:PROGRAM...
needs() {
	local pair absent=()
	for pair; do
		command -v "${pair#*:}" >/dev/null || absent+=("${pair%%:*} (for ${pair#*:})")
	done
	[ ${#absent[@]} -eq 0 ] || {
		echo "FAILED: these Debian packages are not installed: ${absent[*]}"
		exit 1
	}
}
needs opensm:opensm ibsim-utils:ibsim ibsim-utils:ibsim-run ibutils:ibdmchk ibutils:ibdmsh \
	infiniband-diags:ibtracert

# ---- the simulator ----

sim_down() {
	[ -n "$simulator" ] || return 0
	kill "$simulator" 2>/dev/null
	wait "$simulator" 2>/dev/null
	simulator=
}

cleanup_sim() {
	sim_down
	rm -rf "$tmp"
}
trap cleanup_sim EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# A network of its own each time: ibsim keeps LIDs and tables between runs of OpenSM.
sim_up() {
	local nodes ports
	sim_down
	count=$((count + 1))
	export IBSIM_SOCKNAME=weft$$.$count
	read -r nodes ports < <(awk '/^(Switch|Ca)[ \t]/ { n++; p += $2 + 1 } END { print n, p }' "$1")
	SIM_HOST=$(sed -n 's/^Ca[^"]*"\([^"]*\)".*/\1/p' "$1" | head -n 1)
	export SIM_HOST
	timeout -k 5 $((3 * LIMIT)) ibsim -s -n -N $((nodes + 10)) -S $((nodes + 10)) \
		-P $((ports + 100)) -L 49151 -M 64 "$1" >"$tmp/ibsim.log" 2>&1 </dev/null &
	simulator=$!
	for _ in {1..500}; do
		! grep -aq "@$IBSIM_SOCKNAME:ctl" /proc/net/unix || return 0
		kill -0 "$simulator" 2>/dev/null || break
		sleep 0.02
	done
	fail "ibsim does not start" "$(tail -n 20 "$tmp/ibsim.log")"
	finish
}

sim() { timeout -k 5 "$LIMIT" ibsim-run "$@" </dev/null; }

# opensm DIR OPTIONS: one sweep. Its exit code says nothing; the log has to.
opensm_run() {
	local dir=$1
	shift
	mkdir -p "$dir/cache"
	OSM_CACHE_DIR=$dir/cache OSM_TMP_DIR=$dir sim opensm -o -F /dev/null --dump_files_dir "$dir" \
		-f "$dir/opensm.log" -e -D 0x43 "$@" >"$dir/opensm.out" 2>&1
}

# configured DIR ENGINE: is it that one which made the tables?
configured() {
	checks=$((checks + 1))
	grep -aq "$2 tables configured on all switches" "$1/opensm.log" ||
		fail "OpenSM did not take $2:" "$(tail -n 20 "$1/opensm.log")"
}

# With the LIDs that the tables speak of.
opensm_file() {
	local dir=$1
	shift
	mkdir -p "$dir/cache"
	cp "$dir/guid2lid" "$dir/cache/guid2lid"
	opensm_run "$dir" -R file -U "$dir/lfts" -x "$@"
	configured "$dir" file
}

# ---- what the programs write ----

# entries FILE: tables as lines "switch LID port", in order; all that is a comment is dropped.
entries() {
	awk '/^Unicast lids/ { for (i = 1; i < NF; i++) if ($i == "guid") g = $(i + 1) }
		/^0x/ { print g, $1, $2 }' "$1" | sort
}

# same_tables A B: bit by bit.
same_tables() {
	checks=$((checks + 1))
	entries "$1" >"$tmp/a"
	entries "$2" >"$tmp/b"
	[ -s "$tmp/a" ] || fail "no tables in $1"
	cmp -s "$tmp/a" "$tmp/b" || fail "${1##*/} and ${2##*/} differ:" "$(diff "$tmp/a" "$tmp/b" | head)"
}

# plane DIR LMC HOSTS ADDRESS: OpenSM's dump as if each host had this one of its addresses only.
# (ibdmchk has an option for LMC, but then takes 1, 5, 9 ... for the first addresses.)
plane() {
	awk -v n=$((1 << $2)) -v end=$((($3 + 1) << $2)) -v a="$4" '
		function flush(i, from) {
			for (i = 1; i <= count; i++) {
				from = i % n == 0 && i < end ? i + a : i
				print lid[i] rest[from]
			}
			count = 0
		}
		/^0x/ { lid[++count] = $1; rest[count] = substr($0, length($1) + 1); next }
		{ flush(); print }
		END { flush() }' "$1/opensm.fdbs"
}

# judge DIR LMC HOSTS [ALL]: ibdmchk walks from every host to every other, ALL of them if there are
# others beside the tree, and looks for credit loops.
# At its end it crashes (a function of it returns nothing), so it is judged by what it prints.
judge() {
	local dir=$1 lmc=$2 hosts=$3 all=${4:-$3} address
	for ((address = 0; address < 1 << lmc; address++)); do
		plane "$dir" "$lmc" "$hosts" $address >"$dir/fdbs"
		(cd "$dir" && timeout -k 5 "$LIMIT" ibdmchk -s opensm-subnet.lst -f fdbs \
			-m opensm.mcfdbs >ibdmchk.out 2>&1) 2>/dev/null
		grep -aE '^-[EWI]-' "$dir/ibdmchk.out" | head -n 40 >"$dir/said"
		check_has "$(cat "$dir/said")" "Scanned:$((all * (all - 1))) CA to CA paths"
		check_has "$(cat "$dir/said")" "no credit loops found"
		check_eq "$(grep -aE '^-[EW]-' "$dir/said")" ""
	done
}
