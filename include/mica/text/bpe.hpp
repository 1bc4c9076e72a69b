// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE as GPT-2, Llama 3, Qwen and most others use it: a pre-tokenizer cuts words, inside a word
// the bytes are joined by the rank of their merge.
#pragma once

#include "mica/text/concept.hpp"
#include "mica/text/detail/merge_queue.hpp"
#include "mica/text/detail/special_split.hpp"
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

namespace detail {

constexpr bool stands_for_itself(std::size_t byte) noexcept {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

/// The byte alphabet of GPT-2: files spell each byte as one printable character, so that "\n" is U+010A and a
/// space is U+0120. Bytes that print stand for themselves, the other 68 follow from U+0100 on.
inline constexpr std::array<std::uint16_t, 256> byte_alphabet = [] {
  std::array<std::uint16_t, 256> out = {};
  std::uint16_t next = 0x100;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    out[byte] = stands_for_itself(byte) ? static_cast<std::uint16_t>(byte) : next++;
  }
  return out;
}();

/// The byte of each character below U+0144, or -1.
inline constexpr std::array<std::int16_t, 0x144> byte_of_character = [] {
  std::array<std::int16_t, 0x144> out = {};
  out.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte) out[byte_alphabet[byte]] = static_cast<std::int16_t>(byte);
  return out;
}();

}  // namespace detail

/// Adds the bytes in the spelling of byte-level BPE files.
inline void append_spelled(std::string_view bytes, std::string& out) {
  for (const char c : bytes) {
    const std::uint16_t character = detail::byte_alphabet[static_cast<unsigned char>(c)];
    if (character < 0x80) {
      out.push_back(static_cast<char>(character));
    } else {
      out.push_back(static_cast<char>(0xC0 | character >> 6));
      out.push_back(static_cast<char>(0x80 | (character & 0x3F)));
    }
  }
}

/// Adds the bytes that a token of a byte-level BPE file spells; what is not of the alphabet stays as it is.
inline void append_unspelled(std::string_view spelled, std::string& out) {
  while (!spelled.empty()) {
    const std::size_t n = utf8_sequence_bytes(spelled);
    const auto lead = static_cast<unsigned char>(spelled[0]);
    const auto second = static_cast<unsigned char>(n == 2 ? spelled[1] : 0);
    const unsigned character = n == 2 ? (lead & 0x1FU) << 6 | (second & 0x3FU) : lead;
    if ((n == 1 || n == 2) && character < 0x144 && detail::byte_of_character[character] >= 0) {
      out.push_back(static_cast<char>(detail::byte_of_character[character]));
    } else {
      out.append(spelled.substr(0, n == 0 ? 1 : n));
    }
    spelled.remove_prefix(n == 0 ? 1 : n);
  }
}

/// Immutable: for any number of threads.
class Bpe {
 public:
  /// Raises ErrorCode::unsupported for a vocabulary of another kind than TokenizerKind::bpe.
  /// Raises `unsupported` for an unknown name of a pre-tokenizer and when the program was built without
  /// PCRE2.
  explicit Bpe(Vocabulary vocabulary)
      : vocabulary_(of_kind(TokenizerKind::bpe, std::move(vocabulary))),
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
    Scratch scratch;
    const auto on_text = [&](std::string_view stretch, std::vector<TokenId>& out) {
      pretokenizer_.split(as_utf8(stretch, repaired),
                          [&](std::string_view word) { encode_word(word, scratch, out); });
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
