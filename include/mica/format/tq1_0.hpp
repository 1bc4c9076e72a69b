// SPDX-License-Identifier: Apache-2.0
//
// TQ1_0: 256 ternary codes, five to a byte, and one half-precision scale.
//
//   block of 54 bytes:  | 48 bytes of five | 4 bytes of four | d (f16) |       value = d * (code - 1)
//   byte j of 0..31 holds values 32 n + j, byte 32 + j of 0..15 values 160 + 16 n + j, and byte 48 + j of 0..3 values
//   240 + 4 n + j, with n the place of the ternary digit
//
// A byte is the fraction of a number in base three, rounded up: times three, the whole part is the next
// digit.
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct TQ1_0 {
  static constexpr Id id{34};
  static constexpr std::string_view name = "TQ1_0";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    std::uint8_t digits[52];
    Half d;
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<TQ1_0>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 1;
  static constexpr int code_max = 2;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept;

 private:
  /// Takes `places` digits out of each of n bytes; code[n * place + j] is a digit of bytes[j].
  static void take_digits(const std::uint8_t* bytes, std::size_t n, std::size_t places,
                          std::int8_t* code) noexcept;
};

inline void TQ1_0::take_digits(const std::uint8_t* bytes, std::size_t n, std::size_t places,
                               std::int8_t* code) noexcept {
  for (std::size_t j = 0; j < n; ++j) {
    unsigned fraction = bytes[j];
    for (std::size_t place = 0; place < places; ++place) {
      code[n * place + j] = static_cast<std::int8_t>(static_cast<int>(fraction * 3 >> 8) - 1);
      fraction = fraction * 3 & 255;
    }
  }
}

inline void TQ1_0::unpack(const Block& block, Codes<256, 32>& out) noexcept {
  take_digits(block.digits, 32, 5, out.code);
  take_digits(block.digits + 32, 16, 5, out.code + 160);
  take_digits(block.digits + 48, 4, 4, out.code + 240);
  detail::set_scale(out, to_float(block.d));
}

static_assert(sizeof(TQ1_0::Block) == 54 && IntegerFormat<TQ1_0>);

}  // namespace mica::format
