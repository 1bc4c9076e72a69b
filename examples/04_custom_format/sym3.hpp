// SPDX-License-Identifier: Apache-2.0
//
// SYM3, a format that GGUF does not have: 32 codes of three bits and one scale, 3.5 bits a weight.
//
//   block of 14 bytes:  | d (f16) | 8 bytes | 4 bytes |       value = d * (code - 4)
//   value i: two low bits in low[i % 8], from bit 2 (i / 8) on; the high bit in bit i % 8 of high[i / 8]
#pragma once

#include "mica/format/lists.hpp"

#include <algorithm>
#include <cmath>

namespace mine {

struct Sym3 {
  static constexpr mica::format::Id id{0x33530001};  // any number far from ggml's, which count from 0
  static constexpr std::string_view name = "SYM3";
  static constexpr std::size_t block_size = 32;
  static constexpr auto arithmetic = mica::format::Arithmetic::integer;
  static constexpr bool vector_codec = true;  // in sym3_codec-inl.hpp; false: no codec, and mica calls unpack

  struct Block {
    mica::Half d;
    std::uint8_t low[8];
    std::uint8_t high[4];

    [[nodiscard]] int code(std::size_t i) const noexcept {
      return (low[i % 8] >> (2 * (i / 8)) & 3) | (high[i / 8] >> (i % 8) & 1) << 2;
    }
  };

  static void decode(const Block& block, float* values) noexcept {
    for (std::size_t i = 0; i < 32; ++i)
      values[i] = mica::to_float(block.d) * static_cast<float>(block.code(i) - 4);
  }

  /// For quantize alone: the value of the largest magnitude becomes code 0, that is -4 d.
  static void encode(const float* values, Block& block) noexcept {
    const float* const extreme =
        std::max_element(values, values + 32, [](float a, float b) { return std::fabs(a) < std::fabs(b); });
    const float d = *extreme / -4, inverse = d != 0 ? 1 / d : 0;
    block = {mica::to_half(d), {}, {}};
    for (std::size_t i = 0; i < 32; ++i) {
      const auto code = static_cast<unsigned>(std::clamp(values[i] * inverse + 4.5f, 0.0f, 7.0f));
      block.low[i % 8] = static_cast<std::uint8_t>(block.low[i % 8] | (code & 3) << (2 * (i / 8)));
      block.high[i / 8] = static_cast<std::uint8_t>(block.high[i / 8] | code >> 2 << (i % 8));
    }
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 4;
  static constexpr int code_max = 7;
  static void unpack(const Block& block, mica::format::Codes<32, 32>& out) noexcept {
    for (std::size_t i = 0; i < 32; ++i) out.code[i] = static_cast<std::int8_t>(block.code(i) - 4);
    out.scale[0] = 1;
    out.min[0] = 0;
    out.d = mica::to_float(block.d);
    out.dmin = 0;
  }
};
static_assert(sizeof(Sym3::Block) == 14 && mica::IntegerFormat<Sym3> && mica::EncodableFormat<Sym3>);

/// What the program knows: all formats of mica's, and this one.
using Formats = mica::Append<mica::format::All, Sym3>;

}  // namespace mine
