// SPDX-License-Identifier: Apache-2.0
//
// What machines of one target of Highway's have or lack, and Highway has no name for. Integer products of such
// a target are compiled both ways, and the choice is made here. MICA_NO_BYTE_DOTS and MICA_NO_MATRIX_UNIT, for
// all units and users, leave the second form out. No Highway header.
#pragma once

#include <atomic>
#include <string_view>

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace mica::kernel::highway {

/// T::here(): whether this machine has it.
template <class T>
class MachineOption {
 public:
  /// Whether kernels use it: the default is whether the machine has it. Any thread.
  [[nodiscard]] static bool used() noexcept { return state().load(std::memory_order_relaxed); }
  /// For the rest of the process. Only what is here() may be used.
  static void use(bool used) noexcept { state().store(used, std::memory_order_relaxed); }

 private:
  static std::atomic<bool>& state() noexcept {
    static std::atomic<bool> used{T::here()};
    return used;
  }
};

/// Dots of four bytes that a machine has beside an instruction set without them: AVX-VNNI beside AVX2, the
/// dots of Armv8.2 beside NEON.
class ByteDots : public MachineOption<ByteDots> {
 public:
#if defined(__x86_64__)
  static constexpr std::string_view name = "AVX2_VNNI";
#else
  static constexpr std::string_view name = "NEON_DOT";
#endif

  /// Whether kernels are compiled with and without byte dots for a target; false where the flags decide.
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

/// The matrix unit of Intel's servers since Sapphire Rapids, beside AVX3_SPR: AMX, whose tiles of 16 rows of
/// 64 bytes are multiplied by one instruction. For products of many tokens with integer formats.
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

inline bool MatrixUnit::here() noexcept {
#if defined(__x86_64__) && defined(__linux__) && !defined(MICA_NO_MATRIX_UNIT)
  unsigned a = 0, b = 0, c = 0, d = 0;
  const bool built =
      __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 24 & d >> 25 & 1) != 0;  // AMX-TILE, AMX-INT8
  // ARCH_REQ_XCOMP_PERM of XTILEDATA: Linux, Documentation/arch/x86/xstate.rst
  constexpr long request = 0x1023, tile_data = 18;
  return built && ::syscall(SYS_arch_prctl, request, tile_data) == 0;
#else
  return false;
#endif
}

}  // namespace mica::kernel::highway
