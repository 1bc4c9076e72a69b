// SPDX-License-Identifier: Apache-2.0
//
// A block of groups with mins: value = d * scale[g] * code - dmin * min[g], with half floats d and dmin,
// integers 0 to ScaleHigh, and codes 0 to High.
//
// The groups' lines are found one by one, the largest scale and the largest min become the largest integers,
// and then groups and block are fitted in turn: each group tries the integers around its own, and d and dmin
// become the best ones for these codes.
#pragma once

#include "mica/format/concept.hpp"
#include "mica/format/encode/line.hpp"
#include "mica/format/encode/values.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace mica::format::search {

/// The search for one block.
template <int High, std::size_t Groups, std::size_t Group, int ScaleHigh>
class LinedGroups {
 public:
  /// The values may be turned upside down, and then d and dmin are negative: mins only reach down from 0, so
  /// groups that lie above it would waste their codes.
  explicit LinedGroups(Values<Groups * Group>& values) noexcept : values_(values) {
    float above = 0, below = 0;
    for (std::size_t g = 0; g < Groups; ++g) {
      const auto [low, high] = std::minmax_element(values.x + g * Group, values.x + (g + 1) * Group);
      above += std::max(*low, 0.0f);
      below += std::max(-*high, 0.0f);
    }
    if (above > below) values.turn();
  }

  /// Finds d, dmin, scales, mins and codes.
  void find(Codes<Groups * Group, Group>& out) noexcept {
    start();
    for (int turn = 0; turn < 3; ++turn) {
      if (turn > 0) fit_block();
      for (std::size_t g = 0; g < Groups; ++g) fit_group(g);
    }
    write(out);
  }

 private:
  using Levels = Integers<0, High>;

  static float integer(float x) noexcept { return whole(clamped(x, 0, ScaleHigh)); }

  void set(float d, float dmin) noexcept {
    half_d_ = values_.stored(d);
    half_dmin_ = values_.stored(dmin);
    d_ = values_.loaded(half_d_);
    dmin_ = values_.loaded(half_dmin_);
  }

  void start() noexcept {
    Line found[Groups];
    float scale = 0, min = 0;
    for (std::size_t g = 0; g < Groups; ++g) {
      found[g] = find_line<High, Offset::not_positive>(values_.x + g * Group, values_.w + g * Group, Group);
      scale = std::max(scale, found[g].scale);
      min = std::max(min, -found[g].offset);
    }
    set(scale / ScaleHigh, min / ScaleHigh);
    for (std::size_t g = 0; g < Groups; ++g) {
      scale_[g] = integer(found[g].scale * inverse_or_zero(d_));
      min_[g] = integer(-found[g].offset * inverse_or_zero(dmin_));
    }
  }

  /// The nearest codes of a group with scale, min, d and dmin as they are.
  void settle(std::size_t g, float (&codes)[Group]) const noexcept {
    const float min = min_[g] * dmin_, inverse = inverse_or_zero(scale_[g] * d_);
    for (std::size_t i = 0; i < Group; ++i) codes[i] = (values_.x[g * Group + i] + min) * inverse;
    Levels::settle(codes);
  }

  /// The best d and dmin for scales, mins and codes as they are: two equations of weighted least squares.
  void fit_block() noexcept {
    float aa = 0, ab = 0, bb = 0, xa = 0, xb = 0;  // a = scale * code, b = -min
    for (std::size_t g = 0; g < Groups; ++g) {
      float codes[Group];
      settle(g, codes);
      const float b = -min_[g];
      for (std::size_t i = 0; i < Group; ++i) {
        const float x = values_.x[g * Group + i], w = values_.w[g * Group + i], a = scale_[g] * codes[i];
        aa += w * a * a;
        ab += w * a * b;
        bb += w * b * b;
        xa += w * x * a;
        xb += w * x * b;
      }
    }
    const float determinant = aa * bb - ab * ab;
    const float d = (xa * bb - xb * ab) / determinant, dmin = (aa * xb - ab * xa) / determinant;
    if (determinant > 0 && d > 0 && dmin > 0) set(d, dmin);
  }
  /// Tries scales from one below the group's own to two above, with such mins.
  void fit_group(std::size_t g) noexcept {
    constexpr std::size_t side = 4, count = side * side;
    float tried_scale[count], tried_min[count], scale[count], min[count], inverse[count], error[count] = {};
    for (std::size_t k = 0; k < count; ++k) {
      tried_scale[k] = integer(scale_[g] + static_cast<float>(k / side) - 1);
      tried_min[k] = integer(min_[g] + static_cast<float>(k % side) - 1);
      scale[k] = tried_scale[k] * d_;
      min[k] = tried_min[k] * dmin_;
      inverse[k] = inverse_or_zero(scale[k]);
    }
    for (std::size_t i = g * Group; i < (g + 1) * Group; ++i) {
      const float value = values_.x[i], weight = values_.w[i];
      float code[count];
      for (std::size_t k = 0; k < count; ++k) code[k] = (value + min[k]) * inverse[k];
      Levels::settle(code);
      for (std::size_t k = 0; k < count; ++k) {
        const float miss = value + min[k] - scale[k] * code[k];
        error[k] += weight * miss * miss;
      }
    }
    const auto best = std::min_element(error, error + count) - error;
    scale_[g] = tried_scale[best];
    min_[g] = tried_min[best];
  }
  void write(Codes<Groups * Group, Group>& out) const noexcept {
    out.d = to_float(half_d_);
    out.dmin = to_float(half_dmin_);
    for (std::size_t g = 0; g < Groups; ++g) {
      out.scale[g] = static_cast<int>(scale_[g]);
      out.min[g] = static_cast<std::int16_t>(min_[g]);
      float codes[Group];
      settle(g, codes);
      for (std::size_t i = 0; i < Group; ++i) out.code[g * Group + i] = static_cast<std::int8_t>(codes[i]);
    }
  }

  const Values<Groups * Group>& values_;
  float scale_[Groups];  // integers
  float min_[Groups];    // integers
  float d_ = 0;          // the values of the halves, in units
  float dmin_ = 0;
  Half half_d_ = {};
  Half half_dmin_ = {};
};

}  // namespace mica::format::search
