// SPDX-License-Identifier: Apache-2.0
//
// The minimal KvStorage: room for everything from the start, and runs of one tile.

#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/kv/concept.hpp"

#include <optional>
#include <vector>

namespace mica::archetype {

template <mica::Allocator A>
class KvStorage {
 public:
  // Required by KvStorage
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = KvStorage<B>;
  static constexpr std::string_view name = "plain";

  KvStorage(A allocator, std::span<const mica::kv::LayerShape> layers, std::size_t max_tokens)
      : allocator_(allocator), tiles_((max_tokens + 15) / 16) {
    for (const mica::kv::LayerShape& layer : layers) {
      layers_.push_back({layer.kv_heads, layer.tile_bytes, bytes_});
      bytes_ += layer.kv_heads * tiles_ * layer.tile_bytes;
    }
  }
  bool reserve(std::size_t tokens) noexcept {
    if (tokens > tiles_ * 16) return false;
    if (!memory_) memory_ = mica::alloc::Buffer<std::byte, A>::make(allocator_, bytes_);
    return memory_.has_value();
  }
  void shrink(std::size_t /*tokens*/) noexcept {}
  std::size_t capacity() const noexcept { return memory_ ? tiles_ * 16 : 0; }
  std::size_t first_tile(std::size_t /*layer*/) const noexcept { return 0; }  // of all layers all tokens
  mica::kv::Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    const Layer& l = layers_[layer];
    return {const_cast<std::byte*>(memory_->data()) + l.offset + (head * tiles_ + tile) * l.tile_bytes, 1};
  }

 private:
  struct Layer {
    std::size_t kv_heads, tile_bytes, offset;
  };

  A allocator_;
  std::size_t tiles_;
  std::vector<Layer> layers_;
  std::size_t bytes_ = 0;
  std::optional<mica::alloc::Buffer<std::byte, A>> memory_;
};

}  // namespace mica::archetype
