// SPDX-License-Identifier: Apache-2.0
//
// Operations of kernel/elementwise.hpp, and the quantisation of activations, in vectors.
#pragma once

#include "mica/kernel/scalar/chains.hpp"
#include "mica/kernel/scalar/elementwise.hpp"
#include "mica/kernel/xsimd/vectors.hpp"

namespace mica::kernel::xsimd {

template <class A>
void rms_norm(const RmsNormArgs& a) noexcept {
  const std::size_t cols = a.x.cols();
  for (std::size_t r = a.first; r < a.last; ++r) {
    const float* const x = a.x[r].data();
    float* const y = a.y[r].data();
    scalar::Chains squares;
    extend_chains<A>(x, x, cols, squares.c);
    const float scale = 1.0f / std::sqrt(squares.tree() / static_cast<float>(cols) + a.epsilon);
    std::size_t k = 0;
    for (; k + lanes<A> <= cols; k += lanes<A>) {
      const VF<A> normed = load<A>(x + k) * VF<A>(scale);
      (a.weight == nullptr ? normed : normed * load<A>(a.weight + k)).store_unaligned(y + k);
    }
    for (; k < cols; ++k) y[k] = a.weight == nullptr ? x[k] * scale : (x[k] * scale) * a.weight[k];
  }
}

/// Halves in vectors; adjacent pairs by the specification.
template <class A>
void rope(const RopeArgs& a) noexcept {
  const std::size_t half = a.dims / 2;
  if (a.pairs == RopePairs::adjacent || half % lanes<A> != 0) return scalar::rope(a);
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (std::size_t h = 0; h < a.x.cols(); h += a.head_dim) {
      float* const head = a.x[r].data() + h;  // (head_dim)
      for (std::size_t i = 0; i < half; i += lanes<A>) {
        const VF<A> x = load<A>(head + i), y = load<A>(head + half + i);
        const VF<A> cos = load<A>(a.cos[r].data() + i), sin = load<A>(a.sin[r].data() + i);
        fma<A>(x, cos, -(y * sin)).store_unaligned(head + i);
        fma<A>(x, sin, y * cos).store_unaligned(head + half + i);
      }
    }
  }
}

/// SiLU in vectors; other gates by the specification.
template <class A>
void gated(const GatedArgs& a) noexcept {
  if (a.kind != Gate::silu || a.up.rows() == 0) return scalar::gated(a);
  const std::size_t cols = a.gate.cols();
  for (std::size_t r = a.first; r < a.last; ++r) {
    std::size_t k = 0;
    for (; k + lanes<A> <= cols; k += lanes<A>) {
      const VF<A> x = load<A>(a.gate[r].data() + k);
      (divide<A>(x, VF<A>(1.0f) + exp<A>(-x)) * load<A>(a.up[r].data() + k))
          .store_unaligned(a.out[r].data() + k);
    }
    for (; k < cols; ++k) a.out[r][k] = silu(a.gate[r][k]) * a.up[r][k];
  }
}

/// The bits of the largest magnitude of n numbers, a multiple of 32. As integers they are in the order of the
/// magnitudes, and what is not finite is above all others.
template <class A>
std::int32_t largest_magnitude(const float* x, std::size_t n) noexcept {
  VI<A> top(0);
  for (std::size_t i = 0; i < n; i += lanes<A>)
    top = ::xsimd::max(top, ::xsimd::bitwise_cast<std::int32_t>(load<A>(x + i)) & VI<A>(0x7FFFFFFF));
  return ::xsimd::reduce_max(top);
}

/// Sixteen codes, and their sum.
template <class A>
std::int16_t round16(const float* x, float inverse, std::int8_t* codes) noexcept {
  alignas(64) std::int32_t rounded[16];
  VI<A> sum(0);
  for (std::size_t i = 0; i < 16; i += lanes<A>) {
    const VI<A> code = ::xsimd::nearbyint_as_int(load<A>(x + i) * VF<A>(inverse));
    code.store_unaligned(rounded + i);
    sum += code;
  }
  for (std::size_t i = 0; i < 16; ++i) codes[i] = static_cast<std::int8_t>(rounded[i]);
  return static_cast<std::int16_t>(::xsimd::reduce_add(sum));
}

/// `group` values, which share a scale; scalar::quantize_group in vectors.
template <class A>
void quantize_group(const float* x, std::size_t group, std::int8_t* codes, float* scales,
                    std::int16_t* sums) noexcept {
  const auto amax = std::bit_cast<float>(largest_magnitude<A>(x, group));
  if (!(amax >= activation_floor && amax < std::numeric_limits<float>::infinity()))
    return scalar::quantize_group(x, group, codes, scales, sums);
  std::fill_n(scales, group / activation_group, amax / 127.0f);
  for (std::size_t i = 0; i < group; i += 16) sums[i / 16] = round16<A>(x + i, 127.0f / amax, codes + i);
}

template <class A>
void quantize(const QuantizeArgs& a) noexcept {
  const std::size_t cols = a.out.cols, group = scale_group(a.out);
  for (std::size_t r = a.first; r < a.last; ++r) {
    for (std::size_t k = 0; k < cols; k += group) {
      quantize_group<A>(a.x[r].data() + k, std::min(group, cols - k), a.out.codes + r * cols + k,
                        a.out.scales + (r * cols + k) / 32, a.out.sums + (r * cols + k) / 16);
    }
  }
}

}  // namespace mica::kernel::xsimd
