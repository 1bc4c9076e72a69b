// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece's BPE as Llama 2, Phi-3 and Gemma use it: characters are joined by the score of the token
// they give, spaces are U+2581, what no token covers becomes byte tokens. Gemma 4 ("gemma4") joins by the
// rank of merges instead, and never across the border of a run of newlines; a run that is a token stays
// whole.
#pragma once

#include "mica/text/concept.hpp"
#include "mica/text/detail/byte_tokens.hpp"
#include "mica/text/detail/merge_queue.hpp"
#include "mica/text/detail/special_split.hpp"
#include "mica/text/utf8.hpp"
#include "mica/text/vocabulary.hpp"

#include <array>
#include <bit>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::text {

namespace detail {

/// Numbers that rise where scores fall; both zeros are one, NaN has a place too.
constexpr std::uint32_t descending_order(float score) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(score + 0.0F);
  return (bits & 0x8000'0000U) != 0 ? bits : 0x7FFF'FFFFU - bits;
}

/// Phi-3's tokenizer drops white space after special tokens; its files do not say so except by their name.
inline bool is_phi3(std::string_view name) {
  std::string lower(name);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower.find("phi-3") != std::string::npos || lower.find("phi3") != std::string::npos;
}

}  // namespace detail

/// Immutable: for any number of threads.
class Spm {
 public:
  /// Raises ErrorCode::unsupported for a vocabulary of another kind than TokenizerKind::spm.
  explicit Spm(Vocabulary vocabulary);

  // Required by Tokenizer
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const {
    detail::check_text_bytes(text);
    Scratch scratch;
    const auto on_text = [&](std::string_view stretch, std::vector<TokenId>& out) {
      scratch.text.assign(vocabulary_.add_space_prefix() ? space_ : std::string_view());  // at each stretch
      escape_spaces(stretch, scratch.text);
      vocabulary_.joins_by_rank() ? encode_lines(scratch, out) : encode_stretch(scratch.text, scratch, out);
    };
    return detail::encode_around_special(vocabulary_, text, options, on_text,
                                         [this](TokenId id) { return trims_after(id); });
  }
  void append_piece(TokenId id, bool show_special, std::string& out) const {
    if (!detail::append_special(vocabulary_, id, show_special, out))
      detail::append_spaced(vocabulary_, id, out);
  }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return vocabulary_; }
  /// Bytes held by the tables.
  [[nodiscard]] std::size_t bytes() const noexcept { return vocabulary_.bytes() + pairs_.bytes(); }

 private:
  static constexpr std::string_view space_ = detail::escaped_space;

  struct Scratch {
    std::string text;
    std::vector<detail::Symbol> symbols;
    detail::MergeQueue queue;
  };

  /// Runs of newlines and what stands between them, each by itself.
  void encode_lines(Scratch& scratch, std::vector<TokenId>& out) const {
    const std::string_view text = scratch.text;
    for (std::size_t at = 0; at < text.size();) {
      const bool newlines = text[at] == '\n';
      const std::size_t end =
          std::min(newlines ? text.find_first_not_of('\n', at) : text.find('\n', at), text.size());
      const std::string_view run = text.substr(at, end - at);
      const bool may_be_token = newlines && run.size() <= vocabulary_.longest_text_bytes();
      const TokenId whole = may_be_token ? vocabulary_.find(run) : no_token;
      if (whole != no_token) {
        out.push_back(whole);
      } else {
        encode_stretch(run, scratch, out);
      }
      at = end;
    }
  }

  /// Cuts where no token reaches across: before a space whose left neighbour stands before a space in no
  /// token. Words are then joined one by one in small heaps, with the same result.
  void encode_stretch(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
    const bool ranked = vocabulary_.joins_by_rank();
    scratch.symbols.clear();
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t n = std::min(utf8_claimed_bytes(text[at]), text.size() - at);
      const std::string_view symbol = text.substr(at, n);
      if (symbol == space_ && at > 0 && !before_space_.test(static_cast<unsigned char>(text[at - 1]))) {
        encode_word(text, scratch, out);
        scratch.symbols.clear();
      }
      scratch.symbols.push_back({.begin = static_cast<std::uint32_t>(at),
                                 .size = static_cast<std::uint32_t>(n),
                                 .id = ranked ? vocabulary_.find(symbol) : no_token});
      at += n;
    }
    encode_word(text, scratch, out);
  }

  void encode_word(std::string_view text, Scratch& scratch, std::vector<TokenId>& out) const {
    const bool ranked = vocabulary_.joins_by_rank();
    scratch.queue.run(scratch.symbols, [&](const detail::Symbol& a, const detail::Symbol& b) {
      return ranked ? pairs_.find(a.id, b.id) : joined(text.substr(a.begin, a.size + b.size));
    });
    for (const detail::Symbol& symbol : scratch.symbols) {
      if (symbol.size == 0) continue;
      const std::string_view bytes = text.substr(symbol.begin, symbol.size);
      const TokenId id = symbol.id != no_token ? symbol.id : vocabulary_.find(bytes);
      if (id != no_token) {
        out.push_back(id);
        continue;
      }
      for (const char c : bytes)  // a character that is no token
        detail::append_or_unknown(byte_tokens_[static_cast<unsigned char>(c)], vocabulary_, out);
    }
  }

  [[nodiscard]] detail::Candidate joined(std::string_view text) const {
    if (text.size() > vocabulary_.longest_text_bytes()) return {};
    const TokenId id = vocabulary_.find(text);
    if (id == no_token) return {};
    return {detail::descending_order(vocabulary_.score(id)), id};
  }
  [[nodiscard]] bool trims_after(TokenId id) const {
    if (!trims_) return false;
    const std::string_view text = vocabulary_.text(id);
    return text != "<unk>" && text != "<s>" && text != "<|endoftext|>";
  }
  static void escape_spaces(std::string_view text, std::string& out) {
    for (const char c : text) {
      if (c == ' ') {
        out.append(space_);
      } else {
        out.push_back(c);
      }
    }
  }

  Vocabulary vocabulary_;
  detail::PairIndex pairs_;               // of a vocabulary that joins by rank
  std::array<TokenId, 256> byte_tokens_;  // no_token where a byte has none
  std::bitset<256> before_space_;         // last bytes of what stands before U+2581 inside a token
  bool trims_ = false;                    // white space after special tokens is dropped
};
static_assert(Tokenizer<Spm>);

inline Spm::Spm(Vocabulary vocabulary)
    : vocabulary_(of_kind(TokenizerKind::spm, std::move(vocabulary))),
      pairs_(vocabulary_.merges()),
      trims_(detail::is_phi3(vocabulary_.name())) {
  const detail::ByteTokens spelled(vocabulary_);
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);  // a token of type byte is better than one of the same text
    byte_tokens_[byte] = spelled.token(c) != no_token ? spelled.token(c) : vocabulary_.find({&c, 1});
  }
  for (TokenId id = 0; id < vocabulary_.size(); ++id) {
    const std::string_view text = vocabulary_.text(id);
    const TokenType type = vocabulary_.type(id);
    if (type == TokenType::control || type == TokenType::byte) continue;
    for (std::size_t at = text.find(space_, 1); at != std::string_view::npos;
         at = text.find(space_, at + 1)) {
      before_space_.set(static_cast<unsigned char>(text[at - 1]));
    }
  }
}

}  // namespace mica::text
