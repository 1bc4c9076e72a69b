// SPDX-License-Identifier: Apache-2.0
//
// Books for bytes that no allocator provides: pages of a mapping, a vocabulary in standard containers. They
// are booked through an allocator, so that one ledger has all bytes.
#pragma once

#include "mica/alloc/concept.hpp"
#include "mica/budget/ledger.hpp"

#include <cstdint>
#include <optional>
#include <utility>

namespace mica::alloc {

/// Books bytes in the ledger of an allocator until it is destroyed; without a ledger it does nothing.
class Booking {
 public:
  Booking() noexcept = default;
  /// The bytes stay booked, by one of both; assignment swaps the bookings.
  Booking(Booking&& other) noexcept
      : ledger_(std::exchange(other.ledger_, nullptr)), account_(other.account_), bytes_(other.bytes_) {}
  Booking& operator=(Booking&& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(account_, other.account_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Booking() {
    if (ledger_ != nullptr) ledger_->release(account_, bytes_);
  }

  /// Empty when the ledger refuses.
  template <Allocator A>
  [[nodiscard]] static std::optional<Booking> make(const A& allocator, budget::Account account,
                                                   std::uint64_t bytes) noexcept {
    return make(allocator.ledger(), account, bytes);
  }
  /// The same in a ledger; null: none.
  [[nodiscard]] static std::optional<Booking> make(budget::Ledger* ledger, budget::Account account,
                                                   std::uint64_t bytes) noexcept {
    Booking booking;
    booking.ledger_ = ledger;
    booking.account_ = account;
    booking.bytes_ = bytes;
    if (booking.ledger_ != nullptr && !booking.ledger_->book(account, bytes)) {
      booking.ledger_ = nullptr;
      return std::nullopt;
    }
    return booking;
  }

  /// Books `bytes` instead; false, and nothing changed, when the ledger refuses.
  [[nodiscard]] bool resize(std::uint64_t bytes) noexcept {
    if (ledger_ != nullptr && bytes > bytes_ && !ledger_->book(account_, bytes - bytes_)) return false;
    if (ledger_ != nullptr && bytes < bytes_) ledger_->release(account_, bytes_ - bytes);
    bytes_ = bytes;
    return true;
  }

  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }

 private:
  budget::Ledger* ledger_ = nullptr;
  budget::Account account_ = budget::Account::process;
  std::uint64_t bytes_ = 0;
};

}  // namespace mica::alloc
