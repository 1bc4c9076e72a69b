// SPDX-License-Identifier: Apache-2.0
//
// A storage that grows with its tokens by segments, and never copies a token:
//
//   tokens   0      256    512        1,024          2,048              4,096 ...
//            | 256  | 256  |   512    |    1,024     |      2,048       | steps of 4,096, at most 1 GiB each
//
// The total doubles up to 4,096 tokens, and then grows by equal steps. A segment is freed as soon as it has
// no token. Layers with a window have tiles in the first segments only, as many as their ring has.
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/base/bits.hpp"
#include "mica/kv/slab.hpp"

#include <algorithm>
#include <vector>

namespace mica::kv {

/// Threads: as kv/concept.hpp says.
template <mica::Allocator A = alloc::Huge>
class Segmented {
 public:
  static constexpr std::size_t first_segment = 256;   // tokens, and the grain of every later one
  static constexpr std::size_t doubling_ends = 4096;  // tokens
  static constexpr std::size_t largest_step = std::size_t{1} << 30;  // bytes
  static constexpr std::size_t max_segments = 4100;                  // 2^24 tokens in full steps

  // Required by KvStorage
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Segmented<B>;
  static constexpr std::string_view name = "segmented";

  /// Room for the list of segments is taken here, so that growing inside a step allocates tiles and nothing
  /// else; it is bounded, so that a declared context costs nothing.
  Segmented(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens)
      : allocator_(allocator), layout_(layers), max_tokens_(round_up(max_tokens, format::tile_tokens)) {
    segments_.reserve(std::min(ceil_div(max_tokens_, first_segment), max_segments));
  }
  [[nodiscard]] bool reserve(std::size_t tokens) noexcept {
    if (tokens > max_tokens_) return false;
    const std::size_t before = capacity_;
    while (capacity_ < tokens) {
      if (!grow(next_step(), tokens - capacity_)) {
        shrink(before);
        return false;
      }
    }
    reached_ = std::max(reached_, tokens);
    return true;
  }
  void shrink(std::size_t tokens) noexcept {
    if (tokens == 0) reached_ = 0;
    while (!segments_.empty() && segments_.back().places().first * format::tile_tokens >= tokens) {
      capacity_ = segments_.back().places().first * format::tile_tokens;
      segments_.pop_back();
    }
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t first_tile(std::size_t layer) const noexcept {
    return layout_.first_tile(layer, reached_);
  }
  [[nodiscard]] Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    const std::size_t place = layout_.place(layer, tile);
    const auto after = std::upper_bound(segments_.begin(), segments_.end(), place,
                                        [](std::size_t p, const Slab<A>& s) { return p < s.places().first; });
    return (after - 1)->run(layout_, layer, head, place);
  }

  // Specific to Segmented
  [[nodiscard]] std::size_t segments() const noexcept { return segments_.size(); }  // blocks of memory

 private:
  /// The size of the next segment, in tokens.
  [[nodiscard]] std::size_t next_step() const noexcept {
    const std::size_t step = std::clamp(capacity_, first_segment, doubling_ends);
    const std::size_t bytes = layout_.bytes({capacity_ / format::tile_tokens, 1});  // of 16 tokens
    const std::size_t allowed = bytes == 0 ? step : largest_step / bytes * format::tile_tokens;
    const std::size_t bounded =
        std::max(std::min(step, allowed / first_segment * first_segment), first_segment);
    return std::min(bounded, max_tokens_ - capacity_);
  }
  /// One more segment of up to `tokens`; if that is refused, of `min`.
  [[nodiscard]] bool grow(std::size_t tokens, std::size_t min) noexcept {
    if (add(tokens)) return true;
    const std::size_t small = std::min({round_up(min, first_segment), tokens, max_tokens_ - capacity_});
    return small < tokens && add(small);
  }
  [[nodiscard]] bool add(std::size_t tokens) noexcept {
    if (segments_.size() == segments_.capacity()) return false;
    auto slab =
        Slab<A>::make(allocator_, layout_, {capacity_ / format::tile_tokens, tokens / format::tile_tokens});
    if (!slab) return false;
    segments_.push_back(std::move(*slab));
    capacity_ += tokens;
    return true;
  }

  A allocator_;
  SlabLayout layout_;
  std::size_t max_tokens_;
  std::size_t capacity_ = 0;
  std::size_t reached_ = 0;  // tokens, the most since it was empty
  std::vector<Slab<A>> segments_;
};

static_assert(KvStorage<Segmented<>>);

}  // namespace mica::kv
