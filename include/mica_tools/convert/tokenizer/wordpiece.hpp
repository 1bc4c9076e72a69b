// SPDX-License-Identifier: Apache-2.0
//
// WordPiece vocabularies, of tokenizer.json or of vocab.txt, BERT's own file: how they normalise texts, and
// how GGUF files spell their tokens.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/convert/json.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::convert {

namespace detail {

/// The step itself, or the only one of a Sequence; null where there are others.
[[nodiscard]] inline const Json* only_step(const Json& tokenizer, const char* key, const char* list) {
  const Json* const step = find_member(tokenizer, key);
  const Json* const steps = step == nullptr ? nullptr : find_member(*step, list);
  if (steps == nullptr || !steps->is_array()) return step;
  return steps->size() == 1 ? &steps->front() : nullptr;
}

/// Sets lower_case and strip_accents from BertNormalizer's settings, by the names that a file has for them.
inline void read_bert_options(const Json& settings, const char* lower_case, const char* ideographs,
                              const std::string& file, VocabularyData& out) {
  MICA_CHECK(member_flag(settings, ideographs).value_or(true), unsupported, file, ": '", ideographs,
             "' is false; supported: ideographs are words of their own");
  out.lower_case = member_flag(settings, lower_case).value_or(true);
  out.strip_accents = member_flag(settings, "strip_accents").value_or(*out.lower_case);
}

}  // namespace detail

/// Checks the steps of a WordPiece tokenizer.json and sets what the vocabulary needs of them. Raises
/// ErrorCode::unsupported for other steps than BERT's.
inline void read_wordpiece_options(const Json& tokenizer, const Json& model, const std::string& file,
                                   VocabularyData& out) {
  const Json* const normalizer = detail::only_step(tokenizer, "normalizer", "normalizers");
  MICA_CHECK(normalizer != nullptr && member_text(*normalizer, "type") == "BertNormalizer", unsupported, file,
             ": a WordPiece whose normalizer is not BertNormalizer");
  const Json* const splitter = detail::only_step(tokenizer, "pre_tokenizer", "pretokenizers");
  MICA_CHECK(splitter != nullptr && member_text(*splitter, "type") == "BertPreTokenizer", unsupported, file,
             ": a WordPiece whose pre_tokenizer is not BertPreTokenizer");
  MICA_CHECK(member_flag(*normalizer, "clean_text").value_or(true), unsupported, file,
             ": 'clean_text' is false; supported: control characters are dropped");
  const std::string prefix = member_text(model, "continuing_subword_prefix");
  MICA_CHECK(prefix.empty() || prefix == "##", unsupported, file, ": tokens inside of words begin with '",
             escaped(prefix), "'; supported: '##'");
  detail::read_bert_options(*normalizer, "lowercase", "handle_chinese_chars", file, out);
  const Json* const longest = find_member(model, "max_input_chars_per_word");
  if (longest != nullptr && *longest != 100)
    out.notes.push_back(join("words of more than 100 characters are unknown, in ", file,
                             " those of more than ", longest->dump()));
}

/// Spells the tokens as GGUF files do: U+2581 before those that begin words, and no "##" before the others.
/// Special tokens stay, the unknown one among them.
inline void mark_word_starts(VocabularyData& out) {
  for (VocabularyToken& token : out.tokens) {
    if (token.type == text::TokenType::unknown) token.type = text::TokenType::control;
    if (token.type == text::TokenType::control || token.type == text::TokenType::unused) continue;
    token.text = token.text.starts_with("##") ? token.text.substr(2) : join(detail::spm_space, token.text);
  }
}

/// Reads vocab.txt, a token on each line. `settings` is tokenizer_config.json; special tokens have the names
/// given there, or BERT's. Raises ErrorCode::limit for too many lines, unsupported for other settings.
[[nodiscard]] inline VocabularyData read_vocabulary_lines(const std::string& path, const Json& settings,
                                                          std::uint64_t n_vocab) {
  const std::string bytes = read_text(path);
  VocabularyData out;
  out.model = "bert";
  out.pre = "default";
  detail::read_bert_options(settings, "do_lower_case", "tokenize_chinese_chars", path, out);
  for (std::size_t at = 0; at < bytes.size() && out.tokens.size() < n_vocab;) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    MICA_CHECK(out.tokens.size() < VocabularyData::max_tokens, limit, path, ": more than ",
               VocabularyData::max_tokens, " lines");
    std::string text = bytes.substr(at, end - at);
    if (text.ends_with('\r')) text.pop_back();
    out.tokens.push_back({std::move(text), text::TokenType::normal, 0.0F});
    at = end + 1;
  }
  constexpr std::pair<const char*, const char*> special[] = {{"unk_token", "[UNK]"},
                                                             {"cls_token", "[CLS]"},
                                                             {"sep_token", "[SEP]"},
                                                             {"pad_token", "[PAD]"},
                                                             {"mask_token", "[MASK]"}};
  for (const auto& [key, usual] : special) {
    const Json* found = find_member(settings, key);
    if (found != nullptr && found->is_object()) found = find_member(*found, "content");
    const std::string text = found != nullptr && found->is_string() ? found->get<std::string>() : usual;
    if (const auto id = out.find(text))
      out.tokens[static_cast<std::size_t>(*id)].type = text::TokenType::control;
  }
  place_added_tokens(configured_tokens(settings, path), n_vocab, out);
  mark_word_starts(out);
  out.add_bos = out.add_eos = true;
  out.add_separator = false;
  return out;
}

}  // namespace mica::convert
