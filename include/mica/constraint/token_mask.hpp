// SPDX-License-Identifier: Apache-2.0
//
// A set of tokens: one bit for each token of a vocabulary.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/token_id.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace mica::constraint {

/// Tokens that are allowed. Bit i % 64 of word i / 64 is token i.
class TokenMask {
 public:
  TokenMask() = default;
  /// An empty set, for ids below n_vocab.
  explicit TokenMask(std::size_t n_vocab) : size_(n_vocab), words_((n_vocab + 63) / 64) {}

  [[nodiscard]] std::size_t size() const noexcept { return size_; }  // n_vocab
  [[nodiscard]] bool contains(TokenId id) const noexcept {
    return id < size_ && (words_[id / 64] >> (id % 64) & 1) != 0;
  }
  void insert(TokenId id) noexcept {
    MICA_ASSERT(id < size_);
    words_[id / 64] |= std::uint64_t{1} << (id % 64);
  }
  void erase(TokenId id) noexcept {
    MICA_ASSERT(id < size_);
    words_[id / 64] &= ~(std::uint64_t{1} << (id % 64));
  }
  void clear() noexcept { std::fill(words_.begin(), words_.end(), 0); }
  /// Adds the tokens of another set of the same size.
  TokenMask& operator|=(const TokenMask& other) noexcept {
    MICA_ASSERT(other.size_ == size_);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  /// Keeps the tokens of another set of the same size.
  TokenMask& operator&=(const TokenMask& other) noexcept {
    MICA_ASSERT(other.size_ == size_);
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] &= other.words_[i];
    return *this;
  }
  /// The number of tokens in it.
  [[nodiscard]] std::size_t count() const noexcept {
    std::size_t n = 0;
    for (const std::uint64_t word : words_) n += static_cast<std::size_t>(std::popcount(word));
    return n;
  }
  /// Calls f(id) for each token, in rising order.
  template <class F>
  void for_each(F&& f) const {
    for (std::size_t i = 0; i < words_.size(); ++i) {
      for (std::uint64_t word = words_[i]; word != 0; word &= word - 1)
        f(static_cast<TokenId>(i * 64 + static_cast<std::size_t>(std::countr_zero(word))));
    }
  }
  /// Copies logits; those of other tokens become -infinity. Both have size() elements.
  void apply(std::span<const float> logits, std::span<float> out) const noexcept {
    MICA_ASSERT(logits.size() == size_ && out.size() == size_);
    for (std::size_t first = 0; first < size_; first += 64) {
      const std::uint64_t word = words_[first / 64];
      const std::size_t end = std::min(first + 64, size_);
      for (std::size_t i = first; i < end; ++i)
        out[i] = (word >> (i - first) & 1) != 0 ? logits[i] : -std::numeric_limits<float>::infinity();
    }
  }

  [[nodiscard]] std::span<std::uint64_t> words() noexcept { return words_; }
  [[nodiscard]] std::span<const std::uint64_t> words() const noexcept { return words_; }
  friend bool operator==(const TokenMask&, const TokenMask&) = default;

 private:
  std::size_t size_ = 0;
  std::vector<std::uint64_t> words_;
};

}  // namespace mica::constraint
