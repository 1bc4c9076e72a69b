// SPDX-License-Identifier: Apache-2.0
//
// Formats as a user would write them: one that only decodes, one that only unpacks, one with a vector codec.

#pragma once

#include "mica/format/concept.hpp"

#include <cstring>

namespace user {

/// 24 bytes and a float: not a power of two on purpose.
struct Decoded {
  static constexpr mica::format::Id id = mica::format::I8::id;
  static constexpr std::string_view name = "user decoded";
  static constexpr std::size_t block_size = 24;
  static constexpr auto arithmetic = mica::format::Arithmetic::real;
  static constexpr bool vector_codec = false;

  struct Block {
    float scale;
    std::int8_t code[24];
  };
  static void decode(const Block& block, float* values) noexcept {
    for (std::size_t i = 0; i < 24; ++i) values[i] = block.scale * static_cast<float>(block.code[i]);
  }
};

/// 64 signed bytes in groups of Group, each with a scale and a min.
template <std::size_t Group, bool Vector>
struct Grouped {
  static constexpr mica::format::Id id = mica::format::I16::id;
  static constexpr std::string_view name = Vector ? "user vector" : "user unpacked";
  static constexpr std::size_t block_size = 64;
  static constexpr auto arithmetic = mica::format::Arithmetic::integer;
  static constexpr bool vector_codec = Vector;
  static constexpr std::size_t group = Group;
  static constexpr bool has_mins = true;
  static constexpr int code_offset = 128;
  static constexpr int code_max = 255;

  struct Block {
    mica::Half d;
    mica::Half dmin;
    std::uint8_t scale[64 / Group];  // low nibble: scale - 8, high nibble: min
    std::int8_t code[64];
  };
  static int scale_of(const Block& block, std::size_t g) noexcept { return (block.scale[g] & 15) - 8; }
  static int min_of(const Block& block, std::size_t g) noexcept { return block.scale[g] >> 4; }

  static void unpack(const Block& block, mica::format::Codes<64, Group>& out) noexcept {
    std::memcpy(out.code, block.code, 64);
    for (std::size_t g = 0; g < 64 / Group; ++g) {
      out.scale[g] = static_cast<std::int16_t>(scale_of(block, g));
      out.min[g] = static_cast<std::int16_t>(min_of(block, g));
    }
    out.d = mica::to_float(block.d);
    out.dmin = mica::to_float(block.dmin);
  }
  static void decode(const Block& block, float* values) noexcept {
    for (std::size_t i = 0; i < 64; ++i) {
      const float scaled = static_cast<float>(scale_of(block, i / Group) * block.code[i]);
      values[i] = mica::to_float(block.d) * scaled -
                  mica::to_float(block.dmin) * static_cast<float>(min_of(block, i / Group));
    }
  }
};

using Apart16 = Grouped<16, false>;
using Apart32 = Grouped<32, false>;
using Vector16 = Grouped<16, true>;
using Vector32 = Grouped<32, true>;

static_assert(mica::WeightFormat<Decoded> && mica::IntegerFormat<Apart16> && mica::IntegerFormat<Vector32>);

}  // namespace user
