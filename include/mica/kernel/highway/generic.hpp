// SPDX-License-Identifier: Apache-2.0
//
// Products with formats that have no vector codec: the format's own decode or unpack feeds buffers on the
// stack, and compiled kernels continue the chains of kernel/matmul.hpp from there. Same bits as the
// specification, any format, no unit of the user's own. No Highway header.
#pragma once

#include "mica/kernel/detail/row_products.hpp"
#include "mica/kernel/highway/abi.hpp"
#include "mica/kernel/matmul.hpp"

namespace mica::kernel::highway {
inline namespace MICA_KERNELS_ABI {

/// Continues sixteen chains by n products; the first is number 0 of its chain.
void extend_chains(const float* w, const float* x, std::size_t n, float* c) noexcept;

/// A block of an integer format, unpacked, whatever its size.
struct Unpacked {
  const std::int8_t* code = nullptr;    // (size)
  const std::int32_t* scale = nullptr;  // (size / group)
  const std::int16_t* min = nullptr;    // (size / group)
  std::size_t size = 0;
  std::size_t group = 0;  // 16 or 32
  bool has_mins = false;  // false: min and dmin count for nothing
  float d = 0;            // of the block, as in format::Codes
  float dmin = 0;         // of the mins
};

/// y plus the contribution of one block; x, xd and sums point at the block's first activations.
[[nodiscard]] float fold_unpacked(const Unpacked& w, const std::int8_t* x, const float* xd,
                                  const std::int16_t* sums, float y) noexcept;

}  // namespace MICA_KERNELS_ABI

namespace detail {

template <IntegerFormat F>
void unpacked_row(const MatmulArgs<F>& a, std::size_t row, std::size_t token, std::size_t tokens) noexcept {
  format::Codes<F::block_size, F::group> w;
  float products[kernel::detail::shared_tokens] = {};
  for (std::size_t b = 0; b < a.w.blocks_per_row(); ++b) {
    F::unpack(a.w.block(row, b), w);
    const Unpacked unpacked{w.code,   w.scale,     w.min, F::block_size,
                            F::group, F::has_mins, w.d,   F::has_mins ? w.dmin : 0.0f};
    const std::size_t k = b * F::block_size;
    for (std::size_t t = 0; t < tokens; ++t) {
      const QuantizedRows& x = a.x.codes;
      products[t] = fold_unpacked(unpacked, x.row_codes(token + t) + k, x.row_scales(token + t) + k / 32,
                                  x.row_sums(token + t) + k / 16, products[t]);
    }
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    float& y = a.y[token + t][row];
    y = a.add ? y + products[t] : products[t];
  }
}

}  // namespace detail

/// A product in any format; each block is decoded or unpacked once for several tokens.
template <WeightFormat F>
void matmul_without_codec(const MatmulArgs<F>& a) noexcept {
  kernel::detail::for_rows(a, [&](std::size_t row, std::size_t token, std::size_t tokens) {
    if constexpr (F::arithmetic == format::Arithmetic::integer) {
      detail::unpacked_row<F>(a, row, token, tokens);
    } else {
      kernel::detail::decoded_row<F>(a, row, token, tokens, extend_chains);
    }
  });
}

}  // namespace mica::kernel::highway
