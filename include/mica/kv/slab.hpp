// SPDX-License-Identifier: Apache-2.0
//
// Tiles of every layer and head for a fixed stretch of tokens, in one block of memory:
//
//   layer 0: | head 0: tile tile tile | head 1: tile tile tile | ...    layer 1: | ...
//
// The building brick of the storages that keep every token.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/kv/concept.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mica::kv {

/// The tiles of `tiles()` x 16 consecutive tokens. Uninitialised: a tile is read only where a token was written.
template <mica::Allocator A>
class Slab {
 public:
  /// Bytes that a slab of so many tiles per head takes.
  [[nodiscard]] static std::size_t bytes_for(std::span<const LayerShape> layers, std::size_t tiles) noexcept {
    std::size_t per_tile = 0;
    for (const LayerShape& layer : layers) per_tile += layer.kv_heads * layer.tile_bytes;
    return per_tile * tiles;
  }

  /// Empty when the allocator refuses.
  [[nodiscard]] static std::optional<Slab> make(A allocator, std::span<const LayerShape> layers,
                                                std::size_t tiles) noexcept {
    auto bytes = alloc::Buffer<std::byte, A>::make(allocator, bytes_for(layers, tiles));
    if (!bytes) return std::nullopt;
    return Slab(std::move(*bytes), tiles);
  }

  [[nodiscard]] std::size_t tiles() const noexcept { return tiles_; }

  /// The tiles of one head from `tile` on. `layer_offset`: bytes per tile index of all layers before.
  [[nodiscard]] Run run(std::size_t layer_offset, std::size_t tile_bytes, std::size_t head,
                        std::size_t tile) const noexcept {
    std::byte* const first = const_cast<std::byte*>(bytes_.data()) + layer_offset * tiles_;
    return {first + (head * tiles_ + tile) * tile_bytes, tiles_ - tile};
  }

 private:
  Slab(alloc::Buffer<std::byte, A> bytes, std::size_t tiles) noexcept
      : bytes_(std::move(bytes)), tiles_(tiles) {}

  alloc::Buffer<std::byte, A> bytes_;
  std::size_t tiles_ = 0;
};

/// The layers of a cache and where each begins in a slab.
class SlabLayout {
 public:
  explicit SlabLayout(std::span<const LayerShape> layers) {
    std::size_t offset = 0;
    for (const LayerShape& layer : layers) {
      layers_.push_back(layer);
      offsets_.push_back(offset);
      offset += layer.kv_heads * layer.tile_bytes;
    }
  }

  [[nodiscard]] std::span<const LayerShape> layers() const noexcept { return layers_; }

  template <mica::Allocator A>
  [[nodiscard]] Run run(const Slab<A>& slab, std::size_t layer, std::size_t head,
                        std::size_t tile) const noexcept {
    return slab.run(offsets_[layer], layers_[layer].tile_bytes, head, tile);
  }

 private:
  std::vector<LayerShape> layers_;
  std::vector<std::size_t> offsets_;  // bytes per tile index before layer i
};

}  // namespace mica::kv
