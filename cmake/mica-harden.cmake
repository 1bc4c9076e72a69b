# SPDX-License-Identifier: Apache-2.0
#
# MICA_HARDEN: the program is compiled so that memory which a mistake has broken ends it, before it can be used for
# more: checks of the stack and of copies whose sizes the compiler knows; its tables of addresses are read-only.
# MICA_HARDEN_ELEMENTS: places in std::vector, std::span and std::string are checked, too, which costs more
# (docs/reliability.md). Kernels are left out, since they have none of these.

function(mica_harden)
  set(options -fstack-protector-strong -U_FORTIFY_SOURCE)
  if(MICA_HARDEN_ELEMENTS)
    list(APPEND options -D_GLIBCXX_ASSERTIONS)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    list(APPEND options -D_FORTIFY_SOURCE=3)
  else()
    list(APPEND options -D_FORTIFY_SOURCE=2)
  endif()
  if(NOT APPLE)
    list(APPEND options -fstack-clash-protection)
  endif()
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    list(APPEND options -fcf-protection)
  elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    list(APPEND options -mbranch-protection=standard)
  endif()
  foreach(target IN LISTS ARGN)
    target_compile_options(${target} PRIVATE ${options})
    if(NOT APPLE)
      target_link_options(${target} PRIVATE -Wl,-z,relro,-z,now)
    endif()
  endforeach()
endfunction()
