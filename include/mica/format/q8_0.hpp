// SPDX-License-Identifier: Apache-2.0
//
// Q8_0: 32 signed bytes and one half-precision scale.
//
//   weights   block of 34 bytes:  | d (f16) | 32 x int8 |              value = d * code
//   tiles     one scale per token:  | 16 x head_dim int8 | 16 x f16 |
//
// A tile's head_dim is padded to a multiple of four with zero codes. What a sum runs over lies in fours:
// dimensions of keys, tokens of values.
#pragma once

#include "mica/format/detail/unpacked.hpp"
#include "mica/format/tiling.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace mica::format {

struct Q8_0 : detail::IntegerBlocks<Q8_0, 32, 32>, detail::KvParts<Q8_0> {
  static constexpr Id id{8};
  static constexpr std::string_view name = "Q8_0";

  struct Block {
    Half d;
    std::int8_t code[32];
  };

  /// Rounds halves away from zero, as the file format's own encoder does.
  static void encode(const float* values, Block& block) noexcept {
    float amax = 0;
    for (std::size_t i = 0; i < block_size; ++i) amax = std::max(amax, std::fabs(values[i]));
    const float d = amax / 127.0f;
    const float inverse = d != 0 ? 1.0f / d : 0.0f;
    block.d = to_half(d);
    for (std::size_t i = 0; i < block_size; ++i)
      block.code[i] = static_cast<std::int8_t>(std::round(values[i] * inverse));
  }

  // Required by IntegerFormat
  static constexpr int code_offset = 128;
  static constexpr int code_max = 255;
  static void unpack(const Block& block, Codes<32, 32>& out) noexcept {
    std::copy_n(block.code, block_size, out.code);
    detail::set_scale(out, to_float(block.d));
  }

  // Required by PackableFormat
  static constexpr std::size_t codes_at = 2;
  static constexpr std::size_t code_bytes = 32;

  using Roundable = Q8_0;  // tensor/rounded.hpp

  // Required by KvParts
  using Keys = Tiling<tile_tokens, Columns<0, 4>, Rows<>, Columns<4>>;
  using Values = Tiling<tile_tokens, Rows<0, 4>, Columns<>, Rows<4>>;
  template <class Part>
  static std::size_t tile_bytes(std::size_t head_dim) noexcept {
    return Part::size(padded(head_dim)) + tile_tokens * sizeof(Half);
  }
  template <class Part>
  static void store(std::byte* tile, std::size_t slot, std::size_t head_dim, const float* head) noexcept {
    constexpr std::size_t step =
        Part::place(0, 1, 4) - Part::place(0, 0, 4);  // from one number of a group of four to the next
    const Half d = scale_of(head_dim, head);
    const float scale = to_float(d), inverse = scale > 0 ? 1.0f / scale : 0.0f;
    auto* const codes = reinterpret_cast<std::int8_t*>(tile);
    for (std::size_t first = 0; first < padded(head_dim); first += stretch) {
      const Stretch number =
          numbers(head, first, inverse > 0 ? head_dim : 0);  // where there is no scale, zeros
      std::int8_t code[stretch];
      for (std::size_t i = 0; i < stretch; ++i) code[i] = code_of(number.at[i], inverse);
      for (std::size_t i = 0; i < std::min(stretch, padded(head_dim) - first); i += 4) {
        std::int8_t* const to = codes + Part::place(slot, first + i, padded(head_dim));
        for (std::size_t k = 0; k < 4; ++k) to[k * step] = code[i + k];
      }
    }
    const_cast<Half*>(scales(tile, head_dim))[slot] = d;
  }
  template <class Part>
  static void load(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    const float d = to_float(scales(tile, head_dim)[slot]);
    const auto* const codes = reinterpret_cast<const std::int8_t*>(tile);
    for (std::size_t i = 0; i < head_dim; ++i)
      out[i] = d * static_cast<float>(codes[Part::place(slot, i, padded(head_dim))]);
  }

  // Specific to Q8_0
  /// head_dim as it lies in a tile.
  static constexpr std::size_t padded(std::size_t head_dim) noexcept {
    return round_up<std::size_t>(head_dim, 4);
  }
  /// The 16 scales of a tile.
  static const Half* scales(const std::byte* tile, std::size_t head_dim) noexcept {
    return reinterpret_cast<const Half*>(tile + padded(head_dim) * tile_tokens);
  }

 private:
  /// Numbers of a head that are encoded together, so that compilers vectorise the loops.
  static constexpr std::size_t stretch = 32;
  struct Stretch {
    float at[stretch];
  };
  /// Those from `first` on, with zeros behind the last one.
  static Stretch numbers(const float* head, std::size_t first, std::size_t head_dim) noexcept {
    Stretch out;
    if (first + stretch <= head_dim) {
      std::copy_n(head + first, stretch, out.at);
    } else {
      std::fill_n(out.at, stretch, 0.0f);
      std::copy_n(head + first, head_dim - std::min(head_dim, first), out.at);
    }
    return out;
  }
  /// The scale of a head vector, rounded to what a tile can hold; NaN when a number is not finite, so that it
  /// cannot hide behind small integers.
  static Half scale_of(std::size_t head_dim, const float* head) noexcept {
    std::int32_t bits = 0;  // of the largest |x|: bits of floats that are not negative sort as the floats do
    for (std::size_t first = 0; first < head_dim; first += stretch) {
      const Stretch number = numbers(head, first, head_dim);
      for (const float x : number.at) bits = std::max(bits, std::bit_cast<std::int32_t>(x) & 0x7FFF'FFFF);
    }
    return to_half(bits < 0x7F80'0000 ? std::bit_cast<float>(bits) / 127.0f
                                      : std::numeric_limits<float>::quiet_NaN());
  }
  /// To the nearest integer, ties to even. The clamp catches codes of a scale that was rounded down. Below
  /// 2^22 the sum has the integer in its lowest bits.
  static std::int8_t code_of(float value, float inverse) noexcept {
    const std::int32_t code = std::bit_cast<std::int32_t>(value * inverse + 0x1.8p23f) - 0x4B40'0000;
    return static_cast<std::int8_t>(std::clamp(code, -127, 127));
  }
};

static_assert(sizeof(Q8_0::Block) == 34 && EncodableFormat<Q8_0> && IntegerFormat<Q8_0> && KvElement<Q8_0>);

}  // namespace mica::format
