#!/bin/bash
# weft run: which MPI and which launcher, what it starts, and what is left at the end.
set -u
. "$(dirname "$0")/lib.sh"
: "${SOURCE:?source directory}"
unset "${!OMPI_@}" "${!UCX_@}" "${!HYDRA_@}"
cd "$tmp" || exit 1
mkdir a b fake fake/lib fake/bin empty

# ---- programs of all kinds ----

cat >ranks.c <<'END'
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int ranks(int argc, char **argv);
int ranks(int argc, char **argv)
{
	int rank, size;
	char host[256], cwd[4096];

	MPI_Init(&argc, &argv);
	MPI_Comm_rank(MPI_COMM_WORLD, &rank);
	MPI_Comm_size(MPI_COMM_WORLD, &size);
	MPI_Barrier(MPI_COMM_WORLD);
	gethostname(host, sizeof(host));
	printf("rank %d of %d on %s in %s with %s and '%s'\n", rank, size, host,
	       getcwd(cwd, sizeof(cwd)), getenv("WEFT_TOLD") ? getenv("WEFT_TOLD") : "nothing",
	       argc > 2 ? argv[2] : "");
	fflush(stdout);
	if (argc > 3)
		sleep(atoi(argv[3]));
	MPI_Finalize();
	return argc > 1 ? atoi(argv[1]) : 0;
}
#ifndef PART
int main(int argc, char **argv)
{
	return ranks(argc, argv);
}
#endif
END
cat >user.c <<'END'
int ranks(int argc, char **argv);
int main(int argc, char **argv)
{
	return ranks(argc, argv);
}
END
printf '#include <stdio.h>\nint main(void) { fclose(fopen("ran", "w")); return 0; }\n' >plain.c
build() {
	"$@" >log 2>&1 || {
		fail "$*" "$(cat log)"
		finish
	}
}
for mpi in openmpi mpich; do
	build mpicc.$mpi -o $mpi ranks.c
	build mpicc.$mpi -shared -fPIC -DPART -o a/libranks-$mpi.so ranks.c
	build gcc -o through-$mpi user.c -La -lranks-$mpi "-Wl,-rpath,$tmp/a"
	build mpicc.$mpi -O2 -o drc-$mpi "$SOURCE/examples/drc.c"
done
build gcc -static -o static plain.c
build gcc -o dynamic plain.c
printf '#!/bin/sh\necho >ran\n' >script
chmod +x script
echo 'int MPI_Init(int *a, char ***b) { return a != 0 && b != 0; }' >stub.c
echo 'int MPI_Init(int *, char ***); int main(void) { return MPI_Init(0, 0); }' >stubbed.c
build gcc -shared -fPIC -Wl,-soname,libmpi.so.40 -o fake/lib/libmpi.so.40 stub.c
build gcc -o stubbed stubbed.c fake/lib/libmpi.so.40 "-Wl,-rpath,$tmp/fake/lib"

# ---- which launcher ----

print() { run "$WEFT" run -n 3 --print "$@"; }
# check_launcher openmpi|mpich
check_launcher() {
	check_code 0
	check_eq "$err" ""
	check_eq "$(wc -l <out)" 1
	if [ "$1" = openmpi ]; then
		check_has "$out" "mpirun.openmpi -n 3"
	else
		check_has "$out" "mpiexec.hydra -n 3"
	fi
}
for mpi in openmpi mpich; do
	for program in ./$mpi "$tmp/$mpi" ./through-$mpi; do
		print "$program"
		check_launcher $mpi
		check_has "$out" " $program"
	done
	for program in ./static ./dynamic ./script hostname; do
		print --mpi $mpi $program
		check_launcher $mpi
	done
done
for program in ./static ./dynamic ./script hostname; do
	print $program
	check_launcher openmpi
done
check_true test ! -e ran # none of them was run in order to look at it

run env PATH="$tmp:$PATH" "$WEFT" run -p -n 3 mpich
check_launcher mpich
print --mpi mpich ./openmpi
check_code 2
check_has "$err" "'./openmpi' is linked to Open MPI; started by MPICH,"

