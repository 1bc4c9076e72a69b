// SPDX-License-Identifier: Apache-2.0
//
// Kernels by xsimd: the instruction set is that of the compiler's flags, nothing is chosen at run time and
// nothing has to be linked. Float formats and elements are computed in vectors, the integer ones and the
// recurrent operations by the specification.
//
// Bit-equal to the specification. Without a fused multiply-add in the flags the specification is what runs.
#pragma once

#include "mica/base/type_list.hpp"
#include "mica/kernel/detail/row_products.hpp"
#include "mica/kernel/scalar.hpp"

#include <xsimd/xsimd.hpp>

#include <algorithm>
#include <bit>
#include <limits>

namespace mica::kernel {

/// What xsimd computes for one of its architectures, which is part of the type: units with different flags
/// stay apart. The rest is the specification.
template <class Arch>
struct XsimdReal : Scalar {
  static constexpr std::string_view name = "xsimd";

  /// Whether products with F, and attention over E, are computed in vectors.
  template <WeightFormat F>
  static constexpr bool computes = F::arithmetic == format::Arithmetic::real;
  template <KvReadable E>
  static constexpr bool attends =
      !std::is_same_v<E, format::Q8_0> && !format::is_block_element<E> && !KvTileElement<E>;

  // Required by Kernels
  template <WeightFormat F>
  static void matmul(const MatmulArgs<F>& a) noexcept {
    detail::for_rows(a, [&](std::size_t row, std::size_t token, std::size_t tokens) {
      if constexpr (TypeList<format::F32, format::F16, format::BF16>::template contains<F>) {
        const auto decode = [](const auto& w, std::size_t r, std::size_t k, std::size_t n, float* values) {
          widen(w.row(r) + k, n, values);
        };
        detail::decoded_row<F>(a, row, token, tokens, extend_chains, decode);
      } else {
        detail::decoded_row<F>(a, row, token, tokens, extend_chains);
      }
    });
  }

  static void rms_norm(const RmsNormArgs& a) noexcept {
    const std::size_t cols = a.x.cols();
    for (std::size_t r = a.first; r < a.last; ++r) {
      const float* const x = a.x[r].data();
      float* const y = a.y[r].data();
      scalar::Chains squares;
      extend_chains(x, x, cols, squares.c);
      const float scale = 1.0f / std::sqrt(squares.tree() / static_cast<float>(cols) + a.epsilon);
      std::size_t k = 0;
      for (; k + lanes <= cols; k += lanes) {
        const V normed = load(x + k) * V(scale);
        (a.weight == nullptr ? normed : normed * load(a.weight + k)).store_unaligned(y + k);
      }
      for (; k < cols; ++k) y[k] = a.weight == nullptr ? x[k] * scale : (x[k] * scale) * a.weight[k];
    }
  }

  /// Halves in vectors; adjacent pairs by the specification.
  static void rope(const RopeArgs& a) noexcept {
    const std::size_t half = a.dims / 2;
    if (a.pairs == RopePairs::adjacent || half % lanes != 0) return scalar::rope(a);
    for (std::size_t r = a.first; r < a.last; ++r) {
      for (std::size_t h = 0; h < a.x.cols(); h += a.head_dim) {
        float* const head = a.x[r].data() + h;  // (head_dim)
        for (std::size_t i = 0; i < half; i += lanes) {
          const V x = load(head + i), y = load(head + half + i);
          const V cos = load(a.cos[r].data() + i), sin = load(a.sin[r].data() + i);
          ::xsimd::fma(x, cos, -(y * sin)).store_unaligned(head + i);
          ::xsimd::fma(x, sin, y * cos).store_unaligned(head + half + i);
        }
      }
    }
  }

  /// SiLU in vectors; other gates by the specification.
  static void gated(const GatedArgs& a) noexcept {
    if (a.kind != Gate::silu) return scalar::gated(a);
    const std::size_t cols = a.gate.cols();
    for (std::size_t r = a.first; r < a.last; ++r) {
      std::size_t k = 0;
      for (; k + lanes <= cols; k += lanes) {
        const V x = load(a.gate[r].data() + k);
        (divide(x, V(1.0f) + exp(-x)) * load(a.up[r].data() + k)).store_unaligned(a.out[r].data() + k);
      }
      for (; k < cols; ++k) a.out[r][k] = silu(a.gate[r][k]) * a.up[r][k];
    }
  }

