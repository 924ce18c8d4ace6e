#!/bin/bash
# coll_check finds what is wrong, names the case, and the case can be repeated by itself. The library of
# the other MPI says so.
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
dir=$BUILD/tests/coll/openmpi
needs_mpi "$dir/coll_check"

# wrong OP ARGUMENTS: with an interposer whose OP is wrong.
wrong() {
	run env COLL_WRONG="$1" LD_PRELOAD="$dir/coll_wrong.so" timeout -k 5 60 "$WEFT" run -n 3 \
		"$dir/coll_check" -n 24 -t 5 -s 3 -p "${@:2}"
}

for op in alltoallv allreduce; do
	wrong $op $op
	[ "$code" -ne 0 ] || fail "$op: a wrong result was not found"
	check_has "$out" "FAIL $op: rank"
	check_has "$err" "to repeat: COLL_CASE="
	number=$(sed -n 's/.*COLL_CASE=\([0-9]*\),.*/\1/p' <<<"$err" | head -n 1)
	export COLL_CASE=$number
	wrong $op $op
	unset COLL_CASE
	check_has "$out$err" "$op:$number:"
	[ "$code" -ne 0 ] || fail "$op: case $number was right when it was repeated"
done
wrong barrier barrier
check_has "$out" "FAIL barrier: rank"
check_has "$out" "before the last one came"

# The same without anything wrong.
wrong none alltoallv
check_code 0
check_has "$out" " checks, 0 failures"

# Before anything has happened, every time.
other() {
	for _ in 1 2 3 4 5; do
		run timeout -k 5 30 env LD_PRELOAD="$BUILD/lib/libweft-coll.$1.so" "$BUILD/tests/coll/$2/fft" -c S
		check_code 1
		check_has "$err" "this is libweft-coll.$1.so, and the program runs on "
		check_has "$err" ": preload libweft-coll.$2.so instead"
	done
}
if [ -e "$BUILD/lib/libweft-coll.openmpi.so" ] && [ -e "$BUILD/lib/libweft-coll.mpich.so" ]; then
	other openmpi mpich
	other mpich openmpi
fi

# Places that are no file: said, and soon.
mkfifo "$tmp/fifo"
for what in "$tmp/fifo:it is not a file" "$tmp:Is a directory" "/dev/zero:it is not a file"; do
	run env WEFT_COLL_TOPOLOGY="${what%%:*}" WEFT_COLL=allreduce=tree timeout -k 5 30 "$WEFT" run --coll -n 2 \
		"$dir/coll_refused" -p "one buffer for both"
	check_code 0
	check_has "$err" "can not be read: ${what#*:}"
done

# A library of the user's has a C function with a name of Fortran's.
cd "$tmp" || exit 1
cat >user.c <<END
#include <stddef.h>
#include <mpi.h>
void mpi_init(void);
void mpi_init(void) { MPI_Init(NULL, NULL); }
END
cat >main.c <<END
#include <mpi.h>
void mpi_init(void);
int main(void) { mpi_init(); MPI_Barrier(MPI_COMM_WORLD); return MPI_Finalize(); }
END
for mpi in openmpi mpich; do
	[ -e "$BUILD/lib/libweft-coll.$mpi.so" ] || continue
	run "mpicc.$mpi" -shared -fPIC -o "libuser-$mpi.so" user.c
	check_code 0
	run "mpicc.$mpi" -o "main-$mpi" main.c "./libuser-$mpi.so"
	check_code 0
	run timeout -k 5 30 "$WEFT" run --coll -n 2 "./main-$mpi"
	check_code 0
done
finish
