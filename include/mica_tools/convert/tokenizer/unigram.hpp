// SPDX-License-Identifier: Apache-2.0
//
// Unigram vocabularies of tokenizer.json: tokens with scores, and the steps before them, which must be those
// of SentencePiece.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/convert/json.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mica::convert {

namespace detail {

/// Raises ErrorCode::file for characters that base64 does not have.
[[nodiscard]] inline std::string from_base64(std::string_view text, const std::string& file) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::size_t bits = 0, value = 0;
  for (const char c : text.substr(0, text.find('='))) {
    const std::size_t digit = digits.find(c);
    MICA_CHECK(digit != digits.npos, file, file, ": 'precompiled_charsmap' is no base64");
    value = (value << 6 | digit) & 0xFFFF;
    bits += 6;
    if (bits >= 8) out.push_back(static_cast<char>(value >> (bits -= 8) & 0xFF));
  }
  return out;
}

/// The steps of a Sequence, or the step itself; none where the key is missing.
[[nodiscard]] inline std::vector<const Json*> all_steps(const Json& tokenizer, const char* key,
                                                        const char* list) {
  const Json* const step = find_member(tokenizer, key);
  if (step == nullptr || !step->is_object()) return {};
  const Json* const steps = find_member(*step, list);
  if (steps == nullptr || !steps->is_array()) return {step};
  std::vector<const Json*> out;
  for (const Json& each : *steps) out.push_back(&each);
  return out;
}

[[noreturn]] inline void refuse_unigram_step(const Json& step, const std::string& file) {
  raise(ErrorCode::unsupported, file, ": a Unigram with the step '", escaped(member_text(step, "type")),
        "'; supported: Precompiled, Replace of repeated spaces, Strip, WhitespaceSplit, Metaspace");
}

/// Whether a Replace makes one space of several.
[[nodiscard]] inline bool joins_spaces(const Json& step) {
  const Json* const pattern = find_member(step, "pattern");
  const std::string content = member_text(step, "content");
  return pattern != nullptr && member_text(*pattern, "Regex") == " {2,}" &&
         (content == " " || content == spm_space);
}

}  // namespace detail

/// Sets the charsmap and what happens to spaces. Raises ErrorCode::unsupported for other steps than
/// SentencePiece's.
inline void read_unigram_options(const Json& tokenizer, const std::string& file, VocabularyData& out) {
  out.add_space_prefix = out.remove_extra_spaces = false;
  for (const Json* const step : detail::all_steps(tokenizer, "normalizer", "normalizers")) {
    const std::string type = member_text(*step, "type");
    const bool joins = type == "Replace" && detail::joins_spaces(*step);
    if (type == "Precompiled") {
      out.charsmap = detail::from_base64(member_text(*step, "precompiled_charsmap"), file);
    } else if (!joins && type != "Strip") {
      detail::refuse_unigram_step(*step, file);
    }
    if (joins) out.remove_extra_spaces = true;
  }
  for (const Json* const step : detail::all_steps(tokenizer, "pre_tokenizer", "pretokenizers")) {
    const std::string type = member_text(*step, "type");
    if (type == "WhitespaceSplit") {
      out.remove_extra_spaces = true;
    } else if (type == "Metaspace") {
      const std::string scheme = member_text(*step, "prepend_scheme");
      out.add_space_prefix =
          scheme.empty() ? member_flag(*step, "add_prefix_space").value_or(true) : scheme != "never";
    } else {
      detail::refuse_unigram_step(*step, file);
    }
  }
}

/// Reads the tokens of `model`, pairs of a text and a score. Raises ErrorCode::file for others.
inline void read_unigram_tokens(const Json& model, const std::string& file, std::uint64_t n_vocab,
                                VocabularyData& out) {
  const Json* const vocab = find_member(model, "vocab");
  MICA_CHECK(vocab != nullptr && vocab->is_array() && !vocab->empty(), file, file,
             ": key 'vocab' is missing");
  MICA_CHECK(vocab->size() <= VocabularyData::max_tokens, limit, file, ": more than ",
             VocabularyData::max_tokens, " tokens");
  const bool bytes = member_flag(model, "byte_fallback").value_or(false);
  out.scored = true;
  for (const Json& each : *vocab) {
    if (out.tokens.size() == n_vocab) {
      out.notes.push_back(join("tokens from ", n_vocab, " on are left out: the embedding has no more rows"));
      break;
    }
    MICA_CHECK(each.is_array() && each.size() == 2 && each[0].is_string() && each[1].is_number(), file, file,
               ": token ", out.tokens.size(), " is no pair of text and score");
    VocabularyToken token{each[0].get<std::string>(), text::TokenType::normal, each[1].get<float>()};
    MICA_CHECK(std::isfinite(token.score), file, file, ": token '", escaped(token.text),
               "' has no finite score");
    if (bytes && token.text.size() == 6 && token.text.starts_with("<0x") && token.text.back() == '>')
      token.type = text::TokenType::byte;
    out.tokens.push_back(std::move(token));
  }
  const Json* const unknown = find_member(model, "unk_id");
  if (unknown == nullptr || !unknown->is_number_unsigned()) return;
  const auto id = unknown->get<std::uint64_t>();
  MICA_CHECK(id < vocab->size(), file, file, ": 'unk_id' is ", id, ", there are ", vocab->size(), " tokens");
  if (id >= out.tokens.size()) return;
  out.tokens[static_cast<std::size_t>(id)].type = text::TokenType::unknown;
  out.unknown = id;
}

}  // namespace mica::convert
