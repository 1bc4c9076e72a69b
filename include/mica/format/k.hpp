// SPDX-License-Identifier: Apache-2.0
//
// Q2_K to Q6_K: 256 codes in groups of 16 or 32, each with a small integer scale, and in Q2_K, Q4_K and Q5_K
// with a small integer min.
#pragma once

#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

/// 256 two-bit codes in sixteen groups of 16, each with a four-bit scale and a four-bit min.
///
///   block of 84 bytes:  | 16 bytes: scale (low nibble) and min (high nibble) | 64 bytes | d (f16) | dmin (f16) |
///   value = d * scale[g] * code - dmin * min[g]
///
/// With j in 0..31 and quarter c in 0..3, value 32 c + j of half h lies in byte 32 h + j, bits 2c and 2c + 1.
struct Q2_K : detail::IntegerBlocks<Q2_K, 256, 16> {
  static constexpr Id id{10};
  static constexpr std::string_view name = "Q2_K";

  struct Block {
    std::uint8_t scales[16];
    std::uint8_t pairs[64];
    Half d;
    Half dmin;
  };

  // Required by IntegerFormat
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 3;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i)
      out.code[i] = static_cast<std::int8_t>(detail::bit_pair(block.pairs, i));
    for (std::size_t g = 0; g < 16; ++g) {
      out.scale[g] = block.scales[g] & 15;
      out.min[g] = block.scales[g] >> 4;
    }
    out.d = to_float(block.d);
    out.dmin = to_float(block.dmin);
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 16;
  static constexpr std::size_t code_bytes = 64;
};

/// 256 three-bit codes in sixteen groups of 16, each with a six-bit scale.
///
///   block of 110 bytes:  | 32 bytes: high bits | 64 bytes: low two bits | 12 bytes of scales | d (f16) |
///   value = d * (scale[g] - 32) * (code - 4)
///
/// With j in 0..31 and quarter c in 0..3, value 32 c + j of half h has
///   low bits   byte 32 h + j, bits 2c and 2c + 1
///   high bit   byte j, bit 4 h + c
///
///   scale bytes   0..7                                       8..11
///   bits          low nibble: scale 0..7, high: scale 8..15  byte 8 + g % 4, bits 2 (g / 4) and 2 (g / 4) + 1:
///                 (their lower four bits)                    the upper two bits of scale g
struct Q3_K : detail::IntegerBlocks<Q3_K, 256, 16> {
  static constexpr Id id{11};
  static constexpr std::string_view name = "Q3_K";

  struct Block {
    std::uint8_t high[32];
    std::uint8_t pairs[64];
    std::uint8_t scales[12];
    Half d;
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 4;
  static constexpr int code_max = 7;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept {
    for (std::size_t i = 0; i < block_size; ++i) {
      const int high = (block.high[i % 32] >> (i / 32)) & 1;
      out.code[i] = static_cast<std::int8_t>((detail::bit_pair(block.pairs, i) | (high << 2)) - 4);
    }
    detail::set_scales(out, to_float(block.d), [&block](std::size_t g) {
      const int high = (block.scales[8 + g % 4] >> (2 * (g / 4))) & 3;
      return (detail::nibble(block.scales, g, 8) | (high << 4)) - 32;
    });
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 0;
  static constexpr std::size_t code_bytes = 96;
};

/// 256 four-bit codes in eight groups of 32, each with a six-bit scale and a six-bit min.
///
///   block of 144 bytes:  | d (f16) | dmin (f16) | 12 bytes of scales and mins | 128 bytes of nibbles |
///   value = d * scale[g] * code - dmin * min[g]
///   nibble byte 32 p + j holds value 64 p + j (low) and value 64 p + 32 + j (high)
///
///   scale bytes   0..3          4..7        8..11
///   bits 0..5     scale 0..3    min 0..3    low nibble: scale 4..7, high nibble: min 4..7
///   bits 6..7     scale 4..7    min 4..7    (their upper two bits)
struct Q4_K : detail::IntegerBlocks<Q4_K, 256, 32> {
  static constexpr Id id{12};
  static constexpr std::string_view name = "Q4_K";

  struct Block {
    Half d;
    Half dmin;
    std::uint8_t scales[12];
    std::uint8_t nibbles[128];
  };

