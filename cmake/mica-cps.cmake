# SPDX-License-Identifier: Apache-2.0
#
# The installed libraries in the Common Package Specification (CPS): mica.cps, and an appendix for each part and for the
# compiled kernels. CMake 4.3
# and newer prefers these files to those of install(EXPORT) where it finds both, and they have no functions:
# mica_add_kernels() would be missing. So by default they are where find_package() looks only if share/ is among its
# prefixes.
#
# Limit: CMake 4.4 writes compile_flags and does not read them, so a CMake project adds -ffp-contract=off itself.
# And a CPS file names packages. Libraries that were found by pkg-config, by a header or in this build have none
# (MICA_WRAPPED), so the parts that need such a library are left out, and without a package of Highway all is.

set(MICA_CPS_DIR "${CMAKE_INSTALL_DATADIR}/mica/cps" CACHE STRING "Folder of the .cps files")

# Sets out to the libraries of a list that no package has.
function(mica_wrapped out)
  set(wrapped "")
  foreach(library IN LISTS ARGN)
    get_target_property(is_wrapped ${library} MICA_WRAPPED)
    if(is_wrapped)
      list(APPEND wrapped ${library})
    endif()
  endforeach()
  set(${out} "${wrapped}" PARENT_SCOPE)
endfunction()

mica_wrapped(wrapped hwy::hwy)
if(wrapped OR NOT hwy_CONFIG)
  message(STATUS "no CPS files: Highway was not found as a package")
  return()
endif()
install(PACKAGE_INFO mica EXPORT micaTargets DESTINATION "${MICA_CPS_DIR}" DEFAULT_TARGETS mica LICENSE Apache-2.0
  VERSION ${PROJECT_VERSION} COMPAT_VERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}.0 VERSION_SCHEMA simple)
foreach(part IN LISTS mica_parts)
  mica_wrapped(wrapped ${MICA_${part}_LIBRARIES})
  if(wrapped)
    message(STATUS "no CPS file for the part ${part}: no package has ${wrapped}")
  else()
    install(PACKAGE_INFO mica EXPORT mica_${part}Targets APPENDIX ${part} DESTINATION "${MICA_CPS_DIR}")
  endif()
endforeach()
install(PACKAGE_INFO mica EXPORT mica_kernelsTargets APPENDIX kernels DESTINATION "${MICA_CPS_DIR}"
  ${mica_kernels_install})
