// SPDX-License-Identifier: Apache-2.0
//
// The one number for memory: a budget in bytes and named accounts within it. Bytes are booked before they are
// allocated; a booking that would exceed the budget is refused and changes nothing. The ledger owns no
// memory.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/budget/account.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <mutex>

namespace mica::budget {

/// A ledger of bytes within one budget. Any thread may call all members; `used() <= limit()` at all times.
class Ledger {
 public:
  static constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();  // no budget

  explicit Ledger(std::uint64_t limit = unlimited) noexcept : limit_(limit) {}  // bytes
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  /// Books `bytes`; false, and nothing changed, when that would exceed the ceiling.
  [[nodiscard]] bool book(Account account, std::uint64_t bytes) noexcept {
    std::uint64_t before = total_.used.load(std::memory_order_relaxed);
    do {
      if (bytes > limit_ - before) return false;  // before <= limit_ always, so this cannot wrap
    } while (!total_.used.compare_exchange_weak(before, before + bytes, std::memory_order_relaxed));
    total_.raise_peak(before + bytes);
    Sum& sum = sums_[static_cast<std::size_t>(account)];
    sum.raise_peak(sum.used.fetch_add(bytes, std::memory_order_relaxed) + bytes);
    return true;
  }

  /// Releases bytes that were booked on the same account.
  void release(Account account, std::uint64_t bytes) noexcept {
    // The account first: a thread that books the freed bytes must not see them in this account any more.
    [[maybe_unused]] const std::uint64_t held =
        sums_[static_cast<std::size_t>(account)].used.fetch_sub(bytes, std::memory_order_relaxed);
    MICA_ASSERT(held >= bytes);
    total_.used.fetch_sub(bytes, std::memory_order_relaxed);
  }

  /// A model enters. Books the bytes of the process, which all models share, unless they are booked: by another
  /// model, or by the program itself. False, and nothing changed, when they exceed the ceiling.
  [[nodiscard]] bool enter_process(std::uint64_t bytes) noexcept {
    const std::lock_guard lock(process_);
    if (models_ == 0) {
      shared_ = used(Account::process) == 0 ? bytes : 0;
      if (!book(Account::process, shared_)) return false;
    }
    ++models_;
    return true;
  }
  /// A model that entered leaves: the last one releases these bytes.
  void leave_process() noexcept {
    const std::lock_guard lock(process_);
    MICA_ASSERT(models_ != 0);
    if (--models_ == 0) release(Account::process, shared_);
  }

  /// Bytes: of the budget, booked, booked to one account, and not booked.
  [[nodiscard]] std::uint64_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::uint64_t used() const noexcept { return total_.used.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t used(Account account) const noexcept { return read(account, &Sum::used); }
  [[nodiscard]] std::uint64_t left() const noexcept { return limit_ - used(); }

  /// The maximum that was booked at one moment.
  [[nodiscard]] std::uint64_t peak() const noexcept { return total_.peak.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t peak(Account account) const noexcept { return read(account, &Sum::peak); }

  /// The bytes of each account now. Consistent when no other thread books meanwhile.
  [[nodiscard]] Accounts accounts() const noexcept { return snapshot(&Sum::used); }
  /// Each account's own peak; their total may pass peak(), since peaks need not coincide.
  [[nodiscard]] Accounts peaks() const noexcept { return snapshot(&Sum::peak); }

 private:
  struct Sum {
    std::atomic<std::uint64_t> used{0};
    std::atomic<std::uint64_t> peak{0};

    void raise_peak(std::uint64_t now) noexcept {
      std::uint64_t seen = peak.load(std::memory_order_relaxed);
      while (seen < now && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
      }
    }
  };
  using Field = std::atomic<std::uint64_t> Sum::*;

  [[nodiscard]] std::uint64_t read(Account account, Field field) const noexcept {
    return (sums_[static_cast<std::size_t>(account)].*field).load(std::memory_order_relaxed);
  }
  [[nodiscard]] Accounts snapshot(Field field) const noexcept {
    Accounts out;
    for (std::size_t i = 0; i < account_count; ++i) {
      out.bytes[i] = (sums_[i].*field).load(std::memory_order_relaxed);
    }
    return out;
  }

  std::uint64_t limit_;
  Sum total_;
  std::array<Sum, account_count> sums_;
  std::mutex process_;
  std::size_t models_ = 0;    // that entered
  std::uint64_t shared_ = 0;  // bytes that the first of them booked
};

}  // namespace mica::budget
