// SPDX-License-Identifier: Apache-2.0
//
// Vocabularies of tokenizer.model, SentencePiece's own file: pieces with scores and types, and how it was
// trained. The file is a protocol buffer: fields with a number, one after the other, read without a schema.
#pragma once

#include "mica/base/assert.hpp"
#include "mica_tools/convert/json.hpp"
#include "mica_tools/convert/tokenizer/vocabulary_data.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>

namespace mica::convert {

/// One field of a message; which member holds its value depends on the wire type.
struct ProtobufField {
  std::uint64_t number = 0;               // of the field in the schema
  std::uint64_t whole = 0;                // varint and fixed-size numbers
  std::optional<std::string_view> bytes;  // text, bytes or a message

  /// Of a 32-bit field.
  [[nodiscard]] float real() const noexcept {
    const auto bits = static_cast<std::uint32_t>(whole);
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }
};

/// The fields of a message in order. A view of the bytes.
class ProtobufReader {
 public:
  /// `file` stands for the bytes in error texts, and outlives the reader.
  ProtobufReader(std::string_view bytes, const std::string& file) : bytes_(bytes), file_(file) {}

  /// Empty at the end. Raises ErrorCode::file for bytes that are no fields.
  [[nodiscard]] std::optional<ProtobufField> next() {
    if (bytes_.empty()) return std::nullopt;
    const std::uint64_t tag = varint();
    ProtobufField field;
    field.number = tag >> 3;
    switch (tag & 7) {
      case 0:
        field.whole = varint();
        break;
      case 1:
        field.whole = fixed(8);
        break;
      case 2:
        field.bytes = take(varint());
        break;
      case 5:
        field.whole = fixed(4);
        break;
      default:
        raise(ErrorCode::file, file_, ": is not a protocol buffer: field ", field.number, " has wire type ",
              tag & 7);
    }
    return field;
  }

 private:
  [[nodiscard]] std::string_view take(std::uint64_t n) {
    MICA_CHECK(n <= bytes_.size(), file, file_, ": truncated or no protocol buffer: a field of ", n,
               " bytes, ", bytes_.size(), " are left");
    const std::string_view taken = bytes_.substr(0, static_cast<std::size_t>(n));
    bytes_.remove_prefix(taken.size());
    return taken;
  }
  [[nodiscard]] std::uint64_t fixed(std::size_t n) {
    std::uint64_t value = 0;
    std::memcpy(&value, take(n).data(), n);
    return value;
  }
  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const auto byte = static_cast<unsigned char>(take(1).front());
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    raise(ErrorCode::file, file_, ": is not a protocol buffer: a number longer than ten bytes");
  }

  std::string_view bytes_;
  const std::string& file_;
};

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

/// Whether the trainer was Unigram; its special ids are then set. Raises ErrorCode::unsupported when it was
/// neither that nor BPE, and for spaces behind their words.
[[nodiscard]] inline bool is_unigram(std::string_view trainer, const std::string& file, VocabularyData& out) {
  std::uint64_t type = 1, bos = 1, eos = 2, padding = ~std::uint64_t{0};
  bool space_behind = false;
  ProtobufReader reader(trainer, file);
  while (const auto field = reader.next()) {
    if (field->number == 3) type = field->whole;
    if (field->number == 24) space_behind = field->whole != 0;
    if (field->number == 41) bos = field->whole;
    if (field->number == 42) eos = field->whole;
    if (field->number == 43) padding = field->whole;
  }
  constexpr std::string_view names[] = {"unknown", "Unigram", "BPE", "Word", "Char"};
  MICA_CHECK(type == 1 || type == 2, unsupported, file, ": a SentencePiece model of the kind ",
             type < 5 ? names[type] : names[0], "; supported: BPE, Unigram");
  MICA_CHECK(!space_behind, unsupported, file,
             ": tokens have the space of a word behind it; supported: before");
  if (type != 1) return false;
  const auto known = [&](std::uint64_t id) {  // "none" is a negative number
    return id < out.tokens.size() ? std::optional(id) : std::nullopt;
  };
  out.bos = known(bos);
  out.eos = known(eos);
  out.padding = known(padding);
  return true;
}

