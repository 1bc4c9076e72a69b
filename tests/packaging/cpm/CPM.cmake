# SPDX-License-Identifier: Apache-2.0
#
# Stands for CPM: CPMAddPackage() with NAME, URL, URL_HASH and OPTIONS, as its documentation describes them. Options
# are variables of the package, and NAME_SOURCE_DIR and NAME_ADDED tell the caller about it.

include(FetchContent)

function(CPMAddPackage)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;URL;URL_HASH" "OPTIONS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "CPMAddPackage: the stand-in does not know ${arg_UNPARSED_ARGUMENTS}")
  endif()
  foreach(option IN LISTS arg_OPTIONS)
    if(NOT option MATCHES "^([^ ]+) +(.*)$")
      message(FATAL_ERROR "CPMAddPackage: '${option}' is not a name and a value")
    endif()
    set(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}" CACHE INTERNAL "an option of ${arg_NAME}")
  endforeach()
  FetchContent_Declare(${arg_NAME} URL "${arg_URL}" URL_HASH ${arg_URL_HASH} DOWNLOAD_EXTRACT_TIMESTAMP OFF)
  FetchContent_MakeAvailable(${arg_NAME})
  set(${arg_NAME}_SOURCE_DIR "${${arg_NAME}_SOURCE_DIR}" PARENT_SCOPE)
  set(${arg_NAME}_ADDED YES PARENT_SCOPE)
endfunction()
