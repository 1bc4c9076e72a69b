// SPDX-License-Identifier: Apache-2.0
//
// The minimal Tokenizer: one token for each byte, and nothing that the concept does not ask for.

#pragma once

#include "mica/text/concept.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace mica::archetype {

/// Bytes as tokens. Neither copied nor moved.
class Tokenizer {
 public:
  Tokenizer() : vocabulary_(bytes()) {}
  Tokenizer(const Tokenizer&) = delete;
  Tokenizer& operator=(const Tokenizer&) = delete;

  // Required by Tokenizer
  [[nodiscard]] std::vector<text::TokenId> encode(std::string_view text,
                                                  text::EncodeOptions /*options*/) const {
    std::vector<text::TokenId> ids;
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return ids;
  }
  void append_piece(text::TokenId id, bool /*show_special*/, std::string& out) const {
    out.push_back(static_cast<char>(id));
  }
  [[nodiscard]] const text::Vocabulary& vocabulary() const noexcept { return vocabulary_; }

 private:
  static text::Vocabulary bytes() {
    static constexpr std::array<char, 256> all = [] {
      std::array<char, 256> out = {};
      for (std::size_t i = 0; i < 256; ++i) out[i] = static_cast<char>(i);
      return out;
    }();
    std::vector<std::string_view> tokens;
    for (const char& c : all) tokens.emplace_back(&c, 1);
    text::VocabularySource source;
    source.model = "gpt2";
    source.tokens = tokens;
    return text::Vocabulary(source);
  }

  text::Vocabulary vocabulary_;
};
static_assert(text::Tokenizer<Tokenizer>);

}  // namespace mica::archetype
