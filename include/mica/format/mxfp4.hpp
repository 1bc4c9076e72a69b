// SPDX-License-Identifier: Apache-2.0
//
// MXFP4: 32 four-bit floats and one power of two (OCP Microscaling Formats, version 1.0).
//
//   block of 17 bytes:  | exponent | 16 bytes |
//   value = 2^(exponent - 127) * float = 2^(exponent - 128) * doubled float
//   byte j holds value j in its low nibble and value j + 16 in its high nibble
//
// Limit: exponent 255 means 2^128 here as in other readers of such files, and not NaN as in the standard.
#pragma once

#include "mica/format/detail/fp4.hpp"
#include "mica/format/detail/unpacked.hpp"

#include <bit>

namespace mica::format {

struct MXFP4 {
  static constexpr Id id{39};
  static constexpr std::string_view name = "MXFP4";
  static constexpr std::size_t block_size = 32;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    std::uint8_t exponent;
    std::uint8_t nibbles[16];
  };

  static void decode(const Block& block, float* values) noexcept {
    detail::decode_unpacked<MXFP4>(block, values);
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 12;
  static constexpr int code_max = 24;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 1;
  static constexpr std::size_t code_bytes = 16;

  // Specific to MXFP4
  /// 2^(exponent - 128): half the scale, for doubled floats. The two smallest are subnormal.
  static constexpr float half_scale(std::uint8_t exponent) noexcept {
    return std::bit_cast<float>(exponent < 2 ? 0x200000u << exponent : (exponent - 1u) << 23);
  }
};

inline void MXFP4::unpack(const Block& block, Codes<32, 32>& out) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    out.code[j] = detail::doubled_fp4[block.nibbles[j] & 15];
    out.code[j + 16] = detail::doubled_fp4[block.nibbles[j] >> 4];
  }
  detail::set_scale(out, half_scale(block.exponent));
}

static_assert(MXFP4::half_scale(0) == 0x1p-128f && MXFP4::half_scale(128) == 1.0f);
static_assert(sizeof(MXFP4::Block) == 17 && IntegerFormat<MXFP4>);

}  // namespace mica::format
