# SPDX-License-Identifier: Apache-2.0
#
# The target dist: the program as a tar.gz and as a Debian package, in the folder packages/ of the build. With
# MICA_STATIC (cmake --preset dist) it depends on nothing, and the licences of the libraries inside are packed too.

set(CPACK_GENERATOR TGZ)
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  list(APPEND CPACK_GENERATOR DEB)
endif()
set(CPACK_COMPONENTS_ALL program)
set(CPACK_COMPONENTS_GROUPING ALL_COMPONENTS_IN_ONE)
set(CPACK_ARCHIVE_COMPONENT_INSTALL ON)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY ON)
set(CPACK_PACKAGING_INSTALL_PREFIX /)
set(CPACK_PROJECT_CONFIG_FILE "${CMAKE_CURRENT_LIST_DIR}/mica-cpack.cmake")
set(CPACK_STRIP_FILES ON)
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_PACKAGE_VENDOR "the mica authors")
string(TOLOWER "${CMAKE_SYSTEM_NAME}" system)
set(CPACK_PACKAGE_FILE_NAME "mica-${PROJECT_VERSION}-${system}-${CMAKE_SYSTEM_PROCESSOR}")

# Who maintains it, and what it is: as the source package says.
file(STRINGS packaging/debian/control maintainer REGEX "^Maintainer: ")
string(REPLACE "Maintainer: " "" CPACK_DEBIAN_PACKAGE_MAINTAINER "${maintainer}")
set(CPACK_DEBIAN_PACKAGE_NAME mica)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "run language models on CPUs within a memory budget")
set(CPACK_DEBIAN_PACKAGE_DESCRIPTION "mica runs GGUF models on the processors of small machines. Memory is planned
before anything is loaded, and the budget is never exceeded; weights that do
not fit are read from the disk while the model runs. A small model for a
first try is part of the program.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(architecture_x86_64 amd64)
set(architecture_aarch64 arm64)
if(DEFINED architecture_${CMAKE_SYSTEM_PROCESSOR})
  set(CPACK_DEBIAN_PACKAGE_ARCHITECTURE ${architecture_${CMAKE_SYSTEM_PROCESSOR}})
endif()
if(NOT MICA_STATIC)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
endif()

# Installs the licence of a library inside the program: the first of these files that exists.
function(mica_pack_licence library)
  set(MICA_LICENCE_${library} "" CACHE FILEPATH "The licence of ${library}, for packages of the static program")
  foreach(file IN LISTS MICA_LICENCE_${library} ARGN)
    if(EXISTS "${file}")
      install(FILES "${file}" DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/mica/licences" RENAME "${library}"
        COMPONENT program)
      return()
    endif()
  endforeach()
  message(WARNING "The packages of dist would lack the licence of ${library}; -DMICA_LICENCE_${library}= names it")
endfunction()

set(doc /usr/share/doc)
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/mica" COMPONENT program)
install(FILES packaging/debian/copyright DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/mica" COMPONENT program)
if(MICA_STATIC)
  mica_pack_licence(highway "${hwy_SOURCE_DIR}/LICENSE" ${doc}/libhwy-dev/copyright)
  mica_pack_licence(pcre2 "${pcre2_SOURCE_DIR}/LICENCE.md" "${pcre2_SOURCE_DIR}/LICENCE" ${doc}/libpcre2-dev/copyright)
  mica_pack_licence(nlohmann-json "${json_SOURCE_DIR}/LICENSE.MIT" ${doc}/nlohmann-json3-dev/copyright)
  mica_pack_licence(libc ${doc}/libc6-dev/copyright ${doc}/libc6-dev-arm64-cross/copyright)
  mica_pack_licence(libstdc++ ${doc}/libstdc++6/copyright)
  if(TARGET mica_checksum)
    mica_pack_licence(xxhash "${xxhash_SOURCE_DIR}/LICENSE" ${doc}/libxxhash-dev/copyright)
  endif()
  if(TARGET mica_server)
    mica_pack_licence(cpp-httplib "${httplib_SOURCE_DIR}/LICENSE" ${doc}/libcpp-httplib-dev/copyright)
    if(TARGET OpenSSL::SSL)
      mica_pack_licence(openssl ${doc}/libssl-dev/copyright)
    endif()
  endif()
  if(mica_libedit_FOUND)
    mica_pack_licence(libedit ${doc}/libedit-dev/copyright)
    mica_pack_licence(libbsd ${doc}/libbsd-dev/copyright)
    mica_pack_licence(ncurses ${doc}/libncurses-dev/copyright)
  endif()
endif()

include(CPack)
add_custom_target(dist COMMAND ${CMAKE_CPACK_COMMAND} --config CPackConfig.cmake -B packages
  WORKING_DIRECTORY "${PROJECT_BINARY_DIR}" VERBATIM)
add_dependencies(dist mica_program)
