# SPDX-License-Identifier: Apache-2.0
#
# One program of two units, one built without parts and with asserts, the other with mica::checksum and
# mica::text and without asserts. Nothing is inlined, so that of a function with two definitions the program
# has the one that the linker sees first: both orders are run.

foreach(unit without with)
  add_library(mica_unit_${unit} OBJECT alone/pair/unit.cpp)
  target_include_directories(mica_unit_${unit} PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
  target_compile_definitions(mica_unit_${unit} PRIVATE MICA_UNIT="${unit}")
  target_link_libraries(mica_unit_${unit} PRIVATE mica)
  mica_warnings(mica_unit_${unit})
endforeach()
target_compile_options(mica_unit_without PRIVATE -O0 -UNDEBUG)
target_compile_options(mica_unit_with PRIVATE -O0 -DNDEBUG)

add_library(mica_pair_main OBJECT alone/pair/main.cpp)
target_include_directories(mica_pair_main PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_features(mica_pair_main PRIVATE cxx_std_20)
mica_warnings(mica_pair_main)

# A program of these units, in this order; expected: works, or refused.
function(mica_add_pair name expected)
  set(objects $<TARGET_OBJECTS:mica_pair_main>)
  foreach(unit IN LISTS ARGN)
    list(APPEND objects $<TARGET_OBJECTS:mica_unit_${unit}>)
  endforeach()
  add_executable(pair_${name} ${objects})
  target_link_libraries(pair_${name} PRIVATE Threads::Threads)
  if("with" IN_LIST ARGN)
    target_link_libraries(pair_${name} PRIVATE mica_checksum mica_text)
  endif()
  add_test(NAME pair_${name} COMMAND pair_${name} ${expected})
endfunction()

mica_add_pair(without_alone refused without)
if(TARGET mica_checksum AND TARGET mica_text)
  target_link_libraries(mica_unit_with PRIVATE mica_checksum mica_text)
  mica_add_pair(without_first works without with)
  mica_add_pair(with_first works with without)
endif()
