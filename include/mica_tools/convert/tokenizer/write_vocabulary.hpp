// SPDX-License-Identifier: Apache-2.0
//
// A vocabulary as the tokenizer.* keys of a GGUF file.
#pragma once

#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert {

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
