// SPDX-License-Identifier: Apache-2.0
//
// Specification of kernel/matmul.hpp and kernel/fast8.hpp, in plain loops.
#pragma once

#include "mica/kernel/detail/row_products.hpp"
#include "mica/kernel/scalar/chains.hpp"

#include <cmath>

namespace mica::kernel::scalar {

/// The contribution of one block of an integer format; x points at the block's first code.
template <IntegerFormat F>
void integer_block(const typename F::Block& block, const std::int8_t* x, const float* xd,
                   const std::int16_t* sums, float& y) noexcept {
  // Aligned, since g++ 12 with -O3 -march=native loads it as aligned and does not align it by itself.
  alignas(64) format::Codes<F::block_size, F::group> w;
  F::unpack(block, w);
  float acc = 0, mac = 0;
  for (std::size_t s = 0; s < F::block_size / 32; ++s) {
    std::int64_t isum = 0;
    for (std::size_t i = 32 * s; i < 32 * (s + 1); ++i) isum += w.scale[i / F::group] * w.code[i] * x[i];
    acc = std::fma(xd[s], static_cast<float>(isum), acc);
    for (std::size_t g = 32 * s / F::group; F::has_mins && g < 32 * (s + 1) / F::group; ++g) {
      std::int32_t sum = 0;
      for (std::size_t h = g * F::group / 16; h < (g + 1) * F::group / 16; ++h) sum += sums[h];
      mac = std::fma(static_cast<float>(w.min[g]), xd[s] * static_cast<float>(sum), mac);
    }
  }
  y = std::fma(w.d, acc, y);
  if constexpr (F::has_mins) y = std::fma(-w.dmin, mac, y);
}

/// One output of token t, and all that MatmulArgs names.
template <IntegerFormat F>
[[nodiscard]] float dot(const tensor::Matrix<F>& w, std::size_t row, const Input& x, std::size_t t) noexcept {
  float y = 0;
  for (std::size_t b = 0; b < w.blocks_per_row(); ++b) {
    const std::size_t k = b * F::block_size;
    integer_block<F>(w.block(row, b), x.codes.row_codes(t) + k, x.codes.row_scales(t) + k / 32,
                     x.codes.row_sums(t) + k / 16, y);
  }
  return y;
}
template <WeightFormat F>
requires(F::arithmetic == format::Arithmetic::real)
    [[nodiscard]] float dot(const tensor::Matrix<F>& w, std::size_t row, const Input& x,
                            std::size_t t) noexcept {
  const float* const values = x.values[t].data();
  Chains sum;
  float decoded[F::block_size];
  for (std::size_t b = 0; b < w.blocks_per_row(); ++b) {
    F::decode(w.block(row, b), decoded);
    for (std::size_t i = 0; i < F::block_size; ++i) {
      const std::size_t k = b * F::block_size + i;
      sum.fma(k, decoded[i], values[k]);
    }
  }
  return sum.tree();
}
template <WeightFormat F>
void matmul(const MatmulArgs<F>& a) noexcept {
  detail::for_rows(a, [&](std::size_t row, std::size_t token, std::size_t tokens) {
    if constexpr (!tensor::is_rounded<F>) {  // all products of those follow kernel/fast8.hpp
      for (std::size_t t = token; t < token + tokens; ++t) {
        const float product = dot(a.w, row, a.x, t);
        a.y[t][row] = a.add ? a.y[t][row] + product : product;
      }
    }
  });
}

}  // namespace mica::kernel::scalar
