# SPDX-License-Identifier: Apache-2.0
#
# Compiles each block of C++ of a page that begins with an include, as a file of its own:
#   cmake -DCOMPILER=... -DFLAGS=<response file> -DPAGE=<page.md> -DFOLDER=<for the files> -P snippets.cmake

file(READ "${PAGE}" page)
set(opens "\n```cpp\n#include ")
set(count 0)
string(FIND "${page}" "${opens}" at)
while(NOT at EQUAL -1)
  math(EXPR begin "${at} + 8") # behind the line that opens the block
  string(SUBSTRING "${page}" ${begin} -1 page)
  string(FIND "${page}" "\n```" end)
  string(SUBSTRING "${page}" 0 ${end} code)
  math(EXPR count "${count} + 1")
  cmake_path(GET PAGE STEM name)
  set(file "${FOLDER}/${name}_${count}.cpp")
  file(WRITE "${file}" "${code}\n")
  execute_process(COMMAND "${COMPILER}" "@${FLAGS}" -fsyntax-only "${file}" RESULT_VARIABLE result ERROR_VARIABLE said)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "block ${count} of ${PAGE} does not compile in a file of its own:\n${said}")
  endif()
  string(FIND "${page}" "${opens}" at)
endwhile()
if(count EQUAL 0)
  message(FATAL_ERROR "${PAGE} has no block of C++ that begins with an include")
endif()
