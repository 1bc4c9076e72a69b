# SPDX-License-Identifier: Apache-2.0
#
# Two libraries that a user's project makes of units which are installed with the headers, with its own flags:
#
#   mica_add_kernels(NAME [NATIVE | TARGETS SET...] [FORMATS NAME...] [KV NAME...])
#                            the Highway kernels, one unit per family of formats, compiled once per instruction
#                            set. Link it into a program that uses mica/kernel/highway.hpp. NATIVE: for the
#                            processor of this machine alone, in a third of the time. TARGETS: for these
#                            instruction sets of Highway's and for the one that the compiler's flags allow, such
#                            as AVX2 AVX3_DL. FORMATS, KV: only the units with these weight formats, such as
#                            Q4_K Q6_K, and with these elements of keys and values, such as F16; a program that
#                            names others does not link.
#   mica_add_runtime(NAME [KERNELS])
#                            what mica::open() and plan::make_plan() compile for all families and formats, so
#                            that no unit of the program does. It links KERNELS, a library of the first kind.
#
# Kernels without optimisation take fifty times as long, so a configuration whose flags have no -O, or -O0,
# compiles both with -O2. Another -O of the flags, of the directory or of the target NAME is left as it is; to
# step through kernels: target_compile_options(NAME PRIVATE -O0).

function(mica_add_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NATIVE" "" "TARGETS;FORMATS;KV")
  if(arg_UNPARSED_ARGUMENTS OR arg_KEYWORDS_MISSING_VALUES)
    message(FATAL_ERROR "mica_add_kernels(${target}): '${arg_UNPARSED_ARGUMENTS}${arg_KEYWORDS_MISSING_VALUES}' is "
      "not known or has no value; known: NATIVE, TARGETS SET..., FORMATS NAME..., KV NAME...")
  endif()
  if(arg_NATIVE AND arg_TARGETS)
    message(FATAL_ERROR "mica_add_kernels(${target}): NATIVE and TARGETS exclude each other.")
  endif()
  mica_add_units(mica_add_kernels ${target} kernel/highway)
  mica_keep_units(${target} MATMUL "FORMATS" "${arg_FORMATS}")
  mica_keep_units(${target} ATTENTION "KV" "${arg_KV}")
  if(arg_TARGETS)
    mica_disabled_targets(disabled ${target} ${arg_TARGETS})
    target_compile_definitions(${target} PRIVATE HWY_WANT_SSSE3=1 HWY_WANT_SSE4=1 HWY_WANT_AVX3_DL=1
      "HWY_DISABLED_TARGETS=${disabled}")
  endif()
  if(arg_NATIVE)
    mica_native_options(options)
    target_compile_options(${target} PRIVATE ${options})
    target_compile_definitions(${target} PRIVATE HWY_COMPILE_ONLY_STATIC=1)
  endif()
endfunction()

# Of the units of one kind, MATMUL or ATTENTION, a library keeps those that instantiate a kernel for one of the
# names. Units of no format, and those of real formats, whose kernels other formats use, stay.
function(mica_keep_units target kind keyword names)
  if(NOT names)
    return()
  endif()
  get_target_property(units ${target} SOURCES)
  set(kept "")
  set(known "")
  foreach(unit IN LISTS units)
    file(STRINGS "${unit}" lines REGEX "^MICA_INSTANTIATE_(MATMUL|PACKED|PACKED12|ATTENTION)\\(")
    if(kind STREQUAL "MATMUL")
      list(FILTER lines EXCLUDE REGEX "^MICA_INSTANTIATE_ATTENTION")
    else()
      list(FILTER lines INCLUDE REGEX "^MICA_INSTANTIATE_ATTENTION")
    endif()
    list(TRANSFORM lines REPLACE "^.*::([A-Za-z0-9_]+)>?\\)$" "\\1")
    list(APPEND known ${lines})
    set(keep FALSE)
    if(NOT lines OR unit MATCHES "/matmul_real\\.cpp$")
      set(keep TRUE)
    endif()
    foreach(name IN LISTS names)
      if(name IN_LIST lines)
        set(keep TRUE)
      endif()
    endforeach()
    if(keep)
      list(APPEND kept "${unit}")
    endif()
  endforeach()
  foreach(name IN LISTS names)
    if(NOT name IN_LIST known)
      list(REMOVE_DUPLICATES known)
      list(SORT known COMPARE NATURAL)
      list(JOIN known " " known)
      message(FATAL_ERROR "mica_add_kernels(${target} ${keyword} ${name}): no unit has kernels for '${name}'; those "
        "that have are ${known}. A format of your own is compiled in a unit of your own.")
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES SOURCES "${kept}")
endfunction()

