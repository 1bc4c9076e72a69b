// SPDX-License-Identifier: Apache-2.0
//
// Specification of quantize, norm, rope and activation, in plain loops.
#pragma once

#include "mica/kernel/activation.hpp"
#include "mica/kernel/norm.hpp"
#include "mica/kernel/quantize.hpp"
#include "mica/kernel/rope.hpp"
#include "mica/kernel/scalar/chains.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mica::kernel::scalar {

/// 32 values of one row.
inline void quantize_group(const float* x, std::int8_t* codes, float& scale, std::int16_t* sums) noexcept {
  float amax = 0;
  bool finite = true;
  for (std::size_t i = 0; i < activation_group; ++i) {
    amax = std::max(amax, std::fabs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  const bool zero = !finite || amax < activation_floor;
  const float inverse = zero ? 0.0f : 127.0f / amax;
  scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0.0f : amax / 127.0f;
  sums[0] = sums[1] = 0;
  for (std::size_t i = 0; i < activation_group; ++i) {
    codes[i] = zero ? std::int8_t{0} : static_cast<std::int8_t>(std::nearbyint(x[i] * inverse));
    sums[i / 16] = static_cast<std::int16_t>(sums[i / 16] + codes[i]);
  }
}

inline void quantize(const QuantizeArgs& a) noexcept {
  const std::size_t cols = a.out.cols;
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (std::size_t k = 0; k < cols; k += activation_group) {
      quantize_group(a.x[r].data() + k, a.out.codes + r * cols + k, a.out.scales[(r * cols + k) / 32],
                     a.out.sums + (r * cols + k) / 16);
    }
  }
}

inline void rms_norm(const RmsNormArgs& a) noexcept {
  const std::size_t cols = a.x.cols();
  for (std::size_t r = a.first; r < a.last; ++r) {
    Chains squares;
    for (std::size_t k = 0; k < cols; ++k) squares.fma(k, a.x[r][k], a.x[r][k]);
    const float scale = 1.0f / std::sqrt(squares.tree() / static_cast<float>(cols) + a.epsilon);
    for (std::size_t k = 0; k < cols; ++k) a.y[r][k] = (a.x[r][k] * scale) * a.weight[k];
  }
}

inline void rope(const RopeArgs& a) noexcept {
  const std::size_t half = a.dims / 2;
  const bool adjacent = a.pairs == RopePairs::adjacent;
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (std::size_t h = 0; h < a.x.cols() / a.head_dim; ++h) {
      float* const head = a.x[r].data() + h * a.head_dim;  // (head_dim)
      for (std::size_t i = 0; i < half; ++i) {
        float& first = head[adjacent ? 2 * i : i];
        float& second = head[adjacent ? 2 * i + 1 : i + half];
        const float x = first, y = second, cos = a.cos[r][i], sin = a.sin[r][i];
        first = std::fma(x, cos, -(y * sin));
        second = std::fma(x, sin, y * cos);
      }
    }
  }
}

inline void swiglu(const SwigluArgs& a) noexcept {
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (std::size_t k = 0; k < a.gate.cols(); ++k) a.out[r][k] = silu(a.gate[r][k]) * a.up[r][k];
  }
}

}  // namespace mica::kernel::scalar
