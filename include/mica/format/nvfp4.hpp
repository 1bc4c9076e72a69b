// SPDX-License-Identifier: Apache-2.0
//
// NVFP4: 64 four-bit floats in four groups of 16, each with an eight-bit float as its scale.
//
//   block of 36 bytes:  | 4 scales | 32 bytes |
//   value = scale[g] * float = 2^-10 * (512 * scale[g]) * doubled float
//   byte 8 g + j of 0..7 holds value 16 g + j in its low nibble and value 16 g + 8 + j in its high nibble
//   scale: four bits of exponent (bias 7), three of fraction; the top bit is ignored and 0x7F means 0
//
// 512 scale[g] is whole, but up to 245,760, so that weighted sums are not exact: they are rounded once, which
// any kernel can do since a scale has no more than four significant bits (format::Codes).
#pragma once

#include "mica/format/detail/fp4.hpp"
#include "mica/format/detail/unpacked.hpp"

namespace mica::format {

struct NVFP4 {
  static constexpr Id id{40};
  static constexpr std::string_view name = "NVFP4";
  static constexpr std::size_t block_size = 64;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    std::uint8_t scales[4];
    std::uint8_t nibbles[32];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<NVFP4>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 16;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 12;
  static constexpr int code_max = 24;
  static void unpack(const Block& block, Codes<64, 16>& out) noexcept;

  // Specific to NVFP4
  /// 512 times the number that a scale byte stands for.
  static constexpr std::int32_t whole_scale(std::uint8_t byte) noexcept {
    const int exponent = byte >> 3 & 15, fraction = byte & 7;
    if (byte == 0x7F) return 0;
    return exponent == 0 ? fraction : (8 + fraction) << (exponent - 1);
  }
};

inline void NVFP4::unpack(const Block& block, Codes<64, 16>& out) noexcept {
  for (std::size_t g = 0; g < 4; ++g) {
    for (std::size_t j = 0; j < 8; ++j) {
      const std::uint8_t byte = block.nibbles[8 * g + j];
      out.code[16 * g + j] = detail::doubled_fp4[byte & 15];
      out.code[16 * g + 8 + j] = detail::doubled_fp4[byte >> 4];
    }
    out.scale[g] = whole_scale(block.scales[g]);
    out.min[g] = 0;
  }
  out.d = 0x1p-10f;
  out.dmin = 0;
}

static_assert(NVFP4::whole_scale(0x38) == 512 && NVFP4::whole_scale(0x7E) == 448 * 512);
static_assert(sizeof(NVFP4::Block) == 36 && IntegerFormat<NVFP4>);

}  // namespace mica::format
