// SPDX-License-Identifier: Apache-2.0
//
// The scale and offset of values whose codes are 0 to High: value = scale * code + offset.
//
// For given codes both come from two equations of weighted least squares. As in scale.hpp candidates are
// lanes that take the nearest codes and the best line in turn; they start from the range of the values, drawn
// in or widened at either end.
#pragma once

#include "mica/format/encode/levels.hpp"
#include "mica/format/encode/scale.hpp"

#include <algorithm>
#include <cstddef>

namespace mica::format::search {

/// value = scale * code + offset; scale is not negative.
struct Line {
  float scale = 0;   // 0: all values are equal
  float offset = 0;  // the value of code 0
};

/// What the offset may be; in formats with mins it is not positive.
enum class Offset : bool { any, not_positive };

namespace detail {

/// Candidates for a line: `side` choices for its lower end times as many for its upper one.
template <int High, std::size_t ends = 4>
struct LineLanes {
  static constexpr std::size_t side = ends;
  static constexpr std::size_t count = side * side;
  using Levels = Integers<0, High>;
  static constexpr float step = 1.1f / static_cast<float>(side - 1);

  float scale[count];
  float offset[count];
  float inverse[count];
  float q[count];   // sum of w code
  float qq[count];  // sum of w code^2
  float xq[count];  // sum of w x code
  float error[count];

  /// Steps from an end of the range to the outermost code of a candidate: the ends lie up to 0.8 steps beyond
  /// these codes, or 0.3 steps inside.
  [[nodiscard]] static constexpr float below(std::size_t k) noexcept {
    return step * static_cast<float>(k / side) - 0.3f;
  }
  [[nodiscard]] static constexpr float above(std::size_t k) noexcept {
    return step * static_cast<float>(k % side) - 0.3f;
  }

  void start(float low, float high) noexcept {
    for (std::size_t k = 0; k < count; ++k) {
      scale[k] = (high - low) / (static_cast<float>(High) + below(k) + above(k));
      offset[k] = low + below(k) * scale[k];
      inverse[k] = 1 / scale[k];
    }
  }

  void gather(const float* x, const float* w, std::size_t n) noexcept {
    for (std::size_t k = 0; k < count; ++k) q[k] = qq[k] = xq[k] = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const float value = x[i], weight = w[i];
      float code[count];
      for (std::size_t k = 0; k < count; ++k) code[k] = (value - offset[k]) * inverse[k];
      Levels::settle(code);
      for (std::size_t k = 0; k < count; ++k) {
        q[k] += weight * code[k];
        qq[k] += weight * code[k] * code[k];
        xq[k] += weight * value * code[k];
      }
    }
  }

  /// A line whose offset may not be positive goes through 0 instead. What has no solution stays.
  template <Offset rule>
  void improve(float sum_w, float sum_x) noexcept {
    for (std::size_t k = 0; k < count; ++k) {
      const float determinant = sum_w * qq[k] - q[k] * q[k];
      const bool through_zero = rule == Offset::not_positive && qq[k] * sum_x > q[k] * xq[k];
      const float s = through_zero ? xq[k] / qq[k] : (sum_w * xq[k] - q[k] * sum_x) / determinant;
      const float c = through_zero ? 0 : (qq[k] * sum_x - q[k] * xq[k]) / determinant;
      const bool solved = determinant > 0 && s > 0;
      scale[k] = solved ? s : scale[k];
      offset[k] = solved ? c : offset[k];
      inverse[k] = 1 / scale[k];
    }
  }

  void measure(const float* x, const float* w, std::size_t n) noexcept {
    for (std::size_t k = 0; k < count; ++k) error[k] = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const float value = x[i], weight = w[i];
      float code[count];
      for (std::size_t k = 0; k < count; ++k) code[k] = (value - offset[k]) * inverse[k];
      Levels::settle(code);
      for (std::size_t k = 0; k < count; ++k) {
        const float miss = value - offset[k] - scale[k] * code[k];
        error[k] += weight * miss * miss;
      }
    }
  }
};

}  // namespace detail

/// The line with about the least weighted error.
template <int High, Offset rule, Effort effort = Effort::thorough>
[[nodiscard]] Line find_line(const float* x, const float* w, std::size_t n) noexcept {
  float low = x[0], high = x[0], sum_w = 0, sum_x = 0;
  for (std::size_t i = 0; i < n; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
    sum_w += w[i];
    sum_x += w[i] * x[i];
  }
  if (rule == Offset::not_positive) low = std::min(low, 0.0f);
  if (!(high > low)) return {0, low};
  constexpr bool thorough = effort == Effort::thorough;
  detail::LineLanes<High, thorough ? 4 : 3> lanes;
  lanes.start(low, high);
  for (int turn = 0; turn < (thorough ? 2 : 1); ++turn) {
    lanes.gather(x, w, n);
    lanes.template improve<rule>(sum_w, sum_x);
  }
  lanes.measure(x, w, n);
  const auto best = std::min_element(lanes.error, lanes.error + lanes.count) - lanes.error;
  return {lanes.scale[best], lanes.offset[best]};
}

}  // namespace mica::format::search
