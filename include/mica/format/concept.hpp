// SPDX-License-Identifier: Apache-2.0
//
// The concepts of weight formats and KV elements.
//
// A weight format cuts a row of a matrix into blocks. It is either *real* (its blocks decode to floats and
// products are float products) or *integer* (its blocks unpack to small integers and products are integer
// dots that are scaled afterwards). The exact sequence of float operations of both is written down in
// kernel/matmul.hpp.
//
// A KV element encodes tiles of 16 tokens of one KV head; keys and values have layouts of their own:
//
//   keys     lanes are tokens: what one dimension (or four) of 16 tokens needs lies together
//   values   rows are tokens: one token's head_dim numbers lie together
#pragma once

#include "mica/base/half.hpp"
#include "mica/format/id.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica {

namespace format {

/// How products with a format are computed.
enum class Arithmetic : std::uint8_t {
  real,     ///< decode to float, multiply by float activations, 16 chains by k
  integer,  ///< integer dots with int8 activations, then scales
};

/// Tokens in a KV tile.
inline constexpr std::size_t tile_tokens = 16;

/// One block of an integer format, unpacked:
///   value[i] = d * scale[i / Group] * code[i] - dmin * min[i / Group]
/// Bounds, so that any kernel gets the bits of the weighted sum of 32 products:
///   either it is exact in a float:            sum over any 32 values of |scale * code| * 127 < 2^24,
///   or a group's is, and the sum of two rounds once: |scale| * (sum over a group of |code|) * 127 < 2^24 with scale
///   divided by the powers of two in it.
template <std::size_t BlockSize, std::size_t Group>
struct Codes {
  std::int8_t code[BlockSize];            // with its sign: offsets are subtracted
  std::int32_t scale[BlockSize / Group];  // of each group
  std::int16_t min[BlockSize / Group];    // all zero for a format without mins
  float d;                                // the factor of all scales
  float dmin;                             // and of all mins; 0 for a format without mins
};

}  // namespace format

/// A block format for the weights of a model. Models are empty tag structs in namespace mica::format.
// clang-format off
template <class F>
concept WeightFormat = requires(const typename F::Block& block, float* values) {
  { F::id } -> std::convertible_to<format::Id>;                  // the number in files
  { F::name } -> std::convertible_to<std::string_view>;          // as people spell it
  { F::block_size } -> std::convertible_to<std::size_t>;         // values in a block; rows are whole blocks
  { F::arithmetic } -> std::convertible_to<format::Arithmetic>;  // decides which kernel computes with it
  { F::vector_codec } -> std::convertible_to<bool>;              // true: the vector kernels know the block
  { F::decode(block, values) } noexcept -> std::same_as<void>;   // block_size floats, bit-exact
};
// clang-format on

/// A weight format with integer arithmetic.
// clang-format off
template <class F>
concept IntegerFormat =
    WeightFormat<F> && (F::arithmetic == format::Arithmetic::integer) &&
    requires(const typename F::Block& block, format::Codes<F::block_size, F::group>& codes) {
      { F::group } -> std::convertible_to<std::size_t>;        // values that share an integer scale: 16 or 32
      { F::has_mins } -> std::convertible_to<bool>;            // false: dmin is never read
      { F::code_offset } -> std::convertible_to<int>;          // code + code_offset is never negative
      { F::code_max } -> std::convertible_to<int>;             // the largest code + code_offset
      { F::unpack(block, codes) } noexcept -> std::same_as<void>;  // all fields
    };
// clang-format on

/// An integer format whose codes fill whole words of a block, code_bytes bytes from byte codes_at on: rows of
/// it can be packed (tensor/detail/rows16.hpp). Where four adjacent values are not at the same bits of four
/// adjacent bytes, a word has another form when it is packed; w counts words from codes_at on:
///   static std::uint32_t pack_word(std::size_t w, std::uint32_t file), and unpack_word, its inverse
// clang-format off
template <class F>
concept PackableFormat =
    IntegerFormat<F> && (F::code_bytes % 4 == 0) && (F::codes_at + F::code_bytes <= sizeof(typename F::Block));
// clang-format on

/// A weight format that can also be written.
// clang-format off
template <class F>
concept EncodableFormat = WeightFormat<F> && requires(const float* values, typename F::Block& block) {
  { F::encode(values, block) } noexcept -> std::same_as<void>;  // block_size floats
};
// clang-format on

/// The encodings that kernels read keys and values from. `head_dim` is the width of one head; a tile belongs
/// to one KV head of one layer.
// clang-format off
template <class E>
concept KvReadable = requires(const std::byte* tile, std::size_t slot, std::size_t head_dim, float* out) {
  { E::name } -> std::convertible_to<std::string_view>;
  { E::key_tile_bytes(head_dim) } noexcept -> std::same_as<std::size_t>;    // a multiple of 32
  { E::value_tile_bytes(head_dim) } noexcept -> std::same_as<std::size_t>;  // a multiple of 32
  { E::load_key(tile, slot, head_dim, out) } noexcept;    // (head_dim), the floats of the kernels
  { E::load_value(tile, slot, head_dim, out) } noexcept;  // slot < tile_tokens
};
// clang-format on

/// An encoding of keys and values, token by token.
// clang-format off
template <class E>
concept KvElement = KvReadable<E> && requires(std::byte* tile, std::size_t slot, std::size_t head_dim,
                                              const float* head) {
  { E::store_key(tile, slot, head_dim, head) } noexcept;    // head: (head_dim)
  { E::store_value(tile, slot, head_dim, head) } noexcept;  // no other slot of the tile changes
};
// clang-format on

/// An encoding of keys and values of tokens that no longer change: a whole tile is encoded at once.
// clang-format off
template <class E>
concept KvTileElement = KvReadable<E> && requires(std::byte* tile, std::size_t head_dim, const float* heads) {
  { E::store_keys(tile, head_dim, heads) } noexcept;  // heads: (tile_tokens, head_dim)
  { E::store_values(tile, head_dim, heads) } noexcept;
};
// clang-format on

/// The elements for old tokens (kv/aging.hpp).
template <class E>
concept KvOldElement = KvElement<E> || KvTileElement<E>;

}  // namespace mica
