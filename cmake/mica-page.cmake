# SPDX-License-Identifier: Apache-2.0
#
# The Content-Security-Policy of the page of `mica serve`. It allows the one style and the one script of the
# page, by their hashes, and nothing else that could run or be loaded.
#
#   mica_page_policy(FILE VARIABLE)
#   cmake -DPAGE=FILE -P cmake/mica-page.cmake     prints it

# The hash of the text between <TAG> and </TAG> as policies write it.
function(mica_page_hash page tag variable)
  string(FIND "${page}" "<${tag}>" begin)
  string(FIND "${page}" "</${tag}>" end)
  string(FIND "${page}" "</${tag}>" last REVERSE)
  if(begin EQUAL -1 OR end LESS begin OR NOT end EQUAL last)
    message(FATAL_ERROR "The page must have one <${tag}> without attributes.")
  endif()
  string(LENGTH "<${tag}>" opening)
  math(EXPR begin "${begin} + ${opening}")
  math(EXPR length "${end} - ${begin}")
  string(SUBSTRING "${page}" ${begin} ${length} text)
  string(SHA256 digest "${text}")

  # Base64 of 32 bytes: ten times six hexadecimal digits as four characters, then two bytes as three.
  set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
  set(base64 "")
  foreach(i RANGE 0 63 6)
    string(SUBSTRING "${digest}00" ${i} 6 digits)
    foreach(shift 18 12 6 0)
      math(EXPR index "(0x${digits} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${index} 1 character)
      string(APPEND base64 "${character}")
    endforeach()
  endforeach()
  string(SUBSTRING "${base64}" 0 43 base64)
  set(${variable} "'sha256-${base64}='" PARENT_SCOPE)
endfunction()

function(mica_page_policy file variable)
  file(READ "${file}" page)
  mica_page_hash("${page}" style style)
  mica_page_hash("${page}" script script)
  string(CONCAT policy "default-src 'none'; style-src ${style}; script-src ${script}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
  set(${variable} "${policy}" PARENT_SCOPE)
endfunction()

if(CMAKE_SCRIPT_MODE_FILE AND PAGE)
  mica_page_policy("${PAGE}" policy)
  execute_process(COMMAND ${CMAKE_COMMAND} -E echo "${policy}")
endif()
