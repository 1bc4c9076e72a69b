// SPDX-License-Identifier: Apache-2.0
//
// The levels of codes, for a search: from a value in units of a scale to the nearest level. `settle` does it
// for many at once, in loops of few comparisons and additions, which compilers turn into vectors for any
// target.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace mica::format::search {

/// `t` between low and high; low when it is no number.
[[nodiscard]] constexpr float clamped(float t, float low, float high) noexcept {
  const float above = t > low ? t : low;
  return above < high ? above : high;
}

/// The nearest integer, ties to even; |t| is at most 2^22.
/// The sum has no bits below one, so the addition itself rounds.
[[nodiscard]] constexpr float whole(float t) noexcept { return (t + 0x1.8p23f) - 0x1.8p23f; }

/// 1 / x, or 0 for 0: a scale of nothing has codes of nothing.
[[nodiscard]] constexpr float inverse_or_zero(float x) noexcept { return x != 0 ? 1 / x : 0; }

/// The integers Low to High.
template <int Low, int High>
struct Integers {
  static constexpr float low = Low;    // the first level
  static constexpr float high = High;  // the last level

  /// The level nearest to t, the even one of two.
  [[nodiscard]] static constexpr float nearest(float t) noexcept { return whole(clamped(t, low, high)); }

  /// Every number becomes the nearest level.
  /// Two loops, since gcc compiles comparisons inside a sum to branches, and does not vectorise branches.
  template <std::size_t n>
  static constexpr void settle(float (&t)[n]) noexcept {
    float inside[n] = {};
    for (std::size_t i = 0; i < n; ++i) inside[i] = clamped(t[i], low, high);
    for (std::size_t i = 0; i < n; ++i) t[i] = whole(inside[i]);
  }
};

/// The numbers of an ascending array.
template <const auto& numbers>
struct Codebook {
  static constexpr std::size_t size = sizeof(numbers) / sizeof(numbers[0]);
  static constexpr float low = numbers[0];          // the first level
  static constexpr float high = numbers[size - 1];  // the last level

  /// Climbs by every step whose middle lies below t.
  [[nodiscard]] static constexpr float nearest(float t) noexcept {
    return climb(t, std::make_index_sequence<size - 1>{});
  }

  /// Every number becomes the nearest level.
  template <std::size_t n>
  static constexpr void settle(float (&t)[n]) noexcept {
    float level[n] = {};
    for (std::size_t i = 0; i < n; ++i) level[i] = nearest(t[i]);
    for (std::size_t i = 0; i < n; ++i) t[i] = level[i];
  }

 private:
  static constexpr float level(std::size_t k) noexcept { return static_cast<float>(numbers[k]); }

  /// Spelt out: a loop in here would keep the loop over candidates around it from becoming vectors.
  template <std::size_t... k>
  [[nodiscard]] static constexpr float climb(float t, std::index_sequence<k...>) noexcept {
    return low + (... + (t > 0.5f * (level(k + 1) + level(k)) ? level(k + 1) - level(k) : 0.0f));
  }
};

/// From an eight-bit level, as an unsigned byte, to its first place in an array of levels.
template <const auto& numbers>
inline constexpr auto code_of_level = [] {
  constexpr std::size_t size = sizeof(numbers) / sizeof(numbers[0]);
  std::array<std::uint8_t, 256> codes = {};
  for (std::size_t k = size; k-- > 0;) {
    codes[static_cast<std::uint8_t>(numbers[k])] = static_cast<std::uint8_t>(k);
  }
  return codes;
}();

static_assert(Integers<-8, 7>::nearest(-9.4f) == -8 && Integers<-8, 7>::nearest(2.6f) == 3);

}  // namespace mica::format::search
