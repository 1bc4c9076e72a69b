// SPDX-License-Identifier: Apache-2.0
//
// A counter-based generator: the n-th number of a seed is a pure function of (seed, n), so a sampler's state
// is two integers, can be saved, and does not depend on numbers drawn elsewhere.
#pragma once

#include <cstdint>

namespace mica {

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection; passes BigCrush on counters.
[[nodiscard]] constexpr std::uint64_t mix64(std::uint64_t z) noexcept {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

/// Numbers of one seed, drawn in order.
class CounterRng {
 public:
  /// With seed() and counter() of another generator it continues as that one.
  explicit constexpr CounterRng(std::uint64_t seed = 0, std::uint64_t counter = 0) noexcept
      : seed_(seed), counter_(counter) {}

  /// 64 uniform bits.
  constexpr std::uint64_t next() noexcept { return mix64(mix64(seed_) + 0x9E3779B97F4A7C15u * ++counter_); }

  /// Uniform in [0, 1), 53 bits.
  constexpr double uniform() noexcept { return static_cast<double>(next() >> 11) * 0x1p-53; }

  [[nodiscard]] constexpr std::uint64_t seed() const noexcept { return seed_; }        // never changes
  [[nodiscard]] constexpr std::uint64_t counter() const noexcept { return counter_; }  // numbers drawn

 private:
  std::uint64_t seed_;
  std::uint64_t counter_;
};

}  // namespace mica
