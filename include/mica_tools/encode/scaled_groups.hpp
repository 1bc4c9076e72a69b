// SPDX-License-Identifier: Apache-2.0
//
// A block of groups without mins: value = d * scale[g] * level, with a half float d and integers ScaleLow to
// ScaleHigh.
//
// The groups' scales are found one by one; d is the number whose multiples are nearest to them; then scales
// and d are fitted in turn: each group tries the integers around its own, and d becomes the best one for the
// levels that are.
#pragma once

#include "mica/format/concept.hpp"
#include "mica/format/encode/scale.hpp"
#include "mica/format/encode/values.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace mica::format::search {

/// The search for one block; ScaleLow is the outermost integer.
template <class Levels, std::size_t Groups, std::size_t Group, int ScaleLow, int ScaleHigh>
class ScaledGroups {
 public:
  /// The values outlive this.
  explicit ScaledGroups(const Values<Groups * Group>& values) noexcept : values_(values) {}

  /// Finds d, scales and codes; codes are levels.
  void find(Codes<Groups * Group, Group>& out) noexcept {
    start();
    for (int turn = 0; turn < 3 && d_ != 0; ++turn) {
      if (turn > 0) fit_d();
      for (std::size_t g = 0; g < Groups; ++g) fit_scale(g);
    }
    write(out);
  }

 private:
  static float integer(float scale) noexcept { return whole(clamped(scale, ScaleLow, ScaleHigh)); }

  void set_d(float d) noexcept {
    half_ = values_.stored(d);
    d_ = values_.loaded(half_);
  }

  void start() noexcept {
    Scale found[Groups];
    for (std::size_t g = 0; g < Groups; ++g) {
      found[g] = find_scale<Levels>(values_.x + g * Group, values_.w + g * Group, Group);
    }
    set_d(choose_d(found));
    for (std::size_t g = 0; g < Groups; ++g) scale_[g] = integer(found[g].value * inverse_or_zero(d_));
  }

  /// The nearest levels of a group with scale and d as they are.
  void settle(std::size_t g, float (&levels)[Group]) const noexcept {
    const float inverse = inverse_or_zero(scale_[g] * d_);
    for (std::size_t i = 0; i < Group; ++i) levels[i] = values_.x[g * Group + i] * inverse;
    Levels::settle(levels);
  }

  /// The largest scale becomes half to 1.1 times the outermost integer; beyond one it is cut off.
  static float choose_d(const Scale (&found)[Groups]) noexcept {
    constexpr std::size_t count = 32;
    float largest = 0;
    for (const Scale& s : found) largest = std::fabs(s.value) > std::fabs(largest) ? s.value : largest;
    if (largest == 0) return 0;
    float d[count], inverse[count], error[count] = {};
    for (std::size_t k = 0; k < count; ++k) {
      const float share = 0.5f + 0.6f / static_cast<float>(count - 1) * static_cast<float>(k);
      d[k] = largest / (share * ScaleLow);
      inverse[k] = 1 / d[k];
    }
    for (const Scale& s : found) {
      for (std::size_t k = 0; k < count; ++k) {
        const float miss = s.value - d[k] * integer(s.value * inverse[k]);
        error[k] += s.stiffness * miss * miss;
      }
    }
    return d[std::min_element(error, error + count) - error];
  }
  /// The best d for scales and levels as they are.
  void fit_d() noexcept {
    float xq = 0, qq = 0;
    for (std::size_t g = 0; g < Groups; ++g) {
      float levels[Group];
      settle(g, levels);
      for (std::size_t i = 0; i < Group; ++i) {
        const float x = values_.x[g * Group + i], w = values_.w[g * Group + i], q = scale_[g] * levels[i];
        xq += w * x * q;
        qq += w * q * q;
      }
    }
    if (qq > 0 && xq != 0) set_d(xq / qq);
  }
  /// Tries the integers from four below the group's own to three above.
  void fit_scale(std::size_t g) noexcept {
    constexpr std::size_t count = 8;
    float tried[count], scale[count], inverse[count], error[count] = {};
    for (std::size_t k = 0; k < count; ++k) {
      tried[k] = integer(scale_[g] + static_cast<float>(k) - 4);
      scale[k] = tried[k] * d_;
      inverse[k] = inverse_or_zero(scale[k]);
    }
    for (std::size_t i = g * Group; i < (g + 1) * Group; ++i) {
      const float value = values_.x[i], weight = values_.w[i];
      float q[count];
      for (std::size_t k = 0; k < count; ++k) q[k] = value * inverse[k];
      Levels::settle(q);
      for (std::size_t k = 0; k < count; ++k) {
        const float miss = value - scale[k] * q[k];
        error[k] += weight * miss * miss;
      }
    }
    scale_[g] = tried[std::min_element(error, error + count) - error];
  }
  void write(Codes<Groups * Group, Group>& out) const noexcept {
    out.d = to_float(half_);
    out.dmin = 0;
    for (std::size_t g = 0; g < Groups; ++g) {
      out.scale[g] = static_cast<int>(scale_[g]);
      out.min[g] = 0;
      float levels[Group];
      settle(g, levels);
      for (std::size_t i = 0; i < Group; ++i) out.code[g * Group + i] = static_cast<std::int8_t>(levels[i]);
    }
  }

  const Values<Groups * Group>& values_;
  float scale_[Groups];  // integers
  float d_ = 0;          // the value of half_, in units
  Half half_ = {};
};

}  // namespace mica::format::search
