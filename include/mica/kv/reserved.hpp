// SPDX-License-Identifier: Apache-2.0
//
// A storage that reserves addresses for the whole context, and takes memory only for the tokens that it has.
// Every head has its own range of addresses, so its tiles are one run:
//
//   head 0: | memory ... | addresses ......... |   head 1: | memory ... | addresses ......... |   ...
//
// Runs are as long as those of kv::Contiguous, and the memory is that of the tokens, rounded up to 256. The
// cost is a system call for each head and 256 tokens.
#pragma once

#include "mica/alloc/booking.hpp"
#include "mica/alloc/detail/address_space.hpp"
#include "mica/alloc/huge.hpp"
#include "mica/kv/slab.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace mica::kv {

/// Books whole pages through the allocator; addresses cost nothing. Threads: as kv/concept.hpp says.
template <mica::Allocator A = alloc::Huge>
class Reserved {
 public:
  static constexpr std::size_t grain = 256;  // tokens that get memory at a time

  // Required by KvStorage
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Reserved<B>;
  static constexpr std::string_view name = "reserved";

  Reserved(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens)
      : allocator_(allocator), layout_(layers), max_tokens_(round_up(max_tokens, format::tile_tokens)) {
    for (std::size_t l = 0; l < layers.size(); ++l) {
      const std::size_t places = layout_.tiles(l, {0, max_tokens_ / format::tile_tokens});
      const std::size_t page = alloc::AddressSpace::page();
      const std::size_t head_bytes = round_up(places * layers[l].tile_bytes, page) + page;
      layers_.push_back({layers[l].kv_heads, layers[l].tile_bytes, places, head_bytes, space_bytes_});
      space_bytes_ += layers[l].kv_heads * head_bytes;
    }
    booking_ = *alloc::Booking::make(allocator_, budget::Account::kv, 0);
  }
  [[nodiscard]] bool reserve(std::size_t tokens) noexcept {
    if (tokens > max_tokens_) return false;
    if (tokens > capacity_ && !commit(std::min(round_up(tokens, grain), max_tokens_))) return false;
    reached_ = std::max(reached_, tokens);
    return true;
  }
  /// Keeps one grain more than is used, so that short rewinds cost nothing; without tokens it keeps nothing.
  void shrink(std::size_t tokens) noexcept {
    if (tokens == 0) reached_ = 0;
    const std::size_t kept = tokens == 0 ? 0 : round_up(tokens, grain) + grain;
    if (kept < capacity_) give_back(kept, capacity_);
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t first_tile(std::size_t layer) const noexcept {
    return layout_.first_tile(layer, reached_);
  }
  [[nodiscard]] Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    const Layer& l = layers_[layer];
    const std::size_t place = layout_.place(layer, tile);
    return {space_.data() + l.offset + head * l.head_bytes + place * l.tile_bytes,
            std::min(l.places, capacity_ / format::tile_tokens) - place};
  }

 private:
  struct Layer {
    std::size_t kv_heads;
    std::size_t tile_bytes;
    std::size_t places;
    std::size_t head_bytes;  // whole pages, one of them never used: a step beyond a head faults
    std::size_t offset;      // of head 0

    /// Bytes of a head that have memory with a capacity of `tiles` tiles.
    [[nodiscard]] std::size_t committed(std::size_t tiles) const noexcept {
      return round_up(std::min(tiles, places) * tile_bytes, alloc::AddressSpace::page());
    }
  };

  [[nodiscard]] std::size_t bytes(std::size_t tokens) const noexcept {
    std::size_t bytes = 0;
    for (const Layer& layer : layers_) {
      bytes += layer.kv_heads * layer.committed(ceil_div(tokens, format::tile_tokens));
    }
    return bytes;
  }
  /// Calls f(offset, bytes) for each head's bytes of tokens [from, to); false after the first that is.
  template <class F>
  bool for_each_head(std::size_t from, std::size_t to, F f) const noexcept {
    for (const Layer& layer : layers_) {
      const std::size_t first = layer.committed(ceil_div(from, format::tile_tokens));
      const std::size_t end = layer.committed(ceil_div(to, format::tile_tokens));
      for (std::size_t head = 0; head < layer.kv_heads; ++head) {
        if (!f(layer.offset + head * layer.head_bytes + first, alloc::touchable<A>(end - first)))
          return false;
      }
    }
    return true;
  }
  [[nodiscard]] bool commit(std::size_t tokens) noexcept {
    if (space_.size() == 0) {
      auto space = alloc::AddressSpace::make(alloc::touchable<A>(space_bytes_));
      if (!space) return false;
      space_ = std::move(*space);
    }
    if (!booking_.resize(bytes(tokens))) return false;
    const std::size_t before = std::exchange(capacity_, tokens);
    const auto committed = [this](std::size_t offset, std::size_t size) {
      return space_.commit(offset, size);
    };
    if (for_each_head(before, tokens, committed)) return true;
    give_back(before, tokens);
    return false;
  }
  void give_back(std::size_t to, std::size_t from) noexcept {
    for_each_head(to, from, [this](std::size_t offset, std::size_t size) {
      space_.give_back(offset, size);
      return true;
    });
    capacity_ = to;
    static_cast<void>(booking_.resize(bytes(to)));  // smaller, so granted
  }

  A allocator_;
  SlabLayout layout_;
  std::vector<Layer> layers_;
  std::size_t max_tokens_;
  std::size_t space_bytes_ = 0;
  std::size_t capacity_ = 0;
  std::size_t reached_ = 0;  // tokens, the most since it was empty
  alloc::AddressSpace space_;
  alloc::Booking booking_;  // of what has memory
};

static_assert(KvStorage<Reserved<>>);

}  // namespace mica::kv
