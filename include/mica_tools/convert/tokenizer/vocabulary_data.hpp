// SPDX-License-Identifier: Apache-2.0
//
// A vocabulary during a conversion: the values of the tokenizer.* keys.
#pragma once

#include "mica/text/token_type.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace mica::convert {

struct VocabularyToken {
  std::string text;
  text::TokenType type = text::TokenType::unused;
  float score = -10000.0F;
};

struct VocabularyData {
  static constexpr std::size_t max_tokens = std::size_t{1} << 22;

  std::string model;  ///< tokenizer.ggml.model: gpt2, llama, gemma4
  std::string pre;    ///< tokenizer.ggml.pre
  std::vector<VocabularyToken> tokens;
  std::vector<std::string> merges;  ///< "left right", best first
  bool scored = false;              ///< scores mean something
  std::optional<std::uint64_t> bos, eos, eot, unknown, padding;
  std::optional<bool> add_bos, add_eos, add_space_prefix;
  std::vector<std::pair<std::string, std::string>>
      chat_templates;              ///< name and text; the usual one has no name
  std::vector<std::string> notes;  ///< decisions of the conversion, for users

  /// The token of that id, made if there is none.
  [[nodiscard]] VocabularyToken& at(std::uint64_t id) {
    if (id >= tokens.size()) tokens.resize(static_cast<std::size_t>(id) + 1);
    return tokens[static_cast<std::size_t>(id)];
  }
  /// The id of a text; empty when there is none. Cost: linear.
  [[nodiscard]] std::optional<std::uint64_t> find(const std::string& text) const {
    for (std::size_t id = 0; id < tokens.size(); ++id) {
      if (tokens[id].text == text && tokens[id].type != text::TokenType::unused) return id;
    }
    return std::nullopt;
  }
};

}  // namespace mica::convert
