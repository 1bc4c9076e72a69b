// SPDX-License-Identifier: Apache-2.0
//
// Q4_0, Q4_1, Q5_0, Q5_1: 32 codes of four or five bits, one half-precision scale, and in the second of each
// pair a half-precision offset. Q6_0: the same with codes of six bits, for keys and values; no file has it
// here.
//
//   Q4_0   block of 18 bytes:  | d (f16) | 16 bytes |                                  value = d * (code - 8)
//   Q4_1   block of 20 bytes:  | d (f16) | m (f16) | 16 bytes |                        value = d * code + m
//   Q5_0   block of 22 bytes:  | d (f16) | 4 bytes: high bits | 16 bytes |             value = d * (code - 16)
//   Q5_1   block of 24 bytes:  | d (f16) | m (f16) | 4 bytes: high bits | 16 bytes |   value = d * code + m
//   Q6_0   block of 26 bytes:  | d (f16) | 8 bytes: high bits | 16 bytes |             value = d * (code - 32)
//
// Byte j holds the low four bits of value j in its low nibble and those of value j + 16 in its high nibble;
// bit i of the 32 high bits belongs to value i. Q6_0 (the format of ik_llama.cpp) has two high bits a value:
// byte c has those of values c, c + 16, c + 8 and c + 24, from its low bits on. Unpacked, an offset is a min
// of 1 with dmin = -m.
#pragma once

#include "mica/format/detail/unpacked.hpp"

#include <algorithm>
#include <cmath>

namespace mica::format {

/// 32 four-bit codes and a scale.
struct Q4_0 : detail::IntegerBlocks<Q4_0, 32, 32> {
  static constexpr Id id{2};
  static constexpr std::string_view name = "Q4_0";

  struct Block {
    Half d;
    std::uint8_t nibbles[16];
  };

  /// The value of the largest magnitude becomes code 0, that is -8 d, so d has the opposite sign.
  static void encode(const float* values, Block& block) noexcept {
    const float* const extreme = std::max_element(
        values, values + block_size, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    const float d = *extreme / -8.0f;
    const float inverse = d != 0 ? 1.0f / d : 0.0f;
    const auto code = [&](float value) {
      return static_cast<std::uint8_t>(std::clamp(value * inverse + 8.5f, 0.0f, 15.0f));
    };
    block.d = to_half(d);
    for (std::size_t j = 0; j < 16; ++j) {
      block.nibbles[j] = static_cast<std::uint8_t>(code(values[j]) | (code(values[j + 16]) << 4));
    }
  }

  // Required by IntegerFormat
  static constexpr int code_offset = 8;
  static constexpr int code_max = 15;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = static_cast<std::int8_t>(detail::nibble(block.nibbles, i) - 8);
    detail::set_scale(out, to_float(block.d));
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 2;
  static constexpr std::size_t code_bytes = 16;
};

/// 32 four-bit codes, a scale and an offset.
struct Q4_1 : detail::IntegerBlocks<Q4_1, 32, 32> {
  static constexpr Id id{3};
  static constexpr std::string_view name = "Q4_1";

  struct Block {
    Half d;
    Half m;
    std::uint8_t nibbles[16];
  };

  // Required by IntegerFormat
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 15;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = static_cast<std::int8_t>(detail::nibble(block.nibbles, i));
    detail::set_scale_and_offset(out, to_float(block.d), to_float(block.m));
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 4;
  static constexpr std::size_t code_bytes = 16;
};

namespace detail {

/// The fifth bits of 32 codes, in one word. In a file bit i belongs to value i; packed, bit j of byte c
/// belongs to value 4 j + c, so that the bits of four adjacent values are at the same position of four bytes.
[[nodiscard]] constexpr std::uint32_t pack_fifth_bits(std::uint32_t file) noexcept {
  std::uint32_t packed = 0;
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t four = (file >> (4 * j)) & 15;
    packed |= ((four * 0x00204081U) & 0x01010101U) << j;  // a copy of the four bits at 0, 7, 14 and 21
  }
  return packed;
}

[[nodiscard]] constexpr std::uint32_t unpack_fifth_bits(std::uint32_t packed) noexcept {
  std::uint32_t file = 0;
  for (int j = 0; j < 8; ++j) {
    const std::uint32_t four = (packed >> j) & 0x01010101U;
    file |= ((four | (four >> 7) | (four >> 14) | (four >> 21)) & 15) << (4 * j);
  }
  return file;
}

/// What blocks of 32 five-bit codes share.
struct FiveBits {
  static constexpr int code_max = 31;

