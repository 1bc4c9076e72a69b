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
  explicit Bpe(Vocabulary vocabulary)
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

  // Required by Tokenizer
  /// Bytes that are not UTF-8 are read as U+FFFD each.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const {
    detail::check_text_bytes(text);
    std::string repaired;
    if (!is_utf8(text)) text = repaired = repaired_utf8(text);
    Scratch scratch;
    const auto on_text = [&](std::string_view stretch, std::vector<TokenId>& out) {
      pretokenizer_.split(stretch, [&](std::string_view word) { encode_word(word, scratch, out); });
    };
    return detail::encode_around_special(vocabulary_, text, options, on_text, [](TokenId) { return false; });
  }
  void append_piece(TokenId id, bool show_special, std::string& out) const {
    if (!detail::append_special(vocabulary_, id, show_special, out))
      append_unspelled(vocabulary_.text(id), out);
  }
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
      return pairs_.find(a.id, b.id);
    });
    for (const detail::Symbol& symbol : scratch.symbols) {
      if (symbol.size > 0) detail::append_or_unknown(symbol.id, vocabulary_, out);
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

}  // namespace mica::text
