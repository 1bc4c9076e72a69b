// SPDX-License-Identifier: Apache-2.0
//
// Weight formats of four to six bits as KV elements: 32 dimensions of one token share a scale, and a
// minimum where the format has one, found by the search that also writes weights (format/encode/). b counts
// blocks of 32 dimensions; the last one is filled up where a head is no multiple of 32 wide.
//
//   | codes [b][256 bytes] | high bits [b][word][16] u32 | scales [b][16] f16 | minima [b][16] f16 |
//
// Codes and high bits of a value are as in a block of the file format. Of keys, byte j of eight dimensions
// holds dimensions j and j + 4, and bit g of byte c of fifth bits belongs to dimension 4 g + c.
//
// No byte belongs to two tokens. Formats of four bits have no high bits, of five bits one word of a token, of
// six bits two. Formats without minima have none; the scales of Q4_S are a byte and the shifts.
#pragma once

#include "mica/format/concept.hpp"
#include "mica/format/detail/rotation.hpp"
#include "mica/format/encode/blocks.hpp"
#include "mica/format/encode/q4_s.hpp"
#include "mica/format/tiling.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

namespace mica::format {

namespace detail {

/// "Q4_0" and "_ROTATED" or "_PLAIN" in one string.
template <class F, bool rotates>
inline constexpr auto element_name = [] {
  constexpr std::string_view behind = rotates ? "_ROTATED" : "_PLAIN";
  std::array<char, F::name.size() + behind.size()> out{};
  std::copy(F::name.begin(), F::name.end(), out.begin());
  std::copy(behind.begin(), behind.end(), out.begin() + F::name.size());
  return out;
}();

}  // namespace detail

/// Blocks of F as keys and values, of heads that are rotated before (format/detail/rotation.hpp), or as they are.
template <class F, bool rotates>
struct BlockElement : detail::KvParts<BlockElement<F, rotates>> {
  using Format = F;
  using Block = typename F::Block;
  static constexpr bool rotated = rotates;
  static constexpr std::string_view name = {detail::element_name<F, rotates>.data(),
                                            detail::element_name<F, rotates>.size()};
  static constexpr std::size_t block_size = 32;
  /// Words of high bits of a block: 1 with codes of five bits, 2 with codes of six.
  static constexpr std::size_t high_words = [] {
    if constexpr (requires(Block block) { block.high; }) return sizeof(Block::high) / sizeof(std::uint32_t);
    return std::size_t{0};
  }();
  static constexpr bool has_minima = requires(Block block) { block.m; };
  /// Whether a value is a scale times an integer, plus a minimum where there is one: kernels search the scale.
  static constexpr bool has_integer_levels = requires { typename Encoder<F>::Levels; };

  // Required by KvParts
  using Keys = CodeTiling<Tiling<tile_tokens, Columns<0, 8>, Rows<>, Columns<4>>, Columns<2, 4>>;
  using Values = CodeTiling<Tiling<tile_tokens, Columns<0, 32>, Rows<>, Columns<16>>, Columns<2, 16>>;
  template <class Part>
  static std::size_t tile_bytes(std::size_t head_dim) noexcept {
    return blocks(head_dim) * tile_tokens * sizeof(Block);
  }
  template <class Part>
  static void store(std::byte* tile, std::size_t slot, std::size_t head_dim, const float* head) noexcept {
    float turned[max_rotated];
    if constexpr (rotates) {
      rotate(head, head_dim, turned);
      head = turned;
    }
    for (std::size_t b = 0; b < blocks(head_dim); ++b) {
      Block block;
      encode(head + b * block_size, std::min(block_size, head_dim - b * block_size), block);
      set_block<Part>(tile, slot, head_dim, b, block);
    }
  }
  template <class Part>
  static void load(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) noexcept {
    float numbers[block_size];
    for (std::size_t b = 0; b < blocks(head_dim); ++b) {
      F::decode(block<Part>(tile, slot, head_dim, b), numbers);
      std::copy_n(numbers, std::min(block_size, head_dim - b * block_size), out + b * block_size);
    }
    if constexpr (rotates) rotate(out, head_dim, out);
  }

