# SPDX-License-Identifier: Apache-2.0
#
# Units that show of each header that it compiles alone, and one list of all of them for the units of
# tests/structure that must link together. A header of a part that was not found is left out here too, and named.

# The headers that cannot compile here, directly or through another one.
set(beyond "")
foreach(need "<Eigen/=eigen" "<xsimd/=xsimd" "<(pcre2|nlohmann/)=text" "<xxhash=checksum"
    "<httplib=server" "<mpi=mpi")
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

# These two run Highway's passes over a unit of kernels, and only such a unit can include them.
list(FILTER headers EXCLUDE REGEX "kernel/highway/(dispatch|instantiate)\\.hpp$")

# What each header includes of this tree, and what it reaches through that; the one that reaches most comes first.
set(names "")
foreach(header IN LISTS headers)
  cmake_path(RELATIVE_PATH header BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/include" OUTPUT_VARIABLE name)
  list(APPEND names "${name}")
  file(STRINGS "${header}" included_${name} REGEX "^#include \"mica")
  list(TRANSFORM included_${name} REPLACE "^#include \"(.*)\".*" "\\1")
endforeach()
set(waiting "")
foreach(name IN LISTS names)
  set(reached "")
  set(next ${included_${name}})
  while(next)
    list(APPEND reached ${next})
    set(further "")
    foreach(other IN LISTS next)
      list(APPEND further ${included_${other}})
    endforeach()
    list(REMOVE_DUPLICATES further)
    list(REMOVE_ITEM further ${reached})
    set(next ${further})
  endwhile()
  set(reached_${name} ${reached})
  list(LENGTH reached count)
  math(EXPR count "10000 + ${count}") # as many digits for each, to be sorted
  list(APPEND waiting "${count} ${name}")
endforeach()
list(SORT waiting ORDER DESCENDING)
list(TRANSFORM waiting REPLACE "^[0-9]+ " "")

# A header compiles alone as well after headers that it reaches itself: its text sees what it would see alone. So a
# unit has a chain of headers, each reached by the one after it.
set(units "")
while(waiting)
  list(GET waiting 0 last)
  set(first "${last}")
  set(chain "${last}")
  foreach(name IN LISTS waiting)
    if(name IN_LIST reached_${first} AND NOT first IN_LIST reached_${name})
      list(PREPEND chain "${name}")
      set(first "${name}")
    endif()
  endforeach()
  list(REMOVE_ITEM waiting ${chain})
  list(TRANSFORM chain REPLACE "(.+)" "#include \"\\1\"\n#include \"\\1\"\n" OUTPUT_VARIABLE content)
  list(JOIN content "" content)
  string(REPLACE "/" "." unit "${last}")
  file(CONFIGURE OUTPUT "every-header/${unit}.cpp" CONTENT "${content}")
  list(APPEND units "${CMAKE_CURRENT_BINARY_DIR}/every-header/${unit}.cpp")
endwhile()

list(TRANSFORM names REPLACE "(.+)" "#include \"\\1\"\n")
list(JOIN names "" everything)
string(PREPEND everything "#pragma once\n\n")
file(CONFIGURE OUTPUT every_header.hpp CONTENT "${everything}")

file(CONFIGURE OUTPUT every-header/none.cpp CONTENT "")
add_library(mica_headers_alone OBJECT EXCLUDE_FROM_ALL every-header/none.cpp ${units})
target_link_libraries(mica_headers_alone PRIVATE mica_all)
target_compile_options(mica_headers_alone PRIVATE -O0 -g0) # only whether, not how well
mica_warnings(mica_headers_alone)
add_test(NAME every_header_compiles_alone COMMAND "${CMAKE_COMMAND}" --build "${PROJECT_BINARY_DIR}"
  --target mica_headers_alone)
set_tests_properties(every_header_compiles_alone PROPERTIES RUN_SERIAL ON TIMEOUT 1200)

# The chains are those of the includes that the headers have now.
add_test(NAME every_header_is_read COMMAND "${CMAKE_COMMAND}" "${PROJECT_BINARY_DIR}")
set_tests_properties(every_header_is_read PROPERTIES RUN_SERIAL ON FIXTURES_SETUP headers)
set_tests_properties(every_header_compiles_alone PROPERTIES FIXTURES_REQUIRED headers)
