// SPDX-License-Identifier: Apache-2.0
//
// A row of any format that can be fast8 times some tokens by kernel/fast8.hpp: every 256 weights are
// requantised on the stack.
#pragma once

#include "mica/kernel/detail/decoded_row.hpp"
#include "mica/kernel/fast8.hpp"

namespace mica::kernel::detail {

/// Writes y[token + t][row] for t < tokens <= shared_tokens.
template <WeightFormat F>
void fast8_row(const MatmulArgs<F>& a, std::size_t row, std::size_t token, std::size_t tokens) noexcept {
  const QuantizedRows& x = a.x.codes;
  float products[shared_tokens] = {};
  for (std::size_t c = 0; c < a.w.cols() / fast8_group; ++c) {
    const EightBits::Block block = requantise<F>(a.w, row, c);
    for (std::size_t t = 0; t < tokens; ++t) {
      products[t] = fold_eight_bits(block, x.row_codes(token + t) + fast8_group * c,
                                    x.row_scales(token + t)[fast8_group / 32 * c], products[t]);
    }
  }
  for (std::size_t t = 0; t < tokens; ++t) {
    float& y = a.y[token + t][row];
    y = a.add ? y + products[t] : products[t];
  }
}

/// The same where the product follows that contract; whether it does.
template <WeightFormat F>
[[nodiscard]] bool took_fast8_row(const MatmulArgs<F>& a, std::size_t row, std::size_t token,
                                  std::size_t tokens) noexcept {
  if constexpr (can_be_fast8<F>) {
    if (is_fast8(a)) {
      fast8_row(a, row, token, tokens);
      return true;
    }
  }
  return false;
}

}  // namespace mica::kernel::detail
