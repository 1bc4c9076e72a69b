// SPDX-License-Identifier: Apache-2.0
//
// Denormals as zero, for the length of a scope. Every worker of every executor holds one while it runs tasks:
// the mode belongs to a thread, and an answer must not depend on which thread computed it.
#pragma once

#include <cstdint>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace mica::exec {

/// Makes the calling thread read and write denormal floats as zero until the scope ends; then its mode is as
/// before. Limit: on targets other than x86-64 and AArch64 it does nothing.
class FlushDenormals {
 public:
  FlushDenormals() noexcept : before_(control()) { set_control(before_ | flush); }
  ~FlushDenormals() { set_control(before_); }
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

  /// Whether the calling thread flushes denormals now.
  [[nodiscard]] static bool active() noexcept { return (control() & flush) == flush; }

 private:
#if defined(__SSE2__)
  using Control = std::uint32_t;
  static constexpr Control flush = 0x8040;  // MXCSR: flush to zero, denormals are zero
  static Control control() noexcept { return _mm_getcsr(); }
  static void set_control(Control value) noexcept {
    _mm_setcsr(value);
    asm volatile("" ::: "memory");  // loads that feed float arithmetic stay on their side
  }
#elif defined(__aarch64__)
  using Control = std::uint64_t;
  static constexpr Control flush = 1u << 24;  // FPCR.FZ
  static Control control() noexcept {
    Control value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void set_control(Control value) noexcept { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
#else
  using Control = std::uint32_t;
  static constexpr Control flush = 0;
  static Control control() noexcept { return 0; }
  static void set_control(Control) noexcept {}
#endif

  Control before_;
};

}  // namespace mica::exec
