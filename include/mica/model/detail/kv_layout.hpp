// SPDX-License-Identifier: Apache-2.0
//
// The layout of keys and values in the caches of a model: the layers of the storage, the number of tokens
// that stay resident, the second layer for tokens that age (kv/aging.hpp), and the view that attention has.
// The type of the view depends on the policies.
//
//   storage   | layer of KvPlan 0 | 1 | 2 | ... | old tiles of 0 | of 2 | ...      of those that age
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/block/detail/aged_view.hpp"
#include "mica/block/detail/scored_view.hpp"
#include "mica/block/state_plan.hpp"
#include "mica/kv/eviction.hpp"
#include "mica/model/detail/kv_cache.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

namespace mica::model {

namespace detail {

/// Whether an eviction policy may need attention scores: not if needs_scores() is a constant `false`.
template <class Policy>
inline constexpr bool scores = Policy::evicts && !requires {
  typename std::enable_if_t<!Policy::needs_scores()>;
};

/// The view of keys and values that these policies need, and no more.
template <class Elements, class Storage, class Policy>
struct KvViewOf {
  using Evicting = std::conditional_t<scores<Policy>, block::ScoredView<Elements, Storage>,
                                      block::EvictedView<Elements, Storage>>;
  using Whole = std::conditional_t<Policy::evicts, Evicting, block::KvView<Elements, Storage>>;
  using type = std::conditional_t<AgingElements<Elements>, block::AgedView<Whole>, Whole>;
};

}  // namespace detail

/// Numbers of layers are those of the StatePlan. Policy: an Eviction.
template <class Elements, class Storage, class Policy>
class KvLayout {
 public:
  using Allocator = typename Storage::Allocator;
  using View = typename detail::KvViewOf<Elements, Storage, Policy>::type;

  /// step_tokens: of one step at most. max_heads: query heads of the layer that has most. Raises
  /// ErrorCode::budget when the allocator refuses, ErrorCode::unsupported where policies exclude each other.
  KvLayout(block::StatePlan plan, Elements elements, Policy eviction, std::size_t n_ctx,
           std::size_t step_tokens, std::size_t max_heads, Allocator allocator)
      : plan_(std::move(plan)),
        elements_(std::move(elements)),
        eviction_(std::move(eviction)),
        n_ctx_(n_ctx),
        step_tokens_(step_tokens),
        max_resident_(max_resident_tokens()),
        old_layers_(place_old_layers()),
        scores_(make_scores(max_heads, allocator.book_as(budget::Account::activations))) {
    if constexpr (AgingElements<Elements>) {
      MICA_CHECK(max_resident_ == 0 || elements_.recent() == 0, unsupported,
                 "a cache that evicts tokens cannot keep old ones in other elements: use one of both");
    }
  }

