// SPDX-License-Identifier: Apache-2.0
//
// Four numbers, one for each of four searches that run at once.
#pragma once

#include <cstddef>

namespace mica::format::search {

/// Compilers make one vector of it on every target. gcc decides about inlining before it makes vectors of
/// loops, and would call functions of one instruction: hence the attributes.
struct Four {
  static constexpr std::size_t size = 4;
  float at[size];

  /// x four times.
  [[gnu::always_inline]] static Four all(float x) noexcept { return {{x, x, x, x}}; }

  [[gnu::always_inline]] friend Four operator+(const Four& a, const Four& b) noexcept {
    Four out;
    for (std::size_t k = 0; k < size; ++k) out.at[k] = a.at[k] + b.at[k];
    return out;
  }
  [[gnu::always_inline]] friend Four operator-(const Four& a, const Four& b) noexcept {
    Four out;
    for (std::size_t k = 0; k < size; ++k) out.at[k] = a.at[k] - b.at[k];
    return out;
  }
  [[gnu::always_inline]] friend Four operator*(const Four& a, const Four& b) noexcept {
    Four out;
    for (std::size_t k = 0; k < size; ++k) out.at[k] = a.at[k] * b.at[k];
    return out;
  }
  /// The smaller ones.
  [[gnu::always_inline]] friend Four least(const Four& a, const Four& b) noexcept {
    Four out;
    for (std::size_t k = 0; k < size; ++k) out.at[k] = a.at[k] < b.at[k] ? a.at[k] : b.at[k];
    return out;
  }
  /// Whether any number of a is below that of b.
  [[gnu::always_inline]] friend bool any_below(const Four& a, const Four& b) noexcept {
    int any = 0;
    for (std::size_t k = 0; k < size; ++k) any |= a.at[k] < b.at[k] ? 1 : 0;
    return any != 0;
  }
};

}  // namespace mica::format::search
