# The library under ASan and UBSan, in the flavour that has them: it, the programs and Weft's provider are
# instrumented, the MPI is not.
#
# The run-time comes with the program, and libweft-coll, which is preloaded before it, uses the same one
# (verify_asan_link_order=0). What an MPI never frees is not ours, and it has few frames that a suppression
# could name: leaks are not looked for. Open MPI must not patch munmap and others, which the run-time has
# taken (memory ^patcher).
#
# Not under TSan: whether what it says is true where the MPI between the threads is not instrumented has
# not been looked into.
if(NOT WEFT_SANITIZE MATCHES address OR NOT TARGET weft_fi)
  return()
endif()

include(${PROJECT_SOURCE_DIR}/tests/mpi/programs.cmake)
list(APPEND MPI_HEADERS ${CMAKE_CURRENT_SOURCE_DIR}/coll_check.h)
list(APPEND MPI_FLAGS -fsanitize=${WEFT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)

weft_mpi_program(coll_check coll_case.c coll_move.c coll_reduce.c coll_reductions.c coll_many.c)
weft_mpi_program(coll_threads coll_many.c)
weft_mpi_program(coll_carried)
weft_mpi_program(coll_ends)
weft_mpi_programs()

# weft_coll_sanitized(NAME MPI PLACE RANKS PROGRAM SECONDS WAYS): as weft_coll_test, by these ways.
function(weft_coll_sanitized name mpi place ranks program seconds ways)
  if(NOT MPICC_${mpi})
    return()
  endif()
  add_test(NAME coll.sanitized.${name}.${mpi}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/run.sh ${mpi} ${ranks} coll_${program} -t ${seconds})
  set_tests_properties(coll.sanitized.${name}.${mpi} PROPERTIES
    LABELS mpi TIMEOUT 180 SKIP_RETURN_CODE 77
    ENVIRONMENT "MPI_DIR=tests/coll;MPI_PLACE=${place};MPI_OPTIONS=--coll;WEFT=$<TARGET_FILE:weft>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${CMAKE_BINARY_DIR};ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0:abort_on_error=0:exitcode=99;UBSAN_OPTIONS=print_stacktrace=1:exitcode=99;OMPI_MCA_memory=^patcher;WEFT_COLL=${ways}")
endfunction()

set(others allreduce=tree,reduce_scatter=tree,allgather=tree,barrier=dissem,bcast=tree)
weft_coll_sanitized(shm openmpi host 3 check 0.15 alltoall=pap_shm_direct,${others})
weft_coll_sanitized(direct openmpi host 3 check 0.15 alltoall=pap_direct,alltoallv=pap_direct)
weft_coll_sanitized(carried openmpi lab 3 carried 0.5 alltoallv=direct)
weft_coll_sanitized(ends openmpi host 3 ends 0.5 auto)
weft_coll_sanitized(auto mpich host 2 check 0.15 auto)
weft_coll_sanitized(threads mpich host 2 threads 0.5 auto)
