// SPDX-License-Identifier: Apache-2.0
//
// Specification of kernel/quantize.hpp and kernel/elementwise.hpp, in plain loops.
#pragma once

#include "mica/kernel/activation.hpp"
#include "mica/kernel/elementwise.hpp"
#include "mica/kernel/quantize.hpp"
#include "mica/kernel/scalar/chains.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mica::kernel::scalar {

/// `group` values of one row, which share a scale.
inline void quantize_group(const float* x, std::size_t group, std::int8_t* codes, float* scales,
                           std::int16_t* sums) noexcept {
  float amax = 0;
  bool finite = true;
  for (std::size_t i = 0; i < group; ++i) {
    amax = std::max(amax, std::fabs(x[i]));
    finite = finite && std::isfinite(x[i]);
  }
  const bool zero = !finite || amax < activation_floor;
  const float inverse = zero ? 0.0f : 127.0f / amax;
  const float scale = !finite ? std::numeric_limits<float>::quiet_NaN() : zero ? 0.0f : amax / 127.0f;
  std::fill_n(scales, group / activation_group, scale);
  std::fill_n(sums, group / 16, std::int16_t{0});
  for (std::size_t i = 0; i < group; ++i) {
    codes[i] = zero ? std::int8_t{0} : static_cast<std::int8_t>(std::nearbyint(x[i] * inverse));
    sums[i / 16] = static_cast<std::int16_t>(sums[i / 16] + codes[i]);
  }
}

/// Groups of 32, or of 256 where scale_group(a.out) says so; the last one may be shorter.
inline void quantize(const QuantizeArgs& a) noexcept {
  const std::size_t cols = a.out.cols, group = scale_group(a.out);
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (std::size_t k = 0; k < cols; k += group) {
      quantize_group(a.x[r].data() + k, std::min(group, cols - k), a.out.codes + r * cols + k,
                     a.out.scales + (r * cols + k) / 32, a.out.sums + (r * cols + k) / 16);
    }
  }
}

/// The operations of kernel/elementwise.hpp, one row after the other.
inline void rms_norm(const RmsNormArgs& a) noexcept {
  const std::size_t cols = a.x.cols();
  for (std::size_t r = a.first; r < a.last; ++r) {
    Chains squares;
    for (std::size_t k = 0; k < cols; ++k) squares.fma(k, a.x[r][k], a.x[r][k]);
    const float scale = 1.0f / std::sqrt(squares.tree() / static_cast<float>(cols) + a.epsilon);
    for (std::size_t k = 0; k < cols; ++k) {
      const float normed = a.x[r][k] * scale;
      a.y[r][k] = a.weight == nullptr ? normed : normed * a.weight[k];
    }
  }
}
inline void l2_norm(const L2NormArgs& a) noexcept {
  const std::size_t cols = a.x.cols();
  for (std::size_t r = a.first; r < a.last; ++r) {
    Chains squares;
    for (std::size_t k = 0; k < cols; ++k) squares.fma(k, a.x[r][k], a.x[r][k]);
    const float scale = a.scale / std::sqrt(squares.tree() + a.epsilon);
    for (std::size_t k = 0; k < cols; ++k) a.y[r][k] = a.x[r][k] * scale;
  }
}
inline void layer_norm(const LayerNormArgs& a) noexcept {
  const std::size_t cols = a.x.cols();
  for (std::size_t r = a.first; r < a.last; ++r) {
    Chains sums, squares;
    for (std::size_t k = 0; k < cols; ++k) sums.add(k, a.x[r][k]);
    const float mean = sums.tree() / static_cast<float>(cols);
    for (std::size_t k = 0; k < cols; ++k) squares.fma(k, a.x[r][k] - mean, a.x[r][k] - mean);
    const float scale = 1.0f / std::sqrt(squares.tree() / static_cast<float>(cols) + a.epsilon);
    for (std::size_t k = 0; k < cols; ++k) {
      const float normed = (a.x[r][k] - mean) * scale;
      a.y[r][k] = a.bias == nullptr ? normed * a.weight[k] : std::fma(normed, a.weight[k], a.bias[k]);
    }
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

/// One number through a gate.
[[nodiscard]] inline float gated(Gate kind, float g, float u) noexcept {
  constexpr float limit = ClampedGate::limit;
  switch (kind) {
    case Gate::silu:
      return silu(g) * u;
    case Gate::gelu:
      return gelu_tanh(g) * u;
    case Gate::gelu_erf:
      return gelu_erf(g) * u;
    case Gate::sigmoid:
      return u / (1.0f + exp(-g));
    case Gate::clamped:
      break;
  }
  const float x = g > limit ? limit : g, y = u > limit ? limit : u < -limit ? -limit : u;
  return x / (1.0f + exp(-ClampedGate::slope * x)) * (y + 1.0f);
}

/// The operations of kernel/elementwise.hpp, one row after the other.
inline void gated(const GatedArgs& a) noexcept {
  for (std::size_t r = a.first; r < a.last; ++r) {
    const float* const up = a.up.rows() == 0 ? nullptr : a.up[r].data();
    for (std::size_t k = 0; k < a.gate.cols(); ++k)
      a.out[r][k] = gated(a.kind, a.gate[r][k], up == nullptr ? 1.0f : up[k]);
  }
}
inline void add(const AddArgs& a) noexcept {
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (std::size_t k = 0; k < a.x.cols(); ++k) a.y[r][k] = std::fma(a.x[r][k], a.scale, a.y[r][k]);
  }
}
inline void scale(const ScaleArgs& a) noexcept {
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (float& x : a.x[r]) x *= a.factor;
  }
}
inline void softcap(const SoftcapArgs& a) noexcept {
  const float inverse = 1.0f / a.cap;
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (float& x : a.x[r]) x = a.cap * tanh(x * inverse);
  }
}

}  // namespace mica::kernel::scalar