  /// A tile is decoded and turned once for all rows, so that lanes are tokens.
  template <KvReadable E>
  static void attention_scores(const AttentionArgs& a) noexcept {
    float key[max_head_dim];
    float keys[max_head_dim][format::tile_tokens];
    for (std::size_t begin = 0; begin < chunk_tokens; begin += format::tile_tokens) {
      const auto sees = [&](std::size_t r, std::size_t j) {
        return a.visible[r].first <= j && j < a.visible[r].last;
      };
      bool any = false;
      for (std::size_t slot = 0; slot < format::tile_tokens; ++slot) {
        bool seen = false;
        for (std::size_t r = 0; r < a.q.rows() && !seen; ++r) seen = sees(r, begin + slot);
        any = any || seen;
        std::fill_n(key, a.head_dim, 0.0f);
        if (seen) E::load_key(a.tiles[begin / format::tile_tokens], slot, a.head_dim, key);
        for (std::size_t i = 0; i < a.head_dim; ++i) keys[i][slot] = key[i];
      }
      for (std::size_t r = 0; r < a.q.rows() && any; ++r) {
        for (std::size_t first = 0; first < format::tile_tokens; first += lanes) {
          V c(0.0f);
          for (std::size_t i = 0; i < a.head_dim; ++i)
            c = ::xsimd::fma(V(a.q[r][i]), load(keys[i] + first), c);
          float scores[lanes];
          (c * V(a.scale)).store_unaligned(scores);
          for (std::size_t i = 0; i < lanes; ++i) {
            if (sees(r, begin + first + i)) a.p[r][begin + first + i] = scores[i];
          }
        }
      }
    }
  }

  static void attention_softmax(const AttentionArgs& a) noexcept {
    for (std::size_t r = 0; r < a.q.rows(); ++r) {
      if (a.visible[r].empty()) continue;
      const std::size_t first = a.visible[r].first, last = a.visible[r].last;
      float* const p = a.p[r].data();
      if (a.softcap != 0) {
        const float inverse = 1.0f / a.softcap;
        for (std::size_t j = first; j < last; ++j) p[j] = a.softcap * tanh(p[j] * inverse);
      }
      float m = p[first];
      for (std::size_t j = first; j < last; ++j) m = p[j] > m ? p[j] : m;
      std::size_t j = first;
      for (; j + lanes <= last; j += lanes) exp(load(p + j) - V(m)).store_unaligned(p + j);
      for (; j < last; ++j) p[j] = kernel::exp(p[j] - m);
      scalar::Chains sum;
      for (j = first; j < last; ++j) sum.add(j, p[j]);
      a.max[r] = m;
      a.sum[r] = sum.tree();
    }
  }

  template <KvReadable E>
  static void attention_values(const AttentionArgs& a) noexcept {
    float value[max_head_dim];
    for (std::size_t r = 0; r < a.q.rows(); ++r) {
      float* const out = a.out[r].data();
      scalar::begin_values(a, r, false);
      for (std::size_t j = a.visible[r].first; j < a.visible[r].last; ++j) {
        E::load_value(a.tiles[j / format::tile_tokens] + a.value_offset, j % format::tile_tokens, a.head_dim,
                      value);
        const float p = a.p[r][j];
        std::size_t i = 0;
        for (; i + lanes <= a.head_dim; i += lanes)
          ::xsimd::fma(V(p), load(value + i), load(out + i)).store_unaligned(out + i);
        for (; i < a.head_dim; ++i) out[i] = std::fma(p, value[i], out[i]);
      }
    }
  }

 private:
  using V = ::xsimd::batch<float, Arch>;
  static constexpr std::size_t lanes = V::size;
  static_assert(chains % lanes == 0, "mica::kernel::Xsimd: vectors of more than 16 floats");

  static V load(const float* p) noexcept { return V::load_unaligned(p); }

  static void extend_chains(const float* w, const float* x, std::size_t n, float* c) noexcept {
    const std::size_t whole = n / chains * chains;
    for (std::size_t lane = 0; lane < chains; lane += lanes) {
      V sum = load(c + lane);
      for (std::size_t i = lane; i < whole; i += chains) sum = ::xsimd::fma(load(w + i), load(x + i), sum);
      sum.store_unaligned(c + lane);
    }
    for (std::size_t i = whole; i < n; ++i) c[i % chains] = std::fma(w[i], x[i], c[i % chains]);
  }

