// SPDX-License-Identifier: Apache-2.0
//
// The concept of KV storages: a storage owns tiles and does not depend on their contents. A tile is 16 tokens
// of one KV head of one layer, the keys first; an element (format/concept.hpp) defines what its bytes
// mean. Attention asks for runs, which are tiles that are adjacent in memory:
//
//   run(layer, head, 3)   ->   | tile 3 | tile 4 | tile 5 |      contiguous, as many as there are
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/format/concept.hpp"
#include "mica/io/detail/descriptor.hpp"

#include <concepts>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace mica {

namespace kv {

/// The shape of one layer's cache. A layer with a window may drop tokens that no query can see any more.
struct LayerShape {
  std::size_t kv_heads = 0;      // of the layer
  std::size_t tile_bytes = 0;    // key part and value part of one tile; a multiple of 64
  std::size_t window = 0;        // the last tokens that a query sees, its own among them; 0: all
  std::size_t step = 0;          // max tokens that are written at a time; needed where there is a window
  std::size_t max_resident = 0;  // max resident tokens, a multiple of 16; 0: all. Not with a window

  /// The first token that a query at `pos` may see.
  [[nodiscard]] constexpr std::size_t first_seen(std::size_t pos) const noexcept {
    return window == 0 || pos < window ? 0 : pos + 1 - window;
  }
  /// Tiles for all tokens that a step can see and write anywhere: window + step - 1 tokens. 0: all tiles.
  [[nodiscard]] constexpr std::size_t ring_tiles() const noexcept {
    constexpr std::size_t max_before = format::tile_tokens - 1;  // slots of the first tile, and of the last
    return window == 0 ? 0 : (window + step - 1 + 2 * max_before) / format::tile_tokens;
  }
  /// The maximum of resident tiles of a head; 0: all.
  [[nodiscard]] constexpr std::size_t max_resident_tiles() const noexcept {
    return max_resident != 0 ? max_resident / format::tile_tokens : ring_tiles();
  }
};

/// Tiles that are adjacent in memory. Valid until the storage grows, shrinks or is destroyed.
struct Run {
  std::byte* data = nullptr;  // the first tile
  std::size_t tiles = 0;      // their number; 0: none
};

/// The reason why keys and values could not be written to a file, such as a full disk. Memory is not short.
struct SpillFailure {
  std::string folder;  // that names the file system
  int error = 0;       // errno

  /// Whether there was one.
  [[nodiscard]] explicit operator bool() const noexcept { return error != 0; }
};

/// "/var/tmp: keys and values could not be written to a file there: No space left on device; TMPDIR ..."
[[nodiscard]] inline std::string text(const SpillFailure& failure) {
  return join(escaped(failure.folder), ": keys and values could not be written to a file there: ",
              io::detail::errno_text(failure.error), "; TMPDIR names another folder");
}

}  // namespace kv

/// The cache of one sequence. Not thread-safe while it changes; run() may be called from any thread in
/// between. Constructed from (allocator, layers, max_tokens); `layers` is copied, construction takes no
/// tiles. A tile has one number all its life, the position of its first token / 16, however few of them are
/// resident. In a layer with max_resident tokens the number is that of a place below max_resident / 16: the
/// places of evicted tokens are used again (kv/resident_tiles.hpp).
// clang-format off
template <class S>
concept KvStorage =
    requires(S storage, const S constant, typename S::Allocator allocator,
             std::span<const kv::LayerShape> layers, std::size_t tokens, std::size_t layer, std::size_t head,
             std::size_t tile) {
      { S::name } -> std::convertible_to<std::string_view>;
      typename S::template Rebind<typename S::Allocator>;  // the same storage over another allocator
      S(allocator, layers, tokens);                        // never holds more than max_tokens
      { storage.reserve(tokens) } noexcept -> std::same_as<bool>;  // capacity up to there; false: refused
      { storage.shrink(tokens) } noexcept -> std::same_as<void>;   // drops later tokens, may free memory
      { constant.capacity() } noexcept -> std::same_as<std::size_t>;  // tokens
      { constant.first_tile(layer) } noexcept -> std::same_as<std::size_t>;  // the first resident one
      // first_tile(layer) <= tile < capacity() / 16
      { constant.run(layer, head, tile) } noexcept -> std::same_as<kv::Run>;
    };

/// A storage that can share the first tokens of another one. adopt(other, tokens): this empty one gets the
/// first tokens of the other one, which has at least as many; returns the number that it has: all, or none
/// where memory was refused. `other` has the same allocator, layers and max_tokens, and does not change.
template <class S>
concept SharingStorage = KvStorage<S> && requires(S storage, const S constant, std::size_t tokens) {
  { storage.adopt(constant, tokens) } noexcept -> std::same_as<std::size_t>;
};

/// A storage whose tiles are not always in memory. Called between the layers of a step, by one thread.
/// fetch(layer): run() is valid for all tiles of the layer until the next fetch; false: they could not be
/// read, nothing is lost. prefetch(layer): it is fetched next. Neither is called before a reserve().
/// spill_failure(): the reason if the file, not memory, was why the last reserve() was refused; else null.
template <class S>
concept SpillingStorage = KvStorage<S> && requires(S storage, const S constant, std::size_t layer) {
  { storage.fetch(layer) } noexcept -> std::same_as<bool>;
  { storage.prefetch(layer) } noexcept -> std::same_as<void>;
  { constant.spill_failure() } noexcept -> std::same_as<const kv::SpillFailure*>;
};

/// A storage whose tiles may leave memory while its sequence is idle. park(): they do, except those that
/// others share; the next reserve() reads them or is refused, and run() is not called before. false: they
/// could not be written, and nothing has changed.
template <class S>
concept ParkingStorage = KvStorage<S> && requires(S storage) {
  { storage.park() } noexcept -> std::same_as<bool>;
};
// clang-format on

/// A storage policy together with the allocator it will use.
template <class S, class A>
concept KvStorageFor = Allocator<A> && KvStorage<typename S::template Rebind<A>>;

namespace kv {

/// Whether all tokens that a step after `tokens` tokens can see are resident.
template <KvStorage S>
[[nodiscard]] bool can_continue(const S& storage, std::span<const LayerShape> layers,
                                std::size_t tokens) noexcept {
  for (std::size_t layer = 0; layer < layers.size(); ++layer) {
    if (storage.first_tile(layer) * format::tile_tokens > layers[layer].first_seen(tokens)) return false;
  }
  return true;
}

}  // namespace kv
}  // namespace mica
