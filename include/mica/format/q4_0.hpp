// SPDX-License-Identifier: Apache-2.0
//
// Q4_0: 32 four-bit codes and one half-precision scale.
//
//   block of 18 bytes:  | d (f16) | 16 bytes |       value = d * (code - 8)
//   byte j holds value j in its low nibble and value j + 16 in its high nibble
#pragma once

#include "mica/format/concept.hpp"

#include <algorithm>
#include <cmath>

namespace mica::format {

struct Q4_0 {
  static constexpr Id id{2};
  static constexpr std::string_view name = "Q4_0";
  static constexpr std::size_t block_size = 32;
  static constexpr Arithmetic arithmetic = Arithmetic::integer;
  static constexpr bool vector_codec = true;

  struct Block {
    Half d;
    std::uint8_t nibbles[16];
  };

  static void decode(const Block& block, float* values) noexcept;
  static void encode(const float* values, Block& block) noexcept;

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 8;
  static constexpr int code_max = 15;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept;

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 2;
  static constexpr std::size_t code_bytes = 16;
};

inline void Q4_0::decode(const Block& block, float* values) noexcept {
  const float d = to_float(block.d);
  for (std::size_t j = 0; j < 16; ++j) {
    values[j] = d * static_cast<float>((block.nibbles[j] & 15) - 8);
    values[j + 16] = d * static_cast<float>((block.nibbles[j] >> 4) - 8);
  }
}

/// The value of the largest magnitude becomes code 0, that is -8 d, so d has the opposite sign.
inline void Q4_0::encode(const float* values, Block& block) noexcept {
  const float* const extreme = std::max_element(values, values + block_size,
                                                [](float a, float b) { return std::fabs(a) < std::fabs(b); });
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

inline void Q4_0::unpack(const Block& block, Codes<32, 32>& out) noexcept {
  for (std::size_t j = 0; j < 16; ++j) {
    out.code[j] = static_cast<std::int8_t>((block.nibbles[j] & 15) - 8);
    out.code[j + 16] = static_cast<std::int8_t>((block.nibbles[j] >> 4) - 8);
  }
  out.scale[0] = 1;
  out.min[0] = 0;
  out.d = to_float(block.d);
  out.dmin = 0;
}

static_assert(sizeof(Q4_0::Block) == 18 && EncodableFormat<Q4_0> && IntegerFormat<Q4_0>);

}  // namespace mica::format
