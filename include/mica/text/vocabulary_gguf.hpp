// SPDX-License-Identifier: Apache-2.0
//
// A vocabulary out of the metadata of a GGUF file.
#pragma once

#include "mica/gguf/metadata.hpp"
#include "mica/text/vocabulary.hpp"

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
  const auto found = metadata.get<gguf::Array<T>>(key);
  if (!found) return {};
  std::vector<T> out;
  out.reserve(found->size());
  for (const T element : *found) out.push_back(element);
  return out;
}

}  // namespace detail

/// Reads the tokenizer.* keys. Raises what Vocabulary raises, and `file` for a missing or mistyped key; texts
/// begin with the name of the file.
[[nodiscard]] inline Vocabulary vocabulary_from(const gguf::Metadata& metadata) {
  const auto tokens = metadata.require<gguf::Array<std::string_view>>("tokenizer.ggml.tokens");
  const std::vector<std::string_view> texts(tokens.begin(), tokens.end());
  const auto scores = detail::metadata_array<float>(metadata, "tokenizer.ggml.scores");
  const auto types = detail::metadata_array<std::int32_t>(metadata, "tokenizer.ggml.token_type");
  const auto merges = detail::metadata_array<std::string_view>(metadata, "tokenizer.ggml.merges");
  VocabularySource source;
  source.model = metadata.require<std::string_view>("tokenizer.ggml.model");
  source.pre = metadata.get<std::string_view>("tokenizer.ggml.pre").value_or("");
  source.name = metadata.get<std::string_view>("general.name").value_or("");
  source.tokens = texts;
  source.scores = scores;
  source.types = types;
  source.merges = merges;
  source.bos = detail::metadata_id(metadata, "tokenizer.ggml.bos_token_id");
  source.eos = detail::metadata_id(metadata, "tokenizer.ggml.eos_token_id");
  source.eot = detail::metadata_id(metadata, "tokenizer.ggml.eot_token_id");
  source.eom = detail::metadata_id(metadata, "tokenizer.ggml.eom_token_id");
  source.unknown = detail::metadata_id(metadata, "tokenizer.ggml.unknown_token_id");
  source.padding = detail::metadata_id(metadata, "tokenizer.ggml.padding_token_id");
  source.add_bos = metadata.get<bool>("tokenizer.ggml.add_bos_token");
  source.add_eos = metadata.get<bool>("tokenizer.ggml.add_eos_token");
  source.add_space_prefix = metadata.get<bool>("tokenizer.ggml.add_space_prefix");
  try {
    return Vocabulary(source);
  } catch (const Error& error) {
    raise(error.code(), metadata.file(), ": ", error.message());
  }
}

}  // namespace mica::text
