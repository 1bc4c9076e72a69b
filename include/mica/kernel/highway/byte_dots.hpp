// SPDX-License-Identifier: Apache-2.0
//
// Dots of four bytes that a machine has beside an instruction set without them: AVX-VNNI beside AVX2, the
// dots of Armv8.2 beside NEON. Highway has no name for such machines, so integer products of those two sets
// are compiled both ways and the choice is made here. MICA_NO_BYTE_DOTS, for all units and users, leaves the
// second form out. No Highway header.
#pragma once

#include "mica/kernel/highway/machine_option.hpp"

#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace mica::kernel::highway {

class ByteDots : public MachineOption<ByteDots> {
 public:
#if defined(__x86_64__)
  static constexpr std::string_view name = "AVX2_VNNI";
#else
  static constexpr std::string_view name = "NEON_DOT";
#endif

  /// Whether kernels are compiled both ways for a target with this name of Highway's: not where the flags
  /// settle it.
  [[nodiscard]] static constexpr bool beside(std::string_view target) noexcept {
#if defined(MICA_NO_BYTE_DOTS)
    return target.empty();
#elif defined(__x86_64__) && !defined(__AVXVNNI__)
    return target == "AVX2";
#elif defined(__aarch64__) && !defined(__ARM_FEATURE_DOTPROD)
    return target == "NEON" || target == "NEON_WITHOUT_AES";
#else
    return target.empty();
#endif
  }

  /// Whether this machine has them.
  [[nodiscard]] static bool here() noexcept;
};

inline bool ByteDots::here() noexcept {
#if defined(MICA_NO_BYTE_DOTS)
  return false;
#elif defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
#if defined(MICA_EVEX_DOTS)  // ops-inl.hpp: AVX512VL and AVX512_VNNI
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b >> 31 & c >> 11 & 1) != 0;
#else
  return __get_cpuid_count(7, 1, &a, &b, &c, &d) != 0 && (a >> 4 & 1) != 0;
#endif
#elif defined(__aarch64__) && defined(__linux__)
  return (getauxval(AT_HWCAP) >> 20 & 1) != 0;  // HWCAP_ASIMDDP
#else
  return false;
#endif
}

}  // namespace mica::kernel::highway
