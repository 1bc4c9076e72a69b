// SPDX-License-Identifier: Apache-2.0
//
// TQ1_0: the values of TQ2_0, five to a byte.
#pragma once

#include "mica/format/encode/encoder.hpp"
#include "mica/format/few_bits.hpp"
#include "mica_tools/encode/tq2_0.hpp"

#include <cstddef>
#include <cstdint>

namespace mica::format {

template <>
struct Encoder<TQ1_0> {
  static void encode(const float* values, const float* weights, TQ1_0::Block& block) noexcept {
    std::uint8_t codes[256];
    block.d = Encoder<TQ2_0>::find_ternary(values, weights, codes);
    pack_digits(codes, 32, 5, block.digits);
    pack_digits(codes + 160, 16, 5, block.digits + 32);
    pack_digits(codes + 240, 4, 4, block.digits + 48);
  }

 private:
  /// Byte j is the fraction whose ternary digits are codes j, j + n, ..., in 256ths and rounded up.
  static void pack_digits(const std::uint8_t* codes, std::size_t n, std::size_t places,
                          std::uint8_t* bytes) noexcept {
    for (std::size_t j = 0; j < n; ++j) {
      unsigned number = 0;
      for (std::size_t place = 0; place < 5; ++place) {
        number = 3 * number + (place < places ? codes[n * place + j] : 0u);
      }
      bytes[j] = static_cast<std::uint8_t>((number * 256 + 242) / 243);
    }
  }
};

}  // namespace mica::format
