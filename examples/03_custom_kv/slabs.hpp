// SPDX-License-Identifier: Apache-2.0
//
// A KV storage of your own. It allocates a slab for every 64 tokens, so a cache is never much larger than its
// text. docs/policies/kv-storage.md explains each member.
#pragma once

#include "mica/kv/slab.hpp"

#include <algorithm>
#include <utility>
#include <vector>

template <mica::Allocator A>
class Slabs {
 public:
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Slabs<B>;
  static constexpr std::string_view name = "slabs";

  Slabs(A allocator, std::span<const mica::kv::LayerShape> layers, std::size_t max_tokens)
      : allocator_(allocator), layout_(layers), max_tokens_(max_tokens) {
    slabs_.reserve((max_tokens + 63) / 64);  // so that a step never grows the list itself
  }
  bool reserve(std::size_t tokens) noexcept {
    if (tokens > max_tokens_) return false;
    while (capacity() < tokens) {
      auto slab = mica::kv::Slab<A>::make(allocator_, layout_, {slabs_.size() * 4, 4});  // tiles of 16 tokens
      if (!slab) return false;
      slabs_.push_back(std::move(*slab));
    }
    reached_ = std::max(reached_, tokens);
    return true;
  }
  void shrink(std::size_t tokens) noexcept {
    while (capacity() >= tokens + 64) slabs_.pop_back();
    if (tokens == 0) reached_ = 0;
  }
  std::size_t capacity() const noexcept { return slabs_.size() * 64; }
  std::size_t first_tile(std::size_t layer) const noexcept { return layout_.first_tile(layer, reached_); }
  mica::kv::Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    const std::size_t place = layout_.place(layer, tile);  // modulo the ring in a layer with a window
    return slabs_[place / 4].run(layout_, layer, head, place);
  }

 private:
  A allocator_;
  mica::kv::SlabLayout layout_;
  std::size_t max_tokens_;
  std::size_t reached_ = 0;
  std::vector<mica::kv::Slab<A>> slabs_;
};