  /// Code i, from 0.
  template <class Block>
  static int code(const Block& block, std::size_t i) noexcept {
    return nibble(block.nibbles, i) | (block.high[i / 8] >> (i % 8) & 1) << 4;
  }

  // Required by PackableFormat
  static constexpr std::size_t code_bytes = 20;
  static constexpr std::uint32_t pack_word(std::size_t w, std::uint32_t file) noexcept {
    return w == 0 ? pack_fifth_bits(file) : file;
  }
  static constexpr std::uint32_t unpack_word(std::size_t w, std::uint32_t packed) noexcept {
    return w == 0 ? unpack_fifth_bits(packed) : packed;
  }
};

}  // namespace detail

/// 32 five-bit codes and a scale.
struct Q5_0 : detail::IntegerBlocks<Q5_0, 32, 32>, detail::FiveBits {
  static constexpr Id id{6};
  static constexpr std::string_view name = "Q5_0";

  struct Block {
    Half d;
    std::uint8_t high[4];
    std::uint8_t nibbles[16];
  };

  // Required by IntegerFormat and PackableFormat
  static constexpr int code_offset = 16;
  static constexpr std::size_t codes_at = 2;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i) out.code[i] = static_cast<std::int8_t>(code(block, i) - 16);
    detail::set_scale(out, to_float(block.d));
  }
};

/// 32 five-bit codes, a scale and an offset.
struct Q5_1 : detail::IntegerBlocks<Q5_1, 32, 32>, detail::FiveBits {
  static constexpr Id id{7};
  static constexpr std::string_view name = "Q5_1";

  struct Block {
    Half d;
    Half m;
    std::uint8_t high[4];
    std::uint8_t nibbles[16];
  };

  // Required by IntegerFormat and PackableFormat
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr std::size_t codes_at = 4;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i) out.code[i] = static_cast<std::int8_t>(code(block, i));
    detail::set_scale_and_offset(out, to_float(block.d), to_float(block.m));
  }
};

/// 32 six-bit codes and a scale.
struct Q6_0 : detail::IntegerBlocks<Q6_0, 32, 32> {
  static constexpr std::string_view name = "Q6_0";

  struct Block {
    Half d;
    std::uint8_t high[8];
    std::uint8_t nibbles[16];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 32;
  static constexpr int code_max = 63;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = static_cast<std::int8_t>(code(block, i) - code_offset);
    detail::set_scale(out, to_float(block.d));
  }

  // Specific to Q6_0
  /// Where the high bits of code i are in byte i % 8 of them.
  [[nodiscard]] static constexpr int high_shift(std::size_t i) noexcept {
    return static_cast<int>(i % 16 / 8 * 4 + i / 16 * 2);
  }
  /// Code i, from 0.
  [[nodiscard]] static int code(const Block& block, std::size_t i) noexcept {
    return detail::nibble(block.nibbles, i) | (block.high[i % 8] >> high_shift(i) & 3) << 4;
  }
};

static_assert(detail::pack_fifth_bits(1U << 22) == 1U << 21 &&
              detail::unpack_fifth_bits(1U << 21) == 1U << 22);
static_assert(sizeof(Q4_0::Block) == 18 && EncodableFormat<Q4_0> && IntegerFormat<Q4_0>);
static_assert(sizeof(Q4_1::Block) == 20 && IntegerFormat<Q4_1>);
static_assert(sizeof(Q5_0::Block) == 22 && IntegerFormat<Q5_0>);
static_assert(sizeof(Q5_1::Block) == 24 && IntegerFormat<Q5_1>);
static_assert(sizeof(Q6_0::Block) == 26);

}  // namespace mica::format
