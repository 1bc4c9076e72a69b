// SPDX-License-Identifier: Apache-2.0
//
// What a KV storage promises: it owns tiles and knows nothing of what is in them. A tile is 16 tokens of one KV head of
// one layer, the key part first; an element policy (format/concept.hpp) says what its bytes mean. Kernels ask for runs:
//
//   run(layer, head, 3)   ->   | tile 3 | tile 4 | tile 5 |      contiguous, as many as there are
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/format/concept.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string_view>

namespace mica {

namespace kv {

/// The cache of one layer.
struct LayerShape {
  std::size_t kv_heads = 0;
  std::size_t tile_bytes = 0;  // key part and value part of one tile; a multiple of 64
};

/// Tiles that follow each other in memory. Valid until the storage grows, shrinks or dies.
struct Run {
  std::byte* data = nullptr;
  std::size_t tiles = 0;
};

}  // namespace kv

/// The cache of one sequence. Not thread-safe while it changes; run() may be called from any thread in between.
/// Constructed from (allocator, layers, max_tokens); `layers` is copied, construction takes no tiles.
// clang-format off
template <class S>
concept KvStorage =
    requires(S storage, const S constant, typename S::Allocator allocator, std::span<const kv::LayerShape> layers,
             std::size_t tokens, std::size_t layer, std::size_t head, std::size_t tile) {
      { S::name } -> std::convertible_to<std::string_view>;
      typename S::template Rebind<typename S::Allocator>;            // the same storage over another allocator
      S(allocator, layers, tokens);                                  // never holds more than max_tokens
      { storage.reserve(tokens) } noexcept -> std::same_as<bool>;    // room for so many; false: refused, nothing lost
      { storage.shrink(tokens) } noexcept -> std::same_as<void>;     // tokens beyond are forgotten, memory may go back
      { constant.capacity() } noexcept -> std::same_as<std::size_t>; // tokens there is room for
      { constant.run(layer, head, tile) } noexcept -> std::same_as<kv::Run>;  // tile < capacity() / 16; >= 1 tile
    };
// clang-format on

/// A storage policy together with the allocator it will use.
template <class S, class A>
concept KvStorageFor = Allocator<A> && KvStorage<typename S::template Rebind<A>>;

}  // namespace mica