# Near the library before PATH; what is not the launcher of this MPI does not count.
printf '#!/bin/sh\necho "mpirun (Open MPI) 99.0"\n' >fake/bin/mpirun
printf '#!/bin/sh\necho "somebody else 1.0"\n' >fake/bin/orterun
chmod +x fake/bin/*
print ./stubbed
check_code 0
check_has "$out" " $tmp/fake/bin/mpirun -n 3"
run env PATH="$tmp/fake/bin:$tmp/empty" "$WEFT" run -p -n 3 ./stubbed
check_has "$out" " mpirun -n 3"
rm fake/bin/mpirun
run env PATH="$tmp/fake/bin:$tmp/empty" "$WEFT" run -n 3 ./stubbed
check_code 2
check_eq "$err" "weft run: './stubbed' is linked to Open MPI, but Open MPI's launcher was not found; it is in Debian's package openmpi-bin"
run env PATH="$tmp/empty" "$WEFT" run -n 3 --mpi mpich ./script
check_code 2
check_has "$err" "MPICH's launcher was not found; it is in Debian's package mpich"
run env PATH="$tmp/empty" "$WEFT" run -n 3 ./script
check_code 2
check_has "$err" "no MPI launcher was found in PATH"

# Quotes survive, what the user has set stays, and the line is a command.
# shellcheck disable=SC2016 # not for this shell
print --mpi-args "--mca a 'b c' d\\ e" ./openmpi "x y" '$z'
check_has "$out" "mpirun.openmpi -n 3 --mca a 'b c' 'd e' ./openmpi 'x y' '\$z'"
check_has "$out" OMPI_MCA_hwloc_base_binding_policy=none
# Collectives: only ranks load the library of their MPI, in front of what the user has preloaded.
export LD_PRELOAD=libm.so.6
print --coll ./openmpi
check_has "$out" "/libweft-coll.openmpi.so:libm.so.6 ./openmpi"
check_has "$out" " -x LD_PRELOAD=/"
print --coll ./mpich
check_has "$out" "/libweft-coll.mpich.so:libm.so.6"
check_has "$out" " -genv LD_PRELOAD /"
print ./openmpi
check_lacks "$out" libweft-coll
check_lacks "$err" WEFT_COLL
unset LD_PRELOAD
# Settings that nobody looks at are pointed out.
export WEFT_COLL_STATS=yes
print ./openmpi
check_has "$err" "WEFT_COLL_STATS is set, but without --coll "
print --coll ./openmpi
check_lacks "$err" WEFT_COLL_STATS
LD_PRELOAD=nowhere/libweft-coll.openmpi.so print ./openmpi
check_lacks "$err" WEFT_COLL_STATS
unset WEFT_COLL_STATS
# What is misspelt ends before anything is started.
WEFT_COLL=alltoal=direct print --coll ./openmpi
check_code 2
check_has "$err" "there is no operation 'alltoal'; there are alltoall, "
WEFT_COLL="alltoall=direct, bcast=tree" print --coll ./openmpi
check_code 0
WEFT_COLL=off print ./openmpi
check_lacks "$err" WEFT_COLL
mkdir -p tree/bin tree/lib
cp "$WEFT" tree/bin
cp "${WEFT%/bin/*}"/lib/lib{ibverbs.so.1,weft-probe.so} tree/lib
for mpi in openmpi mpich; do
	run tree/bin/weft run -n 3 --net stock --coll ./$mpi
	check_code 2
	check_has "$err" "/libweft-coll.$mpi.so is not there: "
	check_has "$err" "install Debian's package lib$mpi-dev, then make build"
done
run env OMPI_MCA_hwloc_base_binding_policy=core "$WEFT" run -n 3 -p ./openmpi
check_lacks "$out" binding_policy

# ---- wrong usage ----

for bad in 0 -1 x 3x "" 1.5 99999999999999999999; do
	run "$WEFT" run -n "$bad" ./openmpi
	check_code 2
	check_has "$err" "-n $bad is not understood; expected a number of ranks"
done
# fails CODE SENTENCE ARGUMENT...
fails() {
	local want=$1 sentence=$2
	shift 2
	run "$WEFT" run "$@"
	check_code "$want"
	check_has "$err" "$sentence"
	check_eq "$out" ""
}
fails 2 "how many ranks?" ./openmpi
fails 2 "which program?" -n 2
fails 2 "which program?" -n 2 --
fails 2 "--mpi lam is not known; expected openmpi or mpich" -n 2 --mpi lam ./openmpi
fails 2 "a quote that is not closed" -n 2 --mpi-args "'x" ./openmpi
fails 2 "--order is an order of a lab's hosts" -n 2 --order routing ./openmpi
fails 2 "nosuch" -n 2 --lab nosuch ./openmpi
fails 127 "program 'no-such-program' was not found in PATH" -n 2 no-such-program
fails 127 "program './no-such-program' was not found" -n 2 ./no-such-program
fails 126 "cannot execute './ranks.c'" -n 2 ./ranks.c
fails 126 "cannot execute './a'" -n 2 ./a
fails 2 "--agent is for MPI launchers" --agent h0 true

# ---- local processes ----

for mpi in openmpi mpich; do
	run env WEFT_TOLD=something timeout 60 "$WEFT" run -n 4 ./$mpi 0 "two words"
	check_code 0
	check_eq "$(sort out)" "$(for r in 0 1 2 3; do
		echo "rank $r of 4 on $(hostname) in $tmp with something and 'two words'"
	done)"
	run timeout 60 "$WEFT" run -n 2 ./$mpi 7
	check_code 7
	run timeout 60 "$WEFT" run -n 3 ./drc-$mpi -s 10000 -i 3 -w 1
	check_code 0
	check_has "$out" "Total: 2 steps"
	check_has "$out" "all data right"
done
run timeout 60 "$WEFT" run -n 2 ./script
check_code 0
run timeout 60 "$WEFT" run --mpi mpich -n 3 ./drc-mpich --csv --steps 2 -s 5
check_eq "$(head -1 out)" step,rank0_MBps,worst_MBps,worst_rank,mean_MBps,seconds
check_eq "$(sed 1d out | cut -d, -f1)" 2

# ---- on a lab ----

lab=run$(($$ % 100000))
run "$WEFT" lab up $lab --pgft "2;4,2;1,4;1,1" --rate 100mbit
if [ "$code" = 2 ] && [[ $err == *ermission* || $err == *"not permitted"* ]]; then
	echo "no labs here: $err"
	finish
fi
check_code 0
trap '"$WEFT" lab down $lab >/dev/null 2>&1; rm -rf "$tmp"' EXIT
# Processes on the lab, but for this one.
processes() {
	# shellcheck disable=SC2016 # for the inner shell
	"$WEFT" lab exec $lab h0 -- sh -c 'for p in /proc/[0-9]*; do
		pid=${p#/proc/}; [ "$pid" = 1 ] || [ "$pid" = $$ ] || tr "\0" " " <"$p/cmdline"; done' 2>/dev/null
}
# Nothing is left, at the latest after so many seconds.
check_gone() {
	for ((i = 0; i < $1 * 10; i++)); do
		[ -n "$(processes)" ] || break
		sleep 0.1
	done
	check_eq "$(processes)" ""
}
hosts() { sed -n 's/^rank \([0-9]*\) of [0-9]* on \([^ ]*\) .*/\1 \2/p' out | sort -n | cut -d' ' -f2 | tr '\n' ' '; }
# in_turn HOST...: the names of 10 ranks on them
in_turn() {
	local all=("$@") r
	for ((r = 0; r < 10; r++)); do
		printf '%s-%s ' $lab "${all[r % ${#all[@]}]}"
	done
}
on_lab() { run env WEFT_TOLD=something timeout 60 "$WEFT" run --lab $lab "$@"; }
printf '# a comment\nh5\n\nh2 slots=1\nh7\n' >order

