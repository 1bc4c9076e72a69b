# SPDX-License-Identifier: Apache-2.0
#
# Two libraries that a user's project makes of units which are installed with the headers, with its own flags:
#
#   mica_add_kernels(NAME)   the Highway kernels, one unit per family of formats, compiled once per instruction
#                            set. Link it into a program that uses mica/kernel/highway.hpp.
#   mica_add_runtime(NAME KERNELS)
#                            what mica::open() and plan::make_plan() compile for all families and formats, so
#                            that no unit of the program does. It links KERNELS, a library of the first kind.
#
# Kernels without optimisation take fifty times as long, so a configuration whose flags have no -O, or -O0,
# compiles both with -O2. Another -O of the flags, of the directory or of the target NAME is left as it is; to
# step through kernels: target_compile_options(NAME PRIVATE -O0).

function(mica_add_kernels target)
  mica_add_units(mica_add_kernels ${target} kernel/highway)
endfunction()

function(mica_add_runtime target kernels)
  mica_add_units(mica_add_runtime ${target} runtime)
  target_link_libraries(${target} PUBLIC ${kernels})
  target_compile_definitions(${target} PUBLIC MICA_COMPILED_RUNTIME=1)
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
