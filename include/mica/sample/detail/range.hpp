// SPDX-License-Identifier: Apache-2.0
//
// How options are refused: what was found and what is allowed, with the option's name as the command line
// spells it. The range of logits that stages change.
#pragma once

#include "mica/base/error.hpp"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>
#include <string_view>

namespace mica::sample::detail {

/// A number as people write it: 0.8, not 0.800000.
[[nodiscard]] inline std::string plain(double value) {
  char text[32];
  const int length = std::snprintf(text, sizeof text, "%.6g", value);
  return std::string(text, static_cast<std::size_t>(length));
}

/// `value` if it is between `min` and `max`; else, and for NaN, a usage error that ends in `otherwise`.
[[nodiscard]] inline float in_range(std::string_view name, float value, float min, float max,
                                    std::string_view otherwise = {}) {
  if (value >= min && value <= max) return value;
  raise(ErrorCode::usage, name, ": found ", plain(static_cast<double>(value)), ", allowed ",
        plain(static_cast<double>(min)), " to ", plain(static_cast<double>(max)), otherwise);
}

/// A penalty makes a token unlikely, never impossible, and no candidate infinite.
[[nodiscard]] inline float clamp_finite(double logit) noexcept {
  constexpr double max = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(logit, -max, max));
}

}  // namespace mica::sample::detail
