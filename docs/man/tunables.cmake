# Writes a manual page around the list of tunables that the program itself prints, so that the
# manual can not disagree with the tables.
execute_process(COMMAND ${WEFT} info --man-tunables ${PREFIX} OUTPUT_VARIABLE TUNABLES
                RESULT_VARIABLE result OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${WEFT} info --man-tunables failed: ${result}")
endif()
configure_file(${IN} ${OUT} @ONLY)
