// SPDX-License-Identifier: Apache-2.0
//
// A row of any format times some tokens. Of a real format: it decodes about 1,024 values to the stack, and the
// vectors of a backend continue the sixteen chains of every token from there. By kernel/fast8.hpp: every 256
// weights are requantised on the stack.
#pragma once

#include "mica/kernel/fast8.hpp"
#include "mica/kernel/scalar/chains.hpp"

#include <algorithm>
#include <numeric>

namespace mica::kernel::detail {

/// Tokens that share one decoding of a block.
inline constexpr std::size_t shared_tokens = 16;

/// Writes values[0, n), the numbers of a row from k on: whole blocks, by the format.
template <WeightFormat F>
struct DecodeBlocks {
  void operator()(const tensor::Matrix<F>& w, std::size_t row, std::size_t k, std::size_t n,
                  float* values) const noexcept {
    for (std::size_t i = 0; i < n; i += F::block_size)
      F::decode(w.block(row, (k + i) / F::block_size), values + i);
  }
};

/// Writes y[token + t][row] for t < tokens <= shared_tokens. `extend(w, x, n, c)` continues chains c by n
/// products; the first one is number 0 of its chain. `decode` does what DecodeBlocks does.
template <WeightFormat F, class Extend, class Decode = DecodeBlocks<F>>
void decoded_row(const MatmulArgs<F>& a, std::size_t row, std::size_t token, std::size_t tokens,
                 Extend&& extend, const Decode& decode = {}) noexcept {
  // Whole blocks and whole turns of the chains.
  constexpr std::size_t turn = std::lcm(F::block_size, chains);
  constexpr std::size_t step = std::max<std::size_t>(1, 1024 / turn) * turn;
  float decoded[step];
  scalar::Chains c[shared_tokens];
  for (std::size_t k = 0; k < a.w.cols(); k += step) {
    const std::size_t n = std::min(step, a.w.cols() - k);
    decode(a.w, row, k, n, decoded);
    for (std::size_t t = 0; t < tokens; ++t) extend(decoded, a.x.values[token + t].data() + k, n, c[t].c);
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    float& y = a.y[token + t][row];
    const float product = c[t].tree();
    y = a.add ? y + product : product;
  }
}

/// Writes y[token + t][row] for t < tokens <= shared_tokens.
template <WeightFormat F>
void fast8_row(const MatmulArgs<F>& a, std::size_t row, std::size_t token, std::size_t tokens) noexcept {
  const QuantizedRows& x = a.x.codes;
  float products[shared_tokens] = {};
  for (std::size_t k = 0; k < a.w.cols(); k += fast8_group) {
    const std::size_t n = std::min(fast8_group, a.w.cols() - k);
    const EightBits::Block block = requantise<F>(a.w, row, k / fast8_group);
    for (std::size_t t = 0; t < tokens; ++t) {
      products[t] =
          fold_eight_bits(block, x.row_codes(token + t) + k, n, x.row_scales(token + t)[k / 32], products[t]);
    }
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    float& y = a.y[token + t][row];
    y = a.add ? y + products[t] : products[t];
  }
}

/// Calls of_row(row, token, tokens) for every row of a slice and up to shared_tokens tokens at a time. Rows
/// of a product that follows kernel/fast8.hpp, which has an order of additions of its own, are written here.
template <WeightFormat F, class OfRow>
void for_rows(const MatmulArgs<F>& a, const OfRow& of_row) noexcept {
  for (std::size_t t = 0; t < a.y.rows(); t += shared_tokens) {
    const std::size_t tokens = std::min(shared_tokens, a.y.rows() - t);
    for (std::size_t r = a.first; r < a.last; ++r) {
      if constexpr (can_be_fast8<F>) {
        if (is_fast8(a)) {
          fast8_row(a, r, t, tokens);
          continue;
        }
      }
      of_row(r, t, tokens);
    }
  }
}

}  // namespace mica::kernel::detail
