// SPDX-License-Identifier: Apache-2.0
//
// The names under which bytes are booked, and a row of byte counts by name: plans show it and ledgers report
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mica::budget {

/// The purposes of bytes.
enum class Account : std::uint8_t {
  weights,      ///< weights, in any layout
  kv,           ///< keys and values
  state,        ///< recurrent state (delta nets, convolutions)
  checkpoints,  ///< rewind points and snapshots in memory
  activations,  ///< scratch of a step
  logits,       ///< rows of logits and sampler candidates
  tokenizer,    ///< vocabulary, merges, templates
  io_buffers,   ///< blocks on their way from disk
  process,      ///< code, stacks, libc, a model in memory (plan::process_bytes)
};

/// The number of accounts, and their names in the order of Account.
inline constexpr std::size_t account_count = 9;
inline constexpr std::array<std::string_view, account_count> account_names = {
    "weights", "kv", "state", "checkpoints", "activations", "logits", "tokenizer", "io_buffers", "process",
};

/// The name of an account, as plans and JSON spell it.
[[nodiscard]] constexpr std::string_view name(Account account) noexcept {
  return account_names[static_cast<std::size_t>(account)];
}

/// Bytes by account, at one moment or at each account's own peak.
struct Accounts {
  std::array<std::uint64_t, account_count> bytes{};  // in the order of Account

  /// Bytes of one account, and of all.
  [[nodiscard]] constexpr std::uint64_t operator[](Account account) const noexcept {
    return bytes[static_cast<std::size_t>(account)];
  }
  [[nodiscard]] constexpr std::uint64_t& operator[](Account account) noexcept {
    return bytes[static_cast<std::size_t>(account)];
  }
  [[nodiscard]] constexpr std::uint64_t total() const noexcept {
    std::uint64_t sum = 0;
    for (const std::uint64_t b : bytes) sum += b;
    return sum;
  }

  /// Calls `f(Account, bytes)` for each account in order, empty ones included.
  template <class F>
  constexpr void for_each(F&& f) const {
    for (std::size_t i = 0; i < account_count; ++i) f(static_cast<Account>(i), bytes[i]);
  }

  friend constexpr bool operator==(const Accounts&, const Accounts&) noexcept = default;
};

static_assert(name(Account::weights) == "weights" && name(Account::process) == "process");

}  // namespace mica::budget