  // Required by IntegerFormat
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 15;
  static void unpack(const Block& __restrict block, Codes<256, 32>& __restrict out) noexcept {
    for (std::size_t p = 0; p < 4; ++p) {
      for (std::size_t j = 0; j < 32; ++j) {
        const int byte = block.nibbles[32 * p + j];
        out.code[64 * p + j] = static_cast<std::int8_t>(byte & 15);
        out.code[64 * p + 32 + j] = static_cast<std::int8_t>(byte >> 4);
      }
    }
    unpack_scales(block, out);
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 16;
  static constexpr std::size_t code_bytes = 128;

  // Specific to Q4_K and Q5_K, which packs scales alike
  /// d, dmin and the eight scales and mins, each 0..63.
  template <class Either>
  static void unpack_scales(const Either& block, Codes<256, 32>& out) noexcept {
    const std::uint8_t* const bytes = block.scales;
    for (std::size_t g = 0; g < 4; ++g) {
      out.scale[g] = bytes[g] & 63;
      out.min[g] = bytes[g + 4] & 63;
      out.scale[g + 4] = (bytes[g + 8] & 15) | (bytes[g] >> 6 << 4);
      out.min[g + 4] = static_cast<std::int16_t>((bytes[g + 8] >> 4) | (bytes[g + 4] >> 6 << 4));
    }
    out.d = to_float(block.d);
    out.dmin = to_float(block.dmin);
  }
};

/// 256 five-bit codes in eight groups of 32, each with a six-bit scale and a six-bit min.
///
///   block of 176 bytes:  | d (f16) | dmin (f16) | 12 bytes of scales | 32 bytes: high bits | 128 bytes |
///   value = d * scale[g] * code - dmin * min[g]; scales, mins and nibbles are packed as in Q4_K
///   the high bit of value 32 g + j is bit g of byte j
struct Q5_K : detail::IntegerBlocks<Q5_K, 256, 32> {
  static constexpr Id id{13};
  static constexpr std::string_view name = "Q5_K";

  struct Block {
    Half d;
    Half dmin;
    std::uint8_t scales[12];
    std::uint8_t high[32];
    std::uint8_t nibbles[128];
  };

  // Required by IntegerFormat
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 31;
  static void unpack(const Block& __restrict block, Codes<256, 32>& __restrict out) noexcept {
    for (std::size_t p = 0; p < 4; ++p) {
      for (std::size_t j = 0; j < 32; ++j) {
        const int byte = block.nibbles[32 * p + j], high = block.high[j] >> (2 * p);
        out.code[64 * p + j] = static_cast<std::int8_t>((byte & 15) | ((high & 1) << 4));
        out.code[64 * p + 32 + j] = static_cast<std::int8_t>((byte >> 4) | ((high & 2) << 3));
      }
    }
    Q4_K::unpack_scales(block, out);
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 16;
  static constexpr std::size_t code_bytes = 160;
};

/// 256 six-bit codes in sixteen groups of 16, each with a signed eight-bit scale.
///
///   block of 210 bytes:  | 128 bytes: low four bits | 64 bytes: high two bits | 16 scales | d (f16) |
///   value = d * scale[g] * (code - 32)
///
/// With j in 0..31 and quarter c in 0..3, value 32 c + j of half h has
///   low bits   byte 64 h + 32 (c % 2) + j, low nibble for c < 2 and high nibble otherwise
///   high bits  byte 32 h + j, bits 2c and 2c + 1
struct Q6_K : detail::IntegerBlocks<Q6_K, 256, 16> {
  static constexpr Id id{14};
  static constexpr std::string_view name = "Q6_K";

  struct Block {
    std::uint8_t low[128];
    std::uint8_t high[64];
    std::int8_t scales[16];
    Half d;
  };

  // Required by IntegerFormat
  static constexpr int code_offset = 32;
  static constexpr int code_max = 63;
  static void unpack(const Block& __restrict block, Codes<256, 16>& __restrict out) noexcept {
    for (std::size_t h = 0; h < 2; ++h) {
      std::int8_t* const code = out.code + 128 * h;
      for (std::size_t j = 0; j < 32; ++j) {
        const int even = block.low[64 * h + j], odd = block.low[64 * h + 32 + j],
                  pairs = block.high[32 * h + j];
        code[j] = static_cast<std::int8_t>(((even & 15) | (pairs & 3) << 4) - 32);
        code[32 + j] = static_cast<std::int8_t>(((odd & 15) | (pairs >> 2 & 3) << 4) - 32);
        code[64 + j] = static_cast<std::int8_t>((even >> 4 | (pairs >> 4 & 3) << 4) - 32);
        code[96 + j] = static_cast<std::int8_t>((odd >> 4 | (pairs >> 6) << 4) - 32);
      }
    }
    detail::set_scales(out, to_float(block.d), [&block](std::size_t g) { return block.scales[g]; });
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 0;
  static constexpr std::size_t code_bytes = 192;
};

static_assert(sizeof(Q2_K::Block) == 84 && IntegerFormat<Q2_K>);
static_assert(sizeof(Q3_K::Block) == 110 && IntegerFormat<Q3_K>);
static_assert(sizeof(Q4_K::Block) == 144 && IntegerFormat<Q4_K>);
static_assert(sizeof(Q5_K::Block) == 176 && IntegerFormat<Q5_K>);
static_assert(sizeof(Q6_K::Block) == 210 && IntegerFormat<Q6_K>);

}  // namespace mica::format
