// SPDX-License-Identifier: Apache-2.0
//
// The view of keys and values whose element changes with age (kv/aging.hpp). When a step completes a tile,
// the tile is stored a second time, in another layer of the storage and in the element of old tokens. A query
// reads this second form of all tiles before kv::aged_tokens() tokens, and the recent form of the others.
#pragma once

#include "mica/block/detail/attention_reader.hpp"
#include "mica/kv/aging.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace mica::block {

/// Base: the reader of the same view whose tokens do not age.
template <class Context, class Base>
struct AgedReader : Base {
  /// The tiles of a chunk: those that are read as recent ones, and those that are read as old ones.
  struct Tiles {
    TileAddresses recent{};
    TileAddresses old{};
  };
  using Base::Base, Base::begin, Base::c, Base::end, Base::of, Base::see;

  [[nodiscard]] Tiles tiles(std::size_t chunk) const noexcept {
    const auto& view = c.kv;
    const std::size_t d = c.layer.head_dim, recent = std::max(begin, view.aged(view.pos + of.first));
    return {chunk_tiles(view, view.layer, of.kv_head, chunk, recent, end, kv::tile_bytes(view.elements, d)),
            chunk_tiles(view, view.old_layer, of.kv_head, chunk, begin, view.aged(end - 1),
                        kv::tile_bytes(view.elements.old(), d))};
  }
  /// Of a chunk of which some rows see old tiles, scores of both elements stand side by side, and values of
  /// recent tokens are added to those of old ones. The operations of a row are those of one element, in the
  /// same order.
  template <Kernels K>
  kernel::AttentionArgs attend(std::size_t chunk, const Tiles& tiles, const Tiles& ahead,
                               const AttentionScratch& s,
                               const kernel::AttentionState& result) const noexcept {
    const bool sees_old = c.kv.aged(end - 1) > std::max(begin, chunk * kernel::chunk_tokens);
    if (!sees_old) return Base::template attend<K>(chunk, tiles.recent, ahead.recent, s, result);
    const auto old = this->template form_of<K>(c.kv.elements.old(), tiles.old, ahead.old, s, result);
    auto recent = this->template form_of<K>(c.kv.elements, tiles.recent, ahead.recent, s, result);
    recent.args.adds = true;
    see_old(chunk, s.visible);
    old.scores();
    see_recent(chunk, s.visible);
    recent.scores();
    see(chunk, s.visible);
    K::attention_softmax(recent.args);
    see_old(chunk, s.visible);
    old.values();
    see_recent(chunk, s.visible);
    recent.values();
    see(chunk, s.visible);
    return recent.args;
  }

 private:
  void see_old(std::size_t chunk, kernel::Visible* visible) const noexcept {
    see(chunk, visible, [this](std::size_t pos) {
      const std::size_t first = c.layer.first_seen(pos);
      return std::array{first, std::max(first, c.kv.aged(pos))};
    });
  }
  void see_recent(std::size_t chunk, kernel::Visible* visible) const noexcept {
    see(chunk, visible, [this](std::size_t pos) {
      return std::array{std::max(c.layer.first_seen(pos), c.kv.aged(pos)), pos + 1};
    });
  }
};

/// Base: the view without age, of elements that have old ones.
template <class Base>
struct AgedView : Base {
  std::size_t old_layer = none;  // of the storage; none: the tokens do not age

  template <class Context>
  using Reader = AgedReader<Context, typename Base::template Reader<Context>>;

  using Base::Base;

  /// Tokens before which a query at `position` sees old tiles.
  [[nodiscard]] std::size_t aged(std::size_t position) const noexcept {
    return old_layer == none ? 0 : kv::aged_tokens(position, this->elements.recent());
  }

  template <class Context>
  void stored_head(const Context& c, std::size_t kv_head) const noexcept {
    const FullTiles full = completed(c);
    for (std::size_t tile = full.first; tile < full.last; ++tile) store_old(c, kv_head, tile);
  }
  template <Executor X, class Context>
  void stored_all(X& executor, const Context& c) const noexcept {
    const FullTiles full = completed(c);
    const std::size_t count = full.last - full.first;
    if (count == 0) return;
    executor.run(c.layer.kv_heads * count, [&](std::size_t task, std::size_t) noexcept {
      store_old(c, task / count, full.first + task % count);
    });
  }

 private:
  struct FullTiles {
    std::size_t first = 0;
    std::size_t last = 0;
  };

  /// The tiles that the tokens of a step complete and that get an old form.
  template <class Context>
  [[nodiscard]] FullTiles completed(const Context& c) const noexcept {
    if (old_layer == none || !c.layer.stores_kv()) return {};
    return {this->pos / format::tile_tokens, (this->pos + c.q.rows()) / format::tile_tokens};
  }
  /// Stores a full tile as an old one.
  template <class Context>
  void store_old(const Context& c, std::size_t kv_head, std::size_t tile) const noexcept {
    kv::store_old_tile(this->elements, c.layer.head_dim, this->storage.run(this->layer, kv_head, tile).data,
                       this->storage.run(old_layer, kv_head, tile).data);
  }
};

}  // namespace mica::block
