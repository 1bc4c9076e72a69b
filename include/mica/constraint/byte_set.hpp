// SPDX-License-Identifier: Apache-2.0
//
// A set of bytes: 256 bits.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace mica::constraint {

/// A set of bytes, as a value.
class ByteSet {
 public:
  constexpr ByteSet() = default;
  /// All bytes in [first, last].
  constexpr ByteSet(std::uint8_t first, std::uint8_t last) noexcept {
    for (std::size_t byte = first; byte <= last; ++byte) insert(static_cast<std::uint8_t>(byte));
  }

  constexpr void insert(std::uint8_t byte) noexcept { words_[byte / 64] |= std::uint64_t{1} << (byte % 64); }
  [[nodiscard]] constexpr bool contains(std::uint8_t byte) const noexcept {
    return (words_[byte / 64] >> (byte % 64) & 1) != 0;
  }
  [[nodiscard]] constexpr bool empty() const noexcept { return *this == ByteSet(); }
  /// The smallest byte, of a set that is not empty.
  [[nodiscard]] constexpr std::uint8_t first() const noexcept {
    std::size_t word = 0;
    while (words_[word] == 0) ++word;
    return static_cast<std::uint8_t>(word * 64 + static_cast<std::size_t>(std::countr_zero(words_[word])));
  }

  /// The smallest byte in it that is `byte` or greater; 256 where there is none.
  [[nodiscard]] constexpr unsigned at_least(unsigned byte) const noexcept {
    for (std::size_t word = byte / 64; word < words_.size(); ++word) {
      const std::uint64_t left =
          words_[word] & (word == byte / 64 ? ~std::uint64_t{0} << (byte % 64) : ~std::uint64_t{0});
      if (left != 0) return static_cast<unsigned>(word * 64) + static_cast<unsigned>(std::countr_zero(left));
    }
    return 256;
  }

  constexpr ByteSet& operator|=(const ByteSet& other) noexcept {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
    return *this;
  }
  /// The bytes b > 0 of which one of b - 1 and b is in the set, and the other is not: where a run begins or
  /// ended.
  [[nodiscard]] constexpr ByteSet edges() const noexcept {
    ByteSet out;
    std::uint64_t carry = words_[0] & 1;  // so that byte 0 is no edge
    for (std::size_t i = 0; i < words_.size(); ++i) {
      out.words_[i] = words_[i] ^ (words_[i] << 1 | carry);
      carry = words_[i] >> 63;
    }
    return out;
  }

  [[nodiscard]] constexpr const std::array<std::uint64_t, 4>& words() const noexcept { return words_; }
  friend constexpr bool operator==(const ByteSet&, const ByteSet&) = default;

 private:
  std::array<std::uint64_t, 4> words_{};
};
static_assert(ByteSet('a', 'c').edges().contains('a') && ByteSet('a', 'c').edges().contains('d') &&
              !ByteSet('a', 'c').edges().contains('b') && ByteSet(0, 255).edges().empty());
static_assert(ByteSet('a', 'c').at_least(0) == 'a' && ByteSet('a', 'c').at_least('b') == 'b' &&
              ByteSet('a', 'c').at_least('d') == 256 && ByteSet(255, 255).at_least(255) == 255 &&
              ByteSet(0, 255).at_least(256) == 256);

}  // namespace mica::constraint