# The sum of Highway's instruction sets that are not named. Of a kind of machine of which none is named: of those
# that kernel/highway/dispatch.hpp disables, which has the only list of them.
function(mica_disabled_targets out target)
  set(x86 SSE2 SSSE3 SSE4 AVX2 AVX3 AVX3_DL AVX3_ZEN4 AVX3_SPR)
  set(arm NEON_WITHOUT_AES NEON NEON_BF16)
  foreach(name IN LISTS ARGN)
    if(NOT name IN_LIST x86 AND NOT name IN_LIST arm)
      list(JOIN x86 " " x86)
      list(JOIN arm " " arm)
      message(FATAL_ERROR "mica_add_kernels(${target} TARGETS ${name}): '${name}' is not known; known: ${x86} ${arm}.")
    endif()
  endforeach()
  get_target_property(units ${target} SOURCES)
  list(GET units 0 unit)
  cmake_path(GET unit PARENT_PATH folder)
  file(READ "${folder}/../dispatch.hpp" text)
  if(NOT text MATCHES "\n#define HWY_DISABLED_TARGETS [\\\n ]*\\(([A-Z0-9_ |]+)\\)")
    message(FATAL_ERROR "${folder}/../dispatch.hpp does not define HWY_DISABLED_TARGETS")
  endif()
  string(REGEX MATCHALL "[A-Z0-9_]+" disabled "${CMAKE_MATCH_1}")
  list(TRANSFORM disabled REPLACE "^HWY_" "")
  foreach(kind x86 arm)
    set(off ${${kind}})
    list(REMOVE_ITEM off ${ARGN})
    if(NOT "${off}" STREQUAL "${${kind}}")
      list(REMOVE_ITEM off SSE2)
      list(REMOVE_ITEM disabled ${${kind}})
      list(APPEND disabled ${off})
    endif()
  endforeach()
  list(TRANSFORM disabled PREPEND HWY_)
  list(JOIN disabled "+" disabled)
  set(${out} "${disabled}" PARENT_SCOPE)
endfunction()

# The compiler's option for the processor that it runs on.
function(mica_native_options out)
  if(CMAKE_CROSSCOMPILING)
    message(FATAL_ERROR "NATIVE kernels are for the machine that compiles them, and this build is for another one.")
  endif()
  include(CheckCXXCompilerFlag)
  foreach(option -march=native -mcpu=native)
    string(MAKE_C_IDENTIFIER "MICA_HAS${option}" known)
    check_cxx_compiler_flag(${option} ${known})
    if(${known})
      set(${out} ${option} PARENT_SCOPE)
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "This compiler has no option for the processor that it runs on (-march=native).")
endfunction()

function(mica_add_runtime target)
  mica_add_units(mica_add_runtime ${target} runtime)
  foreach(library IN LISTS ARGN)
    if(library MATCHES "^[A-Za-z_][A-Za-z0-9_.+]*$") # the name of a target, which may be made later in this folder
      cmake_language(EVAL CODE "cmake_language(DEFER CALL mica_check_library ${target} ${library})")
    endif()
  endforeach()
  target_link_libraries(${target} PUBLIC ${ARGN})
  target_compile_definitions(${target} PUBLIC MICA_COMPILED_RUNTIME=1)
endfunction()

function(mica_check_library target library)
  if(NOT TARGET ${library})
    message(FATAL_ERROR "mica_add_runtime(${target} ${library}): there is no target '${library}'; name a library of "
      "mica_add_kernels().")
  endif()
endfunction()

# A static library of the units of a folder of the library.
function(mica_add_units caller target room)
  # In the source tree this file is in cmake/, in an installed one in share/cmake/mica/ or, by vcpkg, in
  # share/mica/.
  set(searched "")
  set(units "")
  foreach(up ".." "../.." "../../..")
    cmake_path(SET folder NORMALIZE "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${up}/include/mica/${room}/units")
    list(APPEND searched "${folder}")
    file(GLOB units CONFIGURE_DEPENDS "${folder}/*.cpp")
    if(units)
      break()
    endif()
  endforeach()
  if(NOT units)
    list(JOIN searched "\n  " searched)
    message(FATAL_ERROR "${caller}(${target}) finds no units, and a program without them does not link. They are "
      "installed with mica's headers; folders searched:\n  ${searched}")
  endif()

  add_library(${target} STATIC EXCLUDE_FROM_ALL ${units})
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_link_libraries(${target} PUBLIC mica::mica)
  mica_optimise(${target})
endfunction()

# Whether the flags of a configuration, the one without a name included, ask for optimisation.
function(mica_optimises out configuration)
  string(TOUPPER "CMAKE_CXX_FLAGS_${configuration}" flags)
  string(REGEX MATCHALL "(^| )-O[^ ]*" levels "${CMAKE_CXX_FLAGS} ${${flags}}")
  list(POP_BACK levels last) # the one that compilers take
  if("${last}" MATCHES "^ ?(-O0)?$")
    set(${out} FALSE PARENT_SCOPE)
  else()
    set(${out} TRUE PARENT_SCOPE)
  endif()
endfunction()

# Adds -O2 where they do not, before the options that the target has from its directory: those are the user's.
function(mica_optimise target)
  get_target_property(options ${target} COMPILE_OPTIONS)
  if(NOT options)
    set(options "")
  endif()
  if(CMAKE_CONFIGURATION_TYPES)
    foreach(configuration IN LISTS CMAKE_CONFIGURATION_TYPES)
      mica_optimises(optimises "${configuration}")
      if(NOT optimises)
        list(PREPEND options $<$<CONFIG:${configuration}>:-O2>)
      endif()
    endforeach()
  else()
    mica_optimises(optimises "${CMAKE_BUILD_TYPE}")
    if(NOT optimises)
      list(PREPEND options -O2)
    endif()
  endif()
  set_target_properties(${target} PROPERTIES COMPILE_OPTIONS "${options}")
endfunction()
