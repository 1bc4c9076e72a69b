// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE as GPT-2, Llama 3, Qwen and most others use it: a pre-tokenizer cuts words, inside a word
// the bytes are joined by the rank of their merge.
#pragma once

#include "mica/text/concept.hpp"
#include "mica/text/detail/merge_queue.hpp"
#include "mica/text/detail/pair_index.hpp"
#include "mica/text/detail/special_split.hpp"
#include "mica/text/detail/unicode.hpp"
#include "mica/text/pretokenize.hpp"
#include "mica/text/utf8.hpp"
#include "mica/text/vocabulary.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::text {

class Bpe {
 public:
  /// Precondition: `vocabulary.kind() == TokenizerKind::bpe`.
  /// Raises `unsupported` for an unknown name of a pre-tokenizer and when the program was built without
  /// PCRE2.
  explicit Bpe(Vocabulary vocabulary);

  // Required by Tokenizer
  /// Bytes that are not UTF-8 are read as U+FFFD each.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const;
  void append_piece(TokenId id, bool show_special, std::string& out) const;
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

  // Specific to Bpe
  /// Bytes held by the tables.
  [[nodiscard]] std::size_t bytes() const noexcept { return vocabulary_.bytes() + pairs_.bytes(); }

 private:
  struct Scratch {
    std::string spelled;
    std::vector<detail::Symbol> symbols;
    detail::MergeQueue queue;
  };

  void encode_word(std::string_view word, Scratch& scratch, std::vector<TokenId>& out) const {
    if (whole_words_) {
      if (const TokenId id = whole_word(word, scratch); id != no_token) return out.push_back(id);
    }
    scratch.symbols.clear();
    for (std::size_t at = 0; at < word.size(); ++at) {
      const TokenId id = byte_tokens_[static_cast<unsigned char>(word[at])];
      scratch.symbols.push_back({.begin = static_cast<std::uint32_t>(at), .size = 1, .id = id});
    }
    scratch.queue.run(scratch.symbols, [this](const detail::Symbol& a, const detail::Symbol& b) {
      const auto found = pairs_.find(a.id, b.id);
      if (found.result == no_token) return std::optional<detail::Candidate>();
      return std::optional(detail::Candidate{found.rank, found.result});
    });
    for (const detail::Symbol& symbol : scratch.symbols) {
      if (symbol.size == 0) continue;
      if (symbol.id != no_token) {
        out.push_back(symbol.id);
      } else if (vocabulary_.special().unknown) {  // a byte that the vocabulary lacks
        out.push_back(*vocabulary_.special().unknown);
      }
    }
  }

  /// The token that the word is, or `no_token`.
  [[nodiscard]] TokenId whole_word(std::string_view word, Scratch& scratch) const {
    if (word.size() > vocabulary_.longest_text_bytes()) return no_token;
    scratch.spelled.clear();
    append_spelled(word, scratch.spelled);
    return vocabulary_.find(scratch.spelled);
  }

  Vocabulary vocabulary_;
  bool whole_words_;
  Pretokenizer pretokenizer_;
  detail::PairIndex pairs_;
  std::array<TokenId, 256> byte_tokens_;  // no_token where a byte has none
};
static_assert(Tokenizer<Bpe>);

inline Bpe::Bpe(Vocabulary vocabulary)
    : vocabulary_(std::move(vocabulary)),
      whole_words_(pretokenizer_rules(vocabulary_.pre()).traits.whole_words),
      pretokenizer_(pretokenizer_rules(vocabulary_.pre())),
      pairs_(vocabulary_.merges()) {
  std::string spelled;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    spelled.clear();
    append_spelled({&c, 1}, spelled);
    byte_tokens_[byte] = vocabulary_.find(spelled);
  }
}

inline std::vector<TokenId> Bpe::encode(std::string_view text, EncodeOptions options) const {
  MICA_CHECK(text.size() < 0x4000'0000U, limit, "encode: the text has ", text.size(),
             " bytes, at most 1073741823 are taken");
  std::string repaired;
  if (!is_utf8(text)) text = repaired = repaired_utf8(text);
  std::vector<TokenId> out;
  Scratch scratch;
  if (options.add_special && vocabulary_.add_bos()) out.push_back(*vocabulary_.special().bos);
  const auto on_text = [&](std::string_view stretch) {
    pretokenizer_.split(stretch, [&](std::string_view word) { encode_word(word, scratch, out); });
  };
  detail::split_special(
      vocabulary_, text, options, on_text, [&](TokenId id) { out.push_back(id); },
      [](TokenId) { return false; });
  if (options.add_special && vocabulary_.add_eos()) out.push_back(*vocabulary_.special().eos);
  return out;
}

inline void Bpe::append_piece(TokenId id, bool show_special, std::string& out) const {
  const std::string_view text = vocabulary_.text(id);
  switch (vocabulary_.type(id)) {
    case TokenType::control:
    case TokenType::unknown:
      if (show_special) out.append(text);
      return;
    case TokenType::user_defined:
      out.append(text);
      return;
    case TokenType::unused:
      return;
    case TokenType::byte:
    case TokenType::normal:
    case TokenType::undefined:
      append_unspelled(text, out);
      return;
  }
}

}  // namespace mica::text