# shuffled SEED N: the hosts of ranks 0, 1, … by the portable rule: splitmix64, and from the
# end each place swapped with one of those up to it. Bash has 64 bits, but with a sign.
shuffled() {
	local s=$1 n=$2 i j t z a=()
	for ((i = 0; i < n; i++)); do
		a[i]=h$i
	done
	for ((i = n - 1; i > 0; i--)); do
		((s += 0x9E3779B97F4A7C15, z = s))
		((z = (z ^ (z >> 30 & 0x3ffffffff)) * 0xBF58476D1CE4E5B9))
		((z = (z ^ (z >> 27 & 0x1fffffffff)) * 0x94D049BB133111EB))
		((z ^= z >> 31 & 0x1ffffffff))
		((j = ((z >> 1 & 0x7fffffffffffffff) % (i + 1) * 2 + (z & 1)) % (i + 1)))
		t=${a[i]} a[i]=${a[j]} a[j]=$t
	done
	echo "${a[@]}"
}
for mpi in openmpi mpich; do
	on_lab -n 10 ./$mpi 0 "two words"
	check_code 0
	check_eq "$(hosts)" "$(in_turn h0 h1 h2 h3 h4 h5 h6 h7)"
	check_eq "$(grep -c "in $tmp with something and 'two words'" out)" 10
	on_lab -n 10 --order "file:order" ./$mpi
	check_eq "$(hosts)" "$(in_turn h5 h2 h7)"
	on_lab -n 10 --order random:7 ./$mpi
	# shellcheck disable=SC2046 # words
	check_eq "$(hosts)" "$(in_turn $(shuffled 7 8))"
	on_lab -n 3 ./$mpi 7
	check_code 7
	on_lab -n 5 ./drc-$mpi -s 3000 -i 2 -w 1
	check_code 0
	check_has "$out" "Total: 4 steps"
	check_gone 3
