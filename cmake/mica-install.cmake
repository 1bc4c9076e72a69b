# SPDX-License-Identifier: Apache-2.0
#
# What `cmake --install` copies, and the files by which others find it. Nothing here depends on the machine,
# so the package may be moved as a folder.

include(CMakePackageConfigHelpers)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME devel)
set(mica_cmake_dir "${CMAKE_INSTALL_DATADIR}/cmake/mica")

install(TARGETS mica mica_jinja mica_tools EXPORT micaTargets FILE_SET HEADERS)
# The per-target headers and the units of kernels and runtime do not stand alone, so they are no part of the file
# set.
install(DIRECTORY include/mica DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING PATTERN "*-inl.hpp" PATTERN "*.cpp")
install(EXPORT micaTargets NAMESPACE mica:: DESTINATION "${mica_cmake_dir}")
foreach(part IN LISTS mica_parts)
  install(TARGETS mica_${part} EXPORT mica_${part}Targets)
  install(EXPORT mica_${part}Targets NAMESPACE mica:: DESTINATION "${mica_cmake_dir}")
endforeach()

configure_package_config_file(cmake/micaConfig.cmake.in micaConfig.cmake INSTALL_DESTINATION "${mica_cmake_dir}"
  NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
write_basic_package_version_file(micaConfigVersion.cmake COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/micaConfig.cmake" "${CMAKE_CURRENT_BINARY_DIR}/micaConfigVersion.cmake"
  cmake/mica-deps.cmake cmake/mica-kernels.cmake DESTINATION "${mica_cmake_dir}")

# The compiled kernels: a package of its own in lib/, because it is for one kind of machine. find_package(mica) looks for
# it where the component kernels is requested. Without MICA_INSTALL_KERNELS only `cmake --install --component kernels`
# installs it, after the target mica_kernels was built.
set(mica_kernels_install COMPONENT kernels EXCLUDE_FROM_ALL)
if(MICA_INSTALL_KERNELS)
  set(mica_kernels_install COMPONENT kernels)
  set_target_properties(mica_kernels PROPERTIES EXCLUDE_FROM_ALL FALSE)
endif()
set(mica_kernels_dir "${CMAKE_INSTALL_LIBDIR}/cmake/mica-kernels")
mica_highway_version(mica_highway)
set_target_properties(mica_kernels PROPERTIES MICA_HIGHWAY "${mica_highway}" EXPORT_PROPERTIES MICA_HIGHWAY)
if(NOT mica_highway)
  set(mica_highway 1.2)
endif()
install(TARGETS mica_kernels EXPORT mica_kernelsTargets
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}" ${mica_kernels_install})
install(EXPORT mica_kernelsTargets NAMESPACE mica:: FILE mica-kernels-config.cmake DESTINATION "${mica_kernels_dir}"
  ${mica_kernels_install})
write_basic_package_version_file(mica-kernels-config-version.cmake COMPATIBILITY ExactVersion)
file(RELATIVE_PATH mica_prefix "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" /)
configure_file(mica-kernels.pc.in mica-kernels.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/mica-kernels-config-version.cmake" DESTINATION "${mica_kernels_dir}"
  ${mica_kernels_install})
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/mica-kernels.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig"
  ${mica_kernels_install})

# The same in the Common Package Specification, which other build systems read too.
if(CMAKE_VERSION VERSION_GREATER_EQUAL 4.3)
  include(mica-cps)
endif()

configure_file(mica.pc.in mica.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/mica.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/mica")
if(TARGET mica_program)
  install(TARGETS mica_program COMPONENT program)
  # Which the program has written (examples/CMakeLists.txt); none where it cannot run here.
  install(DIRECTORY "${PROJECT_BINARY_DIR}/man/man1" COMPONENT program DESTINATION "${CMAKE_INSTALL_MANDIR}" OPTIONAL
    FILES_MATCHING PATTERN "*.1")
  foreach(script "mica.bash|bash-completion/completions|mica" "_mica|zsh/site-functions|_mica"
          "mica.fish|fish/vendor_completions.d|mica.fish")
    string(REPLACE "|" ";" script "${script}")
    list(GET script 0 file)
    list(GET script 1 folder)
    list(GET script 2 name)
    install(FILES "${PROJECT_BINARY_DIR}/completions/${file}" COMPONENT program
      DESTINATION "${CMAKE_INSTALL_DATADIR}/${folder}" RENAME "${name}" OPTIONAL)
  endforeach()
  if(TARGET mica_ranks)
    install(TARGETS mica_ranks COMPONENT program DESTINATION "${CMAKE_INSTALL_LIBDIR}/mica")
  endif()
  if(TARGET mica_urls)
    install(TARGETS mica_urls COMPONENT program DESTINATION "${CMAKE_INSTALL_LIBDIR}/mica")
  endif()
endif()
