# SPDX-License-Identifier: Apache-2.0
#
# The target `site`: the documentation as HTML in <build>/site, made by Doxygen 1.9.4 or newer, with the style
# doxygen-awesome-css where it is found. Warnings and dead links are errors (docs/site/check_site.py).

find_program(MICA_DOXYGEN doxygen)
find_package(Python3 COMPONENTS Interpreter QUIET)
find_path(MICA_DOXYGEN_AWESOME doxygen-awesome.css PATH_SUFFIXES share/doxygen-awesome-css doxygen-awesome-css)
mark_as_advanced(MICA_DOXYGEN MICA_DOXYGEN_AWESOME)
if(NOT MICA_DOXYGEN OR NOT Python3_Interpreter_FOUND)
  return()
endif()
set(MICA_SITE_FOLDER "${PROJECT_BINARY_DIR}/site")
set(MICA_SITE_INPUT "${PROJECT_BINARY_DIR}/site-input")
set(MICA_SITE_SOURCES "" CACHE STRING "The address to which links of the site to source files lead; empty: they are text")
set(MICA_SITE_STYLE "")
if(MICA_DOXYGEN_AWESOME)
  set(MICA_SITE_STYLE
    "\"${MICA_DOXYGEN_AWESOME}/doxygen-awesome.css\" \"${MICA_DOXYGEN_AWESOME}/doxygen-awesome-sidebar-only.css\"")
endif()
configure_file(docs/site/Doxyfile.in "${PROJECT_BINARY_DIR}/Doxyfile" @ONLY)
add_custom_target(site COMMENT "Writing the documentation site"
  COMMAND "${CMAKE_COMMAND}" -E rm -rf "${MICA_SITE_FOLDER}" "${MICA_SITE_INPUT}"
  COMMAND "${CMAKE_COMMAND}" -E make_directory "${MICA_SITE_FOLDER}"
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/docs/site/prepare.py" "${MICA_SITE_INPUT}" "${MICA_SITE_SOURCES}"
  COMMAND "${MICA_DOXYGEN}" "${PROJECT_BINARY_DIR}/Doxyfile"
  COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/docs/site/check_site.py" "${MICA_SITE_FOLDER}")
