# SPDX-License-Identifier: Apache-2.0
#
# Toolchain: compiles for 64-bit Arm on another machine and runs what it compiled through QEMU, so that
# `cmake --preset aarch64-cross` is followed by the same tests as everywhere. The processor is QEMU's choice:
#
#   QEMU_CPU=cortex-a72 ctest --preset aarch64-cross     any of `qemu-aarch64 -cpu help`; without it, all that QEMU has
#
# On Debian and Ubuntu: g++-aarch64-linux-gnu, and qemu-user or qemu-user-static.

set(triple aarch64-linux-gnu)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)

# Arm's libraries lie beside those of this machine, in folders of their own, or in build/deps-aarch64; headers
# serve both, except those in a folder of Arm's own.
set(CMAKE_LIBRARY_ARCHITECTURE ${triple})
cmake_path(SET unpacked NORMALIZE "${CMAKE_CURRENT_LIST_DIR}/../build/deps-aarch64")
set(ENV{PKG_CONFIG_LIBDIR} ${unpacked}/usr/lib/${triple}/pkgconfig:/usr/lib/${triple}/pkgconfig)
if(EXISTS ${unpacked}/usr/lib/${triple})
  set(ENV{PKG_CONFIG_SYSROOT_DIR} ${unpacked})
  set(CMAKE_C_STANDARD_INCLUDE_DIRECTORIES ${unpacked}/usr/include/${triple})
  set(CMAKE_CXX_STANDARD_INCLUDE_DIRECTORIES ${unpacked}/usr/include/${triple})
endif()

find_program(MICA_QEMU_AARCH64 NAMES qemu-aarch64 qemu-aarch64-static)
if(MICA_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${MICA_QEMU_AARCH64} -L /usr/${triple})
endif()
