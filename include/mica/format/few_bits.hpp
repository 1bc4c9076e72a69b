// SPDX-License-Identifier: Apache-2.0
//
// Q1_0, Q2_0, TQ1_0, TQ2_0: codes of one or two bits, or of three levels, and one half-precision scale.
//
//   Q1_0    128 signs     block of 18 bytes:  | d (f16) | 16 bytes |
//   Q2_0    64 codes      block of 18 bytes:  | d (f16) | 16 bytes |
//   TQ1_0   256 ternary   block of 54 bytes:  | 48 bytes of five | 4 bytes of four | d (f16) |
//   TQ2_0   256 ternary   block of 66 bytes:  | 64 bytes | d (f16) |
//   value = d * (code - 1), and of Q1_0 bit ? d : -d
//
//   Q1_0    bit i % 8 of byte i / 8 belongs to value i
//   Q2_0    byte i / 4 holds value i in its bits 2 (i % 4) and 2 (i % 4) + 1
//   TQ1_0   byte j of 0..31 holds values 32 n + j, byte 32 + j of 0..15 values 160 + 16 n + j, and byte
//           48 + j of 0..3 values 240 + 4 n + j, with n the place of the ternary digit. A byte is the
//           fraction of a number in base three, rounded up: times three, the whole part is the next digit.
//   TQ2_0   with j in 0..31 and quarter c in 0..3, value 32 c + j of half h lies in byte 32 h + j, bits 2c
//           and 2c + 1. The fourth code is unused and means 2.
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

/// 128 signs and a scale.
struct Q1_0 : detail::IntegerBlocks<Q1_0, 128, 32> {
  static constexpr Id id{41};
  static constexpr std::string_view name = "Q1_0";

  struct Block {
    Half d;
    std::uint8_t bits[16];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 1;
  static constexpr int code_max = 2;
  static void unpack(const Block& block, Codes<128, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = (block.bits[i / 8] >> (i % 8) & 1) != 0 ? 1 : -1;
    detail::set_scale(out, to_float(block.d));
  }
};

/// 64 two-bit codes and a scale.
struct Q2_0 : detail::IntegerBlocks<Q2_0, 64, 32> {
  static constexpr Id id{42};
  static constexpr std::string_view name = "Q2_0";

  struct Block {
    Half d;
    std::uint8_t pairs[16];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 1;
  static constexpr int code_max = 3;
  static void unpack(const Block& block, Codes<64, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = static_cast<std::int8_t>((block.pairs[i / 4] >> (2 * (i % 4)) & 3) - 1);
    detail::set_scale(out, to_float(block.d));
  }
};

/// 256 ternary values, five to a byte, and a scale.
struct TQ1_0 : detail::IntegerBlocks<TQ1_0, 256, 32> {
  static constexpr Id id{34};
  static constexpr std::string_view name = "TQ1_0";

  struct Block {
    std::uint8_t digits[52];
    Half d;
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 1;
  static constexpr int code_max = 2;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept {
    take_digits(block.digits, 32, 5, out.code);
    take_digits(block.digits + 32, 16, 5, out.code + 160);
    take_digits(block.digits + 48, 4, 4, out.code + 240);
    detail::set_scale(out, to_float(block.d));
  }

 private:
  /// Takes `places` digits out of each of n bytes; code[n * place + j] is a digit of bytes[j].
  static void take_digits(const std::uint8_t* bytes, std::size_t n, std::size_t places,
                          std::int8_t* code) noexcept {
    for (std::size_t j = 0; j < n; ++j) {
      unsigned fraction = bytes[j];
      for (std::size_t place = 0; place < places; ++place) {
        code[n * place + j] = static_cast<std::int8_t>(static_cast<int>(fraction * 3 >> 8) - 1);
        fraction = fraction * 3 & 255;
      }
    }
  }
};

/// 256 ternary values, four to a byte, and a scale.
struct TQ2_0 : detail::IntegerBlocks<TQ2_0, 256, 32> {
  static constexpr Id id{35};
  static constexpr std::string_view name = "TQ2_0";

  struct Block {
    std::uint8_t pairs[64];
    Half d;
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 1;
  static constexpr int code_max = 3;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = static_cast<std::int8_t>(detail::bit_pair(block.pairs, i) - 1);
    detail::set_scale(out, to_float(block.d));
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 0;
  static constexpr std::size_t code_bytes = 64;
};

static_assert(sizeof(Q1_0::Block) == 18 && IntegerFormat<Q1_0>);
static_assert(sizeof(Q2_0::Block) == 18 && IntegerFormat<Q2_0>);
static_assert(sizeof(TQ1_0::Block) == 54 && IntegerFormat<TQ1_0>);
static_assert(sizeof(TQ2_0::Block) == 66 && IntegerFormat<TQ2_0>);

}  // namespace mica::format
