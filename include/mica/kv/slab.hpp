// SPDX-License-Identifier: Apache-2.0
//
// Tiles of every layer and head for a range of places, in one block of memory:
//
//   layer 0: | head 0: tile tile tile | head 1: tile tile tile | ...    layer 1: | ...
//
// A place is the index of a tile in memory: its own number, and in a layer with a window that number modulo
// its ring, so that new tiles take the places of tiles that no query sees any more. A layer with a ring, or
// with a maximum of resident tokens, has no tiles at places beyond that number.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/base/bits.hpp"
#include "mica/kv/concept.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mica::kv {

/// Places [first, first + count).
struct Places {
  std::size_t first = 0;
  std::size_t count = 0;  // 0: none
};

/// The layers of a cache, their numbers of places, and their offsets in a slab.
class SlabLayout {
 public:
  /// Copies the numbers of the layers; `layer` below is an index of them.
  explicit SlabLayout(std::span<const LayerShape> layers) {
    for (const LayerShape& layer : layers) {
      const std::size_t ring = layer.max_resident_tiles() == 0 ? unbounded : layer.max_resident_tiles();
      std::size_t group = 0;
      while (group < groups_.size() && groups_[group].ring != ring) ++group;
      if (group == groups_.size()) groups_.push_back({ring, 0});
      layers_.push_back({group, groups_[group].tile_bytes, layer.tile_bytes, ring, layer.window != 0});
      groups_[group].tile_bytes += layer.kv_heads * layer.tile_bytes;
    }
  }

  /// The place of a tile of a layer.
  [[nodiscard]] std::size_t place(std::size_t layer, std::size_t tile) const noexcept {
    const std::size_t ring = layers_[layer].ring;
    return tile < ring ? tile : tile % ring;
  }
  /// The first resident tile, when the capacity never exceeded `reached` tokens.
  [[nodiscard]] std::size_t first_tile(std::size_t layer, std::size_t reached) const noexcept {
    if (!layers_[layer].turns) return 0;
    const std::size_t tiles = ceil_div(reached, format::tile_tokens);
    return tiles - std::min(tiles, layers_[layer].ring);
  }

  /// Tiles that one head of a layer has at these places.
  [[nodiscard]] std::size_t tiles(std::size_t layer, Places places) const noexcept {
    return tiles_of(layers_[layer].ring, places);
  }
  /// Bytes that the tiles of all layers at these places take.
  [[nodiscard]] std::size_t bytes(Places places) const noexcept {
    std::size_t bytes = 0;
    for (const Group& group : groups_) bytes += group.tile_bytes * tiles_of(group.ring, places);
    return bytes;
  }
  /// The tiles of one head from a place on, in a block that holds those at `places`.
  [[nodiscard]] Run run(std::byte* block, Places places, std::size_t layer, std::size_t head,
                        std::size_t place) const noexcept {
    const Layer& l = layers_[layer];
    for (std::size_t before = 0; before < l.group; ++before) {
      block += groups_[before].tile_bytes * tiles_of(groups_[before].ring, places);
    }
    const std::size_t count = tiles(layer, places), at = place - places.first;
    return {block + l.offset * count + (head * count + at) * l.tile_bytes, count - at};
  }

 private:
  static constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();

  /// Layers with the same number of places.
  struct Group {
    std::size_t ring;
    std::size_t tile_bytes;  // of all heads of all of them
  };
  struct Layer {
    std::size_t group;
    std::size_t offset;  // bytes per place before it in its group
    std::size_t tile_bytes;
    std::size_t ring;
    bool turns;  // new tiles take the places of old ones
  };

  [[nodiscard]] static std::size_t tiles_of(std::size_t ring, Places places) noexcept {
    return std::min(std::max(ring, places.first) - places.first, places.count);
  }

  std::vector<Group> groups_;
  std::vector<Layer> layers_;
};

/// A block of memory for some places. Uninitialised: a tile is read only where a token was written.
template <mica::Allocator A>
class Slab {
 public:
  /// Empty when the allocator refuses.
  [[nodiscard]] static std::optional<Slab> make(A allocator, const SlabLayout& layout,
                                                Places places) noexcept {
    auto bytes = alloc::Buffer<std::byte, A>::make(allocator, layout.bytes(places));
    if (!bytes) return std::nullopt;
    return Slab(std::move(*bytes), places);
  }

  [[nodiscard]] Places places() const noexcept { return places_; }  // that it was made for

  /// The tiles of one head from a place on.
  [[nodiscard]] Run run(const SlabLayout& layout, std::size_t layer, std::size_t head,
                        std::size_t place) const noexcept {
    return layout.run(const_cast<std::byte*>(bytes_.data()), places_, layer, head, place);
  }

 private:
  Slab(alloc::Buffer<std::byte, A> bytes, Places places) noexcept
      : bytes_(std::move(bytes)), places_(places) {}

  alloc::Buffer<std::byte, A> bytes_;
  Places places_;
};

}  // namespace mica::kv
