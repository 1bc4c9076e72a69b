// SPDX-License-Identifier: Apache-2.0
//
// The scale of values whose codes have no offset: value = scale * level.
//
// For given levels q the weighted error sum w (x - s q)^2 is least at s = sum w x q / sum w q^2, where it is
// smaller than sum w x^2 by (sum w x q)^2 / sum w q^2, the gain. So a search needs only starting points: each
// candidate takes the nearest levels, then the best scale for these, in turn (S. P. Lloyd, Least squares
// quantization in PCM, 1982), and the largest gain wins. Candidates are lanes: the loop over them is the
// inner one and carries no sum, so compilers make vectors of it.
#pragma once

#include "mica/format/encode/levels.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace mica::format::search {

/// Where candidates start: the largest magnitude becomes `from` to `to` times the outermost level.
struct Reach {
  float from = 0.75f;  // of the first candidate
  float to = 1.3f;     // of the last one
};

/// How long a search takes: weights are written once, keys and values at every step.
enum class Effort : bool { quick, thorough };

/// A scale, and how fast the error grows with the square of a deviation from it: sum w level^2.
struct Scale {
  float value = 0;      // of either sign; 0: all values are 0
  float stiffness = 0;  // 0 as well then
};

namespace detail {

/// Candidates for a scale, with the sums that the nearest levels give.
template <class Levels>
struct ScaleLanes {
  static constexpr std::size_t count = 16;

  float inverse[count];
  float xq[count];  // sum w x level
  float qq[count];  // sum w level^2

  /// Half of the candidates put the peak at the lower end of the levels, half at the upper one.
  void start(float peak, Reach reach) noexcept {
    const float step = (reach.to - reach.from) / static_cast<float>(count / 2 - 1);
    for (std::size_t k = 0; k < count / 2; ++k) {
      const float share = reach.from + step * static_cast<float>(k);
      inverse[2 * k] = share * Levels::low / peak;
      inverse[2 * k + 1] = share * Levels::high / peak;
    }
  }

  void gather(const float* x, const float* w, std::size_t n) noexcept {
    for (std::size_t k = 0; k < count; ++k) xq[k] = qq[k] = 0;
    for (std::size_t i = 0; i < n; ++i) {
      const float value = x[i], weight = w[i];
      float q[count];
      for (std::size_t k = 0; k < count; ++k) q[k] = value * inverse[k];
      Levels::settle(q);
      for (std::size_t k = 0; k < count; ++k) {
        xq[k] += weight * value * q[k];
        qq[k] += weight * q[k] * q[k];
      }
    }
  }

  void improve() noexcept {
    for (std::size_t k = 0; k < count; ++k) inverse[k] = xq[k] != 0 ? qq[k] / xq[k] : inverse[k];
  }

  /// The candidate with the largest gain, or a smaller scale whose error is larger by a 64th at most: where
  /// groups share a factor, a scale that is too large makes the steps of all the others coarse. `squares` is
  /// sum w x^2.
  [[nodiscard]] Scale best(float squares) const noexcept {
    float gain[count], max_value = 0;
    for (std::size_t k = 0; k < count; ++k) {
      gain[k] = qq[k] > 0 ? xq[k] * xq[k] / qq[k] : -1;
      max_value = std::max(max_value, gain[k]);
    }
    const float enough = max_value - std::max(squares - max_value, 0.0f) / 64;  // roundings may turn the sign
    Scale found{std::numeric_limits<float>::max(), 0};
    for (std::size_t k = 0; k < count; ++k) {
      if (gain[k] < 0 || gain[k] < enough) continue;
      const float scale = xq[k] / qq[k];
      if (std::fabs(scale) < std::fabs(found.value)) found = {scale, qq[k]};
    }
    return found.stiffness > 0 ? found : Scale{};
  }
};

}  // namespace detail

/// The scale with about the least weighted error; negative where uneven levels make that better.
template <class Levels, Effort effort = Effort::thorough>
[[nodiscard]] Scale find_scale(const float* x, const float* w, std::size_t n, Reach reach = {}) noexcept {
  float peak = 0, squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    peak = std::fabs(x[i]) > std::fabs(peak) ? x[i] : peak;
    squares += w[i] * x[i] * x[i];
  }
  if (peak == 0) return {};
  detail::ScaleLanes<Levels> lanes;
  lanes.start(peak, reach);
  for (int turn = 0; turn < (effort == Effort::thorough ? 3 : 1); ++turn) {
    if (turn > 0) lanes.improve();
    lanes.gather(x, w, n);
  }
  return lanes.best(squares);
}

}  // namespace mica::format::search
