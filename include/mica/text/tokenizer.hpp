// SPDX-License-Identifier: Apache-2.0
//
// The tokenizer of a file, of any kind, and the conversion of tokens to text.
#pragma once

#include "mica/text/bpe.hpp"
#include "mica/text/concept.hpp"
#include "mica/text/spm.hpp"
#include "mica/text/unigram.hpp"
#include "mica/text/vocabulary.hpp"
#include "mica/text/wordpiece.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace mica::text {

/// How tokens become a text.
struct DecodeOptions {
  bool show_special = false;  // write control and unknown tokens out
  /// As some models' own decoders do: no space before . , ! ? 's 'm 've 're (loses bytes).
  bool tidy_spaces = false;
};

namespace detail {

/// Drops a space before each of . , ! ?
inline std::string without_spaces_before_marks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool before_mark =
        i + 1 < text.size() && std::string_view(".,!?").find(text[i + 1]) != std::string_view::npos;
    if (text[i] != ' ' || !before_mark) out.push_back(text[i]);
  }
  return out;
}

/// Replaces each occurrence from left to right.
inline std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = text.find(from); at != std::string_view::npos; at = text.find(from)) {
    out.append(text.substr(0, at)).append(to);
    text.remove_prefix(at + from.size());
  }
  return out.append(text);
}

/// The text after "clean_up_tokenization_spaces".
inline std::string with_tidy_spaces(std::string_view text) {
  std::string out = replaced(without_spaces_before_marks(text), " ' ", "'");
  for (const std::string_view ending : {"'s", "'m", "'re", "'ve"}) {
    out = replaced(out, std::string(" ").append(ending), ending);
  }
  return out;
}

}  // namespace detail

/// Spm, Bpe, WordPiece or Unigram, as the vocabulary asks. Immutable: for any number of threads.
class AnyTokenizer {
  // f(the tokenizer); std::visit costs the compiler many times as much.
  template <class F>
  decltype(auto) visit(F&& f) const {
    if (const Spm* const spm = std::get_if<Spm>(&any_)) return f(*spm);
    if (const WordPiece* const wordpiece = std::get_if<WordPiece>(&any_)) return f(*wordpiece);
    if (const Unigram* const unigram = std::get_if<Unigram>(&any_)) return f(*unigram);
    return f(std::get<Bpe>(any_));
  }

 public:
  /// Raises what these raise.
  explicit AnyTokenizer(Vocabulary vocabulary) : any_(make(std::move(vocabulary))) {}

  // Required by Tokenizer
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const {
    return visit([&](const auto& t) { return t.encode(text, options); });
  }
  void append_piece(TokenId id, bool show_special, std::string& out) const {
    visit([&](const auto& t) { t.append_piece(id, show_special, out); });
  }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept {
    return visit([](const auto& t) -> const Vocabulary& { return t.vocabulary(); });
  }

  // Specific to AnyTokenizer
  /// Bytes held by the tables, for a ledger; compiled expressions are not among them.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return visit([](const auto& t) { return t.bytes(); });
  }

  /// The bytes of one token, which may end within a character (see Utf8Stream).
  /// Raises `usage` for an id outside the vocabulary.
  [[nodiscard]] std::string piece(TokenId id, bool show_special = false) const {
    const std::size_t n = vocabulary().size();
    MICA_CHECK(id < n, usage, "token ", id, " is outside the vocabulary of ", n, " tokens (0 to ", n - 1,
               ")");
    std::string out;
    append_piece(id, show_special, out);
    return out;
  }

  /// The text of many tokens, without the space that encoding put before the first word.
  /// Raises `usage` for an id outside the vocabulary.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, DecodeOptions options = {}) const {
    std::string out;
    const bool wordpiece = vocabulary().kind() == TokenizerKind::wordpiece;  // each word has a space
    bool at_start = vocabulary().add_space_prefix() || wordpiece;
    for (const TokenId id : ids) {
      const std::string bytes = piece(id, options.show_special);
      if (bytes.empty()) continue;
      out.append(bytes, at_start && bytes[0] == ' ' ? 1 : 0, std::string::npos);
      at_start = false;
    }
    const bool tidies = wordpiece || (vocabulary().kind() == TokenizerKind::bpe &&
                                      pretokenizer_rules(vocabulary().pre()).traits.tidies_spaces);
    return options.tidy_spaces && tidies ? detail::with_tidy_spaces(out) : out;
  }

 private:
  using Any = std::variant<Spm, Bpe, WordPiece, Unigram>;

  static Any make(Vocabulary vocabulary) {
    switch (vocabulary.kind()) {
      case TokenizerKind::spm:
        return Spm(std::move(vocabulary));
      case TokenizerKind::wordpiece:
        return WordPiece(std::move(vocabulary));
      case TokenizerKind::unigram:
        return Unigram(std::move(vocabulary));
      case TokenizerKind::bpe:
        break;
    }
    return Bpe(std::move(vocabulary));
  }

  Any any_;
};
static_assert(Tokenizer<AnyTokenizer>);

/// The tokenizer that the vocabulary asks for.
[[nodiscard]] inline AnyTokenizer make_tokenizer(Vocabulary vocabulary) {
  return AnyTokenizer(std::move(vocabulary));
}

}  // namespace mica::text
