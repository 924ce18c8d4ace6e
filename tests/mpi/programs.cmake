# MPI programs that check themselves, built by the compiler wrapper of each MPI that is here, as
# a user would build them: openmpi/ and mpich/ in the build tree of the directory that includes this.
# In builds with sanitizers there are only those of tests/coll/sanitize.cmake.
set(MPI_FLAGS -std=gnu11 -O2 -g -pthread -Wall -Wextra -Wshadow -Wstrict-prototypes
              -Wmissing-prototypes -Wundef -I${PROJECT_SOURCE_DIR}/src/util
              -I${CMAKE_CURRENT_LIST_DIR})
if(WEFT_WERROR)
  list(APPEND MPI_FLAGS -Werror)
endif()
# MPICH's MPI_STATUSES_IGNORE is the address 1, which gcc takes for an array that is too small.
set(MPI_FLAGS_mpich -Wno-stringop-overflow)
set(MPI_COMMON ${CMAKE_CURRENT_LIST_DIR}/mpi_test.c ${CMAKE_CURRENT_LIST_DIR}/mpi_data.c)
set(MPI_HEADERS ${CMAKE_CURRENT_LIST_DIR}/mpi_test.h ${PROJECT_SOURCE_DIR}/src/util/util_rand.h)

find_program(MPICC_openmpi mpicc.openmpi)
find_program(MPICC_mpich mpicc.mpich)

# weft_mpi_build(NAME FLAGS SOURCES): with what all of them share, which is in FLAGS or SOURCES.
function(weft_mpi_build name flags sources)
  get_filename_component(where ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  foreach(mpi openmpi mpich)
    if(NOT MPICC_${mpi})
      continue()
    endif()
    set(dir ${CMAKE_CURRENT_BINARY_DIR}/${mpi})
    add_custom_command(
      OUTPUT ${dir}/${name}
      COMMAND ${CMAKE_COMMAND} -E make_directory ${dir}
      COMMAND ${MPICC_${mpi}} ${MPI_FLAGS} ${MPI_FLAGS_${mpi}} ${flags} -o ${dir}/${name} ${sources}
              -lm
      DEPENDS ${sources} ${MPI_HEADERS}
      WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
      COMMENT "mpicc.${mpi}: ${name}"
      VERBATIM)
    set_property(GLOBAL APPEND PROPERTY MPI_PROGRAMS_${where}_${mpi} ${dir}/${name})
  endforeach()
endfunction()

# weft_mpi_program(NAME [SOURCES besides NAME.c])
function(weft_mpi_program name)
  weft_mpi_build(${name} "" "${name}.c;${ARGN};${MPI_COMMON}")
endfunction()

# weft_mpi_programs(): when all are named.
function(weft_mpi_programs)
  get_filename_component(where ${CMAKE_CURRENT_SOURCE_DIR} NAME)
  foreach(mpi openmpi mpich)
    get_property(programs GLOBAL PROPERTY MPI_PROGRAMS_${where}_${mpi})
    if(programs)
      add_custom_target(${where}_programs_${mpi} ALL DEPENDS ${programs})
    endif()
  endforeach()
endfunction()
