// SPDX-License-Identifier: Apache-2.0
//
// A storage of pages that sequences share. A page is one tile of every head of the layers that are alike, and a table
// says where each lies:
//
//   a:  | 0 | 1 | 2 | 3 |              pages 0 and 1 have two owners
//         |   |
//   b:  | 0 | 1 | 2 |                  before one of them writes there, it gets a copy
//
// Pages begin at the same places of caches, so a head's tile is one further on in each: neighbours do not push each other out.
// Memory follows use by 16 tokens. All pages are booked on the account of the allocator, whoever owns them, once.
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/kv/page.hpp"
#include "mica/kv/slab.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace mica::kv {

/// Storages that give each other pages have the same allocator, layers and max_tokens.
template <mica::Allocator A = alloc::Huge>
class Paged {
 public:
  // Required by KvStorage
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Paged<B>;
  static constexpr std::string_view name = "paged";

  Paged(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens);
  [[nodiscard]] bool reserve(std::size_t tokens) noexcept;
  void shrink(std::size_t tokens) noexcept;
  [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] std::size_t first_tile(std::size_t layer) const noexcept {
    return tables_[layers_[layer].table].first();
  }
  [[nodiscard]] Run run(std::size_t layer, std::size_t head, std::size_t tile) const noexcept {
    const Layer& l = layers_[layer];
    const Table& table = tables_[l.table];
    return {table.page(tile) + (l.first + head + tile) % table.tiles * table.tile_bytes, 1};
  }

  // Required by SharingStorage
  [[nodiscard]] std::size_t adopt(const Paged& other, std::size_t tokens) noexcept;

 private:
  /// The pages of layers that keep as many tokens in tiles of one size. Tiles [first(), end) have been here and were not overwritten.
  struct Table {
    Table(Pages<A> pages, std::size_t tiles_of_page, std::size_t bytes_of_tile, std::size_t places)
        : kind(pages), tiles(tiles_of_page), tile_bytes(bytes_of_tile), at(places) {}
    Table(Table&&) = default;
    Table& operator=(Table&& other) noexcept {
      std::swap(kind, other.kind);
      std::swap(tiles, other.tiles);
      std::swap(tile_bytes, other.tile_bytes);
      std::swap(at, other.at);
      std::swap(end, other.end);
      return *this;
    }
    ~Table() { drop(0); }

    [[nodiscard]] std::size_t first() const noexcept { return end - std::min(end, at.size()); }
    [[nodiscard]] std::byte* page(std::size_t tile) const noexcept { return at[tile % at.size()]; }
    [[nodiscard]] bool own(std::size_t tile, bool kept) noexcept;
    void drop(std::size_t tile) noexcept;
    [[nodiscard]] bool adopt(const Table& other, std::size_t tokens) noexcept;

    Pages<A> kind;
    std::size_t tiles;  // of a page
    std::size_t tile_bytes;
    std::vector<std::byte*> at;  // by place: tile % places; null: none
    std::size_t end = 0;         // tiles, the most since it was empty
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

template <mica::Allocator A>
Paged<A>::Paged(A allocator, std::span<const LayerShape> layers, std::size_t max_tokens)
    : max_tokens_(round_up(max_tokens, format::tile_tokens)) {
  struct Kind {
    std::size_t places, tile_bytes, tiles;
  };
  std::vector<Kind> kinds;  // by table
  for (const LayerShape& layer : layers) {
    const std::size_t all = max_tokens_ / format::tile_tokens;
    const std::size_t places = layer.window == 0 ? all : std::min(all, layer.ring_tiles());
    const auto same = [&](const Kind& k) { return k.places == places && k.tile_bytes == layer.tile_bytes; };
    const auto at = std::find_if(kinds.begin(), kinds.end(), same);
    const auto table = static_cast<std::size_t>(at - kinds.begin());
    if (at == kinds.end()) kinds.push_back({places, layer.tile_bytes, 0});
    layers_.push_back({table, kinds[table].tiles});
    kinds[table].tiles += layer.kv_heads;
  }
  for (const Kind& k : kinds) {
    tables_.emplace_back(Pages<A>(allocator, k.tiles * k.tile_bytes), k.tiles, k.tile_bytes, k.places);
  }
}

template <mica::Allocator A>
bool Paged<A>::reserve(std::size_t tokens) noexcept {
  if (tokens > max_tokens_) return false;
  const std::size_t end = ceil_div(tokens, format::tile_tokens);
  for (Table& table : tables_) {
    for (std::size_t tile = written_ / format::tile_tokens; tile < end; ++tile) {
      if (table.own(tile, tile * format::tile_tokens < written_)) continue;
      for (Table& each : tables_) each.drop(capacity_ / format::tile_tokens);
      return false;
    }
  }
  capacity_ = std::max(capacity_, end * format::tile_tokens);
  written_ = std::max(written_, tokens);
  return true;
}

template <mica::Allocator A>
void Paged<A>::shrink(std::size_t tokens) noexcept {
  const std::size_t end = ceil_div(tokens, format::tile_tokens);
  for (Table& table : tables_) table.drop(end);
  capacity_ = std::min(capacity_, end * format::tile_tokens);
  written_ = std::min(written_, tokens);
}

/// Begins with the first tokens of another one: full pages get one more owner, one that is filled in part is copied.
template <mica::Allocator A>
std::size_t Paged<A>::adopt(const Paged& other, std::size_t tokens) noexcept {
  MICA_ASSERT(capacity_ == 0 && tokens <= other.capacity_ && tables_.size() == other.tables_.size());
  if constexpr (A::dry) return 0;
  for (std::size_t t = 0; t < tables_.size(); ++t) {
    if (tables_[t].adopt(other.tables_[t], tokens)) continue;
    shrink(0);
    return 0;
  }
  capacity_ = round_up(tokens, format::tile_tokens);
  written_ = tokens;
  return tokens;
}

/// A page of a tile that nobody else has. kept: some tokens of the tile stay, so the page of others is copied.
template <mica::Allocator A>
bool Paged<A>::Table::own(std::size_t tile, bool kept) noexcept {
  std::byte*& page = at[tile % at.size()];
  if (page == nullptr || kind.shared(page)) {
    std::byte* const own = kept && page != nullptr ? kind.copy(page) : kind.acquire();
    if (own == nullptr) return false;
    if (page != nullptr) kind.release(page);
    page = own;
  }
  end = std::max(end, tile + 1);
  return true;
}

/// Releases the pages of this tile and those after it.
template <mica::Allocator A>
void Paged<A>::Table::drop(std::size_t tile) noexcept {
  for (std::size_t t = std::max(tile, first()); t < end; ++t) {
    std::byte*& page = at[t % at.size()];
    if (page != nullptr) kind.release(std::exchange(page, nullptr));
  }
  if (tile == 0 || end <= at.size())
    end = std::min(end, tile);  // else older tiles were overwritten: remember that
}

template <mica::Allocator A>
bool Paged<A>::Table::adopt(const Table& other, std::size_t tokens) noexcept {
  const std::size_t last = ceil_div(tokens, format::tile_tokens);
  end = other.end > at.size() ? other.end : last;
  for (std::size_t tile = first(); tile < last; ++tile) {
    std::byte* page = other.page(tile);
    if ((tile + 1) * format::tile_tokens <= tokens) {
      kind.share(page);
    } else if ((page = kind.copy(page)) == nullptr) {
      return false;
    }
    at[tile % at.size()] = page;
  }
  return true;
}

static_assert(KvStorage<Paged<>> && SharingStorage<Paged<>>);

}  // namespace mica::kv
