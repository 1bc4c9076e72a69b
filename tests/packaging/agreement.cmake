# SPDX-License-Identifier: Apache-2.0
#
# usage: cmake -DSOURCE=FOLDER -P agreement.cmake
#
# CMakeLists.txt states the version, the parts' file the parts, and the library's target its flags. Files of package
# managers that repeat them agree; those that can read them do, so that there is nothing to compare.

cmake_minimum_required(VERSION 3.25)
set(wrong "")
function(expect file pattern sentence)
  file(READ "${SOURCE}/${file}" text)
  if(NOT text MATCHES "${pattern}")
    set(wrong "${wrong}\n  ${file}: ${sentence}" PARENT_SCOPE)
  endif()
endfunction()
function(expect_none file pattern sentence)
  file(READ "${SOURCE}/${file}" text)
  if(text MATCHES "${pattern}")
    set(wrong "${wrong}\n  ${file}: ${sentence}: ${CMAKE_MATCH_0}" PARENT_SCOPE)
  endif()
endfunction()

# The version.
file(READ "${SOURCE}/CMakeLists.txt" project)
if(NOT project MATCHES "\nproject\\(mica VERSION ([0-9]+\\.[0-9]+\\.[0-9]+) DESCRIPTION \"([^\"]+)\"")
  message(FATAL_ERROR "CMakeLists.txt: project(mica VERSION x.y.z DESCRIPTION \"...\") is what the other files read")
endif()
set(version ${CMAKE_MATCH_1})
set(description "${CMAKE_MATCH_2}")
string(REPLACE "." "\\." pattern ${version})
expect(include/mica/version.hpp "version = \"${pattern}\"" "the version is ${version}")
expect(packaging/vcpkg/ports/mica/vcpkg.json "\"version\": \"${pattern}\"" "the version is ${version}")
expect(packaging/vcpkg/ports/mica/vcpkg.json "\"description\": \"${description}\"" "the description is '${description}'")
expect(conanfile.py "description = \"${description}\"" "the description is '${description}'")
expect(CHANGELOG.md "\n## ${pattern}, " "there is no section of ${version}")
expect(docs/project.md "mica-${pattern}\\.tar\\.gz.*mica/${pattern}\n" "the examples have another version than ${version}")
expect(docs/release.md "\\| ${pattern} \\|" "the table has no ${version}")
foreach(file conanfile.py packaging/debian/control packaging/debian/rules packaging/debian/prepare packaging/Containerfile
  mica.pc.in cmake/mica-dist.cmake packaging/vcpkg/ports/mica/portfile.cmake packaging/conan/test_package/conanfile.py)
  expect_none(${file} "(^|[^0-9.])${pattern}($|[^0-9.])" "the version is read and not repeated")
endforeach()
if(EXISTS "${SOURCE}/packaging/debian/changelog")
  string(APPEND wrong "\n  packaging/debian/changelog: it is made by packaging/debian/prepare")
endif()

# The address, once there is one.
if(project MATCHES "HOMEPAGE_URL \"?([^\" )\n]+)")
  expect(packaging/vcpkg/ports/mica/vcpkg.json "\"homepage\": \"${CMAKE_MATCH_1}\"" "the homepage is ${CMAKE_MATCH_1}")
  expect(packaging/debian/control "\nHomepage: ${CMAKE_MATCH_1}\n" "the homepage is ${CMAKE_MATCH_1}")
endif()

# The flags of mica::mica. Definitions for Highway are those of its units alone.
if(NOT project MATCHES "target_compile_options\\(mica INTERFACE ([^)]*)\\)")
  message(FATAL_ERROR "CMakeLists.txt: target_compile_options(mica INTERFACE ...) is what the other files repeat")
endif()
set(flags "${CMAKE_MATCH_1}")
string(REGEX MATCH "\ntarget_compile_definitions\\(mica INTERFACE [^)]*\\)" definitions "${project}")
if(definitions)
  string(APPEND wrong "\n  mica.pc.in, conanfile.py: CMakeLists.txt has ${definitions}, which they repeat and are not compared with")
endif()
expect(mica.pc.in " ${flags} " "${flags} is missing")
file(READ "${SOURCE}/conanfile.py" recipe)
string(FIND "${recipe}" "core.cxxflags = [\"${flags}\"]" found)
if(found EQUAL -1)
  string(APPEND wrong "\n  conanfile.py: the flags of mica::mica are others")
endif()

# The parts.
include("${SOURCE}/cmake/mica-deps.cmake")
string(REGEX MATCHALL "\n        \"[a-z]+\": {" parts "${recipe}")
string(REGEX REPLACE "[^a-z;]" "" parts "${parts}")
set(wanted ${MICA_PARTS})
list(SORT wanted)
list(SORT parts)
if(NOT parts STREQUAL wanted)
  string(APPEND wrong "\n  conanfile.py: its parts are ${parts}, and mica's are ${wanted}")
endif()
foreach(part IN LISTS MICA_PARTS)
  expect(packaging/debian/rules "MICA_WITH=[a-z,]*${part}" "the part ${part} is missing")
  expect(packaging/vcpkg/ports/mica/portfile.cmake "ITEMS [a-z ]*${part}" "the part ${part} is missing")
  expect(packaging/vcpkg/ports/mica/vcpkg.json "\n    \"${part}\": {" "the feature ${part} is missing")
endforeach()

# The image is built by a preset and targets that there are, from files that there are.
expect(packaging/Containerfile "RUN cmake --preset dist " "the preset is dist")
expect(CMakePresets.json "\"name\": \"dist\"" "the preset dist is missing")
file(STRINGS "${SOURCE}/packaging/Containerfile" lines REGEX "^[A-Z]+ ")
foreach(line IN LISTS lines)
  if(NOT line MATCHES "^(FROM|ARG|RUN|COPY|WORKDIR|ENV|ENTRYPOINT|CMD) ")
    string(APPEND wrong "\n  packaging/Containerfile: ${line}")
  elseif(line MATCHES "^COPY ([^-. ][^ ]*) " AND NOT EXISTS "${SOURCE}/${CMAKE_MATCH_1}")
    string(APPEND wrong "\n  packaging/Containerfile: there is no ${CMAKE_MATCH_1}")
  endif()
endforeach()

if(wrong)
  message(FATAL_ERROR "files that do not agree with CMakeLists.txt and cmake/mica-deps.cmake:${wrong}")
endif()
