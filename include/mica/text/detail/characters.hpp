// SPDX-License-Identifier: Apache-2.0
//
// Characters as BERT's normaliser treats them: look-ups in the tables of unicode_tables.hpp, and steps from
// UTF-8 to characters and back.
#pragma once

#include "mica/text/detail/unicode_tables.hpp"
#include "mica/text/utf8.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace mica::text::detail {

/// The character at the beginning of valid UTF-8, which is removed. Precondition: the text is not empty.
constexpr std::uint32_t take_character(std::string_view& text) noexcept {
  const std::size_t n = utf8_claimed_bytes(text[0]);
  auto c = static_cast<unsigned char>(text[0]) & (n == 1 ? 0x7FU : 0x7FU >> n);
  for (std::size_t i = 1; i < n; ++i) c = c << 6 | (static_cast<unsigned char>(text[i]) & 0x3FU);
  text.remove_prefix(n);
  return c;
}

/// Adds a character as UTF-8.
inline void append_character(std::uint32_t c, std::string& out) {
  const auto tail = [&](unsigned shift) { return static_cast<char>(0x80 | (c >> shift & 0x3F)); };
  if (c < 0x80) {
    out += static_cast<char>(c);
  } else if (c < 0x800) {
    out += {static_cast<char>(0xC0 | c >> 6), tail(0)};
  } else if (c < 0x10000) {
    out += {static_cast<char>(0xE0 | c >> 12), tail(6), tail(0)};
  } else {
    out += {static_cast<char>(0xF0 | c >> 18), tail(12), tail(6), tail(0)};
  }
}

/// The last entry of an ascending table that begins at or before the character; null where there is none.
template <class Entry, std::size_t N>
constexpr const Entry* entry_before(const Entry (&table)[N], std::uint32_t c) noexcept {
  const Entry* const after =
      std::upper_bound(std::begin(table), std::end(table), c,
                       [](std::uint32_t value, const Entry& e) { return value < e.first; });
  return after == std::begin(table) ? nullptr : after - 1;
}

template <std::size_t N>
constexpr bool is_among(const unicode::Range (&table)[N], std::uint32_t c) noexcept {
  const unicode::Range* const found = entry_before(table, c);
  return found != nullptr && c <= found->last;
}

/// White space that ends words; the other control characters are dropped.
constexpr bool is_word_space(std::uint32_t c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

constexpr bool is_dropped(std::uint32_t c) noexcept { return is_among(unicode::dropped, c); }
constexpr bool is_punctuation(std::uint32_t c) noexcept { return is_among(unicode::punctuation, c); }
constexpr bool is_accent(std::uint32_t c) noexcept { return c >= 0x300 && is_among(unicode::marks, c); }

/// Ideographs, each a word of its own. From U+2B820 to U+2B91F there are some that Hugging Face's tokenizers
/// leave out, and so do these.
constexpr bool is_ideograph(std::uint32_t c) noexcept {
  return (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x20000 && c <= 0x2A6DF) || (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

/// Calls `on_character` with each character of the canonical decomposition that is no accent.
/// Limit: the rare marks that are no accents stay in the order of the text.
template <class F>
constexpr void without_accents(std::uint32_t c, F&& on_character) {
  if (c < 0xC0) return on_character(c);
  if (c >= 0xAC00 &&
      c <= 0xD7A3) {  // Hangul: 19 leading consonants, 21 vowels, 27 trailing consonants or none
    const std::uint32_t index = c - 0xAC00;
    on_character(0x1100 + index / 588);
    on_character(0x1161 + index % 588 / 28);
    if (index % 28 != 0) on_character(0x11A7 + index % 28);
    return;
  }
  if (is_accent(c)) return;
  const unicode::BaseRun* const run = entry_before(unicode::base_runs, c);
  if (run != nullptr && c - run->first < run->count)
    return on_character(unicode::bases[run->index + c - run->first]);
  const auto* const several =
      std::lower_bound(std::begin(unicode::several), std::end(unicode::several), c,
                       [](const unicode::Several& e, std::uint32_t value) { return e.from < value; });
  if (several == std::end(unicode::several) || several->from != c) return on_character(c);
  for (const std::uint32_t part : several->to) {
    if (part != 0) on_character(part);
  }
}

/// Calls `on_character` with the lower case, of U+0130 alone two characters.
template <class F>
constexpr void lower_case(std::uint32_t c, F&& on_character) {
  if (c < 0x80) return on_character(c >= 'A' && c <= 'Z' ? c + 32 : c);
  on_character(c == 0x130 ? 'i' : [c] {
    const unicode::CaseRun* const run = entry_before(unicode::case_runs, c);
    const bool found =
        run != nullptr && c <= run->last && (c - run->first) % static_cast<std::uint32_t>(run->step) == 0;
    return found ? c + static_cast<std::uint32_t>(run->delta) : c;
  }());
  if (c == 0x130) on_character(0x307);
}

}  // namespace mica::text::detail
