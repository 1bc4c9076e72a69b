// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece's replacements of characters, as models carry them: a trie of the bytes to replace, as a
// double array of Darts-clone, and the texts that replace them. Most are Unicode's NFKC with changes.
//
//   bytes of the trie (u32)  | units (u32 each)  | texts, each with a zero byte after it
//
//   a unit     label, bits 0-7   leaf 8   long 9   offset 10-31
//   a value    where its text begins, bits 0-30    set 31
//
// The child of unit i by byte c is the unit i ^ offset(i) ^ c, if that has the label c; a unit with a leaf
// has its value at i ^ offset(i).
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/text/utf8.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::text::detail {

/// Immutable: for any number of threads.
class Charsmap {
 public:
  static constexpr std::size_t max_text_bytes = 512;  // of a replacement; NFKC's longest has 33
  static constexpr std::size_t max_key_bytes = 64;  // of what is replaced; SentencePiece's own have up to 12

  /// A prefix of a text and what replaces it.
  struct Match {
    std::size_t bytes = 0;  // of the prefix; 0: nothing is replaced
    std::string_view text;  // lives in the Charsmap
  };

  /// Copies and checks; no bytes at all replace nothing. Raises `file` for sizes that do not fit, values
  /// outside the texts, and texts that are too long or no UTF-8. Linear in the bytes.
  /// Limit: keys are compared up to 64 bytes.
  explicit Charsmap(std::string_view bytes) {
    if (bytes.empty()) return;
    check(bytes.size() >= 4, "is truncated");
    const std::size_t trie_bytes = number(bytes);
    bytes.remove_prefix(4);
    check(trie_bytes % 4 == 0 && trie_bytes > 0 && trie_bytes <= bytes.size(),
          "has another size than it says");
    units_.reserve(trie_bytes / 4);
    for (std::size_t at = 0; at < trie_bytes; at += 4) units_.push_back(number(bytes.substr(at)));
    texts_ = bytes.substr(trie_bytes);
    check_values();
  }

  /// The longest prefix that is replaced.
  [[nodiscard]] Match longest(std::string_view text) const noexcept {
    Match best;
    if (units_.empty()) return best;
    std::size_t at = offset(units_[0]);
    for (std::size_t n = 0; n < text.size() && n < max_key_bytes; ++n) {
      const auto byte = static_cast<unsigned char>(text[n]);
      at ^= byte;
      if (at >= units_.size() || label(units_[at]) != byte) break;
      const std::uint32_t unit = units_[at];
      at ^= offset(unit);
      const bool has_value = (unit & 0x100U) != 0 && at < units_.size() && is_value(units_[at]);
      if (has_value) best = {n + 1, text_at(units_[at])};
    }
    return best;
  }

  [[nodiscard]] std::size_t bytes() const noexcept { return units_.capacity() * 4 + texts_.size(); }

 private:
  static std::uint32_t number(std::string_view bytes) noexcept {
    const auto byte = [&](std::size_t i) { return std::uint32_t{static_cast<unsigned char>(bytes[i])}; };
    return byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
  }
  static bool is_value(std::uint32_t unit) noexcept { return (unit & 0x8000'0000U) != 0; }
  static std::uint32_t label(std::uint32_t unit) noexcept { return unit & 0x8000'00FFU; }  // a value has none
  static std::size_t offset(std::uint32_t unit) noexcept {
    return std::size_t{unit >> 10} << ((unit & 0x200U) != 0 ? 8 : 0);
  }
  [[nodiscard]] std::string_view text_at(std::uint32_t value) const noexcept {
    const std::string_view rest = std::string_view(texts_).substr(value & 0x7FFF'FFFFU);
    return rest.substr(0, rest.find('\0'));
  }

  static void check(bool holds, std::string_view problem) {
    MICA_CHECK(holds, file, "tokenizer.ggml.precompiled_charsmap ", problem);
  }
  void check_values() const {
    check(is_utf8(texts_), "has texts that are no UTF-8");
    std::size_t begin = 0;
    while (begin < texts_.size()) {
      const std::size_t end = texts_.find('\0', begin);
      check(end != std::string::npos, "has a text without an end");
      check(end - begin <= max_text_bytes, "has a text of more than 512 bytes");
      begin = end + 1;
    }
    for (const std::uint32_t unit : units_)
      check(!is_value(unit) || (unit & 0x7FFF'FFFFU) < texts_.size(), "has a value outside of its texts");
  }

  std::vector<std::uint32_t> units_;
  std::string texts_;
};

}  // namespace mica::text::detail
