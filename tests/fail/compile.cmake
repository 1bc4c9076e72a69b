# SPDX-License-Identifier: Apache-2.0
#
# Compiles one pair, wrong and repaired; SHARED is a header that the compiler may have compiled before:
#   cmake -DCOMPILER=... -DFLAGS=<response file> -DSHARED=<header> -DSOURCE=<file> -P compile.cmake

file(STRINGS "${SOURCE}" lines REGEX "^// expect: ")
if(NOT lines)
  message(FATAL_ERROR "${SOURCE} has no line that begins with `// expect: `")
endif()

set(compile "${COMPILER}" "@${FLAGS}" -include "${SHARED}" -fsyntax-only)
execute_process(COMMAND ${compile} -DMICA_FAIL "${SOURCE}" RESULT_VARIABLE wrong ERROR_VARIABLE said OUTPUT_QUIET)
if(wrong EQUAL 0)
  message(FATAL_ERROR "${SOURCE} compiles with MICA_FAIL defined, and must not")
endif()
foreach(line IN LISTS lines)
  string(REPLACE "// expect: " "" text "${line}")
  string(FIND "${said}" "${text}" place)
  if(place EQUAL -1)
    message(FATAL_ERROR "${SOURCE} was refused without the words\n  ${text}\nThe compiler said:\n${said}")
  endif()
endforeach()

execute_process(COMMAND ${compile} "${SOURCE}" RESULT_VARIABLE repaired ERROR_VARIABLE said OUTPUT_QUIET)
if(NOT repaired EQUAL 0)
  message(FATAL_ERROR "${SOURCE} must compile without MICA_FAIL, and does not:\n${said}")
endif()
