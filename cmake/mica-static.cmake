# SPDX-License-Identifier: Apache-2.0
#
# MICA_STATIC: the program as one file that needs nothing of the system that runs it. Only archives are looked
# for. Highway and cpp-httplib, which distributions have as shared libraries alone, are built from source:
#
#   cmake --preset dist -DMICA_FETCH_DEPS=ON                         downloads both
#   ... -DFETCHCONTENT_SOURCE_DIR_HWY=FOLDER -DFETCHCONTENT_SOURCE_DIR_HTTPLIB=FOLDER     takes these folders
#
# Limit: names of hosts are resolved by files and DNS; other services of nsswitch.conf need the same libc.

if(APPLE)
  message(FATAL_ERROR "MICA_STATIC: macOS has no static libc; build the program without it.")
endif()
set(CMAKE_FIND_LIBRARY_SUFFIXES .a)
set(OPENSSL_USE_STATIC_LIBS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(BUILD_SHARED_LIBS OFF)
if(NOT hwy_DIR)
  set(CMAKE_DISABLE_FIND_PACKAGE_hwy ON)
  set(CMAKE_DISABLE_FIND_PACKAGE_highway ON)
endif()
set(mica_shared_alone cpp-httplib)

# Addresses stay random: the file is position independent, as programs are with shared libraries. The option is among
# the libraries, since it must come after the -pie that CMake writes once a library such as Highway's source has
# checked for it: of the two, compilers take the last. Such a program may have no run path: glibc stops it.
function(mica_link_static target)
  set_target_properties(${target} PROPERTIES SKIP_BUILD_RPATH ON)
  target_link_libraries(${target} PRIVATE -static-pie)
endfunction()
