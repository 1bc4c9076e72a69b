# SPDX-License-Identifier: Apache-2.0
#
# Release tarballs for a machine whose packages lack something, each with its hash. Only a build with
# MICA_FETCH_DEPS=ON downloads, and only what was not found: Highway, and what the parts in MICA_FETCH_PARTS
# need. By default those are the parts in MICA_WITH; where it is empty, all for mica's own build, and none for a
# project that adds this folder.

if(NOT MICA_FETCH_DEPS)
  return()
endif()
string(REPLACE "," ";" mica_fetch_parts "${MICA_WITH}")
if(PROJECT_IS_TOP_LEVEL AND NOT MICA_WITH)
  set(mica_fetch_parts ${MICA_PARTS})
endif()
set(MICA_FETCH_PARTS "${mica_fetch_parts}" CACHE STRING "Parts for which MICA_FETCH_DEPS downloads libraries")
include(FetchContent)
enable_language(C)

# Downloads and unpacks only: the build files inside are used where something has to be compiled.
macro(mica_fetch name url sha256)
  message(STATUS "Fetching ${url}")
  FetchContent_Declare(${name} URL ${url} URL_HASH SHA256=${sha256} DOWNLOAD_EXTRACT_TIMESTAMP OFF SOURCE_SUBDIR none)
  FetchContent_MakeAvailable(${name})
endmacro()

# A library of headers under the name that its own package would give it.
macro(mica_fetch_headers target name folder url sha256)
  if(NOT TARGET ${target})
    mica_fetch(${name} ${url} ${sha256})
    mica_wrap(${target})
    target_include_directories(${target} INTERFACE "${${name}_SOURCE_DIR}/${folder}")
  endif()
endmacro()

mica_find_highway()
if(NOT TARGET hwy::hwy)
  mica_fetch(hwy https://github.com/google/highway/archive/1.4.0.tar.gz
    e72241ac9524bb653ae52ced768b508045d4438726a303f10181a38f764a453c)
  if(NOT TARGET hwy) # as where the project that uses mica has declared it, to be built by its own options
    # Highway alone takes seconds, with its contrib minutes.
    foreach(switch CONTRIB EXAMPLES TESTS INSTALL)
      set(HWY_ENABLE_${switch} OFF CACHE BOOL "" FORCE)
    endforeach()
    add_subdirectory("${hwy_SOURCE_DIR}" "${hwy_BINARY_DIR}" EXCLUDE_FROM_ALL)
  endif()
  mica_find_highway()
endif()

if(eigen IN_LIST MICA_FETCH_PARTS)
  mica_find_part(eigen)
  mica_fetch_headers(Eigen3::Eigen eigen . https://gitlab.com/libeigen/eigen/-/archive/3.4.0/eigen-3.4.0.tar.bz2
    b4c198460eba6f28d34894e3a5710998818515104d6e74e5cc331ce31e46e626)
endif()

if(xsimd IN_LIST MICA_FETCH_PARTS)
  mica_find_part(xsimd)
  mica_fetch_headers(xsimd::xsimd xsimd include https://github.com/xtensor-stack/xsimd/archive/13.2.0.tar.gz
    edd8cd3d548c185adc70321c53c36df41abe64c1fe2c67bc6d93c3ecda82447a)
endif()

if(text IN_LIST MICA_FETCH_PARTS)
  mica_find_part(text)
  mica_fetch_headers(nlohmann_json::nlohmann_json json include https://github.com/nlohmann/json/archive/v3.12.0.tar.gz
    4b92eb0c06d10683f7447ce9406cb97cd4b453be18d7279320f7b2f025c10187)
  if(NOT TARGET PCRE2::8BIT)
    mica_fetch(pcre2 https://github.com/PCRE2Project/pcre2/releases/download/pcre2-10.47/pcre2-10.47.tar.bz2
      47fe8c99461250d42f89e6e8fdaeba9da057855d06eb7fc08d9ca03fd08d7bc7)
    set(PCRE2_SUPPORT_JIT ON CACHE BOOL "" FORCE)
    foreach(switch BUILD_PCRE2GREP BUILD_TESTS SUPPORT_LIBBZ2 SUPPORT_LIBZ SUPPORT_LIBEDIT SUPPORT_LIBREADLINE)
      set(PCRE2_${switch} OFF CACHE BOOL "" FORCE)
    endforeach()
    add_subdirectory("${pcre2_SOURCE_DIR}" "${pcre2_BINARY_DIR}" EXCLUDE_FROM_ALL)
    mica_wrap(PCRE2::8BIT pcre2-8-static)
  endif()
endif()

if(checksum IN_LIST MICA_FETCH_PARTS)
  mica_find_part(checksum)
  mica_fetch_headers(xxHash::headers xxhash . https://github.com/Cyan4973/xxHash/archive/v0.8.2.tar.gz
    baee0c6afd4f03165de7a4e67988d16f0f2b257b51d0e3cb91909302a26a79c4)
endif()

if(server IN_LIST MICA_FETCH_PARTS)
  mica_find_part(server)
  if(NOT TARGET httplib::httplib)
    mica_fetch_headers(httplib::httplib httplib . https://github.com/yhirose/cpp-httplib/archive/v0.25.0.tar.gz
      ac7c59fa72325d4cb9f73af266312d82632ac35a5c4c8a1be620c1f946ec9cea)
    find_package(OpenSSL 3.0 QUIET) # without it: http alone
    if(TARGET OpenSSL::SSL)
      target_compile_definitions(httplib::httplib INTERFACE CPPHTTPLIB_OPENSSL_SUPPORT)
      target_link_libraries(httplib::httplib INTERFACE OpenSSL::SSL OpenSSL::Crypto)
    endif()
  endif()
endif()

if(MICA_BUILD_TESTS)
  find_package(doctest CONFIG QUIET)
  mica_fetch_headers(doctest::doctest doctest . https://github.com/doctest/doctest/archive/v2.5.3.tar.gz
    174ebc4e769928959614789c5b4e9c3d0a0f81a62bb608756b127bfebfb21331)
endif()
