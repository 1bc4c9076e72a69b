// SPDX-License-Identifier: Apache-2.0
//
// MXFP4 and NVFP4: four-bit floats (a sign, two bits of exponent, one of fraction) with a scale for 32 or 16
// of them. Codes are floats doubled, so that they are whole.
#pragma once

#include "mica/format/detail/unpacked.hpp"

#include <bit>

namespace mica::format {

namespace detail {

/// The sixteen numbers of a four-bit float, doubled.
inline constexpr std::int8_t doubled_fp4[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};

}  // namespace detail

/// 32 four-bit floats and one power of two (OCP Microscaling Formats, version 1.0).
///
///   block of 17 bytes:  | exponent | 16 bytes |
///   value = 2^(exponent - 127) * float = 2^(exponent - 128) * doubled float
///   byte j holds value j in its low nibble and value j + 16 in its high nibble
///
/// Limit: exponent 255 means 2^128 here as in other readers of such files, and not NaN as in the standard.
struct MXFP4 : detail::IntegerBlocks<MXFP4, 32, 32> {
  static constexpr Id id{39};
  static constexpr std::string_view name = "MXFP4";

  struct Block {
    std::uint8_t exponent;
    std::uint8_t nibbles[16];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 12;
  static constexpr int code_max = 24;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = detail::doubled_fp4[detail::nibble(block.nibbles, i)];
    detail::set_scale(out, half_scale(block.exponent));
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 1;
  static constexpr std::size_t code_bytes = 16;

  // Specific to MXFP4
  /// 2^(exponent - 128): half the scale, for doubled floats. The two smallest are subnormal.
  static constexpr float half_scale(std::uint8_t exponent) noexcept {
    return std::bit_cast<float>(exponent < 2 ? 0x200000u << exponent : (exponent - 1u) << 23);
  }
};

/// 64 four-bit floats in four groups of 16, each with an eight-bit float as its scale.
///
///   block of 36 bytes:  | 4 scales | 32 bytes |
///   value = scale[g] * float = 2^-10 * (512 * scale[g]) * doubled float
///   byte 8 g + j of 0..7 holds value 16 g + j in its low nibble and value 16 g + 8 + j in its high nibble
///   scale: four bits of exponent (bias 7), three of fraction; the top bit is ignored and 0x7F means 0
///
/// 512 scale[g] is whole, but up to 245,760, so that weighted sums are not exact: they are rounded once,
/// which any kernel can do since a scale has no more than four significant bits (format::Codes).
struct NVFP4 : detail::IntegerBlocks<NVFP4, 64, 16> {
  static constexpr Id id{40};
  static constexpr std::string_view name = "NVFP4";

  struct Block {
    std::uint8_t scales[4];
    std::uint8_t nibbles[32];
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 12;
  static constexpr int code_max = 24;
  static void unpack(const Block& block, Codes<64, 16>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = detail::doubled_fp4[detail::nibble(block.nibbles + i / 16 * 8, i % 16, 8)];
    detail::set_scales(out, 0x1p-10f, [&block](std::size_t g) { return whole_scale(block.scales[g]); });
  }

  // Specific to NVFP4
  /// 512 times the number that a scale byte stands for.
  static constexpr std::int32_t whole_scale(std::uint8_t byte) noexcept {
    const int exponent = byte >> 3 & 15, fraction = byte & 7;
    if (byte == 0x7F) return 0;
    return exponent == 0 ? fraction : (8 + fraction) << (exponent - 1);
  }
};

static_assert(MXFP4::half_scale(0) == 0x1p-128f && MXFP4::half_scale(128) == 1.0f);
static_assert(NVFP4::whole_scale(0x38) == 512 && NVFP4::whole_scale(0x7E) == 448 * 512);
static_assert(sizeof(MXFP4::Block) == 17 && IntegerFormat<MXFP4>);
static_assert(sizeof(NVFP4::Block) == 36 && IntegerFormat<NVFP4>);

}  // namespace mica::format
