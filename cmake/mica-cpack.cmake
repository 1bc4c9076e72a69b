# SPDX-License-Identifier: Apache-2.0
#
# What CPack reads again for each kind of package: an archive unpacks into a folder of its own, a Debian package into
# /usr.

if(CPACK_GENERATOR STREQUAL "DEB")
  set(CPACK_COMPONENT_INCLUDE_TOPLEVEL_DIRECTORY OFF)
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
endif()