  /// The numbers in the upper halves of lanes, as to_float() makes them.
  static V widened(::xsimd::batch<std::int32_t, Arch> high, Half) noexcept {
    using I = ::xsimd::batch<std::int32_t, Arch>;
    constexpr std::int32_t infinity = 0x7F800000, sign = std::numeric_limits<std::int32_t>::min();
    const I magnitude = (high & I(0x7FFF0000)) >> 3;  // a float whose exponent is 112 too small
    // Of a subnormal number: 2^-14 (1 + f / 1024) - 2^-14. No denormal is made: executors read those as zero.
    const V small = ::xsimd::bitwise_cast<float>(magnitude + I(113 << 23)) - V(0x1p-14f);
    const I finite = ::xsimd::select(magnitude < I(1 << 23), ::xsimd::bitwise_cast<std::int32_t>(small),
                                     magnitude + I(112 << 23));
    const I bits = ::xsimd::select(magnitude >= I(31 << 23), magnitude | I(infinity), finite);
    return ::xsimd::bitwise_cast<float>(bits | (high & I(sign)));
  }
  static V widened(::xsimd::batch<std::int32_t, Arch> high, Bfloat) noexcept {
    return ::xsimd::bitwise_cast<float>(high);
  }

  /// values[0, n) are the numbers, exactly.
  template <class T>
  static void widen(const T* numbers, std::size_t n, float* values) noexcept {
    if constexpr (std::is_same_v<T, float>) {
      std::copy_n(numbers, n, values);
    } else {
      static_assert(std::endian::native == std::endian::little);
      using I = ::xsimd::batch<std::int32_t, Arch>;
      std::size_t i = 0;
      for (; i + 2 * lanes <= n; i += 2 * lanes) {
        const I pairs = ::xsimd::bitwise_cast<std::int32_t>(
            ::xsimd::batch<std::uint16_t, Arch>::load_unaligned(&numbers[i].bits));
        const V even = widened(pairs << 16, T()), odd = widened((pairs >> 16) << 16, T());
        ::xsimd::zip_lo(even, odd).store_unaligned(values + i);
        ::xsimd::zip_hi(even, odd).store_unaligned(values + i + lanes);
      }
      for (; i < n; ++i) values[i] = to_float(numbers[i]);
    }
  }

  /// Rounded correctly: on NEON xsimd multiplies by an estimate of 1 / b.
  static V divide(V a, V b) noexcept {
#if defined(__aarch64__)
    float x[lanes], y[lanes];
    a.store_unaligned(x);
    b.store_unaligned(y);
    for (std::size_t i = 0; i < lanes; ++i) x[i] /= y[i];
    return load(x);
#else
    return a / b;
#endif
  }

  /// kernel::exp, lane by lane.
  static V exp(V x) noexcept {
    using C = ExpConstants;
    using I = ::xsimd::batch<std::int32_t, Arch>;
    const V clamped = ::xsimd::select(x > V(C::highest), V(C::highest), x);
    const V n = ::xsimd::nearbyint(clamped * V(C::log2_e));
    V r = ::xsimd::fma(n, V(-C::ln2_high), clamped);
    r = ::xsimd::fma(n, V(-C::ln2_low), r);
    V p(C::taylor[7]);
    for (std::size_t i = 7; i-- > 0;) p = ::xsimd::fma(p, r, V(C::taylor[i]));
    const I exponent = (::xsimd::batch_cast<std::int32_t>(n) + I(127)) << 23;
    const V result = p * ::xsimd::bitwise_cast<float>(exponent);
    return ::xsimd::select(x != x, x, ::xsimd::select(x < V(C::lowest), V(0.0f), result));
  }
};

#if defined(__FMA__) || defined(__aarch64__)
/// Kernels by xsimd where they are computed in vectors, the specification elsewhere.
using Xsimd = Fallback<XsimdReal<::xsimd::default_arch>, Scalar>;
#else
/// No fused multiply-add in the compiler's flags: the specification under its other name.
struct Xsimd : Scalar {
  static constexpr std::string_view name = "xsimd";
};
#endif

static_assert(Kernels<Xsimd>);

}  // namespace mica::kernel
