# SPDX-License-Identifier: Apache-2.0
#
# Release tarballs for a machine whose packages lack something, each with its hash. Only a top-level build with
# MICA_FETCH_DEPS=ON downloads, and only what find_package did not find.

if(NOT MICA_FETCH_DEPS OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
