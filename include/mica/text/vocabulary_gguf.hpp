// SPDX-License-Identifier: Apache-2.0
//
// A vocabulary out of the metadata of a GGUF file.
#pragma once

#include "mica/base/assert.hpp"
#include "mica/base/error.hpp"
#include "mica/base/log.hpp"
#include "mica/gguf/metadata.hpp"
#include "mica/text/utf8.hpp"
#include "mica/text/vocabulary.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace mica::text {

namespace detail {

/// A token id; files write "none" as a negative number or as 0xFFFFFFFF.
inline std::optional<std::uint64_t> metadata_id(const gguf::Metadata& metadata, std::string_view key) {
  const auto id = metadata.get<std::int64_t>(key);
  if (!id || *id < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*id);
}

template <class T>
std::vector<T> metadata_array(const gguf::Metadata& metadata, std::string_view key) {
  std::vector<T> out;
  if (!metadata.contains(key)) return out;
  const auto found = metadata.require<gguf::Array<T>>(key);
  out.reserve(found.size());
  for (const T element : found) out.push_back(element);
  return out;
}

/// Whether there is anything to join: an ordinary token of more than one character.
inline bool has_joined_tokens(const VocabularySource& source) {
  for (std::size_t i = 0; i < source.tokens.size(); ++i) {
    const std::string_view text = source.tokens[i];
    const auto type = i < source.types.size() ? static_cast<TokenType>(source.types[i]) : TokenType::normal;
    const bool ordinary = type == TokenType::normal || type == TokenType::undefined;
    if (ordinary && !text.empty() && utf8_claimed_bytes(text[0]) < text.size()) return true;
  }
  return false;
}

/// Without the key by which its tokens are joined a vocabulary would cut every text into single characters.
inline void require_joins(const gguf::Metadata& metadata, const VocabularySource& source) {
  const bool by_score = source.model == "llama" || source.model == "t5";
  if (!by_score && source.model != "gpt2" && source.model != ranked_spm)
    return;  // WordPiece needs neither; Vocabulary refuses others by name
  const bool complete = by_score ? !source.scores.empty() : !source.merges.empty();
  if (complete || !has_joined_tokens(source)) return;
  const std::string_view key = by_score ? "tokenizer.ggml.scores" : "tokenizer.ggml.merges";
  raise(ErrorCode::file, metadata.file(), ": key '", key,
        metadata.contains(key) ? "' is empty" : "' is missing", "; without it no two tokens of a '",
        source.model, "' tokenizer join, and texts are not the model's own; ",
        "convert the model again, or take the file from its publisher");
}

/// The format has scores as f32 alone.
inline void check_score_type(const gguf::Metadata& metadata) {
  const auto found = metadata.find("tokenizer.ggml.scores");
  if (!found) return;
  const bool is_f32 =
      found->is_array() && (found->size() == 0 || found->element_type() == gguf::ValueType::f32);
  MICA_CHECK(is_f32, file, metadata.file(), ": key 'tokenizer.ggml.scores' is ", found->description(),
             "; needed: an array of f32");
}

/// The bytes of an array, whose elements files store with or without a sign.
inline std::string_view metadata_bytes(const gguf::Metadata& metadata, std::string_view key) {
  const auto found = metadata.find(key);
  if (!found) return {};
  const bool is_bytes =
      found->is_array() && (found->size() == 0 || found->element_type() == gguf::ValueType::u8 ||
                            found->element_type() == gguf::ValueType::i8);
  MICA_CHECK(is_bytes, file, metadata.file(), ": key '", key, "' is ", found->description(),
             "; needed: an array of u8 or i8");
  const auto bytes = found->bytes().subspan(4 + 8);  // after the type and the number of elements
  return {reinterpret_cast<const char*>(bytes.data()), found->size() == 0 ? 0 : bytes.size()};
}

}  // namespace detail

/// Reads the tokenizer.* keys. Raises what Vocabulary raises, and `file` for a missing or mistyped key and
/// for a vocabulary without the scores or merges by which its tokens join; texts begin with the name of the
/// file. Warns through `log` when the file does not name its pre-tokenizer.
[[nodiscard]] inline Vocabulary vocabulary_from(const gguf::Metadata& metadata, LogSink log = {}) {
  detail::check_score_type(metadata);
  const auto tokens = metadata.require<gguf::Array<std::string_view>>("tokenizer.ggml.tokens");
  const std::vector<std::string_view> texts(tokens.begin(), tokens.end());
  const auto scores = detail::metadata_array<float>(metadata, "tokenizer.ggml.scores");
  const auto types = detail::metadata_array<std::int32_t>(metadata, "tokenizer.ggml.token_type");
  const auto merges = detail::metadata_array<std::string_view>(metadata, "tokenizer.ggml.merges");
  VocabularySource source;
  source.model = metadata.require<std::string_view>("tokenizer.ggml.model");
  source.pre = metadata.get<std::string_view>("tokenizer.ggml.pre").value_or("");
  source.name = metadata.get<std::string_view>("general.name").value_or("");
  source.tokens = {texts.data(), texts.size()};
  source.scores = {scores.data(), scores.size()};
  source.types = {types.data(), types.size()};
  source.merges = {merges.data(), merges.size()};
  source.charsmap = detail::metadata_bytes(metadata, "tokenizer.ggml.precompiled_charsmap");
  source.bos = detail::metadata_id(metadata, "tokenizer.ggml.bos_token_id");
  source.eos = detail::metadata_id(metadata, "tokenizer.ggml.eos_token_id");
  source.eot = detail::metadata_id(metadata, "tokenizer.ggml.eot_token_id");
  source.eom = detail::metadata_id(metadata, "tokenizer.ggml.eom_token_id");
  source.unknown = detail::metadata_id(metadata, "tokenizer.ggml.unknown_token_id");
  source.padding = detail::metadata_id(metadata, "tokenizer.ggml.padding_token_id");
  source.separator =
      detail::metadata_id(metadata, "tokenizer.ggml.seperator_token_id");  // the format's spelling
  source.classifier = detail::metadata_id(metadata, "tokenizer.ggml.cls_token_id");
  source.mask = detail::metadata_id(metadata, "tokenizer.ggml.mask_token_id");
  source.add_bos = metadata.get<bool>("tokenizer.ggml.add_bos_token");
  source.add_eos = metadata.get<bool>("tokenizer.ggml.add_eos_token");
  source.add_separator = metadata.get<bool>("tokenizer.ggml.add_sep_token");
  source.add_space_prefix = metadata.get<bool>("tokenizer.ggml.add_space_prefix");
  source.remove_extra_spaces = metadata.get<bool>("tokenizer.ggml.remove_extra_whitespaces");
  source.lower_case = metadata.get<bool>("tokenizer.ggml.normalizer.lowercase");
  source.strip_accents = metadata.get<bool>("tokenizer.ggml.normalizer.strip_accents");
  detail::require_joins(metadata, source);
  if (source.model == "gpt2" && source.pre.empty()) {
    log(LogLevel::warning,
        join(metadata.file(), ": key 'tokenizer.ggml.pre' is missing; texts are cut into words by the ",
             "rules named 'default', which may not be the model's own"));
  }
  try {
    return Vocabulary(source);
  } catch (const Error& error) {
    raise(error.code(), metadata.file(), ": ", error.message());
  }
}

}  // namespace mica::text
