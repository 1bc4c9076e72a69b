// SPDX-License-Identifier: Apache-2.0
//
// Vocabularies written down in a test: a list of tokens that owns its texts and gives the views a Vocabulary
// is built from.
#pragma once

#include "mica/text/vocabulary.hpp"

#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace mica::test {

class SmallVocabulary {
 public:
  explicit SmallVocabulary(std::string_view model) { source_.model = model; }

  text::TokenId add(std::string token, text::TokenType type = text::TokenType::normal, float score = 0.0F) {
    owned_.push_back(std::move(token));
    tokens_.push_back(owned_.back());
    types_.push_back(static_cast<std::int32_t>(type));
    scores_.push_back(score);
    return static_cast<text::TokenId>(tokens_.size() - 1);
  }

  void merge(std::string pair) {
    owned_.push_back(std::move(pair));
    merges_.push_back(owned_.back());
  }

  /// Adds "<0x00>" to "<0xFF>" as byte tokens and returns the id of the first.
  text::TokenId add_bytes() {
    const auto first = static_cast<text::TokenId>(tokens_.size());
    for (unsigned byte = 0; byte < 256; ++byte) {
      char spelled[8];
      std::snprintf(spelled, sizeof spelled, "<0x%02X>", byte);
      add(spelled, text::TokenType::byte);
    }
    return first;
  }

  /// Views of all that was added; valid until the next addition.
  text::VocabularySource& source() {
    source_.tokens = tokens_;
    source_.types = types_;
    source_.scores = scores_;
    source_.merges = merges_;
    return source_;
  }

  text::Vocabulary build() { return text::Vocabulary(source()); }

 private:
  std::deque<std::string> owned_;  // texts stay where they are
  std::vector<std::string_view> tokens_, merges_;
  std::vector<std::int32_t> types_;
  std::vector<float> scores_;
  text::VocabularySource source_;
};

}  // namespace mica::test
