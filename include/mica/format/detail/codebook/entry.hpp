// SPDX-License-Identifier: Apache-2.0
//
// From an entry of a codebook to codes: magnitudes that few bits choose, and one bit for each sign.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace mica::format::codebook {

/// Seven signs in a file mean eight: an even number of them is set.
[[nodiscard]] constexpr unsigned even_signs(unsigned seven) noexcept {
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1u) << 7;
}

/// The n values of an entry, `bits` each; value i is negative where bit i of `signs` is set.
template <unsigned bits, std::size_t n>
constexpr void spell(const std::int8_t* levels, unsigned entry, unsigned signs, std::int8_t* code) noexcept {
  for (std::size_t i = 0; i < n; ++i) {
    const int level = levels[(entry >> (bits * i)) & ((1u << bits) - 1)];
    code[i] = static_cast<std::int8_t>((signs >> i) & 1u ? -level : level);
  }
}

namespace detail {

template <class Word, std::size_t n, std::size_t levels_n>
consteval std::array<Word, n> to_words(const std::uint16_t (&entries)[n],
                                       const std::int8_t (&levels)[levels_n]) {
  constexpr unsigned bits = sizeof(Word) == 8 ? 2 : 3;
  std::array<Word, n> words = {};
  for (std::size_t e = 0; e < n; ++e) {
    for (unsigned i = 0; i < sizeof(Word); ++i) {
      const int level = levels[(entries[e] >> (bits * i)) & ((1u << bits) - 1)];
      words[e] |= static_cast<Word>(level) << (8 * i);
    }
  }
  return words;
}

}  // namespace detail

/// The entries of a codebook as vectors want them: a byte a value, the first one lowest. Exists where it is
/// used.
template <class Word, const auto& entries, const auto& levels>
inline constexpr auto words = detail::to_words<Word>(entries, levels);

static_assert(even_signs(0) == 0 && even_signs(1) == 0x81 && even_signs(0x7F) == 0xFF);

}  // namespace mica::format::codebook