  // Specific to blocks: where what lies
  [[nodiscard]] static constexpr std::size_t blocks(std::size_t head_dim) noexcept {
    return ceil_div(head_dim, block_size);
  }
  /// Codes of block b of all tokens: 256 bytes.
  [[nodiscard]] static const std::byte* codes(const std::byte* tile, std::size_t b) noexcept {
    return tile + b * code_bytes;
  }
  /// A word of the high bits of block b, (16).
  [[nodiscard]] static const std::uint32_t* high_bits(const std::byte* tile, std::size_t head_dim,
                                                      std::size_t b, std::size_t word = 0) noexcept {
    return reinterpret_cast<const std::uint32_t*>(tile + blocks(head_dim) * code_bytes) +
           (b * high_words + word) * tile_tokens;
  }
  /// The field d of block b, (16): half floats, except for Q4_S.
  [[nodiscard]] static const Half* scales(const std::byte* tile, std::size_t head_dim,
                                          std::size_t b) noexcept {
    constexpr std::size_t before = code_bytes + high_words * tile_tokens * sizeof(std::uint32_t);
    return reinterpret_cast<const Half*>(tile + blocks(head_dim) * before) + b * tile_tokens;
  }
  /// Minima of block b, (16), of a format that has them.
  [[nodiscard]] static const Half* minima(const std::byte* tile, std::size_t head_dim,
                                          std::size_t b) noexcept {
    return scales(tile, head_dim, blocks(head_dim) + b);
  }
  /// Block b of one token, as it would lie in a file.
  template <class Part>
  [[nodiscard]] static Block block(const std::byte* tile, std::size_t slot, std::size_t head_dim,
                                   std::size_t b) noexcept {
    Block block;
    if constexpr (is_keys<Part>) {
      const auto code = [&](std::size_t i) { return Keys::get(tile, slot, b * block_size + i); };
      for (std::size_t i = 0; i < 16; ++i)
        block.nibbles[i] = static_cast<std::uint8_t>(code(i) | code(i + 16) << 4);
    } else {
      std::memcpy(block.nibbles, tile + Values::place(slot, b * block_size), 16);
    }
    if constexpr (high_words != 0) {
      std::uint32_t high[high_words];
      for (std::size_t word = 0; word < high_words; ++word)
        high[word] = high_bits(tile, head_dim, b, word)[slot];
      if constexpr (is_keys<Part> && high_words == 1) high[0] = detail::unpack_fifth_bits(high[0]);
      std::memcpy(block.high, high, sizeof high);
    }
    block.d = scales(tile, head_dim, b)[slot];
    if constexpr (has_minima) block.m = minima(tile, head_dim, b)[slot];
    return block;
  }
  template <class Part>
  static void set_block(std::byte* tile, std::size_t slot, std::size_t head_dim, std::size_t b,
                        const Block& block) noexcept {
    if constexpr (is_keys<Part>) {
      for (std::size_t i = 0; i < block_size; ++i)
        Keys::set(tile, slot, b * block_size + i, block.nibbles[i % 16] >> (i < 16 ? 0 : 4) & 15);
    } else {
      std::memcpy(tile + Values::place(slot, b * block_size), block.nibbles, 16);
    }
    if constexpr (high_words != 0) {
      std::uint32_t high[high_words];
      std::memcpy(high, block.high, sizeof high);
      if constexpr (is_keys<Part> && high_words == 1) high[0] = detail::pack_fifth_bits(high[0]);
      for (std::size_t word = 0; word < high_words; ++word)
        const_cast<std::uint32_t*>(high_bits(tile, head_dim, b, word))[slot] = high[word];
    }
    const_cast<Half*>(scales(tile, head_dim, b))[slot] = block.d;
    if constexpr (has_minima) const_cast<Half*>(minima(tile, head_dim, b))[slot] = block.m;
  }

 private:
  static constexpr std::size_t code_bytes = tile_tokens * 16;
  template <class Part>
  static constexpr bool is_keys = std::is_same_v<Part, Keys>;

  /// `count` numbers, and the first ones again up to 32. What F16 could not hold makes the scale no number, so
  /// that it cannot hide behind small codes.
  static void encode(const float* values, std::size_t count, Block& block) noexcept {
    static constexpr auto equal = [] {
      std::array<float, block_size> weights{};
      weights.fill(1);
      return weights;
    }();
    float filled[block_size];
    bool fits = true;
    for (std::size_t i = 0; i < block_size; ++i) {
      filled[i] = values[i % count];
      fits = fits && std::fabs(filled[i]) <= 65504.0f;
    }
    Encoder<F>::template encode<search::Effort::quick>(filled, equal.data(), block);
    if (fits) return;
    if constexpr (requires { F::no_number; }) {
      block.d = F::d(F::no_number, 0);
    } else {
      block.d = to_half(std::numeric_limits<float>::quiet_NaN());
    }
  }
};

/// Keys and values in blocks of F, of heads that are rotated before: "F_ROTATED".
template <class F>
using Rotated = BlockElement<F, true>;

/// The same of heads as they are: "F_PLAIN". Which of the two the bare name means: kv/elements.hpp.
template <class F>
using Plain = BlockElement<F, false>;

template <class E>
inline constexpr bool is_block_element = false;
template <class F, bool rotates>
inline constexpr bool is_block_element<BlockElement<F, rotates>> = true;

static_assert(KvElement<Rotated<Q4_0>> && KvElement<Plain<Q5_1>>);
static_assert(Rotated<Q4_0>::name == "Q4_0_ROTATED" && Plain<Q4_0>::name == "Q4_0_PLAIN");
static_assert(Plain<Q4_0>::high_words == 0 && !Plain<Q4_0>::has_minima && Plain<Q5_1>::high_words == 1 &&
              Plain<Q5_1>::has_minima && Plain<Q6_0>::high_words == 2);

}  // namespace mica::format
