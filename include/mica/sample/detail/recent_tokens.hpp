// SPDX-License-Identifier: Apache-2.0
//
// The last n tokens of a text, for stages that depend on it.
#pragma once

#include "mica/alloc/buffer.hpp"
#include "mica/alloc/concept.hpp"
#include "mica/base/assert.hpp"
#include "mica/base/token_id.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace mica::sample::detail {

/// A buffer for an option that counts tokens. Raises for n out of range (usage) and when A refuses (budget).
template <class T, Allocator A>
[[nodiscard]] alloc::Buffer<T, A> take_tokens(A allocator, std::string_view name, std::int64_t n) {
  constexpr std::int64_t max = std::int64_t{1} << 20;
  MICA_CHECK(n >= 0 && n <= max, usage, name, ": found ", n, ", allowed 0 (none) to ", max);
  auto buffer = alloc::Buffer<T, A>::make(allocator, static_cast<std::size_t>(n));
  MICA_CHECK(buffer.has_value(), budget, name, ": no memory for ", n, " tokens (", n * int{sizeof(T)},
             " bytes of several such arrays); use fewer");
  return std::move(*buffer);
}

/// A ring of tokens.
template <Allocator A>
class RecentTokens {
 public:
  RecentTokens(A allocator, std::string_view name, std::int64_t n)
      : ring_(take_tokens<TokenId>(allocator, name, n)) {}

  [[nodiscard]] std::size_t size() const noexcept { return count_; }
  /// The token with i newer ones.
  [[nodiscard]] TokenId operator[](std::size_t i) const noexcept {
    return ring_[i < next_ ? next_ - 1 - i : ring_.size() + next_ - 1 - i];
  }
  void accept(TokenId token) noexcept {
    if (ring_.empty()) return;
    ring_[next_] = token;
    next_ = next_ + 1 == ring_.size() ? 0 : next_ + 1;
    count_ = std::min(count_ + 1, ring_.size());
  }
  void forget() noexcept { next_ = count_ = 0; }

 private:
  alloc::Buffer<TokenId, A> ring_;  // (n)
  std::size_t next_ = 0;
  std::size_t count_ = 0;
};

}  // namespace mica::sample::detail
