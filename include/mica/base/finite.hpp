// SPDX-License-Identifier: Apache-2.0
//
// Checks a row of numbers in blocks without branches, so that compilers vectorise the loop.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace mica {

/// Numbers in a run.
inline constexpr std::size_t finite_run = 64;

/// Whether no number is NaN or infinite.
[[nodiscard]] inline bool all_finite(std::span<const float> x) noexcept {
  std::size_t i = 0;
  for (; i + finite_run <= x.size(); i += finite_run) {
    std::uint32_t found = 0;
    for (std::size_t j = 0; j < finite_run; ++j) {
      const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(x[i + j]) & 0x7FFFFFFFu;
      found |= (magnitude + 0x00800000u) & 0x80000000u;  // an exponent of all ones carries into the sign
    }
    if (found != 0) return false;
  }
  for (; i < x.size(); ++i) {
    if (!std::isfinite(x[i])) return false;
  }
  return true;
}

/// The end of the whole runs of x, from `first` on, in which no number is above `limit` or NaN.
[[nodiscard]] inline std::size_t skip_below(std::span<const float> x, std::size_t first,
                                            float limit) noexcept {
  for (; first + finite_run <= x.size(); first += finite_run) {
    std::int32_t found = 0;
    for (std::size_t j = 0; j < finite_run; ++j) found |= x[first + j] <= limit ? 0 : 1;
    if (found != 0) break;
  }
  return first;
}

}  // namespace mica
