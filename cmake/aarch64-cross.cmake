# SPDX-License-Identifier: Apache-2.0
#
# Toolchain: compiles for 64-bit Arm on another machine and runs what it compiled through QEMU, so that
# `cmake --preset aarch64-cross` is followed by the same tests as everywhere. The processor is QEMU's choice:
#
#   QEMU_CPU=cortex-a72 ctest --preset aarch64-cross     any of `qemu-aarch64 -cpu help`; without it, all that QEMU has
#
# On Debian and Ubuntu: g++-aarch64-linux-gnu and qemu-user.

set(triple aarch64-linux-gnu)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER ${triple}-gcc)
set(CMAKE_CXX_COMPILER ${triple}-g++)

# Arm's libraries lie beside those of this machine, in folders of their own, or in build/deps-aarch64; headers
# serve both.
set(CMAKE_LIBRARY_ARCHITECTURE ${triple})
set(unpacked ${CMAKE_CURRENT_LIST_DIR}/../build/deps-aarch64/usr)
set(ENV{PKG_CONFIG_LIBDIR} ${unpacked}/lib/${triple}/pkgconfig:/usr/lib/${triple}/pkgconfig)

set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/${triple})