  [[nodiscard]] const block::StatePlan& plan() const noexcept { return plan_; }
  [[nodiscard]] const Elements& elements() const noexcept { return elements_; }
  [[nodiscard]] const Policy& eviction() const noexcept { return eviction_; }
  /// Tokens that stay where the policy evicts others; 0: all.
  [[nodiscard]] std::size_t max_resident() const noexcept { return max_resident_; }
  /// The layer of the storage with the old tiles of a layer; block::none: its tokens do not age.
  [[nodiscard]] std::size_t old_layer(std::size_t kv) const noexcept { return old_layers_[kv]; }
  /// The layers of the storage: those of the plan, then the old tiles of those that age.
  [[nodiscard]] std::vector<kv::LayerShape> shape() const {
    std::vector<kv::LayerShape> shape, old;
    for (const block::KvPlan& kv : plan_.kv()) {
      const std::size_t keep = evicts(kv) ? max_resident_ : 0;
      shape.push_back({kv.kv_heads, kv::tile_bytes(elements_, kv.head_dim), kv.window(), step_tokens_, keep});
      if constexpr (AgingElements<Elements>) {
        if (!ages(kv)) continue;
        old.push_back(shape.back());
        old.back().tile_bytes = kv::tile_bytes(elements_.old(), kv.head_dim);
        shape.back().window = kv::recent_window(elements_.recent());
      }
    }
    for (const kv::LayerShape& layer : old) shape.push_back(layer);
    return shape;
  }
  /// For each layer of the storage: KvPlan::divided.
  [[nodiscard]] std::vector<ranks::Part> divided() const {
    std::vector<ranks::Part> divided, old;
    for (const block::KvPlan& kv : plan_.kv()) {
      divided.push_back(kv.divided);
      if (ages(kv)) old.push_back(kv.divided);
    }
    divided.insert(divided.end(), old.begin(), old.end());
    return divided;
  }
  /// Of the layers that keep all tokens.
  [[nodiscard]] std::size_t bytes_per_tile() const {
    std::size_t bytes = 0;
    for (const kv::LayerShape& layer : shape()) {
      if (layer.window == 0) bytes += layer.kv_heads * layer.tile_bytes;
    }
    return bytes;
  }
  /// Of the layers with a window, at the full context.
  [[nodiscard]] std::size_t window_bytes() const {
    std::size_t bytes = 0;
    for (const kv::LayerShape& layer : shape()) {
      const std::size_t tiles = std::min(layer.ring_tiles(), ceil_div(n_ctx_, format::tile_tokens));
      bytes += tiles * layer.kv_heads * layer.tile_bytes;
    }
    return bytes;
  }
  [[nodiscard]] kv::ResidentTiles<Allocator> make_resident(Allocator allocator) const {
    return {allocator, max_resident_, eviction_.needs_scores()};
  }
  /// Slots of a tile of the storage's layer, from `slot` on, become zeros. tile: of the layer's tile_bytes.
  void clear(std::size_t layer, std::span<std::byte> tile, std::size_t slot) const {
    if (layer >= plan_.kv().size()) {  // an old tile is written when it is full
      std::ranges::fill(tile, std::byte{0});
      return;
    }
    const std::size_t d = plan_.kv()[layer].head_dim;
    std::byte* const values = tile.data() + kv::key_bytes(elements_, d);
    const std::vector<float> zeros(d);
    for (; slot < format::tile_tokens; ++slot) {
      elements_.visit_keys([&](auto e) { decltype(e)::type::store_key(tile.data(), slot, d, zeros.data()); });
      elements_.visit_values([&](auto e) { decltype(e)::type::store_value(values, slot, d, zeros.data()); });
    }
  }
  /// What attention sees of a sequence in one layer.
  [[nodiscard]] View view(KvCache<Storage>& cache, std::size_t kv) noexcept {
    View view(elements_, cache.storage, kv, cache.tokens);
    if constexpr (AgingElements<Elements>) view.old_layer = old_layers_[kv];
    if constexpr (Policy::evicts) {
      if (!evicts(plan_.kv()[kv])) return view;
      view.keep(cache.resident);
      if constexpr (detail::scores<Policy>) view.watch(cache.resident, scores_.span(), score_width());
    }
    return view;
  }

 private:
  /// Whether tokens of the layer are evicted: those of layers that are seen whole by all blocks that read
  /// them.
  [[nodiscard]] bool evicts(const block::KvPlan& kv) const noexcept {
    return max_resident_ != 0 && kv.seen_whole && !kv.passes;
  }
  [[nodiscard]] std::size_t max_resident_tokens() const noexcept {
    const std::vector<block::KvPlan>& layers = plan_.kv();
    const auto whole = [](const block::KvPlan& kv) { return kv.seen_whole && !kv.passes; };
    if (!Policy::evicts || std::none_of(layers.begin(), layers.end(), whole)) return 0;
    return std::min(eviction_.capacity(), round_up(n_ctx_, kv::eviction_step));
  }
  /// Whether old tokens have elements of their own: where more is seen than stays recent.
  [[nodiscard]] bool ages([[maybe_unused]] const block::KvPlan& kv) const noexcept {
    if constexpr (AgingElements<Elements>) {
      const std::size_t recent = elements_.recent(), window = kv.window();
      return recent != 0 && !kv.passes && std::min(window == 0 ? n_ctx_ : window, n_ctx_) > recent;
    }
    return false;
  }
  [[nodiscard]] std::vector<std::size_t> place_old_layers() const {
    std::vector<std::size_t> layers;
    std::size_t next = plan_.kv().size();
    for (const block::KvPlan& kv : plan_.kv()) layers.push_back(ages(kv) ? next++ : block::none);
    return layers;
  }
  [[nodiscard]] std::size_t score_width() const noexcept {
    return block::QueryScores::width(max_resident_ / format::tile_tokens);
  }
  [[nodiscard]] alloc::Buffer<float, Allocator> make_scores(std::size_t max_heads,
                                                            Allocator allocator) const {
    const std::size_t rows =
        max_resident_ == 0 || !eviction_.needs_scores() ? 0 : kv::eviction_step * max_heads;
    auto scores = alloc::Buffer<float, Allocator>::make(allocator, rows * score_width());
    MICA_CHECK(scores, budget, "activations: ", rows * score_width() * sizeof(float),
               " bytes for watching attention ",
               alloc::refused(allocator, rows * score_width() * sizeof(float)), "; keep fewer tokens");
    return std::move(*scores);
  }
  block::StatePlan plan_;
  Elements elements_;
  Policy eviction_;
  std::size_t n_ctx_;
  std::size_t step_tokens_;
  std::size_t max_resident_;
  std::vector<std::size_t> old_layers_;
  alloc::Buffer<float, Allocator> scores_;  // (64 * heads, score_width), where the policy needs them
};

}  // namespace mica::model
