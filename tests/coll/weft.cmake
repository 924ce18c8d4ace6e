# libweft-coll: its parts by themselves, and programs with it.
foreach(name bank kinds mail names shm watch window)
  weft_cmocka_test(test_coll_${name} LIBS coll_base)
  target_compile_definitions(test_coll_${name} PRIVATE _GNU_SOURCE)
endforeach()
if(WEFT_SANITIZE)
  return()
endif()

# weft_coll_with(NAME MPI PLACE RANKS PROGRAM SECONDS [NAME=VALUE...]): as weft_coll_test, with --coll.
function(weft_coll_with name mpi place ranks program seconds)
  weft_coll_test(${name} ${mpi} ${place} ${ranks} ${program} ${seconds} MPI_OPTIONS=--coll ${ARGN})
endfunction()

# Every variant, on one host and on a lab whose hosts have unlike numbers of ranks; several operations in
# one launch where they do not care about each other.
set(tree allreduce=tree,reduce_scatter=tree,allgather=tree,barrier=dissem,bcast=tree)
set(halving allreduce=halving,reduce_scatter=halving,bcast=direct)
weft_coll_with(auto openmpi host 6 check 0.4)
# Communicators that the MPI has had for some calls.
weft_coll_with(later openmpi host 5 check 0.3 WEFT_COLL_AFTER=3)
weft_coll_with(later mpich host 2 check 0.2 WEFT_COLL_AFTER=1)
weft_coll_with(direct openmpi host 5 check 0.3 WEFT_COLL=alltoall=direct,alltoallv=direct)
weft_coll_with(pap_direct openmpi host 5 check 0.3 WEFT_COLL=alltoall=pap_direct,alltoallv=pap_direct)
# Long blocks in parts, as where the system does not let ranks read each other's memory; and none copied twice.
weft_coll_with(parts openmpi host 6 check 0.3 WEFT_COLL=alltoall=pap_direct,alltoallv=pap_direct WEFT_COLL_FETCH=no)
weft_coll_with(fetched openmpi host 7 check 0.3 WEFT_COLL=alltoall=direct,alltoallv=direct WEFT_COLL_COPY_MAX=0)
weft_coll_with(shm_direct openmpi host 7 check 0.3 WEFT_COLL=alltoall=shm_direct,${tree})
weft_coll_with(off openmpi host 3 check 0.1 WEFT_COLL=off)
weft_coll_with(lab.auto openmpi lab 7 check 0.3)
weft_coll_with(lab.zero_copy openmpi lab 7 check 0.3 WEFT_COLL=alltoall=pap_direct,alltoallv=pap_direct
               WEFT_COLL_COPY_MAX=0 WEFT_COLL_COPY_FAR=0)
weft_coll_with(lab.copy openmpi lab 7 check 0.3 WEFT_COLL=alltoall=direct,alltoallv=direct WEFT_COLL_COPY_MAX=1M WEFT_COLL_COPY_FAR=1M)
weft_coll_with(lab.shm openmpi lab 11 check 0.3 WEFT_COLL=alltoall=shm_direct,${halving})
weft_coll_with(lab.pap_shm openmpi lab 11 check 0.3 WEFT_COLL=alltoall=pap_shm_direct,${tree})
weft_coll_with(lab.lossy openmpi lab 6 check 0.3 WEFT_FAULT=loss=0.01,seed=7)
weft_coll_with(lab.provider openmpi lab 5 check 0.2 "WEFT_COLL_PROVIDER=tcp\\\;ofi_rxm"
               WEFT_COLL=alltoall=pap_direct,alltoallv=pap_direct)
weft_coll_with(threads openmpi host 3 threads 1)
weft_coll_with(tree.threads openmpi host 3 threads 0.5 WEFT_COLL=${tree})
weft_coll_with(lab.threads openmpi lab 6 threads 0.5)
foreach(mpi openmpi mpich)
  weft_coll_with(same ${mpi} host 3 same 1 WEFT_COLL_SAME_SUMS=yes)
  weft_coll_with(same.tree ${mpi} host 3 same 1 WEFT_COLL=alltoallv=pap_direct,${tree})
  weft_coll_with(lab.same ${mpi} lab 7 same 1 WEFT_COLL_SAME_SUMS=yes)
