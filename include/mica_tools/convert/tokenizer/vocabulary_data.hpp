// SPDX-License-Identifier: Apache-2.0
//
// A vocabulary during a conversion: the values of the tokenizer.* keys, and these keys in a GGUF file.
#pragma once

#include "mica/text/token_id.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

namespace detail {

inline void write_tokens(const VocabularyData& vocabulary, gguf::Writer& out) {
  std::vector<std::string_view> texts;
  std::vector<std::int32_t> types;
  std::vector<float> scores;
  for (const VocabularyToken& token : vocabulary.tokens) {
    texts.push_back(token.text);
    types.push_back(static_cast<std::int32_t>(token.type));
    scores.push_back(token.score);
  }
  out.set_array("tokenizer.ggml.tokens", texts);
  if (vocabulary.scored) out.set_array("tokenizer.ggml.scores", scores);
  out.set_array("tokenizer.ggml.token_type", types);
  if (!vocabulary.merges.empty()) out.set_array("tokenizer.ggml.merges", vocabulary.merges);
}

inline void write_templates(const VocabularyData& vocabulary, gguf::Writer& out) {
  std::vector<std::string> names;
  for (const auto& [name, text] : vocabulary.chat_templates) {
    if (!name.empty()) names.push_back(name);
    out.set(name.empty() ? std::string("tokenizer.chat_template") : "tokenizer.chat_template." + name, text);
  }
  if (!names.empty()) out.set_array("tokenizer.chat_templates", names);
}

}  // namespace detail

/// Sets the keys.
inline void write_vocabulary(const VocabularyData& vocabulary, gguf::Writer& out) {
  out.set("tokenizer.ggml.model", vocabulary.model);
  out.set("tokenizer.ggml.pre", vocabulary.pre);
  detail::write_tokens(vocabulary, out);
  const auto set_id = [&](std::string_view key, std::optional<std::uint64_t> id) {
    if (id) out.set(key, static_cast<std::uint32_t>(*id));
  };
  set_id("tokenizer.ggml.bos_token_id", vocabulary.bos);
  set_id("tokenizer.ggml.eos_token_id", vocabulary.eos);
  set_id("tokenizer.ggml.eot_token_id", vocabulary.eot);
  set_id("tokenizer.ggml.unknown_token_id", vocabulary.unknown);
  set_id("tokenizer.ggml.padding_token_id", vocabulary.padding);
  const auto set_flag = [&](std::string_view key, std::optional<bool> value) {
    if (value) out.set(key, *value);
  };
  set_flag("tokenizer.ggml.add_bos_token", vocabulary.add_bos);
  set_flag("tokenizer.ggml.add_eos_token", vocabulary.add_eos);
  set_flag("tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix);
  detail::write_templates(vocabulary, out);
}

}  // namespace mica::convert
