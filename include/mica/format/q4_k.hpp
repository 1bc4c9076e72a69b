// SPDX-License-Identifier: Apache-2.0
//
// Q4_K: 256 four-bit codes in eight groups of 32, each with a six-bit scale and a six-bit min.
//
//   block of 144 bytes:  | d (f16) | dmin (f16) | 12 bytes of scales and mins | 128 bytes of nibbles |
//   value = d * scale[g] * code - dmin * min[g]
//   nibble byte 32 p + j holds value 64 p + j (low) and value 64 p + 32 + j (high)
//
//   scale bytes   0..3          4..7        8..11
//   bits 0..5     scale 0..3    min 0..3    low nibble: scale 4..7, high nibble: min 4..7
//   bits 6..7     scale 4..7    min 4..7    (their upper two bits)
#pragma once

#include "mica/format/concept.hpp"

namespace mica::format {

struct Q4_K {
  static constexpr Id id{12};
  static constexpr std::string_view name = "Q4_K";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    Half dmin;
    std::uint8_t scales[12];
    std::uint8_t nibbles[128];
  };

  static void decode(const Block& block, float* values) noexcept;

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 0;
  static constexpr int code_max = 15;
  static void unpack(const Block& block, Codes<256, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 16;
  static constexpr std::size_t code_bytes = 128;

  // Specific to Q4_K
  /// The eight scales and mins, each 0..63, out of 12 bytes; Q5_K packs them alike.
  static void unpack_scales(const std::uint8_t* bytes, std::uint8_t* scale, std::uint8_t* min) noexcept;
};

inline void Q4_K::unpack_scales(const std::uint8_t* bytes, std::uint8_t* scale, std::uint8_t* min) noexcept {
  for (std::size_t g = 0; g < 4; ++g) {
    scale[g] = bytes[g] & 63;
    min[g] = bytes[g + 4] & 63;
    scale[g + 4] = static_cast<std::uint8_t>((bytes[g + 8] & 15) | (bytes[g] >> 6 << 4));
    min[g + 4] = static_cast<std::uint8_t>((bytes[g + 8] >> 4) | (bytes[g + 4] >> 6 << 4));
  }
}

inline void Q4_K::decode(const Block& block, float* values) noexcept {
  std::uint8_t scale[8], min[8];
  unpack_scales(block.scales, scale, min);
  const float d = to_float(block.d), dmin = to_float(block.dmin);
  for (std::size_t i = 0; i < block_size; ++i) {
    const std::size_t g = i / 32;
    const std::uint8_t byte = block.nibbles[i / 64 * 32 + i % 32];
    const int code = g % 2 == 0 ? byte & 15 : byte >> 4;
    values[i] =
        d * static_cast<float>(scale[g]) * static_cast<float>(code) - dmin * static_cast<float>(min[g]);
  }
}

inline void Q4_K::unpack(const Block& block, Codes<256, 32>& out) noexcept {
  std::uint8_t scale[8], min[8];
  unpack_scales(block.scales, scale, min);
  for (std::size_t p = 0; p < 4; ++p) {
    for (std::size_t j = 0; j < 32; ++j) {
      const std::uint8_t byte = block.nibbles[p * 32 + j];
      out.code[p * 64 + j] = static_cast<std::int8_t>(byte & 15);
      out.code[p * 64 + 32 + j] = static_cast<std::int8_t>(byte >> 4);
    }
  }
  for (std::size_t g = 0; g < 8; ++g) {
    out.scale[g] = scale[g];
    out.min[g] = min[g];
  }
  out.d = to_float(block.d);
  out.dmin = to_float(block.dmin);
}

static_assert(sizeof(Q4_K::Block) == 144 && IntegerFormat<Q4_K>);

}  // namespace mica::format
