# SPDX-License-Identifier: Apache-2.0
#
# mica_add_kernels(NAME) makes a static library of the Highway kernels, one unit per family of formats, compiled
# once per instruction set. Link it into a program that uses mica/kernel/highway.hpp. It is installed with the
# package, so a user's project compiles the kernels with its own flags.

function(mica_add_kernels target)
  # In the source tree this file is in cmake/, in an installed one in share/cmake/mica/.
  foreach(up ".." "../../..")
    set(folder "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${up}/include/mica/kernel/highway/units")
    file(GLOB units CONFIGURE_DEPENDS "${folder}/*.cpp")
    if(units)
      add_library(${target} STATIC EXCLUDE_FROM_ALL ${units})
      set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
      target_link_libraries(${target} PUBLIC mica::mica)
      if(COMMAND mica_warnings)
        mica_warnings(${target})
      endif()
      return()
    endif()
  endforeach()
  add_library(${target} INTERFACE)
  target_link_libraries(${target} INTERFACE mica::mica)
endfunction()