endforeach()
# Each rank as on a host of its own: the network on one host, without a lab.
weft_coll_with(apart openmpi host 7 check 0.3 WEFT_COLL_SHM=no)
weft_coll_with(apart.tree openmpi host 5 check 0.3 WEFT_COLL_SHM=no WEFT_COLL=alltoall=pap_direct,alltoallv=pap_direct,${tree})
weft_coll_with(progress openmpi host 4 progress 1)
weft_coll_with(ends openmpi host 3 ends 1)
# Hydra of MPICH 4.0 does not spawn here.
weft_coll_with(spawn openmpi host 2 spawn 1)
weft_coll_with(refused openmpi host 3 refused 1 WEFT_COLL=alltoall=pap_direct,${tree})
# More communicators than are the library's, and for MPICH as many as it has.
weft_coll_with(comms openmpi host 2 comms 1)
weft_coll_with(comms mpich host 2 comms 1)
weft_coll_with(auto mpich host 3 check 0.2)
weft_coll_with(pap_direct mpich host 3 check 0.2 WEFT_COLL=alltoall=pap_direct,alltoallv=pap_direct)
weft_coll_with(lab.direct mpich lab 4 check 0.1 WEFT_COLL=alltoall=direct,alltoallv=direct)
weft_coll_with(lab.auto mpich lab 4 check 0.2)
weft_coll_with(lab.pap_direct mpich lab 4 check 0.2 WEFT_COLL=alltoall=pap_direct,alltoallv=pap_direct,${tree})
weft_coll_with(tree mpich host 2 check 0.1 WEFT_COLL=${tree})
weft_coll_with(threads mpich host 2 threads 1)
# Whose threads poll the same device, with the MPI's lock in their hands.
weft_coll_with(lab.threads mpich lab 6 threads 0.5)
weft_coll_with(lab.tree.threads mpich lab 4 threads 0.5 WEFT_COLL=alltoall=pap_direct,alltoallv=pap_direct,${tree})
weft_coll_with(progress mpich host 2 progress 1)
weft_coll_with(ends mpich host 3 ends 1)
weft_coll_with(refused mpich host 2 refused 1 WEFT_COLL=alltoall=pap_direct,${tree})
# Whose ranks poll a device of the same process without end, and two of which are on each host.
weft_coll_with(lab.pap_shm mpich lab 8 check 0.2 WEFT_COLL=alltoall=pap_shm_direct,${tree})
weft_coll_with(lab.shm mpich lab 5 check 0.1 WEFT_COLL=alltoall=shm_direct,${halving})

# Who waits for a rank that is late leaves the cores to others.
foreach(mpi openmpi mpich)
  weft_coll_with(idle ${mpi} host 4 idle 1 WEFT_COLL=alltoall=pap_shm_direct,allgather=tree,bcast=tree,allreduce=tree,barrier=dissem)
  weft_coll_with(idle.direct ${mpi} host 4 idle 1 WEFT_COLL=alltoall=pap_direct,bcast=direct,allreduce=halving)
  weft_coll_with(lab.idle ${mpi} lab 4 idle 1 WEFT_COLL=alltoall=pap_shm_direct,allgather=tree,bcast=tree,allreduce=tree,barrier=dissem)
  weft_coll_with(lab.idle.direct ${mpi} lab 4 idle 1 WEFT_COLL=alltoall=pap_direct,bcast=direct,allreduce=halving)
endforeach()
# Every kind of communicator and collective that the MPI's own tests have, between two groups, too.
foreach(place host lab)
  foreach(program coll comm)
    add_test(NAME coll.mpi.${program}.${place}
             COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/run.sh openmpi 4 mpi_${program})
    set_tests_properties(coll.mpi.${program}.${place} PROPERTIES
      LABELS "plain;mpi" TIMEOUT 180 SKIP_RETURN_CODE 77
      ENVIRONMENT "WEFT_COLL_AFTER=0;MPI_PLACE=${place};MPI_OPTIONS=--coll;WEFT=$<TARGET_FILE:weft>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${CMAKE_BINARY_DIR}")
  endforeach()
endforeach()

# weft_coll_sizes(NAME MPI PLACE RANKS STEP WAYS): communicators of 1, 1 + STEP, ... up to RANKS ranks.
# Alone, and patient: a rank may not have its turn for seconds.
function(weft_coll_sizes name mpi place ranks step ways)
  if(NOT MPICC_${mpi})
    return()
  endif()
  add_test(NAME coll.sizes.${name}.${mpi}
           COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/run.sh ${mpi} ${ranks} coll_sizes -n ${step} -T 160)
  set_tests_properties(coll.sizes.${name}.${mpi} PROPERTIES
    LABELS "plain;mpi" TIMEOUT 200 SKIP_RETURN_CODE 77 RUN_SERIAL yes
    ENVIRONMENT "WEFT_COLL_AFTER=0;MPI_DIR=tests/coll;MPI_PLACE=${place};MPI_LIMIT=170;WEFT_RD_TIMEOUT=60000;MPI_OPTIONS=--coll;WEFT=$<TARGET_FILE:weft>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${CMAKE_BINARY_DIR};WEFT_COLL=${ways}")
endfunction()

# Blocks of 4 MiB between 17 ranks.
foreach(way direct pap_direct shm_direct pap_shm_direct)
  weft_coll_sizes(long.${way} openmpi host 17 16 alltoall=${way},alltoallv=pap_direct,${halving})
  if(TEST coll.sizes.long.${way}.openmpi)
    set_property(TEST coll.sizes.long.${way}.openmpi APPEND PROPERTY ENVIRONMENT COLL_MIB=68)
  endif()