/// What happens to characters and spaces: charsmap 2, add_dummy_prefix 3, remove_extra_whitespaces 4.
inline void read_normalizer(std::string_view bytes, const std::string& file, VocabularyData& out) {
  ProtobufReader reader(bytes, file);
  while (const auto field = reader.next()) {
    if (field->number == 2 && field->bytes) out.charsmap = *field->bytes;
    if (field->number == 3) out.add_space_prefix = field->whole != 0;
    if (field->number == 4) out.remove_extra_spaces = field->whole != 0;
  }
}

}  // namespace detail

/// Reads a file. Raises ErrorCode::file for one that is damaged, unsupported for another kind than BPE and
/// Unigram.
[[nodiscard]] inline VocabularyData read_sentencepiece(const std::string& path, std::uint64_t n_vocab) {
  const std::string bytes = read_text(path);
  VocabularyData out;
  out.model = "llama";
  out.pre = "default";
  out.scored = true;
  out.add_space_prefix = true;
  out.remove_extra_spaces = true;
  std::optional<std::string_view> trainer;
  ProtobufReader reader(bytes, path);
  while (const auto field = reader.next()) {
    if (!field->bytes) continue;
    if (field->number == 1) {
      MICA_CHECK(out.tokens.size() < VocabularyData::max_tokens, limit, path, ": more than ",
                 VocabularyData::max_tokens, " pieces");
      out.tokens.push_back(detail::sentence_piece(*field->bytes, path));
      if (out.tokens.back().type == text::TokenType::unknown) out.unknown = out.tokens.size() - 1;
    } else if (field->number == 2) {
      trainer = *field->bytes;
    } else if (field->number == 3) {
      detail::read_normalizer(*field->bytes, path, out);
    }
  }
  MICA_CHECK(trainer && !out.tokens.empty(), file, path, ": is no SentencePiece model");
  if (out.tokens.size() > n_vocab) {
    out.notes.push_back(join("tokens from ", n_vocab, " on are left out: the embedding has no more rows"));
    out.tokens.resize(static_cast<std::size_t>(n_vocab));
    if (out.unknown && *out.unknown >= n_vocab) out.unknown.reset();
  }
  if (detail::is_unigram(*trainer, path, out)) {
    out.model = "t5";
  } else {  // Spm has neither
    out.charsmap.clear();
    out.remove_extra_spaces.reset();
  }
  return out;
}

inline constexpr std::uint64_t fairseq_tokens = 4;  // that come first

/// Gives the tokens of XLM-RoBERTa's sentencepiece.bpe.model the ids that its models have: <s>, <pad>, </s>
/// and <unk> come first, the others one later, and <mask> last. Requires n_vocab >= fairseq_tokens.
inline void place_fairseq_tokens(std::uint64_t n_vocab, VocabularyData& out) {
  if (out.tokens.size() > 3) out.tokens.erase(out.tokens.begin(), out.tokens.begin() + 3);
  using text::TokenType;
  const VocabularyToken first[] = {{"<s>", TokenType::control, 0.0F},
                                   {"<pad>", TokenType::control, 0.0F},
                                   {"</s>", TokenType::control, 0.0F},
                                   {"<unk>", TokenType::unknown, 0.0F}};
  out.tokens.insert(out.tokens.begin(), std::begin(first), std::end(first));
  if (out.tokens.size() < n_vocab) out.tokens.push_back({"<mask>", TokenType::control, 0.0F});
  if (out.tokens.size() > n_vocab) out.tokens.resize(static_cast<std::size_t>(n_vocab));
  out.bos = out.classifier = 0;
  out.padding = 1;
  out.eos = out.separator = 2;
  out.unknown = 3;
  out.add_bos = out.add_eos = out.add_separator = true;
}

}  // namespace mica::convert