done
# (Not at once: of programs that are no MPI programs and end in a moment, Hydra sometimes finds a
# proxy gone that it still wants to tell something, and fails.)
on_lab -n 2 --mpi mpich sh -c 'sleep 0.5; hostname'
check_eq "$(sort out)" "$lab-h0
$lab-h1"
# Each host has one, and all of them share the cores: they are told.
for mpi in openmpi mpich; do
	# shellcheck disable=SC2016 # of the ranks' shell
	on_lab -n 3 --mpi $mpi sh -c 'sleep 0.5; echo $WEFT_NEIGHBOURS'
	check_eq "$(sort -u out)" 3
done
on_lab -n 2 -p ./mpich
check_has "$out" "weft lab exec $lab h0 -- env "

# The packets went over the lab.
# shellcheck disable=SC2016 # of awk
bytes() { "$WEFT" lab exec $lab h3 -- awk '/eth0:/ { print $10 }' /proc/net/dev; }
for mpi in openmpi mpich; do
	before=$(bytes)
	on_lab -n 4 ./drc-$mpi -s 100000 -i 1 -w 1
	check_true test $(($(bytes) - before)) -gt 600000
done

# However it ends, it ends, and nothing stays.
for mpi in openmpi mpich; do
	for signal in TERM INT KILL; do
		set -m # background commands ignore SIGINT unless job control is on
		"$WEFT" run --lab $lab -n 8 ./$mpi 0 x 100 >out 2>err </dev/null &
		job=$!
		set +m
		for ((i = 0; i < 300; i++)); do
			[ "$(grep -c '^rank' out)" -lt 8 ] || break
			sleep 0.1
		done
		check_eq "$(grep -c '^rank' out)" 8
		kill -$signal $job
		code=0
		wait $job 2>/dev/null || code=$?
		check_true test "$code" -gt 0
		check_gone 8
	done
done

fails 2 "--order sideways" --lab $lab -n 2 --order sideways ./openmpi
fails 2 "--order file:nosuch" --lab $lab -n 2 --order file:nosuch ./openmpi
echo h99 >order
fails 2 "h99" --lab $lab -n 2 --order file:order ./openmpi
: >order
fails 2 "--order file:order" --lab $lab -n 2 --order file:order ./openmpi
fails 127 "program 'no-such-program' was not found in PATH" --lab $lab -n 2 no-such-program

run "$WEFT" lab down $lab
check_code 0
finish
