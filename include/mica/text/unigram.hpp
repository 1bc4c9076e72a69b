// SPDX-License-Identifier: Apache-2.0
//
// SentencePiece's Unigram as T5 and XLM-RoBERTa use it, and with the latter most multilingual embedding
// models: of all ways to spell a text with tokens, the one with the highest sum of scores. Spaces are U+2581.
#pragma once

#include "mica/text/concept.hpp"
#include "mica/text/detail/byte_tokens.hpp"
#include "mica/text/detail/charsmap.hpp"
#include "mica/text/detail/special_split.hpp"
#include "mica/text/detail/text_trie.hpp"
#include "mica/text/utf8.hpp"
#include "mica/text/vocabulary.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mica::text {

/// Immutable: for any number of threads.
///
/// A text is normalised first, as SentencePiece does: the longest replacement of the charsmap at each place,
/// then spaces. Sums of scores are doubles that begin at each word, as in Hugging Face's tokenizers; where
/// SentencePiece's floats are equal by rounding, it may choose another of two nearly equal spellings.
class Unigram {
 public:
  /// Raises ErrorCode::unsupported for another kind than TokenizerKind::unigram, and what Charsmap raises.
  explicit Unigram(Vocabulary vocabulary);

  // Required by Tokenizer
  /// Characters that no token has become byte tokens, or one unknown token for all in a row. Bytes that are
  /// not UTF-8 are read as U+FFFD. Cost: linear in the text, times the tokens that begin at a place.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, EncodeOptions options = {}) const {
    detail::check_text_bytes(text);
    Scratch scratch;
    const auto on_text = [&](std::string_view stretch, std::vector<TokenId>& out) {
      normalise(stretch, scratch.text);
      encode_words(scratch, out);
    };
    return detail::encode_around_special(vocabulary_, text, options, on_text, [](TokenId) { return false; });
  }
  void append_piece(TokenId id, bool show_special, std::string& out) const {
    if (!detail::append_special(vocabulary_, id, show_special, out))
      detail::append_spaced(vocabulary_, id, out);
  }
  [[nodiscard]] const Vocabulary& vocabulary() const noexcept { return vocabulary_; }

  // Specific to Unigram
  /// Bytes held by the tables.
  [[nodiscard]] std::size_t bytes() const noexcept {
    return vocabulary_.bytes() + trie_.bytes() + charsmap_.bytes();
  }

 private:
  static constexpr std::string_view space_ = detail::escaped_space;
  static constexpr double unknown_penalty = 10;  // below the lowest score of a token

  /// The best spelling of the text up to a place.
  struct Place {
    double score = 0;
    std::uint32_t before = unreached;  // where its last token begins
    TokenId id = no_token;             // that token, no_token for a character that none has
  };
  static constexpr std::uint32_t unreached = 0xFFFF'FFFFU;

  struct Scratch {
    std::string text;
    std::vector<Place> places;  // of a word, one more than it has bytes
    std::vector<Place> chosen;  // the last token first
  };

  void normalise(std::string_view text, std::string& out) const;

  /// Cuts before spaces where no token reaches across, with the same result in less memory.
  void encode_words(Scratch& scratch, std::vector<TokenId>& out) const {
    std::string_view rest = scratch.text;
    bool after_unknown = false;
    while (!rest.empty()) {
      const std::size_t end = across_spaces_ ? rest.size() : std::min(rest.find(space_, 1), rest.size());
      encode_word(rest.substr(0, end), scratch, after_unknown, out);
      rest.remove_prefix(end);
    }
  }

  void encode_word(std::string_view word, Scratch& scratch, bool& after_unknown,
                   std::vector<TokenId>& out) const {
    find_best(word, scratch.places);
    scratch.chosen.clear();
    for (std::size_t at = word.size(); at > 0; at = scratch.places[at].before)
      scratch.chosen.push_back(scratch.places[at]);
    for (auto place = scratch.chosen.rbegin(); place != scratch.chosen.rend(); ++place) {
      const std::size_t end = place + 1 == scratch.chosen.rend() ? word.size() : (place + 1)->before;
      if (place->id != no_token) {
        out.push_back(place->id);
      } else if (bytes_.complete()) {
        for (const char c : word.substr(place->before, end - place->before)) out.push_back(bytes_.token(c));
      } else if (!after_unknown) {
        detail::append_or_unknown(no_token, vocabulary_, out);
      }
      after_unknown = place->id == no_token;
    }
  }

  /// Viterbi's algorithm: each place gets its best spelling from the places before it. Of equal sums the one
  /// whose last token begins first stays.
  void find_best(std::string_view word, std::vector<Place>& places) const {
    places.assign(word.size() + 1, {});
    const auto reach = [&](std::size_t from, std::size_t bytes, double score, TokenId id) {
      Place& place = places[from + bytes];
      const double sum = places[from].score + score;
      if (place.before == unreached || sum > place.score) place = {sum, static_cast<std::uint32_t>(from), id};
    };
    for (std::size_t at = 0; at < word.size();) {
      const std::size_t n = std::min(utf8_claimed_bytes(word[at]), word.size() - at);
      bool spelled = false;  // the character is a token by itself
      trie_.each_prefix(word.substr(at), [&](TokenId id, std::size_t bytes) {
        reach(at, bytes, vocabulary_.score(id), id);
        spelled = spelled || bytes == n;
      });
      if (!spelled) reach(at, n, unknown_score_, no_token);
      at += n;
    }
  }

  Vocabulary vocabulary_;
  detail::Charsmap charsmap_;
  detail::TextTrie trie_;
  detail::ByteTokens bytes_;
  double unknown_score_ = -unknown_penalty;
  bool across_spaces_ = false;  // a token has U+2581 behind its beginning
};
static_assert(Tokenizer<Unigram>);

