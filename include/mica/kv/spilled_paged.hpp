// SPDX-License-Identifier: Apache-2.0
//
// A storage of pages for many sequences, with a file for the pages of idle ones. While a sequence is fed all
// its pages are in memory, shared as in kv::Paged. The pages of a parked sequence are written to a file,
// except those that others still use, and the next reserve() reads them:
//
//   memory   | prefix of a, b, c | b's own pages |             c and a are parked
//   file     | a's own pages | c's own pages |
//
// The runtime chooses the sequence that is parked: the least recently used one (runtime/idle_sessions.hpp).
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/kv/detail/filed_page.hpp"
#include "mica/kv/detail/page_tables.hpp"
#include "mica/kv/paged.hpp"
#include "mica/kv/spilled.hpp"

#include <cstddef>
#include <string_view>
#include <utility>

namespace mica::kv {

/// Storages that give each other pages have the same allocator, layers and max_tokens, and one file together
/// from then on. These are used by one thread at a time.
template <mica::Allocator A>
class Spilled<Paged<A>> : public PageTables<FiledPages<A>> {
  using Base = PageTables<FiledPages<A>>;

 public:
  // Required by KvStorage, beside what PageTables has
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Spilled<Paged<B>>;
  static constexpr std::string_view name = "spilled-paged";
  using Base::Base;
  Spilled(Spilled&& other) noexcept : Base(std::move(other)), parked_(std::exchange(other.parked_, false)) {}
  Spilled& operator=(Spilled&& other) noexcept {
    if (this == &other) return *this;
    shrink(0);
    Base::operator=(std::move(other));
    parked_ = std::exchange(other.parked_, false);
    return *this;
  }
  /// Also of one that is parked: others may use its pages.
  ~Spilled() { shrink(0); }
  [[nodiscard]] bool reserve(std::size_t tokens) noexcept { return wake() && Base::reserve(tokens); }
  void shrink(std::size_t tokens) noexcept {
    if (parked_) Base::for_each_page(tokens, [](Keeper& keeper, Page page) { keeper.use(page); });
    Base::shrink(tokens);  // who releases a page has used it
    parked_ = parked_ && Base::capacity() > 0;
  }

  // Required by SharingStorage
  /// None of one that is parked.
  [[nodiscard]] std::size_t adopt(const Spilled& other, std::size_t tokens) noexcept {
    parked_ = false;
    return other.parked_ ? 0 : Base::adopt(other, tokens);
  }

  // Required by ParkingStorage
  /// All pages without another user are written first, then freed: a full file loses nothing.
  [[nodiscard]] bool park() noexcept {
    if (parked_ || Base::capacity() == 0) return parked_;
    bool filed = true;
    Base::for_each_page(0, [&](Keeper& keeper, Page page) {
      if (filed && page->users == 1) filed = keeper.file(page);
    });
    if (!filed) return false;
    Base::for_each_page(0, [](Keeper& keeper, Page page) { keeper.leave(page); });
    return parked_ = true;
  }

 private:
  using Keeper = FiledPages<A>;
  using Page = typename Keeper::Page;

  /// Brings all pages back, or leaves everything as it was.
  [[nodiscard]] bool wake() noexcept {
    if (!parked_) return true;
    bool loaded = true;
    Base::for_each_page(0, [&](Keeper& keeper, Page page) { loaded = loaded && keeper.load(page); });
    Base::for_each_page(0,
                        [&](Keeper& keeper, Page page) { loaded ? keeper.use(page) : keeper.unload(page); });
    parked_ = !loaded;
    return loaded;
  }

  bool parked_ = false;
};

static_assert(KvStorage<Spilled<Paged<>>> && SharingStorage<Spilled<Paged<>>> &&
              ParkingStorage<Spilled<Paged<>>>);

}  // namespace mica::kv
