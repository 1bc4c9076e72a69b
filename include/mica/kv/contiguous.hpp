// SPDX-License-Identifier: Apache-2.0
//
// The simplest storage: one slab for the whole context, allocated with the first token. The tiles of a head
// are one run; in a layer with a window they are a ring. Memory for the full context is needed from the start.
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/kv/slab.hpp"

namespace mica::kv {

/// Threads: as kv/concept.hpp says.
template <mica::Allocator A = alloc::Huge>
class Contiguous {
 public:
  // Required by KvStorage
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Contiguous<B>;
  static constexpr std::string_view name = "contiguous";

  Contiguous(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens)
      : allocator_(allocator),
        layout_(layers),
        tiles_((max_tokens + format::tile_tokens - 1) / format::tile_tokens) {}

  [[nodiscard]] bool reserve(std::size_t tokens) noexcept {
    if (tokens > tiles_ * format::tile_tokens) return false;
    if (tokens > 0 && !slab_) slab_ = Slab<A>::make(allocator_, layout_, {0, tiles_});
    if (tokens > 0 && !slab_) return false;
    reached_ = std::max(reached_, tokens);
    return true;
  }
  void shrink(std::size_t tokens) noexcept {
    if (tokens > 0) return;
    slab_.reset();
    reached_ = 0;
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return slab_ ? tiles_ * format::tile_tokens : 0; }
  [[nodiscard]] std::size_t first_tile(std::size_t layer) const noexcept {
    return layout_.first_tile(layer, reached_);
  }
  [[nodiscard]] Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    return slab_->run(layout_, layer, head, layout_.place(layer, tile));
  }

 private:
  A allocator_;
  SlabLayout layout_;
  std::size_t tiles_;
  std::size_t reached_ = 0;  // tokens, the most since it was empty
  std::optional<Slab<A>> slab_;
};

static_assert(KvStorage<Contiguous<>>);

}  // namespace mica::kv
