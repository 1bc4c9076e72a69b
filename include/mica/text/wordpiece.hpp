// SPDX-License-Identifier: Apache-2.0
//
// WordPiece as BERT and most small embedding models use it: a text is normalised and cut into words, and each
// word into the longest tokens from left to right. A token that begins a word has U+2581 in front in the
// file, the others have nothing.
#pragma once

#include "mica/text/concept.hpp"
#include "mica/text/detail/characters.hpp"
#include "mica/text/detail/special_split.hpp"
#include "mica/text/utf8.hpp"
#include "mica/text/vocabulary.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::text {

/// Immutable: for any number of threads.
///
/// The normaliser is that of Hugging Face's tokenizers. Control characters and U+FFFD are dropped; white
/// space ends a word; punctuation, ASCII's symbols and ideographs are words of one character. Where the
/// vocabulary says so, characters are decomposed (NFD) and lose their accents (Mn), and letters become lower
/// case.
class WordPiece {
 public:
  static constexpr std::size_t max_word_characters = 100;  // a longer word is the unknown token

  /// Raises ErrorCode::unsupported for a vocabulary of another kind than TokenizerKind::wordpiece.
  explicit WordPiece(Vocabulary vocabulary)
      : vocabulary_(of_kind(TokenizerKind::wordpiece, std::move(vocabulary))) {}

  // Required by Tokenizer
  /// With `add_special` CLS ... SEP. A word that no tokens spell is the unknown token, or nothing where the
  /// vocabulary has none. Bytes that are not UTF-8 are dropped.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const {
    detail::check_text_bytes(text);
    std::string repaired;
    Word word;
    const auto on_text = [&](std::string_view stretch, std::vector<TokenId>& out) {
      stretch = as_utf8(stretch, repaired);
      while (!stretch.empty()) add(detail::take_character(stretch), word, out);
      finish(word, out);
    };
    return detail::encode_around_special(vocabulary_, text, options, on_text, [](TokenId) { return false; });
  }
  void append_piece(TokenId id, bool show_special, std::string& out) const {
    if (detail::append_special(vocabulary_, id, show_special, out)) return;
    std::string_view text = vocabulary_.text(id);
    if (text.starts_with(word_start_)) {
      out.push_back(' ');
      text.remove_prefix(word_start_.size());
    }
    out.append(text);
  }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

  // Specific to WordPiece
  /// Bytes held by the tables.
  [[nodiscard]] std::size_t bytes() const noexcept { return vocabulary_.bytes(); }

 private:
  static constexpr std::string_view word_start_ = "\xE2\x96\x81";  // U+2581

  /// A word that grows, behind the mark of its first token.
  struct Word {
    std::string bytes{word_start_};
    std::size_t characters = 0;
  };

  /// Normalises a character of the text.
  void add(std::uint32_t c, Word& word, std::vector<TokenId>& out) const {
    if (detail::is_word_space(c)) return finish(word, out);
    if (detail::is_dropped(c)) return;
    const bool alone = detail::is_ideograph(c);
    if (alone) finish(word, out);
    const auto append = [&](std::uint32_t normal) {
      const bool punctuation = detail::is_punctuation(normal);
      if (punctuation) finish(word, out);
      if (word.characters++ <= max_word_characters) detail::append_character(normal, word.bytes);
      if (punctuation) finish(word, out);
    };
    const auto in_case = [&](std::uint32_t base) {
      vocabulary_.lower_case() ? detail::lower_case(base, append) : append(base);
    };
    vocabulary_.strip_accents() ? detail::without_accents(c, in_case) : in_case(c);
    if (alone) finish(word, out);
  }

  /// Adds the tokens of the word, and begins another.
  void finish(Word& word, std::vector<TokenId>& out) const {
    if (word.characters == 0) return;
    const std::size_t before = out.size();
    if (word.characters > max_word_characters || !append_tokens(word.bytes, out)) {
      out.resize(before);
      detail::append_or_unknown(no_token, vocabulary_, out);
    }
    word.bytes.resize(word_start_.size());
    word.characters = 0;
  }

  /// False when there is a rest that no token begins.
  [[nodiscard]] bool append_tokens(std::string_view word, std::vector<TokenId>& out) const {
    for (std::size_t mark = word_start_.size(); !word.empty(); mark = 0) {
      if (mark == 0 && word.starts_with(word_start_)) return false;  // these tokens begin words
      std::size_t n = std::min(word.size(), vocabulary_.longest_text_bytes());
      TokenId id = no_token;
      for (; n > mark && id == no_token; --n) {
        const bool whole = n == word.size() || (word[n] & 0xC0) != 0x80;  // characters are not cut
        if (whole) id = vocabulary_.find(word.substr(0, n));
      }
      if (id == no_token) return false;
      out.push_back(id);
      word.remove_prefix(n + 1);
    }
    return true;
  }

  Vocabulary vocabulary_;
};
static_assert(Tokenizer<WordPiece>);

}  // namespace mica::text
