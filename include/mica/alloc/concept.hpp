// SPDX-License-Identifier: Apache-2.0
//
// Where bytes come from. An allocator is a handle: small, copied by value into every container, with no state
// of its own that a copy would lose. What it refers to (a ledger, an arena, statistics) is held by pointer
// and outlives it.
#pragma once

#include "mica/base/error.hpp"
#include "mica/budget/account.hpp"
#include "mica/budget/ledger.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

namespace mica {

/// Allocates and frees blocks of bytes.
/// allocate(bytes, alignment): bytes > 0, alignment a power of two; null when there is no more, never an
/// exception. deallocate(block, bytes): exactly the block and the bytes that were asked for, through any copy
/// of the handle. ledger(): the ledger that it books into; null when it keeps no books.
/// book_as(account): a copy that books to that account, so that one handle serves weights, KV and scratch.
/// dry: it does the books of an allocation but its blocks are addresses that nothing may touch.
/// An allocator without books inherits ledger and book_as from alloc::Unbooked.
// clang-format off
template <class A>
concept Allocator = std::is_nothrow_copy_constructible_v<A> && std::is_nothrow_copy_assignable_v<A> &&
    requires(A a, const A& handle, std::byte* block, std::size_t bytes, std::size_t alignment,
             budget::Account account) {
  { std::bool_constant<A::dry>::value } -> std::convertible_to<bool>;
  { a.allocate(bytes, alignment) } noexcept -> std::same_as<std::byte*>;
  { a.deallocate(block, bytes) } noexcept -> std::same_as<void>;
  { handle.ledger() } noexcept -> std::same_as<budget::Ledger*>;
  { handle.book_as(account) } noexcept -> std::same_as<A>;
};
// clang-format on

namespace alloc {

/// The default alignment of buffers: a pair of cache lines, and not less than the widest vector.
inline constexpr std::size_t default_alignment = 128;

/// Of `n` bytes or elements in a block of A, those that may be touched: all, or none where A is dry.
template <Allocator A>
[[nodiscard]] constexpr std::size_t touchable(std::size_t n) noexcept {
  return A::dry ? 0 : n;
}

/// The base of an allocator A that keeps no books.
template <class A>
class Unbooked {
 public:
  // Required by Allocator
  [[nodiscard]] budget::Ledger* ledger() const noexcept { return nullptr; }
  [[nodiscard]] A book_as(budget::Account /*account*/) const noexcept { return static_cast<const A&>(*this); }
};

/// Why an allocator refused bytes, for error texts: "do not fit the memory budget of 6400000 bytes, of which
/// 120 are left"; "were refused by the system" where the budget has room; "were refused by the allocator"
/// where there is no budget. Call it right after the refusal, before any bytes are released.
template <Allocator A>
[[nodiscard]] std::string refused(const A& allocator, std::uint64_t bytes) {
  const budget::Ledger* const ledger = allocator.ledger();
  if (ledger == nullptr) return "were refused by the allocator";
  if (bytes <= ledger->left()) return "were refused by the system";
  return join("do not fit the memory budget of ", ledger->limit(), " bytes, of which ", ledger->left(),
              " are left");
}

}  // namespace alloc
}  // namespace mica