namespace detail {

/// The tokens that ordinary text can become.
inline std::vector<TokenId> normal_tokens(const Vocabulary& vocabulary) {
  std::vector<TokenId> out;
  for (TokenId id = 0; id < vocabulary.size(); ++id) {
    const TokenType type = vocabulary.type(id);
    if (type == TokenType::normal || type == TokenType::undefined) out.push_back(id);
  }
  return out;
}

}  // namespace detail

inline Unigram::Unigram(Vocabulary vocabulary)
    : vocabulary_(of_kind(TokenizerKind::unigram, std::move(vocabulary))),
      charsmap_(vocabulary_.charsmap()),
      trie_(vocabulary_, detail::normal_tokens(vocabulary_)),
      bytes_(vocabulary_) {
  double lowest = std::numeric_limits<double>::infinity();
  for (const TokenId id : detail::normal_tokens(vocabulary_)) {
    lowest = std::min(lowest, double{vocabulary_.score(id)});
    across_spaces_ = across_spaces_ || vocabulary_.text(id).find(space_, 1) != std::string_view::npos;
  }
  if (lowest != std::numeric_limits<double>::infinity()) unknown_score_ = lowest - unknown_penalty;
}

/// Spaces at the ends and repeated ones go where the vocabulary says so, a space comes before the first word,
/// all become U+2581. What the charsmap replaces by nothing is neither a space nor another character.
inline void Unigram::normalise(std::string_view text, std::string& out) const {
  const bool removes = vocabulary_.remove_extra_spaces();
  out.clear();
  bool after_space = removes;  // a further space is dropped
  bool empty = true;
  const auto append = [&](std::string_view replacement) {
    while (after_space && replacement.starts_with(' ')) replacement.remove_prefix(1);
    if (replacement.empty()) return;
    if (empty && vocabulary_.add_space_prefix()) out.append(space_);
    empty = false;
    for (const char c : replacement) c == ' ' ? (void)out.append(space_) : out.push_back(c);
    after_space = removes && replacement.back() == ' ';
    detail::check_text_bytes(out);
  };
  while (!text.empty()) {
    const detail::Charsmap::Match match = charsmap_.longest(text);
    const std::size_t n = match.bytes != 0 ? match.bytes : utf8_sequence_bytes(text);
    append(match.bytes != 0 ? match.text : n != 0 ? text.substr(0, n) : replacement_character);
    text.remove_prefix(n != 0 ? n : 1);
  }
  while (removes && std::string_view(out).ends_with(space_)) out.resize(out.size() - space_.size());
}

}  // namespace mica::text
