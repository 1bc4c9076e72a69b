// SPDX-License-Identifier: Apache-2.0
//
// A vocabulary during a conversion: its tokens, those that were added to it, and the values of the
// tokenizer.* keys, which go into a GGUF file.
#pragma once

#include "mica/text/token_id.hpp"
#include "mica_tools/convert/json.hpp"
#include "mica_tools/write/gguf_writer.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::convert {

/// A row of a vocabulary.
struct VocabularyToken {
  std::string text;                                // as files spell it
  text::TokenType type = text::TokenType::unused;  // unused: there is no such token
  float score = -10000.0F;                         // the higher, the earlier it is joined
};

struct VocabularyData {
  static constexpr std::size_t max_tokens = std::size_t{1} << 22;  // more are refused

  std::string model;                                       // tokenizer.ggml.model: gpt2, llama, bert, ...
  std::string pre;                                         // tokenizer.ggml.pre
  std::vector<VocabularyToken> tokens;                     // by id
  std::vector<std::string> merges;                         // "left right", best first
  bool scored = false;                                     // scores mean something
  std::string charsmap;                                    // replacements of characters, of Unigram
  std::optional<std::uint64_t> bos;                        // an id, as the seven below; empty: none
  std::optional<std::uint64_t> eos;                        // ends a text
  std::optional<std::uint64_t> eot;                        // ends a turn
  std::optional<std::uint64_t> unknown;                    // stands for bytes without a token
  std::optional<std::uint64_t> padding;                    // fills batches
  std::optional<std::uint64_t> separator;                  // stands between two texts
  std::optional<std::uint64_t> classifier;                 // its output stands for the whole text
  std::optional<std::uint64_t> mask;                       // stands for a token to be guessed
  std::optional<bool> add_bos, add_eos, add_space_prefix;  // empty, here and below: no key is written
  std::optional<bool> add_separator, remove_extra_spaces;  // as in text::VocabularySource
  std::optional<bool> lower_case, strip_accents;           // the same
  std::vector<std::pair<std::string, std::string>> chat_templates;  // name, none of the usual one; text
  std::vector<std::string> notes;                                   // decisions of the conversion, for users

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

/// A token that was added to a vocabulary beside its training: special ones become control tokens, the others
/// are user-defined, found in any text.
struct AddedToken {
  std::uint64_t id = 0;  // may be beyond the embedding
  std::string text;      // as it is found in texts
  bool special = false;  // it becomes a control token
};

namespace detail {

inline constexpr std::string_view spm_space = "\xE2\x96\x81";  // U+2581

/// Tokens of Gemma 4 that a reader of answers must see.
[[nodiscard]] inline bool stays_visible(std::string_view text) {
  constexpr std::string_view names[] = {"<|channel>",   "<channel|>",       "<|tool_call>",
                                        "<tool_call|>", "<|tool_response>", "<tool_response|>",
                                        "<|\"|>"};
  return std::find(std::begin(names), std::end(names), text) != std::end(names);
}

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != text.npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

[[nodiscard]] inline AddedToken added_token(const Json& json, std::uint64_t id, const std::string& file) {
  const Json* const content = find_member(json, "content");
  MICA_CHECK(content != nullptr && content->is_string(), file, file, ": added token ", id,
             " has no 'content'");
  return {id, content->get<std::string>(), member_flag(json, "special").value_or(false)};
}

}  // namespace detail

/// Those of tokenizer.json.
[[nodiscard]] inline std::vector<AddedToken> added_tokens(const Json& tokenizer, const std::string& file) {
  std::vector<AddedToken> out;
  const Json* const list = find_member(tokenizer, "added_tokens");
  if (list == nullptr) return out;
  MICA_CHECK(list->is_array(), file, file, ": key 'added_tokens' is no list");
  for (const Json& each : *list) {
    const Json* const id = find_member(each, "id");
    MICA_CHECK(id != nullptr && id->is_number_unsigned(), file, file, ": an added token has no 'id'");
    out.push_back(detail::added_token(each, id->get<std::uint64_t>(), file));
  }
  return out;
}

/// Those of tokenizer_config.json, `added_tokens_decoder`.
[[nodiscard]] inline std::vector<AddedToken> configured_tokens(const Json& config, const std::string& file) {
  std::vector<AddedToken> out;
  const Json* const list = find_member(config, "added_tokens_decoder");
  if (list == nullptr || !list->is_object()) return out;
  for (const auto& [key, each] : list->items()) {
    MICA_CHECK(!key.empty() && key.size() <= 9 && key.find_first_not_of("0123456789") == key.npos, file, file,
               ": added token '", escaped(key), "' has no number");
    out.push_back(detail::added_token(each, std::stoull(key), file));
  }
  return out;
}

/// Puts the tokens in their places. Those beyond the embedding are left out with a note: nothing could be
/// looked up.
inline void place_added_tokens(const std::vector<AddedToken>& added, std::uint64_t n_vocab,
                               VocabularyData& out) {
  for (const AddedToken& token : added) {
    if (token.id >= n_vocab) {
      out.notes.push_back(join("token ", token.id, " '", escaped(token.text),
                               "' is left out: the embedding has ", n_vocab, " rows"));
      continue;
    }
    VocabularyToken& place = out.at(token.id);
    const bool unknown = place.type == text::TokenType::unknown;
    const bool control = token.special && !(out.model == "gemma4" && detail::stays_visible(token.text));
    if (!unknown) place.type = control ? text::TokenType::control : text::TokenType::user_defined;
    place.text = control ? token.text : detail::replaced(token.text, detail::spm_space, " ");
    place.score = -1000.0F;
  }
}

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
  if (vocabulary.charsmap.empty()) return;
  const std::vector<std::uint8_t> charsmap(vocabulary.charsmap.begin(), vocabulary.charsmap.end());
  out.set_array("tokenizer.ggml.precompiled_charsmap", charsmap);
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
  set_id("tokenizer.ggml.seperator_token_id", vocabulary.separator);  // the format's spelling
  set_id("tokenizer.ggml.cls_token_id", vocabulary.classifier);
  set_id("tokenizer.ggml.mask_token_id", vocabulary.mask);
  const auto set_flag = [&](std::string_view key, std::optional<bool> value) {
    if (value) out.set(key, *value);
  };
  set_flag("tokenizer.ggml.add_bos_token", vocabulary.add_bos);
  set_flag("tokenizer.ggml.add_eos_token", vocabulary.add_eos);
  set_flag("tokenizer.ggml.add_sep_token", vocabulary.add_separator);
  set_flag("tokenizer.ggml.add_space_prefix", vocabulary.add_space_prefix);
  set_flag("tokenizer.ggml.remove_extra_whitespaces", vocabulary.remove_extra_spaces);
  set_flag("tokenizer.ggml.normalizer.lowercase", vocabulary.lower_case);
  set_flag("tokenizer.ggml.normalizer.strip_accents", vocabulary.strip_accents);
  detail::write_templates(vocabulary, out);
}

}  // namespace mica::convert
