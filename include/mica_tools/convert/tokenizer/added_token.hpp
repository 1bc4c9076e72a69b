// SPDX-License-Identifier: Apache-2.0
//
// Tokens that were added to a vocabulary beside its training: special ones become control tokens, the others
// are user-defined, found in any text.
#pragma once

#include "mica_tools/convert/json.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert {

struct AddedToken {
  std::uint64_t id = 0;
  std::string text;
  bool special = false;
};

namespace detail {

inline constexpr std::string_view spm_space = "\xE2\x96\x81";  // U+2581

/// Tokens of Gemma 4 that a reader of answers must see.
[[nodiscard]] inline bool stays_visible(std::string_view text) {
  constexpr std::array names = {
      std::string_view("<|channel>"),       std::string_view("<channel|>"),
      std::string_view("<|tool_call>"),     std::string_view("<tool_call|>"),
      std::string_view("<|tool_response>"), std::string_view("<tool_response|>"),
      std::string_view("<|\"|>"),
  };
  return std::find(names.begin(), names.end(), text) != names.end();
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

}  // namespace mica::convert
