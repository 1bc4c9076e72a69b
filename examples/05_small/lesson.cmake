# SPDX-License-Identifier: Apache-2.0
#
# What makes it small, in the order of what it saves. The kernels are compiled here, for fewer instruction
# sets than in the library: the one left out is AVX-512 with a little more, and its code is the same. Without
# the second form of AVX2 for machines with AVX-VNNI these run what all machines with AVX2 run. What is no
# kernel is compiled for size. Every function has a section of its own, so that the linker leaves out what
# nobody calls. There are no names of symbols.

file(GLOB units CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/include/mica/kernel/highway/units/*.cpp")
list(FILTER units INCLUDE REGEX "/(matmul_k|matmul_real|attention_real|elementwise)[a-z_]*\\.cpp$")
target_sources(example_05_small PRIVATE ${units})
target_compile_options(example_05_small PRIVATE -UHWY_DISABLED_TARGETS
  -DHWY_DISABLED_TARGETS=HWY_SSSE3+HWY_SSE4+HWY_AVX3_ZEN4+HWY_ALL_SVE+HWY_NEON+HWY_NEON_BF16+HWY_AVX3_SPR)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  target_compile_definitions(example_05_small PRIVATE MICA_NO_BYTE_DOTS)
endif()
set_source_files_properties(${folder}/main.cpp PROPERTIES COMPILE_OPTIONS -Os)
# The blocks that it names are in it, and no others.
if(MICA_BUILD_TESTS AND CMAKE_NM AND NOT MSVC)
  add_test(NAME example_05_small_blocks COMMAND ${CMAKE_NM} -C $<TARGET_OBJECTS:example_05_small> COMMAND_EXPAND_LISTS)
  set_tests_properties(example_05_small_blocks PROPERTIES PASS_REGULAR_EXPRESSION "mica::block::Attention"
    FAIL_REGULAR_EXPRESSION "DeltaNet|delta_net|ExpertBatch|ExpertsBesideDense|LayerInputs|PerLayer|AltUp|Laurel|OutputScale")
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  target_compile_options(example_05_small PRIVATE -ffunction-sections -fdata-sections)
  target_link_options(example_05_small PRIVATE -Wl,--gc-sections -s)
endif()
