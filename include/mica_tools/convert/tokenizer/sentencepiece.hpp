// SPDX-License-Identifier: Apache-2.0
//
// Vocabularies of tokenizer.model, SentencePiece's own file: pieces with scores and types, and how it was
// trained.
#pragma once

#include "mica_tools/convert/json.hpp"
#include "mica_tools/convert/tokenizer/protobuf.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace mica::convert {

namespace detail {

/// One of `pieces`: text 1, score 2, type 3. Types have the numbers of GGUF files.
[[nodiscard]] inline VocabularyToken sentence_piece(std::string_view bytes, const std::string& file) {
  VocabularyToken token;
  token.type = text::TokenType::normal;
  token.score = 0;
  ProtobufReader reader(bytes, file);
  while (const auto field = reader.next()) {
    if (field->number == 1 && field->bytes) token.text = *field->bytes;
    if (field->number == 2) token.score = field->real();
    if (field->number != 3) continue;
    MICA_CHECK(field->whole >= 1 && field->whole <= 6, file, file, ": a piece of type ", field->whole,
               "; known: 1 to 6");
    token.type = static_cast<text::TokenType>(field->whole);
  }
  MICA_CHECK(std::isfinite(token.score), file, file, ": piece '", escaped(token.text),
             "' has no finite score");
  return token;
}

/// Raises ErrorCode::unsupported unless the trainer was BPE.
inline void require_bpe(std::string_view trainer, const std::string& file) {
  std::uint64_t type = 1;
  ProtobufReader reader(trainer, file);
  while (const auto field = reader.next()) {
    if (field->number == 3) type = field->whole;
  }
  constexpr std::string_view names[] = {"unknown", "Unigram", "BPE", "Word", "Char"};
  MICA_CHECK(type == 2, unsupported, file, ": a SentencePiece model of the kind ",
             type < 5 ? names[type] : names[0], "; supported: BPE");
}

}  // namespace detail

/// Reads a file. Raises ErrorCode::file for one that is damaged, unsupported for another kind than BPE.
[[nodiscard]] inline VocabularyData read_sentencepiece(const std::string& path, std::uint64_t n_vocab) {
  const std::string bytes = read_text(path);
  VocabularyData out;
  out.model = "llama";
  out.pre = "default";
  out.scored = true;
  out.add_space_prefix = true;
  bool trainer = false;
  ProtobufReader reader(bytes, path);
  while (const auto field = reader.next()) {
    if (!field->bytes) continue;
    if (field->number == 1) {
      MICA_CHECK(out.tokens.size() < VocabularyData::max_tokens, limit, path, ": more than ",
                 VocabularyData::max_tokens, " pieces");
      out.tokens.push_back(detail::sentence_piece(*field->bytes, path));
      if (out.tokens.back().type == text::TokenType::unknown) out.unknown = out.tokens.size() - 1;
    } else if (field->number == 2) {
      detail::require_bpe(*field->bytes, path);
      trainer = true;
    } else if (field->number == 3) {
      ProtobufReader normalizer(*field->bytes, path);
      while (const auto each = normalizer.next()) {
        if (each->number == 3) out.add_space_prefix = each->whole != 0;
      }
    }
  }
  MICA_CHECK(trainer && !out.tokens.empty(), file, path, ": is no SentencePiece model");
  if (out.tokens.size() > n_vocab) {
    out.notes.push_back(join("tokens from ", n_vocab, " on are left out: the embedding has no more rows"));
    out.tokens.resize(static_cast<std::size_t>(n_vocab));
  }
  return out;
}

}  // namespace mica::convert
