# An overlay port: it builds the tree that it is part of. In a registry, this call is replaced by vcpkg_from_github()
# of the release.
cmake_path(SET SOURCE_PATH NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../../../..")

# A part that is not a feature is not looked for, whatever other ports have installed.
vcpkg_check_features(OUT_FEATURE_OPTIONS FEATURE_OPTIONS
  FEATURES
    kernels MICA_INSTALL_KERNELS
    program MICA_BUILD_PROGRAM
)
set(parts none)
foreach(part IN ITEMS checksum eigen server text xsimd)
  if(part IN_LIST FEATURES)
    list(APPEND parts ${part})
    list(REMOVE_ITEM parts none)
  endif()
endforeach()
list(JOIN parts "," parts)

set(VCPKG_BUILD_TYPE release) # headers, a program, and kernels that are optimised in every configuration

vcpkg_cmake_configure(
  SOURCE_PATH "${SOURCE_PATH}"
  OPTIONS
    ${FEATURE_OPTIONS}
    "-DMICA_WITH=${parts}"
    -DMICA_BUILD_TESTS=OFF
    -DMICA_BUILD_EXAMPLES=OFF
    -DMICA_BUILD_BENCH=OFF
    -DMICA_FETCH_DEPS=OFF
)
vcpkg_cmake_install()
if("kernels" IN_LIST FEATURES)
  set(VCPKG_POLICY_MISMATCHED_NUMBER_OF_BINARIES enabled) # one library serves both configurations
  vcpkg_cmake_config_fixup(PACKAGE_NAME mica-kernels CONFIG_PATH lib/cmake/mica-kernels DO_NOT_DELETE_PARENT_CONFIG_PATH)
  file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib/cmake")
endif()
vcpkg_cmake_config_fixup(CONFIG_PATH share/cmake/mica)
# In share/ vcpkg wants pkg-config files without libraries alone.
file(MAKE_DIRECTORY "${CURRENT_PACKAGES_DIR}/lib/pkgconfig")
file(RENAME "${CURRENT_PACKAGES_DIR}/share/pkgconfig/mica.pc" "${CURRENT_PACKAGES_DIR}/lib/pkgconfig/mica.pc")
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/pkgconfig")
vcpkg_fixup_pkgconfig()

if("program" IN_LIST FEATURES)
  vcpkg_copy_tools(TOOL_NAMES mica AUTO_CLEAN)
  if("server" IN_LIST FEATURES) # the module for URLs is looked for beside the program
    file(RENAME "${CURRENT_PACKAGES_DIR}/lib/mica/mica-urls.so" "${CURRENT_PACKAGES_DIR}/tools/${PORT}/mica-urls.so")
    file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/lib/mica")
  endif()
endif()
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/share/doc")

file(INSTALL "${CMAKE_CURRENT_LIST_DIR}/usage" DESTINATION "${CURRENT_PACKAGES_DIR}/share/${PORT}")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
