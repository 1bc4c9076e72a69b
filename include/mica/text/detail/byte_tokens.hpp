// SPDX-License-Identifier: Apache-2.0
//
// How SentencePiece's vocabularies spell bytes and spaces: "<0x1F>" and U+2581. Shared by Spm and Unigram.
#pragma once

#include "mica/text/token_id.hpp"
#include "mica/text/vocabulary.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace mica::text::detail {

inline constexpr std::string_view escaped_space = "\xE2\x96\x81";  // U+2581

/// Value of the byte token "<0x1F>", or nothing when the text has another form.
inline std::optional<unsigned char> byte_of(std::string_view text) {
  if (text.size() != 6 || text.substr(0, 3) != "<0x" || text[5] != '>') return std::nullopt;
  unsigned value = 0;
  for (const char c : text.substr(3, 2)) {
    const bool digit = c >= '0' && c <= '9';
    const bool letter = c >= 'A' && c <= 'F';
    if (!digit && !letter) return std::nullopt;
    value = value * 16 + static_cast<unsigned>(digit ? c - '0' : c - 'A' + 10);
  }
  return static_cast<unsigned char>(value);
}

/// The tokens of type byte, one for each value.
class ByteTokens {
 public:
  explicit ByteTokens(const Vocabulary& vocabulary) {
    tokens_.fill(no_token);
    for (TokenId id = 0; id < vocabulary.size(); ++id) {
      const auto byte = vocabulary.type(id) == TokenType::byte ? byte_of(vocabulary.text(id)) : std::nullopt;
      if (byte && tokens_[*byte] == no_token) tokens_[*byte] = id;
    }
  }

  /// The first such token of the byte, or `no_token`.
  [[nodiscard]] TokenId token(char byte) const noexcept { return tokens_[static_cast<unsigned char>(byte)]; }
  /// Whether every byte has one.
  [[nodiscard]] bool complete() const noexcept {
    return std::find(tokens_.begin(), tokens_.end(), no_token) == tokens_.end();
  }

 private:
  std::array<TokenId, 256> tokens_;
};

/// Adds the bytes of an ordinary or byte token, with spaces for U+2581.
inline void append_spaced(const Vocabulary& vocabulary, TokenId id, std::string& out) {
  std::string_view text = vocabulary.text(id);
  if (vocabulary.type(id) == TokenType::byte) {
    if (const auto byte = byte_of(text)) out.push_back(static_cast<char>(*byte));
    return;
  }
  for (std::size_t at = text.find(escaped_space); at != std::string_view::npos;
       at = text.find(escaped_space)) {
    out.append(text.substr(0, at)).push_back(' ');
    text.remove_prefix(at + escaped_space.size());
  }
  out.append(text);
}

}  // namespace mica::text::detail
