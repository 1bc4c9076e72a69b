// SPDX-License-Identifier: Apache-2.0
//
// Where bytes come from. An allocator is a handle: small, copied by value into every container, with no state of its
// own that a copy would lose. What it refers to (a ledger, an arena, statistics) is held by pointer and outlives it.
#pragma once

#include "mica/budget/account.hpp"
#include "mica/budget/ledger.hpp"

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace mica {

/// Hands out and takes back blocks of bytes.
/// allocate(bytes, alignment): bytes > 0, alignment a power of two; null when there is no more, never an exception.
/// deallocate(block, bytes): exactly the block and the bytes that were asked for, through any copy of the handle.
/// dry: it does the books of an allocation but its blocks are addresses that nobody may touch.
// clang-format off
template <class A>
concept Allocator = std::is_nothrow_copy_constructible_v<A> && std::is_nothrow_copy_assignable_v<A> &&
    requires(A a, std::byte* block, std::size_t bytes, std::size_t alignment) {
  { std::bool_constant<A::dry>::value } -> std::convertible_to<bool>;
  { a.allocate(bytes, alignment) } noexcept -> std::same_as<std::byte*>;
  { a.deallocate(block, bytes) } noexcept -> std::same_as<void>;
};
// clang-format on

namespace alloc {

/// A pair of cache lines, and no less than the widest vector: what a buffer is aligned to unless it asks otherwise.
inline constexpr std::size_t default_alignment = 128;

// What follows answers for allocators that keep no books. One that does overloads both as friends.

/// The ledger an allocator books into; null when it keeps no books.
template <Allocator A>
[[nodiscard]] budget::Ledger* ledger_of(const A&) noexcept {
  return nullptr;
}

/// What for_account() asks.
template <Allocator A>
[[nodiscard]] A rebooked(const A& allocator, budget::Account) noexcept {
  return allocator;
}

/// The same allocator, booking to another account if it books at all: one handle serves weights, KV and scratch.
template <Allocator A>
[[nodiscard]] A for_account(const A& allocator, budget::Account account) noexcept {
  return rebooked(allocator, account);
}

}  // namespace alloc
}  // namespace mica