endforeach()
# Of few ranks, all lengths up to 4 MiB.
foreach(mpi openmpi mpich)
  weft_coll_sizes(few.auto ${mpi} host 4 1 auto)
  weft_coll_sizes(few.direct ${mpi} host 4 1 alltoall=direct,alltoallv=direct,${halving})
  weft_coll_sizes(few.pap_direct ${mpi} host 4 1 alltoall=pap_direct,alltoallv=pap_direct,${tree})
  weft_coll_sizes(few.shm ${mpi} host 4 1 alltoall=shm_direct,${halving})
  weft_coll_sizes(few.pap_shm ${mpi} host 4 1 alltoall=pap_shm_direct,${tree})
  weft_coll_sizes(few.lab.pap_direct ${mpi} lab 2 1 alltoall=pap_direct,alltoallv=pap_direct,${halving})
endforeach()
weft_coll_sizes(few.lab.pap_shm openmpi lab 3 1 alltoall=pap_shm_direct,${tree})
weft_coll_sizes(auto openmpi host 48 5 auto)
weft_coll_sizes(direct openmpi host 48 9 alltoall=direct,alltoallv=direct,${halving})
weft_coll_sizes(pap_direct openmpi host 48 10 alltoall=pap_direct,alltoallv=pap_direct,${tree})
weft_coll_sizes(shm openmpi host 48 11 alltoall=shm_direct,${halving})
weft_coll_sizes(pap_shm openmpi host 48 12 alltoall=pap_shm_direct,${tree})
weft_coll_sizes(lab.pap_direct openmpi lab 23 7 alltoall=pap_direct,alltoallv=pap_direct,${halving})
weft_coll_sizes(lab.pap_shm openmpi lab 24 7 alltoall=pap_shm_direct,${tree})
weft_coll_sizes(auto mpich host 48 47 auto)
# Its ranks spin while communicators are made, which takes a second with so many.
weft_coll_sizes(direct mpich host 48 16 alltoall=direct,alltoallv=direct,${halving})
weft_coll_sizes(pap_direct mpich host 48 15 alltoall=pap_direct,alltoallv=pap_direct,${tree})
weft_coll_sizes(shm mpich host 48 22 alltoall=shm_direct,${halving})
weft_coll_sizes(pap_shm mpich host 48 13 alltoall=pap_shm_direct,${tree})
weft_coll_sizes(lab.pap_shm mpich lab 24 11 alltoall=pap_shm_direct,${tree})

# Only calls whose results are known beforehand: with so many ranks, Open MPI 4.1's own MPI_Alltoall
# (Bruck's algorithm) destroys memory if a datatype has gaps.
if(MPICC_openmpi)
  add_test(NAME coll.crowd.openmpi
           COMMAND ${PROJECT_SOURCE_DIR}/tests/mpi/run.sh openmpi 48 coll_check -t 1 -p behind)
  set_tests_properties(coll.crowd.openmpi PROPERTIES
    LABELS "plain;mpi" TIMEOUT 180 SKIP_RETURN_CODE 77
    ENVIRONMENT "WEFT_COLL_AFTER=0;MPI_DIR=tests/coll;MPI_OPTIONS=--coll;WEFT=$<TARGET_FILE:weft>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${CMAKE_BINARY_DIR}")
endif()

if(MPICC_openmpi)
  add_test(NAME coll.tree COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/tree.sh)
  set_tests_properties(coll.tree PROPERTIES
    LABELS "plain;mpi" TIMEOUT 600 SKIP_RETURN_CODE 77
    ENVIRONMENT "WEFT_COLL_AFTER=0;WEFT=$<TARGET_FILE:weft>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${CMAKE_BINARY_DIR}")
endif()

add_test(NAME coll.fortran COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/fortran.sh)
set_tests_properties(coll.fortran PROPERTIES
  LABELS "plain;mpi" TIMEOUT 120 SKIP_RETURN_CODE 77
  ENVIRONMENT "WEFT_COLL_AFTER=0;WEFT=$<TARGET_FILE:weft>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${CMAKE_BINARY_DIR}")

foreach(mpi openmpi mpich)
  add_test(NAME coll.killed.${mpi} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/killed.sh ${mpi})
  set_tests_properties(coll.killed.${mpi} PROPERTIES
    LABELS "plain;mpi" TIMEOUT 420 SKIP_RETURN_CODE 77
    ENVIRONMENT "WEFT_COLL_AFTER=0;WEFT=$<TARGET_FILE:weft>;SOURCE=${PROJECT_SOURCE_DIR};BUILD=${CMAKE_BINARY_DIR}")
endforeach()
