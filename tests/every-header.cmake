# SPDX-License-Identifier: Apache-2.0
#
# A unit per header that includes it alone, where no unit of the tests does, and one list of all of them for the
# units of tests/structure that must link together. A header of a part that was not found is left out here too,
# and named.

# The headers that cannot compile here, directly or through another one.
set(beyond "")
foreach(need "<Eigen/=eigen" "<xsimd/=xsimd" "<(pcre2|nlohmann/)=text" "<xxhash=checksum"
    "<httplib=server")
  string(REGEX MATCH "^(.*)=(.*)$" need "${need}")
  if(NOT TARGET mica::${CMAKE_MATCH_2})
    list(APPEND beyond "${CMAKE_MATCH_1}")
  endif()
endforeach()
set(headers ${mica_headers} ${mica_tools_headers} ${mica_jinja_headers})
set(before "")
while(NOT before STREQUAL beyond)
  set(before "${beyond}")
  list(JOIN beyond "|" pattern)
  foreach(header IN LISTS headers)
    mica_mentions(needs_it "#include (${pattern})" "${header}")
    mica_mentions(guarded "defined\\(MICA_HAS_" "${header}")
    if(needs_it AND NOT guarded)
      cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include" OUTPUT_VARIABLE name)
      message(STATUS "tests leave out ${name}: a part that it needs was not found")
      list(APPEND beyond "\"${name}")
      list(REMOVE_ITEM headers "${header}")
    endif()
  endforeach()
endwhile()

# A header that a unit of the tests includes before anything else has compiled alone there.
set(first "")
file(GLOB test_units CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*/*_test.cpp")
foreach(unit IN LISTS test_units)
  file(STRINGS "${unit}" line REGEX "^#" LIMIT_COUNT 1)
  if(line MATCHES "^#include \"(mica[_a-z]*/.*)\"$")
    list(APPEND first "${CMAKE_MATCH_1}")
  endif()
endforeach()

set(units "")
set(everything "#pragma once\n\n")
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include" OUTPUT_VARIABLE name)
  # These two run Highway's passes over a unit of kernels, and only such a unit can include them.
  if(name MATCHES "kernel/highway/(dispatch|instantiate)\\.hpp$")
    continue()
  endif()
  string(REPLACE "/" "." unit "${name}")
  file(CONFIGURE OUTPUT "every-header/${unit}.cpp" CONTENT "#include \"${name}\"\n#include \"${name}\"\n")
  if(NOT name IN_LIST first)
    list(APPEND units "${CMAKE_CURRENT_BINARY_DIR}/every-header/${unit}.cpp")
  endif()
  string(APPEND everything "#include \"${name}\"\n")
endforeach()
file(CONFIGURE OUTPUT every_header.hpp CONTENT "${everything}")

file(CONFIGURE OUTPUT every-header/none.cpp CONTENT "")
add_library(mica_headers_alone OBJECT EXCLUDE_FROM_ALL every-header/none.cpp ${units})
target_link_libraries(mica_headers_alone PRIVATE mica_all)
target_compile_options(mica_headers_alone PRIVATE -O0 -g0) # only whether, not how well
mica_warnings(mica_headers_alone)
add_test(NAME every_header_compiles_alone COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}"
  --target mica_headers_alone)
set_tests_properties(every_header_compiles_alone PROPERTIES RUN_SERIAL ON TIMEOUT 1200)
