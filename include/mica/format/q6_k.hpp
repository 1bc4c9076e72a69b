// SPDX-License-Identifier: Apache-2.0
//
// Q6_K: 256 six-bit codes in sixteen groups of 16, each with a signed eight-bit scale.
//
//   block of 210 bytes:  | 128 bytes: low four bits | 64 bytes: high two bits | 16 scales | d (f16) |
//   value = d * scale[g] * (code - 32)
//
// Either half of 128 values is laid out alike. With j in 0..31 and quarter c in 0..3, value 32 c + j of half
// h has
//   low bits   byte 64 h + 32 (c % 2) + j, low nibble for c < 2 and high nibble otherwise
//   high bits  byte 32 h + j, bits 2c and 2c + 1
#pragma once

#include "mica/format/concept.hpp"

namespace mica::format {

struct Q6_K {
  static constexpr Id id{14};
  static constexpr std::string_view name = "Q6_K";
  static constexpr std::size_t block_size = 256;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    std::uint8_t low[128];
    std::uint8_t high[64];
    std::int8_t scales[16];
    Half d;
  };

  static void decode(const Block& block, float* values) noexcept;

  // Required by IntegerFormat
  static constexpr std::size_t group = 16;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 32;
  static constexpr int code_max = 63;
  static void unpack(const Block& block, Codes<256, 16>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 0;
  static constexpr std::size_t code_bytes = 192;

 private:
  static void unpack_codes(const Block& block, std::int8_t* code) noexcept;
};

inline void Q6_K::unpack_codes(const Block& block, std::int8_t* code) noexcept {
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t c = 0; c < 4; ++c) {
      for (std::size_t j = 0; j < 32; ++j) {
        const int byte = block.low[64 * half + 32 * (c % 2) + j];
        const int low = c < 2 ? byte & 15 : byte >> 4;
        const int high = (block.high[32 * half + j] >> (2 * c)) & 3;
        code[128 * half + 32 * c + j] = static_cast<std::int8_t>((low | (high << 4)) - 32);
      }
    }
  }
}

inline void Q6_K::decode(const Block& block, float* values) noexcept {
  std::int8_t code[256];
  unpack_codes(block, code);
  const float d = to_float(block.d);
  for (std::size_t i = 0; i < block_size; ++i) {
    values[i] = d * static_cast<float>(block.scales[i / 16]) * static_cast<float>(code[i]);
  }
}

inline void Q6_K::unpack(const Block& block, Codes<256, 16>& out) noexcept {
  unpack_codes(block, out.code);
  for (std::size_t g = 0; g < 16; ++g) {
    out.scale[g] = block.scales[g];
    out.min[g] = 0;
  }
  out.d = to_float(block.d);
  out.dmin = 0;
}

static_assert(sizeof(Q6_K::Block) == 210 && IntegerFormat<Q6_K>);

}  // namespace mica::format
