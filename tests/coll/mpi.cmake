# Collectives by their MPI_ names beside the MPI's own, see coll_check.h: without an interposer that is
# a test of the test.
if(WEFT_SANITIZE)
  include(sanitize.cmake)
  return()
endif()

include(${PROJECT_SOURCE_DIR}/tests/mpi/programs.cmake)
list(APPEND MPI_HEADERS ${CMAKE_CURRENT_SOURCE_DIR}/coll_check.h)

weft_mpi_program(coll_check coll_case.c coll_move.c coll_reduce.c coll_reductions.c coll_many.c)
weft_mpi_program(coll_threads coll_many.c)
weft_mpi_build(coll_wrong.so "-shared;-fPIC;-Wno-missing-prototypes" coll_wrong.c)
# For bench_coll.sh, too.
set(EXAMPLES ${PROJECT_SOURCE_DIR}/examples)
list(APPEND MPI_HEADERS ${EXAMPLES}/fft_grid.h)
weft_mpi_build(fft "" "${EXAMPLES}/fft.c;${EXAMPLES}/fft_grid.c")
weft_mpi_program(coll_progress)
weft_mpi_program(coll_ends)
weft_mpi_program(coll_spawn)
weft_mpi_program(coll_refused)
weft_mpi_program(coll_same)
weft_mpi_program(coll_comms)
weft_mpi_program(coll_room)
weft_mpi_program(coll_sizes)
weft_mpi_program(coll_after)
weft_mpi_program(coll_idle)
weft_mpi_build(coll_noshm.so "-shared;-fPIC;-Wno-missing-prototypes" coll_noshm.c)
weft_mpi_program(coll_carried)
weft_mpi_program(coll_large)
weft_mpi_build(coll_killed "" coll_killed.c)
weft_mpi_programs()

# Communicators are set up at their first call, unless WEFT_COLL_AFTER is said again.
#
# weft_coll_test(NAME MPI PLACE RANKS PROGRAM SECONDS [NAME=VALUE...]): SECONDS for each part.
function(weft_coll_test name mpi place ranks program seconds)
  if(NOT MPICC_${mpi})
    return()
  endif()
  add_test(NAME coll.${name}.${mpi}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/run.sh ${mpi} ${ranks} coll_${program}
                   -t ${seconds})
  set_tests_properties(coll.${name}.${mpi} PROPERTIES
    LABELS "plain;mpi" TIMEOUT 180 SKIP_RETURN_CODE 77
    ENVIRONMENT "WEFT_COLL_AFTER=0;MPI_DIR=tests/coll;MPI_PLACE=${place};WEFT=$<TARGET_FILE:weft>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${CMAKE_BINARY_DIR};${ARGN}")
endfunction()

weft_coll_test(own.check openmpi host 5 check 0.5)
weft_coll_test(own.threads openmpi host 3 threads 1)
# MPICH's ranks do not yield: it needs cores for all of them.
weft_coll_test(own.check mpich host 2 check 0.3)
weft_coll_test(own.threads mpich host 2 threads 1)

foreach(name wrong noshm room fft choice carried large after)
  add_test(NAME coll.${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/${name}.sh)
  set_tests_properties(coll.${name} PROPERTIES
    LABELS "plain;mpi" TIMEOUT 120 SKIP_RETURN_CODE 77
    ENVIRONMENT "WEFT_COLL_AFTER=0;WEFT=$<TARGET_FILE:weft>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${CMAKE_BINARY_DIR}")
endforeach()
