// SPDX-License-Identifier: Apache-2.0
//
// The matrix unit of Intel's servers since Sapphire Rapids: AMX, whose tiles of 16 rows of 64 bytes are
// multiplied by one instruction. It stands beside AVX3_SPR as ByteDots does beside AVX2: products of many
// tokens with integer formats are compiled both ways, and the choice is made here. MICA_NO_MATRIX_UNIT, for
// all units and users, leaves the second form out. No Highway header.
#pragma once

#include "mica/kernel/highway/machine_option.hpp"

#include <string_view>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace mica::kernel::highway {

class MatrixUnit : public MachineOption<MatrixUnit> {
 public:
  static constexpr std::string_view name = "AVX3_SPR_AMX";

  /// Whether kernels are compiled both ways for a target with this name of Highway's.
  [[nodiscard]] static constexpr bool beside(std::string_view target) noexcept {
#if defined(__x86_64__) && defined(__linux__) && !defined(MICA_NO_MATRIX_UNIT)
    return target == "AVX3_SPR";
#else
    return target.empty();
#endif
  }

  /// Whether this machine has one and the system lets this process use it, which asking settles for all its
  /// threads.
  [[nodiscard]] static bool here() noexcept;
};

inline bool MatrixUnit::here() noexcept {
#if defined(__x86_64__) && defined(__linux__) && !defined(MICA_NO_MATRIX_UNIT)
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool built =
      __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 24 & d >> 25 & 1) != 0;  // AMX-TILE, AMX-INT8
  constexpr long request = 0x1023,
                 tile_data =
                     18;  // ARCH_REQ_XCOMP_PERM of XTILEDATA: Linux, Documentation/arch/x86/xstate.rst
  return built && ::syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace mica::kernel::highway
