// SPDX-License-Identifier: Apache-2.0
//
// A storage of pages that sequences share (kv/detail/page_tables.hpp), all in memory. A cache has as many
// pages of 16 tokens as its tokens need. A page that several sequences share is booked once, on the account
// of the allocator.
#pragma once

#include "mica/alloc/huge.hpp"
#include "mica/kv/detail/page.hpp"
#include "mica/kv/detail/page_tables.hpp"

#include <cstddef>
#include <string_view>

namespace mica::kv {

/// Storages that share pages have the same allocator, layers and max_tokens; one thread at a time uses them.
template <mica::Allocator A = alloc::Huge>
class Paged : public PageTables<Pages<A>> {
 public:
  // Required by KvStorage, beside what PageTables has
  using Allocator = A;
  template <mica::Allocator B>
  using Rebind = Paged<B>;
  static constexpr std::string_view name = "paged";
  using PageTables<Pages<A>>::PageTables;

  // Required by SharingStorage
  [[nodiscard]] std::size_t adopt(const Paged& other, std::size_t tokens) noexcept {
    return PageTables<Pages<A>>::adopt(other, tokens);
  }
};

static_assert(KvStorage<Paged<>> && SharingStorage<Paged<>>);

}  // namespace mica::kv
