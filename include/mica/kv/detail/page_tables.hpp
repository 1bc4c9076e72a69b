// SPDX-License-Identifier: Apache-2.0
//
// The pages of a sequence, for storages of pages that sequences share. A page is one tile of every head of
// equal layers, and a table has the address of each page:
//
//   a:  | 0 | 1 | 2 | 3 |              pages 0 and 1 have two owners
//         |   |
//   b:  | 0 | 1 | 2 |                  before one of them writes there, it gets a copy
//
// Pages begin at the same places of caches, so a head's tile is one further on in each: adjacent tiles do not
// evict each other from caches.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/bits.hpp"
#include "mica/kv/concept.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace mica::kv {

/// The members of a KvStorage that storages of pages have in common. Keeper makes pages of one size:
/// kv/detail/page.hpp says what it does, kv/detail/filed_page.hpp has one whose pages may lie in a file.
template <class Keeper>
class PageTables {
 public:
  using Page = typename Keeper::Page;  // a pointer

  PageTables(typename Keeper::Allocator allocator, std::span<const LayerShape> layers, std::size_t max_tokens)
      : max_tokens_(round_up(max_tokens, format::tile_tokens)) {
    std::vector<Kind> kinds;  // by table
    for (const LayerShape& layer : layers) {
      const std::size_t all = max_tokens_ / format::tile_tokens;
      const std::size_t places =
          layer.max_resident_tiles() == 0 ? all : std::min(all, layer.max_resident_tiles());
      const bool rewritten = layer.max_resident != 0;
      const auto same = [&](const Kind& k) {
        return k.places == places && k.tile_bytes == layer.tile_bytes && k.rewritten == rewritten;
      };
      const auto at = std::find_if(kinds.begin(), kinds.end(), same);
      const auto table = static_cast<std::size_t>(at - kinds.begin());
      if (at == kinds.end()) kinds.push_back({places, layer.tile_bytes, 0, rewritten});
      layers_.push_back({table, kinds[table].tiles});
      kinds[table].tiles += layer.kv_heads;
    }
    for (const Kind& k : kinds) tables_.emplace_back(Keeper(allocator, k.tiles * k.tile_bytes), k);
  }
  [[nodiscard]] bool reserve(std::size_t tokens) noexcept {
    if (tokens > max_tokens_) return false;
    const std::size_t end = ceil_div(tokens, format::tile_tokens);
    for (Table& table : tables_) {
      if (table.own_up_to(end, written_)) continue;
      for (Table& each : tables_) each.drop(capacity_ / format::tile_tokens);
      return false;
    }
    capacity_ = std::max(capacity_, end * format::tile_tokens);
    written_ = std::max(written_, tokens);
    return true;
  }
  void shrink(std::size_t tokens) noexcept {
    const std::size_t end = ceil_div(tokens, format::tile_tokens);
    for (Table& table : tables_) table.drop(end);
    capacity_ = std::min(capacity_, end * format::tile_tokens);
    written_ = std::min(written_, tokens);
  }
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t first_tile(std::size_t layer) const noexcept {
    return tables_[layers_[layer].table].first();
  }
  [[nodiscard]] Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    const Layer& l = layers_[layer];
    const Table& table = tables_[l.table];
    return {
        Keeper::data(table.page(tile)) + (l.first + head + tile) % table.kind.tiles * table.kind.tile_bytes,
        1};
  }
  /// Begins, empty, with the first tokens of another one: full pages get one more owner, one that is filled
  /// in part, or may be written anywhere again, is copied.
  [[nodiscard]] std::size_t adopt(const PageTables& other, std::size_t tokens) noexcept {
    MICA_ASSERT(capacity_ == 0 && tokens <= other.capacity_ && tables_.size() == other.tables_.size());
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      if (tables_[t].adopt(other.tables_[t], tokens)) continue;
      shrink(0);
      return 0;
    }
    capacity_ = round_up(tokens, format::tile_tokens);
    written_ = tokens;
    return tokens;
  }

  /// Calls f(keeper, page) for each page that holds a token from `tokens` on.
  template <class F>
  void for_each_page(std::size_t tokens, F&& f) noexcept {
    for (Table& table : tables_) {
      for (std::size_t t = std::max(ceil_div(tokens, format::tile_tokens), table.first()); t < table.end;
           ++t) {
        if (table.page(t) != nullptr) f(table.keeper, table.page(t));
      }
    }
  }

 private:
  struct Kind {
    std::size_t places;
    std::size_t tile_bytes;
    std::size_t tiles;  // of a page
    bool rewritten;     // its layers evict tokens and write any place again: its pages are never shared
  };
  /// The pages of layers that keep as many tokens in tiles of one size. Tiles [first(), end) have been here
  /// and were not overwritten.
  struct Table {
    Table(Keeper of, const Kind& its_kind) : keeper(std::move(of)), kind(its_kind), at(its_kind.places) {}
    Table(Table&&) = default;
    ~Table() { drop(0); }

    [[nodiscard]] std::size_t first() const noexcept { return end - std::min(end, at.size()); }
    [[nodiscard]] Page page(std::size_t tile) const noexcept { return at[tile % at.size()]; }
    /// A page of a tile with one owner, about to be written. kept: some tokens of the tile stay, so a page
    /// with other owners is copied.
    [[nodiscard]] bool own(std::size_t tile, bool kept) noexcept {
      Page& page = at[tile % at.size()];
      if (page == nullptr || keeper.shared(page)) {
        const Page own = kept && page != nullptr ? keeper.copy(page) : keeper.acquire();
        if (own == nullptr) return false;
        if (page != nullptr) keeper.release(page);
        page = own;
      }
      keeper.touch(page);
      end = std::max(end, tile + 1);
      return true;
    }
    /// The pages of tiles up to `end`, of which tokens from `written` on are about to be written: of a layer
    /// that evicts tokens, anywhere once all places were taken.
    [[nodiscard]] bool own_up_to(std::size_t end_tile, std::size_t written) noexcept {
      const bool anywhere = kind.rewritten && end_tile > at.size();
      const std::size_t last = anywhere ? at.size() : end_tile;
      for (std::size_t tile = anywhere ? 0 : written / format::tile_tokens; tile < last; ++tile) {
        if (!own(tile, tile * format::tile_tokens < written)) return false;
      }
      return true;
    }
    /// Releases the pages of this tile and those after it.
    void drop(std::size_t tile) noexcept {
      for (std::size_t t = std::max(tile, first()); t < end; ++t) {
        Page& page = at[t % at.size()];
        if (page != nullptr) keeper.release(std::exchange(page, nullptr));
      }
      if (tile == 0 || end <= at.size())
        end = std::min(end, tile);  // else older tiles were overwritten: remember that
    }
    [[nodiscard]] bool adopt(const Table& other, std::size_t tokens) noexcept {
      const std::size_t last = ceil_div(tokens, format::tile_tokens);
      keeper = other.keeper;
      end = other.end > at.size() ? other.end : last;
      for (std::size_t tile = first(); tile < last; ++tile) {
        Page page = other.page(tile);
        if ((tile + 1) * format::tile_tokens <= tokens && !kind.rewritten) {
          keeper.share(page);
        } else if ((page = keeper.copy(page)) == nullptr) {
          return false;
        }
        at[tile % at.size()] = page;
      }
      return true;
    }

    Keeper keeper;
    Kind kind;
    std::vector<Page> at;  // by place: tile % places; null: none
    std::size_t end = 0;   // tiles, the most since it was empty
  };
  struct Layer {
    std::size_t table;
    std::size_t first;  // tile of a page, of head 0
  };

  std::vector<Layer> layers_;
  std::vector<Table> tables_;
  std::size_t max_tokens_;
  std::size_t capacity_ = 0;
  std::size_t written_ = 0;  // tokens that are not written again before a shrink
};

}  // namespace mica::kv
