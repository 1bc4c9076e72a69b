# SPDX-License-Identifier: Apache-2.0
#
# Warnings for mica's own targets. They are never part of the interface: a user's build keeps its own.

function(mica_warnings target)
  if(NOT PROJECT_IS_TOP_LEVEL)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wconversion -Wshadow)
  if(MICA_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
endfunction()
