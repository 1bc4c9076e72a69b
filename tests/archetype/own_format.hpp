// SPDX-License-Identifier: Apache-2.0
//
// A format that GGUF does not have, with everything a format may have but a codec: it can be read, written,
// multiplied as integers and packed. Its blocks are those of Q8_0 with codes and scale in another order.

#pragma once

#include "mica/format/lists.hpp"

#include <algorithm>
#include <cmath>

namespace mica::archetype {

struct OwnFormat {
  // Required by WeightFormat
  static constexpr format::Id id{0x4F574E01};
  static constexpr std::string_view name = "OWN";
  static constexpr std::size_t block_size = 32;
  static constexpr format::Arithmetic arithmetic = format::Arithmetic::integer;
  static constexpr bool vector_codec = false;

  struct Block {
    std::int8_t code[32];
    Half d;
  };

  static void decode(const Block& block, float* values) noexcept {
    for (std::size_t i = 0; i < 32; ++i) values[i] = to_float(block.d) * static_cast<float>(block.code[i]);
  }

  // Required by EncodableFormat
  static void encode(const float* values, Block& block) noexcept {
    const float peak = std::fabs(
        *std::max_element(values, values + 32, [](float a, float b) { return std::fabs(a) < std::fabs(b); }));
    block.d = to_half(peak / 127);
    const float d = to_float(block.d), inverse = d > 0 ? 1 / d : 0;
    for (std::size_t i = 0; i < 32; ++i)
      block.code[i] =
          static_cast<std::int8_t>(std::clamp(std::nearbyint(values[i] * inverse), -127.0f, 127.0f));
  }

  // Required by IntegerFormat
  static constexpr std::size_t group = 32;
  static constexpr bool has_mins = false;
  static constexpr int code_offset = 128;
  static constexpr int code_max = 255;
  static void unpack(const Block& block, format::Codes<32, 32>& out) noexcept {
    std::copy_n(block.code, 32, out.code);
    out.scale[0] = 1;
    out.min[0] = 0;
    out.d = to_float(block.d);
    out.dmin = 0;
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 0;
  static constexpr std::size_t code_bytes = 32;
};
static_assert(EncodableFormat<OwnFormat> && PackableFormat<OwnFormat>);

/// All formats, and that one.
using FormatsAndOwn = Append<format::All, OwnFormat>;

}  // namespace mica::archetype
