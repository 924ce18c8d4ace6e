#!/bin/bash
# One of the MPI programs of this directory: run.sh openmpi|mpich RANKS PROGRAM [OPTIONS]
#
# MPI_PLACE says where and over what:
#
#	tcp     this host, the MPI's own TCP: a test of the test, without Weft (Open MPI only)
#	host    this host, by weft run (the default)
#	lab     a fat tree of four hosts, by weft run --lab
#
# MPI_DIR says where in the build tree the program is (tests/mpi), MPI_OPTIONS, words, what else weft run is
# told. From the environment: WEFT, the command; SOURCE, the source tree; BUILD, the build tree.
: "${SOURCE:?the source tree}" "${BUILD:?the build tree}"
# shellcheck source=tests/lab/lib.sh
. "$SOURCE/tests/lab/lib.sh"
mpi=${1:?openmpi or mpich}
ranks=${2:?number of ranks}
program=$BUILD/${MPI_DIR:-tests/mpi}/$mpi/${3:?name of a program}
shift 3
place=${MPI_PLACE:-host}
read -ra options <<<"${MPI_OPTIONS:-}"
LIMIT=${MPI_LIMIT:-110} # seconds; programs end by themselves before that (-T)

if [ ! -x "$program" ]; then
	echo "skipped: $program was not built; is there an mpicc.$mpi?"
	exit 77
fi

# launcher: the command in $start.
launcher() {
	case $place in
	tcp)
		# Without these flags Open MPI 4.1.4 writes beyond receives that are too short; and
		# over btl tcp alone it makes no windows but those of pt2pt.
		start=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
			mpirun.openmpi --oversubscribe --bind-to none -np "$ranks"
			--mca pml ob1 --mca btl "self,tcp" --mca btl_tcp_flags 1
			--mca osc "pt2pt,sm")
		;;
	host)
		start=("$WEFT" run "${options[@]}" -n "$ranks")
		;;
	lab)
		needs_labs
		lab_new "${prefix}mpi" --pgft "2;2,2;1,2;1,1"
		start=("$WEFT" run "${options[@]}" --lab "${prefix}mpi" -n "$ranks")
		;;
	*)
		echo "MPI_PLACE=$place is not understood; expected tcp, host or lab"
		exit 2
		;;
	esac
}

launcher
run timeout -k 5 "$LIMIT" "${start[@]}" "$program" "$@"
printf '%s\n' "$out"
check_code 0
check_lacks "$out" FAIL
check_has "$out" " checks, 0 failures"
[ "$place" != lab ] || lab_end "${prefix}mpi"
finish
