# SPDX-License-Identifier: Apache-2.0
#
# What makes it small, in the order of what it saves. The kernels are compiled here, for its formats and for
# fewer instruction sets than in the library: the one left out is AVX-512 with a little more, and its code is the
# same. Without the second form of AVX2 for machines with AVX-VNNI these run what all machines with AVX2 run.
# What is no kernel is compiled for size. Every function has a section of its own, so that the linker leaves out
# what nothing calls. There are no names of symbols.

mica_add_kernels(example_05_small_kernels TARGETS AVX2 AVX3 AVX3_DL NEON_WITHOUT_AES FORMATS Q4_K Q6_K KV F16)
mica_compile_together(example_05_small_kernels 4)
set(lesson_libraries example_05_small_kernels mica)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(example_05_small_kernels PUBLIC MICA_NO_BYTE_DOTS)
endif()
set_source_files_properties(${folder}/main.cpp PROPERTIES COMPILE_OPTIONS -Os)
# The blocks that it names are in it, and no others.
if(MICA_BUILD_TESTS AND CMAKE_NM AND NOT MSVC)
  add_test(NAME example_05_small_blocks COMMAND ${CMAKE_NM} -C $<TARGET_OBJECTS:example_05_small> COMMAND_EXPAND_LISTS)
  set_tests_properties(example_05_small_blocks PROPERTIES PASS_REGULAR_EXPRESSION "mica::block::Attention"
    FAIL_REGULAR_EXPRESSION "DeltaNet|delta_net|ExpertBatch|ExpertsBesideDense|LayerInputs|PerLayer|AltUp|Laurel|OutputScale")
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  foreach(target example_05_small example_05_small_kernels)
    target_compile_options(${target} PRIVATE -ffunction-sections -fdata-sections)
  endforeach()
  target_link_options(example_05_small PRIVATE -Wl,--gc-sections -s)
endif()
