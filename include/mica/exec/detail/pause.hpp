// SPDX-License-Identifier: Apache-2.0
//
// Waiting for a few microseconds: a worker spins without slowing the other thread of its core, and stops
// after a while.
#pragma once

#include <chrono>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace mica::exec::detail {

/// Tells the core that this is a spin loop: tens of cycles.
inline void relax() noexcept {
#if defined(__SSE2__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // "yield" returns at once on most cores
#endif
}

/// Spins until `ready()` or about 50 us have passed; true when ready.
template <class Ready>
[[nodiscard]] bool spin_until(Ready&& ready) noexcept {
  using Clock = std::chrono::steady_clock;
  constexpr auto patience = std::chrono::microseconds(50);
  constexpr int looks = 64;  // between two readings of the clock: about as expensive as 24 pauses

  Clock::time_point give_up{};
  for (;;) {
    for (int i = 0; i < looks; ++i) {
      if (ready()) return true;
      relax();
    }
    const Clock::time_point now = Clock::now();
    if (give_up == Clock::time_point{}) give_up = now + patience;
    if (now >= give_up) return false;
  }
}

}  // namespace mica::exec::detail
